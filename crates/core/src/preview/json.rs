//! JSON in little: its shape with counts, and the first items as they are.

use crate::Json;
use crate::json::scan::Parts;

/// How deep a shape is told.
const DEPTH: usize = 3;
/// So many members of an object are told.
const MEMBERS: usize = 20;
/// So many items of a list are shown.
const ITEMS: usize = 3;
/// So many items are looked at to tell what a list holds.
const LOOKED_AT: usize = 20;

pub fn preview(data: &Json) -> String {
    let text = data.text();
    let mut told = format!("JSON: {}\n", shape(text, 0));
    let (place, items) = match text.starts_with('[') {
        true => (String::new(), Some(text)),
        false => longest_list(text),
    };
    if let Some(list) = items {
        told.push_str(&format!("first items{place}:\n"));
        for (_, item) in Parts::of(list).take(ITEMS) {
            told.push_str(&super::line(&compact(item)));
            told.push('\n');
        }
    } else {
        for (name, part) in Parts::of(text).take(MEMBERS) {
            told.push_str(&super::line(&format!("{name}: {}", compact(part))));
            told.push('\n');
        }
    }
    told
}

fn compact(text: &str) -> String {
    // No more than a line of it is shown.
    let beginning = &text[..text.floor_char_boundary(4 * super::MAX_LINE)];
    crate::json::scan::compact(beginning).into_owned()
}

/// The longest list among the members of an object, and where it is.
fn longest_list(object: &str) -> (String, Option<&str>) {
    let lists = Parts::of(object).filter(|(_, part)| part.starts_with('['));
    let longest = lists.max_by_key(|(_, part)| part.len());
    match longest {
        Some((name, list)) => (format!(" of /{name}"), Some(list)),
        None => (String::new(), None),
    }
}

/// `list of 3 {id: number, tags: list of 2 string}`.
fn shape(text: &str, depth: usize) -> String {
    match text.as_bytes().first() {
        Some(b'{') => object(text, depth),
        Some(b'[') => list(text, depth),
        Some(b'"') => "string".to_owned(),
        Some(b't' | b'f') => "boolean".to_owned(),
        Some(b'n') => "null".to_owned(),
        _ => "number".to_owned(),
    }
}

fn object(text: &str, depth: usize) -> String {
    let count = Parts::of(text).count();
    if depth >= DEPTH {
        return format!("object of {count}");
    }
    let members = Parts::of(text).take(MEMBERS);
    let members = members.map(|(name, part)| format!("{name}: {}", shape(part, depth + 1)));
    let members = members.collect::<Vec<_>>().join(", ");
    let more = match count > MEMBERS {
        true => format!(", … {} more", count - MEMBERS),
        false => String::new(),
    };
    format!("{{{members}{more}}}")
}

fn list(text: &str, depth: usize) -> String {
    let count = Parts::of(text).count();
    let mut kinds: Vec<String> = Vec::new();
    if depth < DEPTH {
        for (_, part) in Parts::of(text).take(LOOKED_AT) {
            let kind = shape(part, depth + 1);
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
    }
    match kinds.as_slice() {
        [] => format!("list of {count}"),
        [only] => format!("list of {count} {only}"),
        [first, ..] => format!("list of {count}, such as {first}"),
    }
}
