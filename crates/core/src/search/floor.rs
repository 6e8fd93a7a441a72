//! Whether the best match is one at all: something matches nearly every query, and an agent is better off knowing that
//! there is no such tool.
//!
//! Calibrated once by `make bench-search`, on queries with a known answer and on such that nothing answers.
//! Why these two signs: `docs/design/0017-tool-search.md`.

use super::rank::Match;

const MET: f32 = 3.0;
const FLOOR: f32 = 2.14;

/// Is this good enough to be shown as a match?
pub fn is_good(found: Match) -> bool {
    confidence(found) > FLOOR
}

/// Comparable from query to query, as scores are not.
fn confidence(found: Match) -> f32 {
    MET * found.met + found.name
}
