//! Texts of our own making, each with the exact findings that it has.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::path::Path;

use toolcrib_pii::Detectors;

/// A text, and what is in it.
pub struct Case {
    pub text: String,
    pub findings: Vec<(String, usize, usize)>,
}

pub fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut cases = Vec::new();
    for name in ["personal.txt", "noise.txt"] {
        let lines = std::fs::read_to_string(folder.join(name)).unwrap();
        let lines = lines
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        cases.extend(lines.map(read));
    }
    cases
}

fn read(line: &str) -> Case {
    let line = line.replace('¦', "").replace('␤', "\n");
    let (mut text, mut findings, mut rest) = (String::new(), Vec::new(), line.as_str());
    while let Some((before, marked)) = rest.split_once("{{") {
        let (marked, after) = marked.split_once("}}").unwrap();
        let (kind, value) = marked.split_once(':').unwrap();
        text.push_str(before);
        findings.push((kind.to_owned(), text.len(), text.len() + value.len()));
        text.push_str(value);
        rest = after;
    }
    text.push_str(rest);
    Case { text, findings }
}

#[test]
fn every_text_has_exactly_its_findings() {
    let detectors = Detectors::all().unwrap();
    let mut wrong = String::new();
    for case in cases() {
        let found = detectors.find(&case.text, None).unwrap();
        let found: Vec<_> = found
            .iter()
            .map(|finding| (finding.kind.to_owned(), finding.start, finding.end))
            .collect();
        if found != case.findings {
            let shown = |all: &[(String, usize, usize)]| {
                let one = |(kind, start, end): &(String, usize, usize)| {
                    format!("{kind} {:?}", &case.text[*start..*end])
                };
                all.iter().map(one).collect::<Vec<_>>().join(", ")
            };
            let (found, wanted) = (shown(&found), shown(&case.findings));
            writeln!(
                wrong,
                "{:?}\n  found  {found}\n  wanted {wanted}",
                case.text
            )
            .unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn a_megabyte_of_locks_ids_times_and_versions_has_none() {
    let lock = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock");
    let mut text = std::fs::read_to_string(lock).unwrap();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    while text.len() < 1_048_576 {
        let (a, b, c) = (random(), random(), random());
        let (hour, minute, second) = (a % 24, b % 60, c % 60);
        let (month, day) = (a % 12 + 1, b % 28 + 1);
        let time = 1_600_000_000 + a % 400_000_000;
        writeln!(
            text,
            "{{\"id\":\"{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}\",\"at\":\"20{:02}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z\"}}\n\
             {a:016x}{b:016x}{:08x} {time} {time}{:03} v{}.{}.{} {}.{}.{}-rc.{} \"version\": \"{}.{}.{}.{}\"\n\
             [20{:02}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02},{:03}] took {}.{:06}s",
            a as u32, b & 0xffff, c & 0xfff, a >> 52, b >> 16,
            c % 30, c % 1000, c as u32, a % 1000, a % 30, b % 40, c % 50, a % 9, b % 9, c % 9, a % 5,
            a % 200, b % 200, c % 200, a % 9, b % 30, c % 1000, a % 100, b % 1_000_000,
        )
        .unwrap();
    }
    let detectors = Detectors::all().unwrap();
    let found = detectors.find(&text, None).unwrap();
    let found: Vec<_> = found
        .iter()
        .map(|one| (one.kind, &text[one.start.saturating_sub(20)..one.end]))
        .take(20)
        .collect();
    assert!(found.is_empty(), "{found:?}");
}
