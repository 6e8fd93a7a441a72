//! `make bench-search`: how often the right tool is among the first, how often nothing is said where nothing fits, and
//! how long it takes.
//!
//! `toolcrib-bench-search DIR [--floor]` measures every set below DIR: `tools.jsonl` (`name`, `description`, `input_schema`, and
//! perhaps `server`, `tool`, `category`) and `queries.jsonl` (`query`, `relevant`). With `--floor` it also prints what the
//! floor goes by for every query.

#![expect(clippy::print_stdout, reason = "a bench tells its figures")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use toolcrib_core::View;
use toolcrib_core::search::Query;

mod floor;
mod set;
mod speed;

use set::Set;

/// Requests that none of the sets' tools serves.
const UNANSWERABLE: &str = include_str!("../unanswerable.txt");

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(folder) = arguments.first().map(PathBuf::from) else {
        println!("usage: toolcrib-bench-search DIR [--floor]");
        return ExitCode::from(2);
    };
    let sets: Vec<Set> = folders(&folder)
        .iter()
        .filter_map(|set| Set::read(set))
        .collect();
    if sets.is_empty() {
        println!(
            "no set below {}: a set has tools.jsonl and queries.jsonl",
            folder.display()
        );
        return ExitCode::FAILURE;
    }
    println!(
        "{:<16} {:>6} {:>8}   R@1   R@5  R@10  nDCG@10",
        "set", "tools", "queries"
    );
    let mut sums = Figures::default();
    for set in &sets {
        let figures = Figures::of(set);
        println!(
            "{:<16} {:>6} {:>8} {figures}",
            set.name,
            set.tools,
            set.queries.len()
        );
        sums.add(&figures, 1.0 / sets.len() as f64);
    }
    println!("{:<32} {sums}", "mean");
    println!();
    floor::run(
        &sets,
        arguments.iter().any(|argument| argument == "--floor"),
    );
    println!();
    speed::run(&sets);
    ExitCode::SUCCESS
}

fn folders(below: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(below).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    found.sort();
    found
}

/// The requests that nothing answers, without comments.
fn unanswerable() -> impl Iterator<Item = &'static str> {
    UNANSWERABLE
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// The labels of what is found first, best first.
fn first(set: &Set, view: &View, text: &str) -> Vec<String> {
    let query = Query {
        text,
        limit: 10,
        namespace: None,
    };
    let hits = view.search(&query).hits;
    hits.iter().map(|hit| set.label(hit.tool.name())).collect()
}

/// What part of the right tools is among the first, in percent.
#[derive(Debug, Default)]
struct Figures([f64; 4]);

impl Figures {
    fn of(set: &Set) -> Figures {
        let view = set.crib.view("default");
        let mut sums = Figures::default();
        for (query, relevant) in &set.queries {
            let found = first(set, &view, query);
            sums.add(
                &Figures::of_one(&found, relevant),
                1.0 / set.queries.len() as f64,
            );
        }
        sums
    }

    fn of_one(found: &[String], relevant: &[String]) -> Figures {
        let is_right = |name: &&String| relevant.contains(name);
        let among = |first: usize| {
            let right = found.iter().take(first).filter(is_right).count();
            100.0 * right as f64 / relevant.len() as f64
        };
        let gain = |place: usize| 1.0 / (place as f64 + 2.0).log2();
        let gained = found.iter().enumerate().filter(|(_, name)| is_right(name));
        let gained: f64 = gained.map(|(place, _)| gain(place)).sum();
        let ideal: f64 = (0..relevant.len().min(10)).map(gain).sum();
        Figures([among(1), among(5), among(10), 100.0 * gained / ideal])
    }

    fn add(&mut self, other: &Figures, share: f64) {
        for (sum, more) in self.0.iter_mut().zip(other.0) {
            *sum += more * share;
        }
    }
}

impl std::fmt::Display for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [one, five, ten, ndcg] = self.0;
        write!(f, "{one:>5.1} {five:>5.1} {ten:>5.1} {ndcg:>8.1}")
    }
}
