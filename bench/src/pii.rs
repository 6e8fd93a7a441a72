//! Looking for personal data in clean text: what every result of an agent with the middleware `pii` costs.

use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use toolcrib_pii::Detectors;

use crate::stats::{Samples, ratio, verdict};

const BYTES: usize = 4 * 1_024 * 1_024;
const TIMES: usize = 20;
const AIM: f64 = 200.0;

/// Such lines as tools give: logs, code, prose, JSON.
const LINES: [&str; 4] = [
    "2026-11-18 05:46:27.123 INFO request 550e8400-e29b-41d4-a716-446655440000 done in 0.123 s, status 200\n",
    "    let found = rows.iter().filter(|row| row.name.contains(&query)).take(limit).collect::<Vec<_>>();\n",
    "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness.\n",
    "{\"name\":\"serde\",\"version\":\"1.0.219\",\"downloads\":123456,\"features\":[\"derive\",\"rc\"],\"updated\":1700000000}\n",
];

fn measure(mut work: impl FnMut()) -> Samples {
    let mut samples = Samples::default();
    for round in 0..=TIMES {
        let start = Instant::now();
        work();
        // The first round warms up.
        if round > 0 {
            samples.push(start.elapsed());
        }
    }
    samples
}

fn megabytes_a_second(took: Duration) -> f64 {
    BYTES as f64 / 1e6 / took.as_secs_f64()
}

pub fn run() {
    let Ok(detectors) = Detectors::all() else {
        return;
    };
    let mut text = String::with_capacity(BYTES);
    for line in LINES.iter().cycle() {
        if text.len() + line.len() > BYTES {
            break;
        }
        text.push_str(line);
    }
    let floor = measure(|| {
        std::hint::black_box(Sha256::digest(&text));
    });
    let samples = measure(|| {
        std::hint::black_box(detectors.find(&text, None).map_or(0, |found| found.len()));
    });
    let found = detectors.find(&text, None).map_or(0, |found| found.len());
    println!(
        "\npersonal data in {BYTES} bytes of clean text, every type ({TIMES} times), {found} found"
    );
    println!("  sha256 of the text   {}", floor.line());
    println!("  toolcrib             {}", samples.line());
    let p50 = samples.at(50);
    let speed = megabytes_a_second(p50);
    println!(
        "  ratio at p50         {:.1}; {speed:.0} MB/s (aim ≥ {AIM} MB/s): {}",
        ratio(p50, floor.at(50)),
        verdict(speed >= AIM && found == 0)
    );
}
