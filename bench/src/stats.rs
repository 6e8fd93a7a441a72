//! Percentiles of durations, and how they are printed.

use std::time::Duration;

#[derive(Debug, Default)]
pub struct Samples(Vec<Duration>);

impl Samples {
    pub fn push(&mut self, sample: Duration) {
        self.0.push(sample);
    }

    pub fn extend(&mut self, more: Vec<Duration>) {
        self.0.extend(more);
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The sample below which `percent` of all lie.
    pub fn at(&self, percent: usize) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort();
        let index = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
        sorted.get(index).copied().unwrap_or_default()
    }

    pub fn line(&self) -> String {
        format!("p50 {:>9.1?}  p99 {:>9.1?}", self.at(50), self.at(99))
    }
}

pub fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64().max(f64::EPSILON)
}

/// A figure beside its aim.
pub fn verdict(holds: bool) -> &'static str {
    if holds { "aim met" } else { "AIM MISSED" }
}
