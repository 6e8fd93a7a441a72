//! What passes through stays as it is; what is no JSON, too deep or halved is refused.

use serde_json::{Value, json};

use super::*;

const ODD: &str = r#"{"z": 1.0, "a": 123456789012345678901234567890, "e": "\u00e4\/", "x": [1e2, -0, 1E+400, true], "n": null}"#;

#[test]
fn what_nobody_edits_stays_as_it_came() {
    let json = Json::parse(ODD).unwrap();
    assert_eq!(json.text(), ODD);
    assert_eq!(serde_json::to_string(&json).unwrap(), ODD);
    let value = json.value();
    assert_eq!(value["e"], "ä/");
    assert_eq!(value["x"][0], 100.0);
    assert_eq!(value["x"][2], f64::MAX);
    assert_eq!(json.clone().text(), ODD);
    let read: Vec<Json> = serde_json::from_str(&format!("[{ODD}, 1.0]")).unwrap();
    assert_eq!((read[0].text(), read[1].text()), (ODD, "1.0"));
    let object = Object::parse(ODD).unwrap();
    assert_eq!(object.text(), ODD);
    assert_eq!(
        object.text_of("a").unwrap(),
        "123456789012345678901234567890"
    );
    assert_eq!(object.text_of("e").unwrap(), "ä/");
    assert_eq!(object.text_of("x").unwrap(), "[1e2,-0,1E+400,true]");
    assert_eq!((object.text_of("n"), object.text_of("q")), (None, None));
}

#[test]
fn an_edit_changes_only_what_it_names() {
    let mut object = Object::parse(r#"{"a": 1.0, "b": {"a": 2}}"#).unwrap();
    object.insert("a", "x");
    assert_eq!(object.text(), r#"{"a": "x", "b": {"a": 2}}"#);
    object.insert("c", true);
    assert_eq!(object.text(), r#"{"a": "x", "b": {"a": 2},"c":true}"#);
    assert_eq!(object["c"], true);
    object.retain(|name| name != "a");
    assert_eq!(object.text(), r#"{"b":{"a": 2},"c":true}"#);
    let mut empty = Object::parse("{ }").unwrap();
    assert!(empty.is_empty());
    empty.insert("a\"b", 1);
    assert_eq!(empty.text(), r#"{ "a\"b":1}"#);
    assert!(empty.contains_key("a\"b") && !empty.is_empty());
}

#[test]
fn what_is_no_json_is_refused() {
    for text in [
        "", "{", "{\"a\":}", "[1,]", "nul", "{} x", "\"\n\"", "01", r#""\x""#,
    ] {
        assert!(
            matches!(Json::parse(text), Err(JsonError::Syntax(_))),
            "{text}"
        );
    }
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert!(Json::parse(&nested(MAX_DEPTH)).is_ok());
    assert!(matches!(
        Json::parse(&nested(MAX_DEPTH + 1)),
        Err(JsonError::Depth)
    ));
    assert!(matches!(
        Json::parse(&nested(100_000)),
        Err(JsonError::Depth)
    ));
    for text in [r#""\ud800""#, r#"{"\udc00": 1}"#, r#"["\ud83d\u0041"]"#] {
        assert!(
            matches!(Json::parse(text), Err(JsonError::HalfCharacter)),
            "{text}"
        );
    }
    assert!(Json::parse(r#""\ud83d\ude00""#).is_ok());
    for text in ["[]", "1", "null", "\"{}\""] {
        assert!(
            matches!(Object::parse(text), Err(JsonError::NoObject)),
            "{text}"
        );
    }
}

#[test]
fn it_never_breaks_a_line() {
    let json = Json::parse("{\r\n \"a b\" : [ 1.0 ,\n\t\"x \\n\" ]\n}").unwrap();
    assert_eq!(json.text(), r#"{"a b":[1.0,"x \n"]}"#);
    assert_eq!(Json::parse(" [1, 2] ").unwrap().text(), "[1, 2]");
    assert_eq!(Json::parse("[1, 2]").unwrap().compact(), "[1,2]");
}

#[test]
fn of_a_name_that_stands_twice_the_last_goes_on() {
    let object = Object::parse(r#"{"a": 1, "b": [{"c": 1, "\u0063": 2}], "a": 3}"#).unwrap();
    assert_eq!(object.text(), r#"{"a":3,"b":[{"c":2}]}"#);
    let many: Vec<String> = (0..100).map(|n| format!("\"{n}\": 0")).collect();
    let text = format!("{{{}, \"7\": 1}}", many.join(", "));
    let object = Object::parse(&text).unwrap();
    assert_eq!((object.map().len(), &object["7"]), (100, &json!(1)));
}

#[test]
fn equal_is_what_says_the_same() {
    assert_eq!(
        Json::parse("{\"a\": \"\\u0062\"}").unwrap(),
        json!({"a": "b"})
    );
    assert_eq!(Json::parse("[1]").unwrap(), Json::from(json!([1])));
    assert_ne!(Json::parse("1.0").unwrap(), Json::from(json!(1)));
    assert_eq!(Json::parse("3").unwrap().into_value(), Value::from(3));
}

/// Whatever serde reads, the tokens put together again give.
#[test]
fn tokens_are_those_of_a_parser() {
    let values = [
        json!({"a": [1, -2.5, {"b": {}}], "": [[], ""], "q\"\\": "\u{1}ä\u{1F600}"}),
        json!([]),
        json!("x"),
        json!([null, true, false, {"a": {"a": {"a": []}}}]),
    ];
    for value in values {
        for text in [
            value.to_string(),
            serde_json::to_string_pretty(&value).unwrap(),
        ] {
            assert_eq!(scan::compact(&text), value.to_string());
            let parts: Vec<_> = Parts::of(&text).collect();
            match &value {
                Value::Object(map) => {
                    let read = parts
                        .iter()
                        .map(|(name, part)| (name.to_string(), read(part)));
                    assert_eq!(read.collect::<Map<_, _>>(), *map);
                }
                Value::Array(items) => {
                    let read = parts.iter().map(|(_, part)| read(part));
                    assert_eq!(&read.collect::<Vec<_>>(), items);
                }
                _ => assert!(parts.is_empty()),
            }
            let again = scan::rewritten(&text, |token, _| Some(token.of(&text).to_owned()));
            assert_eq!(again.unwrap(), text);
            assert_eq!(scan::rewritten(&text, |_, _| None), None);
        }
    }
}
