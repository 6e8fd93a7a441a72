//! ARCHITECTURE.md names only what is there, and leaves out no crate, no SDK and no way of calling.

use std::collections::BTreeSet;

use super::{files, root, shown, sources};

/// What the page names though it is not kept: it is built.
const BUILT: [&str; 1] = ["dist/"];
const ENDINGS: [&str; 6] = [".rs", ".ts", ".py", ".md", ".toml", ".sql"];

fn page() -> String {
    std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap()
}

/// The texts between fences, and what lies around them.
fn blocks(page: &str) -> (Vec<&str>, String) {
    let parts: Vec<&str> = page.split("\n```").collect();
    let inside = parts.iter().skip(1).step_by(2).copied().collect();
    let outside: Vec<&str> = parts.iter().step_by(2).copied().collect();
    (inside, outside.join("\n"))
}

/// The words of a line that name a file or a folder: `mod.rs`, `worker/`, `tests/it/walls.rs`.
fn paths(line: &str) -> impl Iterator<Item = String> {
    let around = |c: char| "`,;:()".contains(c);
    line.split_whitespace()
        .map(move |word| word.trim_matches(around).trim_end_matches('.'))
        .filter(|word| !word.starts_with('/') && !BUILT.contains(word))
        .filter(|word| {
            let file = ENDINGS.iter().any(|end| word.ends_with(end));
            file || word.trim_start_matches('.').contains('/')
        })
        .filter(|word| !word.contains(['(', '─']))
        .flat_map(expanded)
}

/// `src/{a,b}.rs` are two; of `src/<kind>.rs` and `src/*.rs` only the folder can be there.
fn expanded(word: &str) -> Vec<String> {
    let word = match word.split_once(['<', '*']) {
        Some((known, _)) => known.trim_end_matches(|c| c != '/'),
        None => word,
    };
    match word.split_once('{').zip(word.split_once('}')) {
        Some(((before, _), (within, after))) => within[before.len() + 1..]
            .split(',')
            .map(|one| format!("{before}{one}{after}"))
            .collect(),
        None => vec![word.to_owned()],
    }
}

/// Every file and folder of the repository, each with a slash before it, folders with one behind.
fn kept() -> BTreeSet<String> {
    let mut kept = BTreeSet::new();
    for path in files(&root()) {
        let path = format!("/{}", shown(&path));
        kept.extend(
            path.match_indices('/')
                .map(|(at, _)| path[..=at].to_owned()),
        );
        kept.insert(path);
    }
    kept
}

/// Is there a file or folder with this name at its end, below `section`? `core/tool.rs` is `core/src/tool.rs` for short.
fn is_there(kept: &BTreeSet<String>, section: &str, name: &str) -> bool {
    let name = name.trim_end_matches('/');
    let (first, rest) = name.split_once('/').unwrap_or_default();
    let endings = [format!("/{name}"), format!("/crates/{first}/src/{rest}")];
    kept.iter()
        .filter(|path| path.starts_with(&format!("/{section}")))
        .map(|path| path.trim_end_matches('/'))
        .any(|path| path.ends_with(&endings[0]) || path == endings[1])
}

#[test]
fn the_map_names_only_what_is_there() {
    let page = page();
    let (blocks, _) = blocks(&page);
    let kept = kept();
    let (mut top, mut section) = (String::new(), String::new());
    let (mut seen, mut sections) = (0, BTreeSet::new());
    for line in blocks[0].lines() {
        let drawn = |c: char| "│├└─ ".contains(c);
        let text = line.trim_start_matches(drawn);
        let depth = (line.chars().count() - text.chars().count()) / 4;
        let folder = text.split_whitespace().next().unwrap_or_default();
        let begins = line.contains(['├', '└']) && folder.ends_with('/');
        if begins && depth == 1 {
            top = folder.to_owned();
            section = top.clone();
        } else if begins && depth == 2 {
            section = format!("{top}{folder}");
        }
        if !section.is_empty() && kept.contains(&format!("/{section}")) {
            sections.insert(section.clone());
        }
        for name in paths(text) {
            // What has a folder in its name may lie in another section.
            let below = if name.trim_end_matches('/').contains('/') || begins && depth <= 2 {
                ""
            } else {
                &section
            };
            let there = is_there(&kept, below, &name);
            assert!(there, "the map says `{name}` in {section}: {line}");
            seen += 1;
        }
    }
    assert!(seen > 150, "the map was not read: {seen} names");
    for path in kept {
        let parts: Vec<&str> = path.split_inclusive('/').skip(1).collect();
        let wanted = match parts[..] {
            [top] if top.ends_with('/') && !top.starts_with('.') => {
                !["crates/", "sdk/"].contains(&top)
            }
            ["crates/" | "sdk/", name] => name.ends_with('/'),
            _ => false,
        };
        let section = parts.concat();
        assert!(
            !wanted || sections.contains(&section),
            "the map leaves out {section}"
        );
    }
}

#[test]
fn the_page_names_only_what_is_there() {
    let page = page();
    let (blocks, prose) = blocks(&page);
    let kept = kept();
    let code = prose.split('`').skip(1).step_by(2);
    let names: Vec<String> = blocks[1..]
        .iter()
        .flat_map(|block| block.lines())
        .chain(code)
        .flat_map(paths)
        .collect();
    assert!(names.len() > 100, "the page was not read: {names:?}");
    for name in names {
        assert!(is_there(&kept, "", &name), "the page says `{name}`");
    }
}

#[test]
fn the_page_draws_a_call_over_mcp() {
    let page = page();
    let (blocks, _) = blocks(&page);
    let drawn = blocks[1..].iter().any(|block| block.contains("tools/call"));
    assert!(drawn, "no drawing shows a `tools/call`");
}

/// The rows of the table of invariants: what holds, and what enforces it.
fn invariants(page: &str) -> Vec<(&str, &str)> {
    let (_, table) = page.split_once("| what holds |").unwrap();
    table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split_once(" | ").unwrap())
        .collect()
}

#[test]
fn every_invariant_names_what_enforces_it() {
    let page = page();
    let rows = invariants(&page);
    assert!(rows.len() > 30, "the table was not read: {rows:?}");
    for (what, enforced) in rows {
        let named = enforced.contains('`') || enforced.contains("clippy");
        assert!(named, "nothing enforces that{what}: {enforced}");
        let later = ["not enforced", "review", "not yet"];
        assert!(
            !later.iter().any(|word| enforced.contains(word)),
            "{what}: {enforced}"
        );
    }
}

#[test]
fn the_mcp_library_is_used_where_the_page_says() {
    let page = page();
    let rows = invariants(&page);
    let (row, _) = rows
        .iter()
        .find(|(what, _)| what.contains("the MCP library's types"))
        .expect("a row says where the MCP library's types appear");
    let said: BTreeSet<String> = paths(row)
        .map(|name| format!("crates/toolcrib/src/{name}"))
        .collect();
    let used: BTreeSet<String> = sources()
        .into_iter()
        .filter(|(path, text)| path.contains("/src/") && text.contains("rmcp::"))
        .map(|(path, _)| path)
        .collect();
    assert_eq!(used, said);
}
