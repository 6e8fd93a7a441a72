//! What LangChain gave for the same texts, as `scripts/record-langchain-pii` wrote it down; a case that differs says why.

use serde_json::Value;
use toolcrib_pii::{Detectors, Strategy, covered};

#[test]
fn the_shapes_are_langchains() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("recorded/langchain.json")).unwrap();
    assert!(cases.len() >= 30);
    for case in cases {
        let (kind, text) = (
            case["type"].as_str().unwrap(),
            case["text"].as_str().unwrap(),
        );
        let detectors = match case["detector"].as_str() {
            Some(pattern) => Detectors::new([], [(kind, pattern)]),
            None => Detectors::new([kind], []),
        };
        let detectors = detectors.unwrap();
        let found = detectors.find(text, None).unwrap();
        let strategy = match case["strategy"].as_str().unwrap() {
            "mask" => Strategy::Mask,
            "block" => Strategy::Block,
            _ => Strategy::Redact,
        };
        let gives = match (strategy, found.len()) {
            (Strategy::Block, count @ 1..) => {
                format!("error: Detected {count} instance(s) of {kind} in text content")
            }
            _ => covered(text, &found, strategy, &|_, _| None),
        };
        let same = case["gives"] == gives.as_str();
        assert_eq!(same, case.get("differs").is_none(), "{case}\n  {gives}");
    }
}
