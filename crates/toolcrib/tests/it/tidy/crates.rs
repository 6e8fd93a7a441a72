//! Which crate may know which, and that nothing is declared or exported that nobody uses.

use std::collections::BTreeSet;

use toml::{Table, Value};

use super::{has_word, root, sources};

/// What `core` may use: nothing that reaches a file, a socket, a process or a database.
const CORE: [&str; 11] = [
    "arc-swap",
    "base64",
    "jsonschema",
    "serde",
    "serde_json",
    "strsim",
    "thiserror",
    "tokio",
    "tokio-util",
    "toolcrib-pii",
    "tracing",
];

/// Which of our crates each may know.
const DIRECTIONS: [(&str, &[&str]); 10] = [
    ("crates/core", &["toolcrib-pii"]),
    ("crates/fuzz", &[]),
    ("crates/hosts", &[]),
    ("crates/pii", &[]),
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
            "toolcrib-hosts",
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
            "toolcrib-pii",
            "toolcrib-sandbox",
            "toolcrib-scan",
            "toolcrib-store",
        ],
    ),
];

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
        if path.starts_with("crates/store/") || path.contains("tests/it/tidy/") {
            continue;
        }
        for word in words {
            assert!(!text.contains(word), "{path} holds SQL: {word}");
        }
    }
}

/// How Rust writes the name of a package.
fn in_code(name: &str) -> String {
    name.replace('-', "_")
}

#[test]
fn every_dependency_is_used() {
    let sources = sources();
    let mut used = BTreeSet::new();
    for (folder, _) in DIRECTIONS {
        let manifest = manifest(folder);
        for (section, name, _) in dependencies(&manifest) {
            let below = match section {
                "dependencies" => format!("{folder}/src/"),
                _ => format!("{folder}/"),
            };
            let named = sources.iter().any(|(path, text)| {
                path.starts_with(&below)
                    && (text.contains(&format!("{}::", in_code(name)))
                        || has_word(text, &format!("use {}", in_code(name))))
            });
            assert!(
                named,
                "{folder} has {name} in [{section}] and never names it"
            );
            used.insert(name.to_owned());
        }
    }
    let workspace = manifest(".");
    let listed = workspace["workspace"]["dependencies"].as_table().unwrap();
    for (name, _) in listed {
        assert!(
            used.contains(name),
            "no crate has {name} of the root Cargo.toml"
        );
    }
}

#[test]
fn a_dependency_is_declared_once() {
    for (folder, _) in DIRECTIONS {
        let manifest = manifest(folder);
        let all: Vec<_> = dependencies(&manifest).collect();
        for (section, name, value) in &all {
            let features = value.get("features").is_some();
            let also = all
                .iter()
                .any(|(other, same, _)| same == name && *other == "dependencies");
            assert!(
                *section == "dependencies" || !also || features,
                "{folder} has {name} in [{section}] too, without a feature more"
            );
        }
    }
}

#[test]
fn crates_export_what_others_use() {
    let sources = sources();
    for (folder, _) in DIRECTIONS {
        let lib = format!("{folder}/src/lib.rs");
        let Some((_, text)) = sources.iter().find(|(path, _)| *path == lib) else {
            continue;
        };
        let inside = format!("{folder}/src/");
        let main = format!("{folder}/src/main.rs");
        for name in exports(text) {
            let used = sources.iter().any(|(path, text)| {
                (!path.starts_with(&inside) || *path == main) && has_word(text, name)
            });
            assert!(used, "{lib} exports {name}, and nobody else names it");
        }
    }
}

/// The names that a crate's first file gives to others.
fn exports(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let end = |c: char| !c.is_alphanumeric() && c != '_';
    for kind in [
        "mod", "fn", "struct", "enum", "trait", "const", "type", "macro",
    ] {
        let begin = format!("\npub {kind} ");
        names.extend(
            text.match_indices(&begin)
                .filter_map(|(at, found)| text[at + found.len()..].split(end).next()),
        );
    }
    for (at, found) in text.match_indices("\npub use ") {
        let list = text[at + found.len()..]
            .split(';')
            .next()
            .unwrap_or_default();
        let list = list.rsplit_once("::{").map_or(list, |(_, list)| list);
        let one = |name: &'_ str| name.trim().rsplit([' ', ':']).next().map(str::len);
        for name in list.trim_end_matches('}').split(',').map(str::trim) {
            let length = one(name).unwrap_or_default();
            names.extend((length > 0).then(|| &name[name.len() - length..]));
        }
    }
    names
}

#[test]
fn exports_are_read() {
    let text = "//! x\npub mod a;\npub use b::{\n    C, D as E,\n};\npub use f::g::H;\n";
    assert_eq!(exports(text), ["a", "C", "E", "H"]);
}
