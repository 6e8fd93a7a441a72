//! Which path gives which, by their text alone.

use std::path::{Component, Path, PathBuf};

/// Files and folders that a yes to what lies around them does not reach: who writes there decides what runs, in other
/// tools or outside of all walls. Agents, editors, version control and shells run what is named there by themselves.
pub const GUARDED: [&str; 61] = [
    ".toolcrib",
    ".git",
    ".hg",
    ".jj",
    ".sl",
    ".husky",
    ".venv",
    "node_modules",
    ".envrc",
    ".claude",
    ".codex",
    ".cursor",
    ".gemini",
    ".opencode",
    "opencode.json",
    "opencode.jsonc",
    ".mcp.json",
    ".amazonq",
    ".continue",
    ".crush.json",
    "crush.json",
    ".factory",
    ".junie",
    ".kilocode",
    ".kiro",
    ".qwen",
    ".roo",
    ".trae",
    ".vscode",
    ".idea",
    ".zed",
    ".helix",
    ".vim",
    ".devcontainer",
    ".devcontainer.json",
    ".aider.conf.yml",
    ".clinerules",
    ".windsurf",
    ".exrc",
    ".nvim.lua",
    ".nvimrc",
    ".vimrc",
    ".yarnrc.yml",
    ".mise.toml",
    "mise.toml",
    ".direnv",
    ".mise",
    ".mise.local.toml",
    "mise.local.toml",
    ".npmrc",
    ".yarnrc",
    ".pnpmfile.cjs",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    ".lefthook.yml",
    ".agents",
    ".amp",
    ".augment",
    ".goose",
    ".openhands",
    ".pi",
];

/// A path without the parts that say nothing. A relative one may still begin with `..`.
pub fn clean(path: &str) -> String {
    let mut parts: Vec<Component> = Vec::new();
    for part in Path::new(path).components() {
        match (part, parts.last()) {
            (Component::CurDir, _) | (Component::ParentDir, Some(Component::RootDir)) => {}
            (Component::ParentDir, Some(Component::Normal(_))) => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    let path: PathBuf = parts.iter().collect();
    match path.to_str() {
        None | Some("") => ".".to_owned(),
        Some(text) => text.to_owned(),
    }
}

/// The path from the root on. A relative one without a project leads nowhere, and so does one whose project can't be
/// written as text.
pub fn absolute(project: Option<&Path>, path: &str) -> Option<String> {
    match Path::new(path).is_absolute() {
        true => Some(clean(path)),
        false => project?.join(path).to_str().map(clean),
    }
}

/// Does the right to read `place` give the right to read `path`?
pub fn may_read(place: &str, path: &str) -> bool {
    below(place, path).is_some()
}

/// Does the right to write `place` give the right to write `path`? What is guarded must be named itself.
pub fn may_write(place: &str, path: &str) -> bool {
    let guarded = |part: Component| GUARDED.iter().any(|name| part.as_os_str() == *name);
    below(place, path).is_some_and(|rest| !rest.components().any(guarded))
}

/// What is left of `path` after `place`, where it lies there.
fn below(place: &str, path: &str) -> Option<PathBuf> {
    let (place, path) = (clean(place), clean(path));
    let (place, path) = (Path::new(&place), Path::new(&path));
    let leads_up = |path: &Path| path.starts_with("..");
    if place == Path::new(".") && path.is_relative() {
        let path = match path == Path::new(".") {
            true => Path::new(""),
            false => path,
        };
        return (!leads_up(path)).then(|| path.to_path_buf());
    }
    let rest = path.strip_prefix(place).ok()?;
    (!leads_up(rest)).then(|| rest.to_path_buf())
}

/// The paths, each once and in one spelling, without those that another one gives.
pub fn tidy(list: &[String], gives: fn(&str, &str) -> bool) -> Vec<String> {
    let all = super::sorted(list.iter().map(|path| clean(path)).collect());
    let needless = |path: &&String| all.iter().any(|other| other != *path && gives(other, path));
    all.iter().filter(|path| !needless(path)).cloned().collect()
}
