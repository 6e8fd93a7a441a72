//! How long a search, a change of one tool and an index of ten thousand tools take.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use toolcrib_core::search::Query;
use toolcrib_core::{Crib, Tool, ToolName, Update};

use crate::set::{Set, changed, crib, update};

const SIZES: [usize; 2] = [1_000, 10_000];
const SEARCH: Duration = Duration::from_millis(1);
const CHANGE: Duration = Duration::from_millis(1);
const BUILD: Duration = Duration::from_millis(300);

pub fn run(sets: &[Set]) {
    for size in SIZES {
        let tools = many(sets, size);
        // A file each, as those of a person.
        let files = tools.iter().enumerate();
        let files: Vec<Update> = files
            .map(|(n, tool)| update(&n.to_string(), vec![tool.clone()]))
            .collect();
        let crib = crib(files);
        let build = timed(|| drop(black_box(crib.view("default").search(&query("x")))));
        let memory = crib.view("default").search_bytes();
        println!("{size} tools");
        println!(
            "  index built      {build:>9.1?}{}",
            aim(size, build <= BUILD, "300 ms")
        );
        println!("  index takes      {:>6.1} MB", memory as f64 / 1e6);
        searches(&crib, sets, size);
        changes(&crib, &tools, size);
    }
}

fn aim(size: usize, holds: bool, what: &str) -> String {
    match (size, holds) {
        (10_000, true) => format!("  (aim < {what}): aim met"),
        (10_000, false) => format!("  (aim < {what}): AIM MISSED"),
        _ => String::new(),
    }
}

fn query(text: &str) -> Query<'_> {
    Query {
        text,
        limit: 5,
        namespace: None,
    }
}

/// The tools of all sets over and over, each time under other names.
fn many(sets: &[Set], size: usize) -> Vec<Arc<Tool>> {
    let all: Vec<&Arc<Tool>> = sets.iter().flat_map(|set| &set.made).collect();
    let renamed = |n: usize| {
        let mut tool = Tool::clone(all[n % all.len()]);
        let start: String = tool.name().chars().take(56).collect();
        tool.spec.name = ToolName::new(&format!("{start}_{n}")).ok()?;
        Some(Arc::new(tool))
    };
    (0..size).filter_map(renamed).collect()
}

fn searches(crib: &Crib, sets: &[Set], size: usize) {
    let mut taken = Vec::new();
    for (text, _) in sets.iter().flat_map(|set| &set.queries) {
        let view = crib.view("default");
        let search = || timed(|| drop(black_box(view.search(&query(text)))));
        // The middle one of three: the machine may have other things to do.
        let mut times = [search(), search(), search()];
        taken.push(at(&mut times, 50));
    }
    let (p50, p99) = (at(&mut taken, 50), at(&mut taken, 99));
    println!(
        "  search           p50 {p50:.1?}  p99 {p99:.1?}{}",
        aim(size, p99 < SEARCH, "1 ms")
    );
}

/// One file of them all is saved: what the first search after it takes longer than the next.
fn changes(crib: &Crib, tools: &[Arc<Tool>], size: usize) {
    let mut taken = Vec::new();
    for number in 0..1_000 {
        let place = number * 37 % tools.len();
        let tool = Arc::new(changed(&tools[place], number));
        crib.apply(vec![update(&place.to_string(), vec![tool])]);
        let view = crib.view("default");
        let whole = timed(|| drop(black_box(view.search(&query("x")))));
        let search = timed(|| drop(black_box(view.search(&query("x")))));
        taken.push(whole.saturating_sub(search));
    }
    let (p50, p99) = (at(&mut taken, 50), at(&mut taken, 99));
    println!(
        "  change of a file p50 {p50:.1?}  p99 {p99:.1?}{}",
        aim(size, p50 < CHANGE, "1 ms at p50")
    );
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn at(taken: &mut [Duration], percent: usize) -> Duration {
    taken.sort_unstable();
    let place = (taken.len() * percent / 100).min(taken.len().saturating_sub(1));
    taken.get(place).copied().unwrap_or_default()
}
