//! Files and functions fit on a screen or a few.

use super::sources;

/// No file has more lines.
const LONGEST_FILE: usize = 500;
/// Half of the files have no more lines.
const MEDIAN_FILE: usize = 200;
/// No function has more lines, but for tables and matches with one line an arm.
const LONGEST_FUNCTION: usize = 80;

#[test]
fn files_are_short() {
    let mut lengths = Vec::new();
    let mut long = Vec::new();
    for (path, text) in sources() {
        let lines = text.lines().count();
        lengths.push(lines);
        if lines > LONGEST_FILE {
            long.push(format!("{path}: {lines}"));
        }
    }
    assert!(long.is_empty(), "over {LONGEST_FILE} lines: {long:#?}");
    lengths.sort_unstable();
    let median = lengths[lengths.len() / 2];
    assert!(median <= MEDIAN_FILE, "half of the files have {median}");
}

#[test]
fn functions_are_short() {
    let mut long = Vec::new();
    for (path, text) in sources() {
        for (name, lines) in functions(&text) {
            if lines > LONGEST_FUNCTION {
                long.push(format!("{path}: {name} has {lines}"));
            }
        }
    }
    assert!(long.is_empty(), "over {LONGEST_FUNCTION} lines: {long:#?}");
}

/// Name and length of every function. rustfmt puts the brace that ends one below the word that begins it.
fn functions(text: &str) -> Vec<(&str, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = begins(line) else { continue };
        let indent = &line[..line.len() - line.trim_start().len()];
        let ended = |line: &&str| line.strip_prefix(indent) == Some("}");
        // A signature without a body, or a body of one line, has no such brace.
        let whole = line.ends_with(['}', ';']);
        let length = lines[at..].iter().position(ended);
        let (false, Some(length)) = (whole, length) else {
            continue;
        };
        let counted = lines[at..=at + length].iter().filter(|line| !is_row(line));
        found.push((name, counted.count()));
    }
    found
}

/// The name, where a function begins.
fn begins(line: &str) -> Option<&str> {
    let (before, after) = line.trim_start().split_once("fn ")?;
    let known = [
        "pub",
        "pub(crate)",
        "pub(super)",
        "const",
        "async",
        "unsafe",
    ];
    let known = before.split_whitespace().all(|word| {
        known.contains(&word)
            || word.starts_with("pub(")
            || word.starts_with("extern")
            || word == "\"C\""
    });
    let end = |c: char| !c.is_alphanumeric() && c != '_';
    (known && !before.contains("//")).then(|| after.split(end).next().unwrap_or_default())
}

/// An arm of one line, or a row of a table.
fn is_row(line: &str) -> bool {
    let line = line.trim_start();
    let arm = line.contains(" => ");
    let row = line.starts_with(['(', '"', '[', '{']);
    line.ends_with(',') && (arm || row)
}

#[test]
fn functions_are_measured() {
    let text = "impl A {\n    pub fn a(&self) {\n        match b {\n            C => d(),\n        }\n    }\n\n    fn e();\n}\nasync fn f() {}\nfn g() {\n    h();\n}\n";
    assert_eq!(functions(text), [("a", 4), ("g", 3)]);
}
