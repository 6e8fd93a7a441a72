//! Keys of the commonest services, each by the beginning that its service gave it. There is no rule for keys in general:
//! what only looks random is as often a hash.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};
use regex::Regex;

use crate::spot::Spot;

/// What a service's keys begin with, and how they go on.
const KEYS: &[(&str, &str)] = &[
    ("AKIA", "[A-Z2-7]{16}"),
    ("ASIA", "[A-Z2-7]{16}"),
    ("ABIA", "[A-Z2-7]{16}"),
    ("ACCA", "[A-Z2-7]{16}"),
    ("A3T", "[A-Z0-9][A-Z2-7]{16}"),
    ("ghp_", "[A-Za-z0-9]{36}"),
    ("gho_", "[A-Za-z0-9]{36}"),
    ("ghu_", "[A-Za-z0-9]{36}"),
    ("ghr_", "[A-Za-z0-9]{36}"),
    ("ghs_", r"[A-Za-z0-9._-]{36,800}"),
    ("github_pat_", r"[0-9A-Za-z_]{82}"),
    (
        "glpat-",
        r"[0-9A-Za-z_-]{27,300}\.[0-9a-z]{9}|[0-9A-Za-z_-]{20}",
    ),
    ("xoxb-", r"[0-9]{10,13}-[0-9]{10,13}[A-Za-z0-9-]*"),
    ("xoxp-", r"(?:[0-9]{10,13}-){3}[A-Za-z0-9-]{28,34}"),
    ("xoxa-", r"[A-Za-z0-9-]{20,200}"),
    ("xoxe", r"(?:\.xox[bp])?-[0-9]-[A-Za-z0-9]{140,180}"),
    ("xapp-", r"[0-9]-[A-Z0-9]+-[0-9]+-[a-z0-9]+"),
    (
        "hooks.slack.com/",
        r"(?:services|workflows|triggers)/[A-Za-z0-9+/]{43,56}",
    ),
    ("sk_test_", "[A-Za-z0-9]{10,99}"),
    ("sk_live_", "[A-Za-z0-9]{10,99}"),
    ("sk_prod_", "[A-Za-z0-9]{10,99}"),
    ("rk_test_", "[A-Za-z0-9]{10,99}"),
    ("rk_live_", "[A-Za-z0-9]{10,99}"),
    ("rk_prod_", "[A-Za-z0-9]{10,99}"),
    ("AIza", r"[0-9A-Za-z_-]{35}"),
    ("sk-proj-", r"[0-9A-Za-z_-]{20,200}"),
    ("sk-svcacct-", r"[0-9A-Za-z_-]{20,200}"),
    ("sk-admin-", r"[0-9A-Za-z_-]{20,200}"),
    ("sk-ant-", r"(?:api03|admin01|oat01)-[0-9A-Za-z_-]{80,120}"),
    ("sk-", r"[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}"),
    ("hf_", "[A-Za-z]{34}"),
    ("npm_", "[A-Za-z0-9]{36}"),
    ("pypi-AgEIcHlwaS5vcmc", r"[0-9A-Za-z_-]{50,1000}"),
    ("SG.", r"[A-Za-z0-9=_.-]{66}"),
    ("SK", "[0-9a-fA-F]{32}"),
    ("dop_v1_", "[a-f0-9]{64}"),
    ("shpat_", "[a-fA-F0-9]{32}"),
    ("dapi", "[a-f0-9]{32}(?:-[0-9])?"),
    ("lin_api_", "[A-Za-z0-9]{40}"),
    ("ntn_", "[0-9]{11}[A-Za-z0-9]{35}"),
    ("hvs.", r"[0-9A-Za-z_-]{90,120}"),
    ("glsa_", "[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}"),
    ("pplx-", "[A-Za-z0-9]{48}"),
    ("ATATT3", "[A-Za-z0-9+/=_-]{186}"),
    ("Q~", r"[A-Za-z0-9_~.-]{31,34}"),
    (
        "eyJ",
        r"[0-9A-Za-z_-]{14,}\.eyJ?[0-9A-Za-z_/-]{14,}\.[0-9A-Za-z_/-]{10,}={0,2}",
    ),
    (
        "-----BEGIN ",
        r"[A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----[\s\S]*?-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----",
    ),
];

/// The longest key there is.
const LONGEST: usize = 16_384;

static BEGINNINGS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let beginnings = KEYS.iter().map(|(beginning, _)| beginning);
    let built = AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .build(beginnings);
    built.ok()
});

static PATTERNS: LazyLock<Vec<Option<Regex>>> = LazyLock::new(|| {
    let pattern = |(_, rest): &(&str, &str)| Regex::new(&format!("^(?:{rest})")).ok();
    KEYS.iter().map(pattern).collect()
});

/// Every place where a key is.
pub fn seek(text: &str, mut found: impl FnMut(Range<usize>)) {
    let Some(beginnings) = BEGINNINGS.as_ref() else {
        return;
    };
    let mut at = 0;
    while let Some(hit) = beginnings.find(&text.as_bytes()[at..]) {
        let (start, rest) = (at + hit.start(), at + hit.end());
        let end = text.floor_char_boundary(rest.saturating_add(LONGEST).min(text.len()));
        let pattern = PATTERNS
            .get(hit.pattern().as_usize())
            .and_then(Option::as_ref);
        let key = pattern.and_then(|pattern| pattern.find(&text[rest..end]));
        at = match key {
            Some(key) => {
                // Azure's are known by their middle.
                let start = if text[start..].starts_with("Q~") {
                    start.saturating_sub(3)
                } else {
                    start
                };
                if text.is_char_boundary(start) {
                    found(start..rest + key.end());
                }
                rest + key.end()
            }
            None => start + 1,
        };
        while !text.is_char_boundary(at) {
            at += 1;
        }
    }
}

/// A key is no part of a longer word, and not one that a manual made up.
pub fn check(spot: &Spot) -> Option<Range<usize>> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let begins = match spot.before() {
        [.., b'\\', b'n' | b'r' | b't'] => true,
        before => !before.last().is_some_and(is_part),
    };
    let ends = !spot.after().first().is_some_and(is_part);
    let value = spot.value();
    let is_example = value.ends_with("EXAMPLE") || is_monotonous(value);
    (begins && ends && !is_example).then_some(spot.start..spot.end)
}

/// `sk_live_xxxxxxxxxxxxxxxx` and the like stand for a key.
fn is_monotonous(value: &str) -> bool {
    let tail = &value.as_bytes()[value.len().saturating_sub(10)..];
    tail.iter().all(|byte| *byte == tail[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_a_pattern_that_compiles() {
        assert!(BEGINNINGS.is_some());
        assert!(PATTERNS.iter().all(Option::is_some));
    }
}
