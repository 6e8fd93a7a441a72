//! What the settings of a repository lead git to beside `.git`: a folder of hooks, further files of settings, programs. Who
//! writes there decides what git runs, whoever calls it next.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use crate::resolver::{read_at_most, read_small, real, real_parent};

/// Files of settings that are read for one repository, at most.
const FILES: usize = 32;

/// How much of one such file: a repository with many branches has long settings.
const LONG: u64 = 4 << 20;

/// The user's own settings of git, from the home on, and the machine's.
const OF_USERS: [&str; 2] = [".gitconfig", ".config/git/config"];
const OF_THE_MACHINE: [&str; 2] = ["/etc/gitconfig", "/usr/local/etc/gitconfig"];
/// Keys whose values are command lines, wherever they stand.
const COMMANDS: [&str; 20] = [
    "alternaterefscommand",
    "askpass",
    "clean",
    "cmd",
    "command",
    "driver",
    "editor",
    "external",
    "fsmonitor",
    "gitproxy",
    "helper",
    "pager",
    "process",
    "program",
    "receivepack",
    "smudge",
    "sshcommand",
    "textconv",
    "tocmd",
    "uploadpack",
];

/// The same for all repositories among what was found in these folders, and for those that the folders lie in.
pub(crate) fn named_around<'a>(
    folders: impl Iterator<Item = &'a Path>,
    found: &BTreeSet<PathBuf>,
    home: Option<&Path>,
) -> BTreeSet<PathBuf> {
    let above = folders.flat_map(Path::ancestors);
    let above = above.map(|folder| folder.join(".git"));
    let found = found.iter().filter(|path| path.ends_with(".git"));
    let all: BTreeSet<PathBuf> = above.chain(found.cloned()).collect();
    let there = all.iter().filter(|git| git.exists());
    there.flat_map(|git| named_by(git, home)).collect()
}

/// What git would run or read of itself beside this `.git`, which is a folder or names one. `home` is the user's.
fn named_by(git: &Path, home: Option<&Path>) -> BTreeSet<PathBuf> {
    let mut named = BTreeSet::new();
    let (Some(top), Some(common)) = (git.parent(), common_folder(git)) else {
        return named;
    };
    let mut waiting = vec![common.join("config"), common.join("config.worktree")];
    let own = |name: &&str| Some(home?.join(name));
    waiting.extend(OF_USERS.iter().filter_map(own));
    waiting.extend(OF_THE_MACHINE.map(PathBuf::from));
    let mut seen = BTreeSet::new();
    while let Some(file) = waiting.pop() {
        if seen.len() >= FILES || !seen.insert(file.clone()) {
            continue;
        }
        let text = read_at_most(&file, LONG).unwrap_or_default();
        for (key, value) in paths_in(&text) {
            let beside = file.parent().unwrap_or(top);
            match key {
                Key::Hooks => named.extend(placed(&value, top, home)),
                Key::Include => waiting.extend(placed(&value, beside, home)),
                Key::Command => named.extend(programs(&value, top, home)),
            }
        }
    }
    // A file that is not there names nothing, and a placeholder in its place would be no file.
    named.extend(seen.into_iter().filter(|file| file.is_file()));
    named
}

/// The folder that a repository's settings lie in: work trees and modules have theirs elsewhere.
fn common_folder(git: &Path) -> Option<PathBuf> {
    let folder = match git.is_dir() {
        true => git.to_path_buf(),
        false => {
            let text = read_small(git)?;
            git.parent()?.join(text.strip_prefix("gitdir:")?.trim())
        }
    };
    let common = read_small(&folder.join("commondir"));
    let common = common.map(|text| folder.join(text.trim()));
    Some(real(&common.unwrap_or(folder)))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Hooks,
    Include,
    Command,
}

/// The settings in a text that lead elsewhere. Which section a line is in hardly matters: what is found too much is kept.
fn paths_in(text: &str) -> impl Iterator<Item = (Key, String)> {
    text.lines().flat_map(|line| {
        // A key may follow its section on the same line.
        let line = match line.trim_start().starts_with('[') {
            true => line.rsplit_once(']').map_or("", |(_, rest)| rest),
            false => line,
        };
        let (key, value) = line.split_once('=').unwrap_or_default();
        let value = unquoted(value.trim());
        let key = key.trim().to_ascii_lowercase();
        // An alias may have any name, and runs what follows its mark.
        let command = COMMANDS.contains(&key.as_str()) || value.starts_with('!');
        let keys = [
            (key == "hookspath").then_some(Key::Hooks),
            (key == "path").then_some(Key::Include),
            command.then_some(Key::Command),
        ];
        let keys = keys.into_iter().flatten().filter(|_| !value.is_empty());
        keys.map(|key| (key, value.clone())).collect::<Vec<_>>()
    })
}

/// The files that a command line names by a path. Git starts it at the top of the work tree.
fn programs(line: &str, top: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let parts = |letter: char| letter.is_whitespace() || "!'\"=;&|()".contains(letter);
    let words = line.split(parts).filter(|word| word.contains('/'));
    let mut found: Vec<PathBuf> = words.flat_map(|word| placed(word, top, home)).collect();
    found.retain(|path| path.is_file());
    found
}

/// A value without quotes and without what is said about it.
fn unquoted(value: &str) -> String {
    let (mut text, mut inside) = (String::new(), false);
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => inside = !inside,
            '\\' => text.extend(letters.next()),
            '#' | ';' if !inside => break,
            other => text.push(other),
        }
    }
    text.trim_end().to_owned()
}

/// The place that a value means and, where that is a link, the one that it leads to. What is not there yet has the place
/// that its folder has.
fn placed(value: &str, from: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let path = match (value.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        (Some(_), None) => return Vec::new(),
        (None, _) => from.join(value),
    };
    let Some(there) = path.ancestors().find(|part| part.exists()) else {
        return Vec::new();
    };
    let rest = path.strip_prefix(there).unwrap_or(Path::new(""));
    if there == path {
        return vec![real_parent(there), real(there)];
    }
    let plain = |part: Component| matches!(part, Component::Normal(_));
    match rest.components().all(plain) {
        true => vec![real(there).join(rest)],
        false => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_and_further_settings_are_found() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let at = |path: &str| root.join(path);
        for folder in ["p/.git/worktrees/w", "p/tools/hooks", "w", "home"] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        let write = |path: &str, text: &str| std::fs::write(at(path), text).unwrap();
        write(
            "p/.git/config",
            "[core]\n\thooksPath = \"tools/hooks\" # ours\n[include] path = ../shared.ini\n[x]\n\tpath = ../gone\n",
        );
        write("p/shared.ini", "[core]\nHOOKSPATH=later;\n");
        write("p/.git/worktrees/w/commondir", "../..\n");
        write(
            "w/.git",
            &format!("gitdir: {}\n", at("p/.git/worktrees/w").display()),
        );
        write("home/.gitconfig", "[core]\n hooksPath = ~/hooks\n");
        let programs = [
            "p/tools/watch",
            "p/tools/clean.sh",
            "p/tools/diff",
            "p/tools/ship",
        ];
        programs.iter().for_each(|path| write(path, ""));
        write(
            "p/later.ini",
            "[core] fsmonitor = tools/watch\n[filter \"x\"]\n clean = sh -c 'tools/clean.sh %f'\n\
             [diff]\n external = ./tools/diff\n[alias]\n ship = \"!x=1; tools/ship\"\n none = !git tools/none\n",
        );
        let long = "[branch \"one\"]\n\tmerge = refs/heads/one\n".repeat(3_000);
        let include = "[include]\n\tpath = ../later.ini\n";
        let mut settings = std::fs::read_to_string(at("p/.git/config")).unwrap();
        settings.push_str(&(long + include));
        write("p/.git/config", &settings);
        let found = |git: &str| named_by(&at(git), Some(&at("home")));
        let main = found("p/.git");
        for path in ["p/tools/hooks", "p/shared.ini", "p/later", "home/hooks"] {
            assert!(main.contains(&at(path)), "{path}: {main:?}");
        }
        assert!(!main.contains(&at("p/gone")));
        for path in programs {
            assert!(main.contains(&at(path)), "{path}: {main:?}");
        }
        assert!(!main.contains(&at("p/tools/none")));
        let tree = found("w/.git");
        for path in ["w/tools/hooks", "p/shared.ini", "p/.git/config"] {
            assert!(tree.contains(&at(path)), "{path}: {tree:?}");
        }
        assert!(named_by(&at("none/.git"), None).is_empty());
    }

    #[test]
    fn settings_that_lead_in_circles_end() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join(".git")).unwrap();
        let text = "[include]\npath = config\npath = ./config\npath = /dev/zero\npath = .\n";
        std::fs::write(root.path().join(".git/config"), text).unwrap();
        let named = named_by(&root.path().join(".git"), None);
        assert!(named.len() <= 2, "{named:?}");
    }
}
