//! A text in chunks gives what the whole gives, however it is cut.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use toolcrib_pii::{Detectors, PiiStream, Strategy, covered, safe_end};

fn no_hash(_: &str, _: &str) -> Option<String> {
    None
}

fn streamed(detectors: &Detectors, bytes: &[u8], cuts: &[usize]) -> Vec<u8> {
    let mut stream = PiiStream::new(detectors, Strategy::Redact, &no_hash);
    let (mut shown, mut at) = (Vec::new(), 0_usize);
    for cut in cuts.iter().copied().chain([usize::MAX]) {
        let end = at.saturating_add(cut).min(bytes.len());
        shown.extend(stream.push(&bytes[at..end]).unwrap());
        at = end;
    }
    let (rest, _) = stream.finish().unwrap();
    shown.extend(rest);
    shown
}

fn whole(detectors: &Detectors, text: &str) -> String {
    let findings = detectors.find(text, None).unwrap();
    covered(text, &findings, Strategy::Redact, &no_hash)
}

/// Long enough that parts are given out before the end.
fn long(seed: usize) -> String {
    let personal = [
        "jürgen@example.com ",
        "+49 30 901820 ",
        "4111 1111 1111 1111\n",
        "https://example.com/a?b=c ",
        "Phone:\n467 3395\n",
        "DE89 3704 0044 0532 0130 00 ",
    ];
    let mut text = String::new();
    for n in 0.. {
        if text.len() > 600_000 {
            return text;
        }
        let filler = "words that tell nothing, ä and ö, ".repeat((n * 7 + seed) % 23 + 1);
        text.push_str(&filler);
        text.push_str(personal[(n * 5 + seed) % personal.len()]);
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn no_chunk_splits_a_finding(seed in 0_usize..1_000, cuts in prop::collection::vec(1_usize..90_000, 0..20)) {
        let detectors = Detectors::all().unwrap();
        let text = long(seed);
        let shown = streamed(&detectors, text.as_bytes(), &cuts);
        prop_assert!(String::from_utf8(shown).unwrap() == whole(&detectors, &text));
    }

    #[test]
    fn bytes_that_are_no_text_stay(bytes in prop::collection::vec(any::<u8>(), 0..2_000)) {
        let detectors = Detectors::new(["iban"], []).unwrap();
        prop_assert_eq!(streamed(&detectors, &bytes, &[7, 100, 3]), bytes);
    }
}

#[test]
fn text_between_other_bytes_is_looked_at() {
    let detectors = Detectors::all().unwrap();
    let shown = streamed(&detectors, b"\xff\xfe jane@example.com \xff", &[5]);
    assert_eq!(shown, b"\xff\xfe [REDACTED_EMAIL] \xff");
}

#[test]
fn a_finding_longer_than_a_part_is_held_back_whole() {
    let detectors = Detectors::all().unwrap();
    let url = format!("see https://example.com/{} there", "x".repeat(700_000));
    let shown = streamed(&detectors, url.as_bytes(), &[300_000, 100_000]);
    assert_eq!(shown, b"see [REDACTED_URL] there");
}

#[test]
fn what_is_found_is_counted() {
    let detectors = Detectors::all().unwrap();
    let mut stream = PiiStream::new(&detectors, Strategy::Block, &no_hash);
    let text = "jane@example.com ".repeat(40_000);
    stream.push(text.as_bytes()).unwrap();
    let (_, counts) = stream.finish().unwrap();
    assert_eq!(counts, [("email", 40_000)]);
}

#[test]
fn a_text_that_goes_on_unseen_is_cut_before_what_may_be_half() {
    for (text, safe) in [
        ("mail jane@exam", "mail "),
        ("call +49 30 12", "call "),
        ("the end. ", "the end. "),
        ("card 4111 1111 ", "card "),
        ("IBAN DE89 3704", "IBAN "),
        ("alone", ""),
        ("key:\n-----BEGIN PRIVATE KEY-----\nMII\nEp x", "key:\n"),
    ] {
        assert_eq!(&text[..safe_end(text)], safe, "{text}");
    }
}
