//! The corpora: every hidden way must be found on its line, and nothing innocent may raise an alarm. Files are parsed,
//! never run.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use toolcrib_scan::script::{self, Dialect};
use toolcrib_scan::{Finding, python};

type Read = fn(&Path, &str) -> Vec<Finding>;

fn files(language: &str, folder: &str) -> Vec<(PathBuf, String)> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut files: Vec<(PathBuf, String)> = std::fs::read_dir(corpus.join(language).join(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), std::fs::read_to_string(path).unwrap()))
        .collect();
    files.sort();
    files
}

/// The lines that the corpus marks.
fn marked(text: &str) -> BTreeSet<u32> {
    let marks = |line: &str| line.ends_with("# <-") || line.ends_with("// <-");
    (1..)
        .zip(text.lines())
        .filter(|(_, line)| marks(line))
        .map(|(number, _)| number)
        .collect()
}

fn shown(path: &Path, findings: &[Finding]) -> String {
    let name = path.file_name().unwrap().to_string_lossy();
    let list: Vec<String> = findings
        .iter()
        .map(|one| {
            format!(
                "{}:{} {} {}",
                one.at.line, one.at.column, one.rule, one.message
            )
        })
        .collect();
    format!("{name}: [{}]", list.join("; "))
}

fn check(language: &str, read: Read, ways: usize, innocents: usize) {
    let mut missed = Vec::new();
    let found = files(language, "found");
    for (path, text) in &found {
        let marked = marked(text);
        assert!(!marked.is_empty(), "{} marks no line", path.display());
        let findings = read(path, text);
        let lines: BTreeSet<u32> = findings.iter().map(|finding| finding.at.line).collect();
        if lines != marked {
            missed.push(format!(
                "{} but marked are {marked:?}",
                shown(path, &findings)
            ));
        }
    }
    let innocent = files(language, "innocent");
    let alarms: Vec<String> = innocent
        .iter()
        .map(|(path, text)| (path, read(path, text)))
        .filter(|(_, findings)| !findings.is_empty())
        .map(|(path, findings)| shown(path, &findings))
        .collect();
    let beyond = files(language, "beyond");
    let surprises: Vec<String> = beyond
        .iter()
        .map(|(path, text)| (path, read(path, text)))
        .filter(|(_, findings)| !findings.is_empty())
        .map(|(path, findings)| shown(path, &findings))
        .collect();
    let mut out = std::io::stderr();
    let _ = writeln!(
        out,
        "{language}: {} of {} ways found, {} missed; {} false alarms in {} innocent files; {} are for the sandbox alone",
        found.len() - missed.len(),
        found.len(),
        missed.len(),
        alarms.len(),
        innocent.len(),
        beyond.len(),
    );
    assert!(missed.is_empty(), "missed:\n{}", missed.join("\n"));
    assert!(alarms.is_empty(), "false alarms:\n{}", alarms.join("\n"));
    assert!(
        surprises.is_empty(),
        "found after all, so move them to `found`:\n{}",
        surprises.join("\n")
    );
    assert!(found.len() >= ways && innocent.len() >= innocents);
}

#[test]
fn python_corpus() {
    check(
        "python",
        |_, text| python::read(text).unwrap().findings,
        75,
        45,
    );
}

#[test]
fn script_corpus() {
    let read = |path: &Path, text: &str| {
        let dialect = Dialect::of(path).unwrap();
        let read = script::read(text, dialect);
        read.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
            .findings
    };
    check("script", read, 50, 35);
}
