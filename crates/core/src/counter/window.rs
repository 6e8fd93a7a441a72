//! How much happened lately: counts in slots of equal length, of which old ones no longer matter.

use serde::{Deserialize, Serialize};

/// How long a window is, and how finely it forgets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    /// Milliseconds per slot.
    slot: u64,
    /// Slots that count, beside the one that is filling.
    slots: u64,
}

pub(super) const MINUTE: Span = Span {
    slot: 1_000,
    slots: 60,
};
pub(super) const DAY: Span = Span {
    slot: 15 * 60_000,
    slots: 96,
};

/// What was counted, by slot, the oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Window(Vec<(u64, u64)>);

impl Window {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How much counts now. What has left the window is forgotten.
    pub fn used(&mut self, span: Span, now_ms: u64) -> u64 {
        let now = now_ms / span.slot;
        self.0.retain(|(slot, _)| slot + span.slots >= now);
        self.0.iter().fold(0, |sum, (_, n)| sum.saturating_add(*n))
    }

    pub fn add(&mut self, span: Span, now_ms: u64, n: u64) {
        let now = now_ms / span.slot;
        match self.0.binary_search_by_key(&now, |(slot, _)| *slot) {
            Ok(at) => self.0[at].1 = self.0[at].1.saturating_add(n),
            Err(at) => self.0.insert(at, (now, n)),
        }
    }

    /// Takes back what was counted at this moment.
    pub fn take_back(&mut self, span: Span, at_ms: u64, n: u64) {
        let then = at_ms / span.slot;
        if let Ok(at) = self.0.binary_search_by_key(&then, |(slot, _)| *slot) {
            self.0[at].1 = self.0[at].1.saturating_sub(n);
            self.0.retain(|(_, n)| *n > 0);
        }
    }

    /// How long it takes until less than `limit` counts.
    pub fn wait(&self, span: Span, now_ms: u64, limit: u64) -> u64 {
        let mut left = self
            .0
            .iter()
            .fold(0_u64, |sum, (_, n)| sum.saturating_add(*n));
        let over = |left: u64| left > 0 && left >= limit;
        let mut free = now_ms;
        for (slot, n) in &self.0 {
            if !over(left) {
                break;
            }
            left = left.saturating_sub(*n);
            free = (slot + span.slots + 1).saturating_mul(span.slot);
        }
        free.saturating_sub(now_ms)
    }

    /// Lets go of what was counted behind this moment.
    pub fn set_back(&mut self, span: Span, now_ms: u64) {
        self.0.retain(|(slot, _)| *slot <= now_ms / span.slot);
    }

    /// When nothing of it counts any more.
    pub fn ends(&self, span: Span) -> u64 {
        let last = self.0.last().map_or(0, |(slot, _)| slot + span.slots + 1);
        last.saturating_mul(span.slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_more_than_the_limit_lies_within_a_minute() {
        let mut window = Window::default();
        let (mut admitted, mut now) = (Vec::new(), 1_000_000_123_u64);
        let mut dice = 7_u64;
        for _ in 0..20_000 {
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
            now += dice % 37;
            if window.used(MINUTE, now) < 50 {
                window.add(MINUTE, now, 1);
                admitted.push(now);
            }
        }
        for group in admitted.windows(51) {
            assert!(
                group[50] - group[0] > 60_000,
                "{} and {}",
                group[0],
                group[50]
            );
        }
        // And not much fewer: a slot is a second.
        assert!(admitted.len() as u64 >= (now - 1_000_000_123) / 61_000 * 50);
    }

    #[test]
    fn who_waits_as_long_as_is_said_is_let_in() {
        let mut window = Window::default();
        for at in [10_500, 11_700, 30_100] {
            window.add(MINUTE, at, 1);
        }
        assert_eq!(window.used(MINUTE, 40_000), 3);
        let wait = window.wait(MINUTE, 40_000, 3);
        assert_eq!(wait, 31_000);
        assert_eq!(window.clone().used(MINUTE, 40_000 + wait - 1), 3);
        assert_eq!(window.used(MINUTE, 40_000 + wait), 2);
        assert_eq!(window.wait(MINUTE, 71_000, 3), 0);
    }

    #[test]
    fn what_is_taken_back_leaves_nothing() {
        let mut window = Window::default();
        window.add(DAY, 5, 10);
        window.take_back(DAY, 6, 10);
        assert!(window.is_empty());
        window.take_back(DAY, 99_999_999, 10);
        assert_eq!(window, Window::default());
    }
}
