//! What is near a path that leads to no file: names like it, or what its folder holds.

use std::path::Path;

use cap_std::ambient_authority;
use cap_std::fs::Dir;

/// Entries of a folder that are looked at, and those that are told.
const LOOKED_AT: usize = 2_000;
const TOLD: usize = 20;
const LIKE_IT: usize = 3;

/// A few words on what is near `path` below `base`, which leads to a folder or to nothing. Nothing leaves `base`.
pub fn near(base: &Path, path: &str) -> Option<String> {
    let root = Dir::open_ambient_dir(base, ambient_authority()).ok()?;
    let path = path.trim_end_matches('/');
    let at = match path {
        "" => ".",
        path => path,
    };
    if let Ok(folder) = root.open_dir(at) {
        return Some(contents(path, &folder));
    }
    let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
    let folder = match above {
        "" => root.try_clone().ok(),
        above => root.open_dir(above).ok(),
    };
    let Some(folder) = folder else {
        return near(base, above);
    };
    let names = entries(&folder);
    let score = |other: &str| strsim::jaro_winkler(&name.to_lowercase(), &other.to_lowercase());
    let mut like: Vec<(f64, &String)> = names.iter().map(|one| (score(one), one)).collect();
    like.retain(|(score, _)| *score > 0.7);
    like.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    let like: Vec<String> = like
        .iter()
        .take(LIKE_IT)
        .map(|(_, name)| format!("`{}`", joined(above, name)))
        .collect();
    match like.is_empty() {
        true => Some(contents(above, &folder)),
        false => Some(format!("did you mean {}?", like.join(", "))),
    }
}

fn contents(path: &str, folder: &Dir) -> String {
    let shown = match path {
        "" | "." => "the project".to_owned(),
        path => format!("`{path}`"),
    };
    let names = entries(folder);
    if names.is_empty() {
        return format!("{shown} is empty");
    }
    let told: Vec<&str> = names.iter().take(TOLD).map(String::as_str).collect();
    let more = match names.len().saturating_sub(TOLD) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    format!("{shown} holds {}{more}", told.join(", "))
}

/// Sorted; a folder's name ends in a slash. Names that are no text are left out.
fn entries(folder: &Dir) -> Vec<String> {
    let listed = folder.entries().into_iter().flatten().flatten();
    let named = listed.take(LOOKED_AT).filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let plain = !name.chars().any(char::is_control);
        let end = match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            true => "/",
            false => "",
        };
        plain.then(|| format!("{name}{end}"))
    });
    let mut names: Vec<String> = named.collect();
    names.sort();
    names
}

fn joined(folder: &str, name: &str) -> String {
    match folder {
        "" => name.to_owned(),
        folder => format!("{folder}/{name}"),
    }
}
