//! The walls of the house as tests: directions, names, sizes, and what the pages promise.

mod architecture;
mod code;
mod crates;
mod pages;
mod sizes;

use std::path::{Path, PathBuf};

/// The root of the repository.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    here.canonicalize().unwrap()
}

/// Every file below `folder`, but for what is built or belongs to git.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten() {
            let entry = entry.unwrap();
            let name = entry.file_name();
            let kind = entry.file_type().unwrap();
            let made = ["target", ".git", "results", "node_modules", "dist", ".venv"];
            let made =
                made.iter().any(|one| name == *one) || name.to_string_lossy().ends_with("_cache");
            if kind.is_dir() && !made {
                folders.push(entry.path());
            } else if kind.is_file() && name != ".git" {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    found
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().display().to_string()
}

/// Path and text of every Rust file.
fn sources() -> Vec<(String, String)> {
    ["crates", "bench"]
        .iter()
        .flat_map(|folder| files(&root().join(folder)))
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| (shown(&path), std::fs::read_to_string(&path).unwrap()))
        .collect()
}

/// Is it a file of tests, of a program that only tests start, or of what only tests put into a list?
fn is_test(path: &str) -> bool {
    let endings = ["tests.rs", "/made_up.rs"];
    path.contains("/tests/")
        || path.contains("/examples/")
        || endings.iter().any(|ending| path.ends_with(ending))
}

/// Does `text` hold `word`, with nothing of a name on either side?
fn has_word(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(part) && !text[at + word.len()..].starts_with(part))
}
