//! How often nothing is said where nothing fits, and how often where something does.

use toolcrib_core::search::{Match, Query};

use crate::set::Set;
use crate::{first, unanswerable};

pub fn run(sets: &[Set], shows_signs: bool) {
    println!(
        "{:<16} unanswerable answered (even, odd lines)   answerable refused: all, those found",
        "floor"
    );
    for set in sets {
        let view = set.crib.view("default");
        let is_good = |text: &str| {
            let query = Query {
                text,
                limit: 1,
                namespace: None,
            };
            view.search(&query).is_good
        };
        let (mut answered, mut asked) = ([0, 0], [0, 0]);
        for (number, text) in unanswerable().enumerate() {
            asked[number % 2] += 1;
            answered[number % 2] += usize::from(is_good(text));
            if shows_signs {
                let best = first(set, &view, text)
                    .into_iter()
                    .next()
                    .unwrap_or_default();
                println!(
                    "sign\t0\t{}\t{}\t{text}\t{best}",
                    set.name,
                    signs(&view.best_match(text))
                );
            }
        }
        let (mut refused, mut found, mut refused_found) = (0, 0, 0);
        for (text, relevant) in &set.queries {
            let is_found = first(set, &view, text)
                .iter()
                .take(5)
                .any(|name| relevant.contains(name));
            let is_refused = !is_good(text);
            refused += usize::from(is_refused);
            found += usize::from(is_found);
            refused_found += usize::from(is_found && is_refused);
            if shows_signs {
                let text = text.replace(['\n', '\t'], " ");
                println!(
                    "sign\t{}\t{}\t{}\t{text}",
                    1 + usize::from(is_found),
                    set.name,
                    signs(&view.best_match(&text))
                );
            }
        }
        let part = |some: usize, all: usize| 100.0 * some as f64 / all.max(1) as f64;
        println!(
            "{:<16} {:>4.1} % of {} ({:.1} %, {:.1} %)   {:>4.1} %, {:.1} %",
            set.name,
            part(answered[0] + answered[1], asked[0] + asked[1]),
            asked[0] + asked[1],
            part(answered[1], asked[1]),
            part(answered[0], asked[0]),
            part(refused, set.queries.len()),
            part(refused_found, found),
        );
    }
}

/// The signs in columns, for whoever fits the floor to them.
fn signs(found: &Match) -> String {
    format!("{:.4}\t{:.4}", found.met, found.name)
}
