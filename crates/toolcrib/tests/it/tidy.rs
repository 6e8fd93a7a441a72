//! The walls of the house as tests: directions, names, sizes, and what the pages promise.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

/// What `core` may use: nothing that reaches a file, a socket, a process or a database.
const CORE: [&str; 10] = [
    "arc-swap",
    "base64",
    "jsonschema",
    "serde",
    "serde_json",
    "strsim",
    "thiserror",
    "tokio",
    "tokio-util",
    "tracing",
];

/// Which of our crates each may know.
const DIRECTIONS: [(&str, &[&str]); 9] = [
    ("crates/core", &[]),
    ("crates/fuzz", &[]),
    ("crates/hosts", &[]),
    ("crates/sandbox", &["toolcrib-fuzz"]),
    ("crates/scan", &["toolcrib-fuzz"]),
    (
        "crates/sources",
        &[
            "toolcrib-core",
            "toolcrib-fuzz",
            "toolcrib-hosts",
            "toolcrib-sandbox",
            "toolcrib-scan",
        ],
    ),
    ("crates/store", &["toolcrib-core"]),
    (
        "crates/toolcrib",
        &[
            "toolcrib-core",
            "toolcrib-sandbox",
            "toolcrib-sources",
            "toolcrib-store",
        ],
    ),
    (
        "bench",
        &[
            "toolcrib",
            "toolcrib-core",
            "toolcrib-sandbox",
            "toolcrib-scan",
            "toolcrib-store",
        ],
    ),
];

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

const LONG: usize = 600;
const TOO_LONG: usize = 800;

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

fn manifest(folder: &str) -> Table {
    let path = root().join(folder).join("Cargo.toml");
    std::fs::read_to_string(path).unwrap().parse().unwrap()
}

/// Every dependency of a manifest with the section it stands in.
fn dependencies(manifest: &Table) -> impl Iterator<Item = (&str, &str, &Value)> {
    ["dependencies", "dev-dependencies", "build-dependencies"]
        .into_iter()
        .filter_map(|section| Some((section, manifest.get(section)?.as_table()?)))
        .flat_map(|(section, table)| {
            table
                .iter()
                .map(move |(name, value)| (section, name.as_str(), value))
        })
}

#[test]
fn core_reaches_nothing_outside() {
    let manifest = manifest("crates/core");
    let names: Vec<&str> = dependencies(&manifest)
        .filter(|(section, ..)| *section == "dependencies")
        .map(|(_, name, _)| name)
        .collect();
    assert_eq!(names, CORE);
    let features = manifest["dependencies"]["tokio"]["features"].as_array();
    let features: Vec<&str> = features.unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(features, ["sync", "time"]);
}

/// What `core` names neither of `std` nor asks of a path.
const OUTSIDE: [&str; 5] = ["env", "fs", "net", "os", "process"];
const ASKS_THE_DISK: [&str; 8] = [
    ".canonicalize(",
    ".exists(",
    ".is_dir(",
    ".is_file(",
    ".metadata()",
    ".read_dir(",
    ".symlink_metadata(",
    ".try_exists(",
];

#[test]
fn core_names_nothing_that_reaches_outside() {
    let std = format!("{}::", "std");
    let of_core = |(path, _): &(String, String)| path.starts_with("crates/core/");
    for (path, text) in sources().into_iter().filter(of_core) {
        let code: String = text.lines().filter(|line| !is_comment(line)).collect();
        for (at, _) in code.match_indices(&std) {
            let rest = &code[at + std.len()..];
            let named = match rest.strip_prefix('{') {
                Some(list) => list.split(';').next().unwrap_or_default(),
                None => rest.split([':', ';']).next().unwrap_or_default(),
            };
            let mut words = named.split(|c: char| !c.is_alphanumeric() && c != '_');
            let outside = words.find(|word| OUTSIDE.contains(word));
            assert_eq!(outside, None, "{path} uses {std}{named}");
        }
        for asks in ASKS_THE_DISK {
            assert!(!code.contains(asks), "{path} asks the disk: {asks}");
        }
    }
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

/// Code without comments and white space, so that it does not matter where a line is broken.
fn dense(text: &str) -> String {
    let code = text.lines().filter(|line| !is_comment(line));
    code.flat_map(str::split_whitespace).collect()
}

/// The parts of the code that are served: no tests, no examples.
fn served_sources() -> impl Iterator<Item = (String, String)> {
    let is_test = |path: &str| {
        let parts: Vec<&str> = path.split('/').collect();
        let stem = parts.last().map_or("", |name| name.trim_end_matches(".rs"));
        parts.contains(&"tests") || stem.ends_with("tests") || !parts.contains(&"src")
    };
    let served = sources().into_iter();
    served.filter(move |(path, _)| path.starts_with("crates/") && !is_test(path))
}

#[test]
fn a_tool_is_run_at_the_end_of_the_chain_only() {
    let runs =
        |text: &str| dense(text).matches("run.run(").count() + text.matches("Run::run(").count();
    let found: Vec<(String, usize)> = served_sources()
        .map(|(path, text)| (path, runs(&text)))
        .filter(|(_, count)| *count > 0)
        .collect();
    let one = ("crates/core/src/middleware/mod.rs".to_owned(), 1);
    assert_eq!(found, [one], "a call must pass the chain");
}

#[test]
fn a_call_is_built_in_one_place_whatever_its_surface() {
    // A view is called with a request, so whoever calls one names it.
    let names_requests = |text: &str| {
        let code = dense(text);
        let mut uses = code.match_indices("toolcrib_core::").map(|(at, _)| {
            let used = code[at..].split(';').next().unwrap_or_default();
            let mut words = used.split(|c: char| !c.is_alphanumeric());
            words.any(|word| word == "Request")
        });
        uses.any(|named| named)
    };
    let found: Vec<String> = served_sources()
        .filter(|(path, text)| !path.starts_with("crates/core/") && names_requests(text))
        .map(|(path, _)| path)
        .collect();
    assert_eq!(found, ["crates/toolcrib/src/surface.rs"]);
}

#[test]
fn crates_know_only_what_lies_below_them() {
    let mut folders: BTreeSet<String> = ["bench".to_owned()].into();
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        folders.insert(format!(
            "crates/{}",
            entry.unwrap().file_name().into_string().unwrap()
        ));
    }
    let known: BTreeSet<String> = DIRECTIONS
        .iter()
        .map(|(folder, _)| (*folder).to_owned())
        .collect();
    assert_eq!(folders, known, "a new crate needs a line in DIRECTIONS");
    for (folder, allowed) in DIRECTIONS {
        for (_, name, _) in dependencies(&manifest(folder)) {
            let ours = name == "toolcrib" || name.starts_with("toolcrib-");
            assert!(
                !ours || allowed.contains(&name),
                "{folder} may not know {name}"
            );
        }
    }
}

#[test]
fn versions_stand_in_the_workspace_only() {
    for (folder, _) in DIRECTIONS {
        for (_, name, value) in dependencies(&manifest(folder)) {
            let inherited = value.get("workspace").and_then(Value::as_bool) == Some(true);
            assert!(
                inherited,
                "{folder}: write `{name}.workspace = true` and the version in the root Cargo.toml"
            );
        }
    }
}

#[test]
fn databases_live_in_the_store_only() {
    for (folder, _) in DIRECTIONS {
        for (_, name, _) in dependencies(&manifest(folder)) {
            let database = ["sqlx", "rusqlite", "libsqlite3-sys", "tokio-postgres"].contains(&name);
            assert!(!database || folder == "crates/store", "{folder}: {name}");
        }
    }
    let words = ["SELECT ", "INSERT INTO ", "CREATE TABLE ", "DELETE FROM "];
    for (path, text) in sources() {
        if path.starts_with("crates/store/") || path.ends_with("tidy.rs") {
            continue;
        }
        for word in words {
            assert!(!text.contains(word), "{path} holds SQL: {word}");
        }
    }
}

#[test]
fn every_file_says_what_it_is_for() {
    for (path, text) in sources() {
        // One line is a stub that waits for its content.
        let stub = text.lines().count() <= 1;
        assert!(
            stub || text.starts_with("//! "),
            "{path} must begin with `//!` and one sentence on what it is for"
        );
    }
}

#[test]
fn no_file_is_too_long() {
    let mut too_long = Vec::new();
    for (path, text) in sources() {
        match text.lines().count() {
            lines if lines > TOO_LONG => too_long.push(format!("{path}: {lines}")),
            lines if lines > LONG => {
                use std::io::Write;
                let _ = writeln!(std::io::stderr(), "long: {path} has {lines} lines");
            }
            _ => {}
        }
    }
    assert!(too_long.is_empty(), "over {TOO_LONG} lines: {too_long:?}");
}

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
    let is_test = |path: &str| path.contains("/tests/") || path.ends_with("tests.rs");
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

#[test]
fn every_link_leads_somewhere() {
    for (path, text) in pages() {
        for (at, _) in text.match_indices("](") {
            let target = text[at + 2..].split(')').next().unwrap_or_default();
            let target = target.split('#').next().unwrap_or_default();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            let there = path.parent().unwrap().join(target).exists();
            assert!(there, "{}: {target} is not there", shown(&path));
        }
    }
    let own = |path: &str| path.ends_with("tests/it/tidy.rs");
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
