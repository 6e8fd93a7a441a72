//! What pages for people name is there: files, folders, targets, commands, links.

use std::path::PathBuf;

use super::{files, root, shown, sources};

#[test]
fn no_page_names_somebodys_machine() {
    // Put together here, so that this file does not find itself.
    let homes = ["home", "Users"].map(|folder| format!("/{folder}/"));
    let owner = format!("/{}/", "root");
    for path in files(&root()) {
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        let path = shown(&path);
        assert!(!text.contains(&owner), "{path} names {owner}");
        for home in &homes {
            let named = text.match_indices(home.as_str()).any(|(at, _)| {
                text[at + home.len()..].starts_with(|c: char| c.is_ascii_alphanumeric())
            });
            assert!(!named, "{path} names a folder below {home}");
        }
    }
}

/// Path and text of every page for people.
fn pages() -> Vec<(PathBuf, String)> {
    files(&root())
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .map(|path| (path.clone(), std::fs::read_to_string(&path).unwrap()))
        .collect()
}

#[test]
fn every_make_target_that_is_named_exists() {
    let makefile = std::fs::read_to_string(root().join("Makefile")).unwrap();
    let targets: Vec<&str> = makefile
        .lines()
        .filter(|line| !line.starts_with(['\t', ' ', '.', '#']))
        .filter_map(|line| line.split_once(':').map(|(name, _)| name))
        .collect();
    for (path, text) in pages() {
        for (at, _) in text.match_indices("make ") {
            let code = text[..at].ends_with(['`', '\n', '$']) || text[..at].ends_with("$ ");
            let end = |c: char| !c.is_ascii_lowercase();
            let target = text[at + 5..].split(end).next().unwrap_or_default();
            let prose = text[..at].ends_with('\n') && !in_block(&text, at);
            assert!(
                !code || prose || targets.contains(&target),
                "{}: there is no `make {target}`",
                shown(&path)
            );
        }
    }
}

/// Does `at` lie in a fenced block?
fn in_block(text: &str, at: usize) -> bool {
    text[..at].matches("```").count() % 2 == 1
}

#[test]
fn every_command_that_is_named_exists() {
    let command = toolcrib::commands::command_line();
    let mut verbs: Vec<&str> = command
        .get_subcommands()
        .map(clap::Command::get_name)
        .collect();
    verbs.push("help");
    for (path, text) in pages() {
        for (at, _) in text.match_indices("toolcrib ") {
            let code = text[..at].ends_with('`')
                || (in_block(&text, at) && text[..at].ends_with(['\n', '\t']));
            let end = |c: char| !c.is_ascii_lowercase();
            let verb = text[at + 9..].split(end).next().unwrap_or_default();
            assert!(
                !code || verb.is_empty() || verbs.contains(&verb),
                "{}: there is no `toolcrib {verb}`",
                shown(&path)
            );
        }
    }
}

/// The names by which links reach the headings of a page.
fn parts(text: &str) -> Vec<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let name = |heading: &str| {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = |c: &char| c.is_alphanumeric() || *c == ' ' || *c == '-' || *c == '_';
        words
            .chars()
            .filter(kept)
            .collect::<String>()
            .replace(' ', "-")
    };
    headings.map(name).collect()
}

#[test]
fn every_link_leads_somewhere() {
    for (path, text) in pages() {
        for (at, _) in text.match_indices("](") {
            let target = text[at + 2..].split(')').next().unwrap_or_default();
            let (target, part) = target.split_once('#').unwrap_or((target, ""));
            if target.contains("://") || in_block(&text, at) {
                continue;
            }
            let page = match target {
                "" => path.clone(),
                target => path.parent().unwrap().join(target),
            };
            assert!(page.exists(), "{}: {target} is not there", shown(&path));
            let parts = || parts(&std::fs::read_to_string(&page).unwrap());
            let there = part.is_empty() || parts().iter().any(|known| known == part);
            assert!(there, "{}: {target}#{part} is not there", shown(&path));
        }
    }
    let own = |path: &str| path.contains("tests/it/tidy/");
    for (path, text) in sources().into_iter().filter(|(path, _)| !own(path)) {
        for (at, _) in text.match_indices("docs/design/0") {
            let end = |c: char| !c.is_ascii_alphanumeric() && !"-/.".contains(c);
            let page = text[at..].split(end).next().unwrap_or_default();
            assert!(
                root().join(page.trim_end_matches('.')).exists(),
                "{path}: {page} is not there"
            );
        }
    }
}
