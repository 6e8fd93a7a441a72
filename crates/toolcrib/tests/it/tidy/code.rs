//! What only one place may do, and what every file and every name owes its reader.

use std::collections::BTreeSet;
use std::path::Path;

use super::{is_test, root, sources};

/// Words that say nothing about what a thing is.
const EMPTY_WORDS: [&str; 11] = [
    "manager",
    "service",
    "handler",
    "helper",
    "util",
    "engine",
    "orchestrator",
    "factory",
    "impl",
    "base",
    "common",
];

#[test]
fn every_file_says_what_it_is_for() {
    for (path, text) in sources() {
        assert!(
            text.starts_with("//! "),
            "{path} must begin with `//!` and one sentence on what it is for"
        );
    }
}

#[test]
fn only_the_sandbox_is_unsafe() {
    let word = format!("{} ", concat!("un", "safe"));
    let followed = ["{", "fn", "impl", "extern"];
    for (path, text) in sources() {
        let used = followed
            .iter()
            .any(|next| text.contains(&format!("{word}{next}")));
        if !used || path.starts_with("crates/sandbox/") {
            continue;
        }
        let reason = text.contains("expect(unsafe_code, reason = ");
        let test = path.contains("/tests/");
        assert!(
            reason && test,
            "{path}: {word}belongs into crates/sandbox, or into a test with its reason"
        );
    }
}

/// Whoever starts a process in a new place says there what holds it.
#[test]
fn every_place_that_starts_processes_is_on_the_list() {
    let page = root().join("docs/design/0015-before-the-walls.md");
    let page = std::fs::read_to_string(page).unwrap();
    let list: BTreeSet<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(path, _)| path)
        .filter(|path| path.starts_with("crates/"))
        .collect();
    let starts = |text: &str| text.contains("Command::new(") || text.contains(".spawn(launcher");
    let sources = sources();
    let found: BTreeSet<&str> = sources
        .iter()
        .filter(|(path, text)| {
            path.starts_with("crates/") && path.contains("/src/") && !is_test(path) && starts(text)
        })
        .map(|(path, _)| path.as_str())
        .collect();
    assert_eq!(found, list);
}

/// Folders that people name may be a clone's: what is written there follows no link.
#[test]
fn commands_write_files_in_one_way() {
    for (path, text) in sources() {
        if !path.starts_with("crates/toolcrib/src/commands/") || is_test(&path) {
            continue;
        }
        let own = text.split("#[cfg(test)]").next().unwrap_or_default();
        for way in ["fs::write(", "File::create(", "fs::copy("] {
            assert!(
                !own.contains(way),
                "{path}: write with `whole_file::write`, or make a file anew (`create_new`)"
            );
        }
    }
}

#[test]
fn surfaces_do_not_know_commands() {
    for (path, text) in sources() {
        if path.starts_with("crates/toolcrib/src/serve/") {
            let knows = text.contains("crate::commands") || text.contains("super::commands");
            assert!(!knows, "{path} imports commands");
        }
    }
}

#[test]
fn names_say_what_a_thing_is() {
    for (path, text) in sources() {
        let file = Path::new(&path).file_stem().unwrap().to_str().unwrap();
        let mut names = vec![file.to_owned()];
        for line in text.lines().map(str::trim_start) {
            let line = line
                .strip_prefix("pub")
                .map(|rest| rest.split_once(' ').map_or("", |(_, rest)| rest))
                .unwrap_or(line);
            for kind in ["struct ", "enum ", "trait ", "mod "] {
                if let Some(rest) = line.strip_prefix(kind) {
                    let end = |c: char| !c.is_alphanumeric() && c != '_';
                    names.push(rest.split(end).next().unwrap_or_default().to_owned());
                }
            }
        }
        for name in names {
            let empty = words(&name)
                .into_iter()
                .find(|word| EMPTY_WORDS.contains(&word.trim_end_matches('s')));
            assert!(
                empty.is_none(),
                "{path}: `{name}` says `{}`, which is never used in a name",
                empty.unwrap_or_default()
            );
        }
    }
}

/// The words of a name, in lower case: `SourceKey` and `source_key` have two.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for character in name.chars() {
        if character == '_' || character.is_uppercase() {
            words.push(String::new());
        }
        if let Some(last) = words.last_mut()
            && character != '_'
        {
            last.extend(character.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// `core` names nothing of the standard library that reaches outside.
#[test]
fn core_names_no_file_socket_process_or_environment() {
    for (path, text) in sources() {
        if !path.starts_with("crates/core/src/") || is_test(&path) {
            continue;
        }
        for module in ["fs", "net", "process", "env"] {
            let named = text.contains(&format!("std::{module}::"))
                || text.contains(&format!("std::{module};"))
                || text.contains(&format!("use std::{module}"));
            assert!(!named, "{path} names std::{module}");
        }
        let gathered = text.lines().filter(|line| line.contains("use std::{"));
        assert_eq!(gathered.count(), 0, "{path}: one `use std::…` a line");
    }
}

/// A tool's own `run` is called at the end of the chain, and nowhere else.
#[test]
fn tools_are_run_in_one_place() {
    let mut places = Vec::new();
    for (path, text) in sources() {
        let source = path.starts_with("crates/") && path.contains("/src/") && !is_test(&path);
        for line in text.lines().filter(|_| source) {
            let called = line.contains("run.run(") || line.contains("Run::run(");
            let passed = line.contains(".run(call") && !line.contains("next.run(call");
            if (called || passed) && !line.trim_start().starts_with("//") {
                places.push(path.clone());
            }
        }
    }
    assert_eq!(places, ["crates/core/src/middleware/mod.rs"]);
}

/// A view is called with a request, so whoever calls one names it.
#[test]
fn a_call_is_built_in_one_place_whatever_its_surface() {
    let names_requests = |text: &str| {
        let code = text
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        let code: String = code.flat_map(str::split_whitespace).collect();
        code.match_indices("toolcrib_core::").any(|(at, _)| {
            let used = code[at..].split(';').next().unwrap_or_default();
            let mut words = used.split(|c: char| !c.is_alphanumeric());
            words.any(|word| word == "Request")
        })
    };
    let served = |path: &str| {
        let surface = path.starts_with("crates/") && !path.starts_with("crates/core/");
        surface && path.contains("/src/") && !is_test(path)
    };
    let found: Vec<String> = sources()
        .into_iter()
        .filter(|(path, text)| served(path) && names_requests(text))
        .map(|(path, _)| path)
        .collect();
    assert_eq!(found, ["crates/toolcrib/src/surface.rs"]);
}

/// Tests wait for conditions. Where one sleeps all the same, it says why.
#[test]
fn tests_that_sleep_say_why() {
    const WORD: &str = concat!("// sl", "eeps: ");
    for (path, text) in sources() {
        let mut in_tests = is_test(&path);
        let mut before = "";
        for (number, line) in text.lines().enumerate() {
            in_tests |= line.contains("#[cfg(test)]");
            let sleeps = line.contains("::sleep(") || line.contains("sleep_until(");
            let said = line.contains(WORD) || before.contains(WORD);
            assert!(
                !in_tests || !sleeps || said || path.ends_with("tidy/code.rs"),
                "{path}:{}: wait for a condition, or write `{WORD}…` above and why",
                number + 1
            );
            before = line;
        }
    }
}
