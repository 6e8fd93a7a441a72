//! What a schema is refused for, and how it judges.

use super::*;

fn refused(value: Value) -> String {
    Schema::parse(value).unwrap_err().to_string()
}

#[test]
fn a_plain_schema_judges() {
    let schema = Schema::parse(json!({
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 1}},
        "required": ["n"],
    }))
    .unwrap();
    assert!(schema.violations(&json!({"n": 2})).is_empty());
    assert_eq!(schema.violations(&json!({"n": 0}))[0].path, "/n");
    assert!(schema.violations(&json!({}))[0].message.contains("\"n\""));
}

#[test]
fn the_top_must_be_an_object() {
    assert!(refused(json!([])).contains("must be a JSON object"));
    assert!(refused(json!({"type": "string"})).contains("\"object\""));
    assert_eq!(Schema::parse(json!({})).unwrap().value()["type"], "object");
}

#[test]
fn nothing_is_fetched() {
    for reference in [
        "http://localhost/x.json",
        "file:///etc/passwd",
        "other.json",
    ] {
        let schema = json!({"properties": {"a": {"$ref": reference}}});
        assert!(
            refused(schema).contains("only references inside"),
            "{reference}"
        );
    }
}

#[test]
fn references_must_exist_and_end() {
    assert!(refused(json!({"properties": {"a": {"$ref": "#/$defs/no"}}})).contains("not there"));
    assert!(refused(json!({"$ref": "#"})).contains("without end"));
    let ring = json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}},
                      "properties": {"x": {"$ref": "#/$defs/a"}}});
    assert!(refused(ring).contains("without end"));
}

/// Wherever a reference without end is put, it is seen: whoever judged by it would never come back.
#[test]
fn no_reference_leads_where_nobody_looked() {
    let ring = |at: &str| json!({"$ref": at});
    let draft4 = "http://json-schema.org/draft-04/schema#";
    for (schema, why) in [
        (
            json!({"properties": {"a": {"$id": "x", "$ref": "#/$defs/a"}}}),
            "`$id`",
        ),
        (
            json!({"properties": {"a": {"$schema": draft4, "id": "x", "$ref": "#"}}}),
            "`$schema`",
        ),
        // A property may be called like a keyword that holds data.
        (
            json!({"properties": {"default": ring("#/properties/default")}}),
            "without end",
        ),
        (
            json!({"$defs": {"enum": {"$id": "x"}}, "properties": {}}),
            "`$id`",
        ),
        // And data is no schema.
        (
            json!({"$ref": "#/default", "default": {"properties": {"a": ring("#/default/properties/a")}}}),
            "no schema",
        ),
        (
            json!({"$ref": "#a", "examples": [{"$anchor": "a", "$ref": "#a"}]}),
            "not there",
        ),
        // Nor is a list of names, in which keywords are names.
        (
            json!({"$ref": "#/properties", "properties": {"properties": {"default": ring("#/properties/properties/default")}}}),
            "no schema",
        ),
        (
            json!({"properties": {"a": {"$anchor": "b"}, "b": {"$anchor": "b", "$ref": "#b"}}}),
            "another part",
        ),
        (
            json!({"$defs": {"a": ring("#/%24defs/a")}, "%24defs": {"a": {}}, "properties": {"x": ring("#/$defs/a")}}),
            "without end",
        ),
        (json!({"$ref": "#/%ff"}), "not there"),
    ] {
        let told = refused(schema.clone());
        assert!(told.contains(why), "{schema}: {told}");
    }
    // An argument may have any name.
    for name in ["$ref", "$id", "$schema", "$anchor", "default", "a b", "%25"] {
        let pointer = name.replace('%', "%25").replace(' ', "%20");
        let schema = json!({
            "properties": {name: {"type": "string"}, "other": ring(&format!("#/properties/{pointer}"))},
        });
        let schema = Schema::parse(schema).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(
            schema
                .violations(&json!({name: "x", "other": "y"}))
                .is_empty(),
            "{name}"
        );
        assert_eq!(
            schema.violations(&json!({name: 1, "other": 2})).len(),
            2,
            "{name}"
        );
    }
}

#[test]
fn a_tree_may_refer_to_itself() {
    let schema = Schema::parse(json!({
        "properties": {"tree": {"$ref": "#/$defs/node"}},
        "$defs": {"node": {"type": "object", "properties": {"left": {"$ref": "#/$defs/node"}}}},
    }))
    .unwrap();
    assert!(
        schema
            .violations(&json!({"tree": {"left": {"left": {}}}}))
            .is_empty()
    );
    assert!(
        !schema
            .violations(&json!({"tree": {"left": {"left": 1}}}))
            .is_empty()
    );
}

#[test]
fn bombs_are_refused() {
    let mut defs = Map::new();
    for i in 0..20 {
        let next = json!({"$ref": format!("#/$defs/d{}", i + 1)});
        defs.insert(format!("d{i}"), json!({"anyOf": [next, next]}));
    }
    defs.insert("d20".into(), json!({"type": "string"}));
    let bomb = json!({"properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": defs});
    assert!(refused(bomb).contains("too many alternatives"));

    let mut deep = json!({});
    for _ in 0..100 {
        deep = json!({"properties": {"a": deep}});
    }
    assert!(refused(deep).contains("levels deep"));
}

#[test]
fn bad_patterns_and_types_are_refused() {
    assert!(Schema::parse(json!({"properties": {"a": {"type": "strin"}}})).is_err());
    assert!(Schema::parse(json!({"properties": {"a": {"pattern": "("}}})).is_err());
    assert!(Schema::parse(json!({"properties": 3})).is_err());
}

#[test]
fn a_costly_pattern_ends() {
    let schema =
        Schema::parse(json!({"properties": {"a": {"pattern": "^(?=(a+)+$)(a+)+$"}}})).unwrap();
    let text = format!("{}b", "a".repeat(40));
    assert!(!schema.violations(&json!({"a": text})).is_empty());
}

#[test]
fn defaults_are_filled_in() {
    let schema = Schema::parse(json!({"properties": {
        "a": {"default": "TODO"},
        "b": {"type": "object", "properties": {"c": {"default": 3}}},
    }}))
    .unwrap();
    let mut arguments = Object::parse(r#"{"b": {}, "n": 1.0}"#).unwrap();
    schema.fill_defaults(&mut arguments).unwrap();
    assert_eq!(arguments.text(), r#"{"b": {"c":3}, "n": 1.0,"a":"TODO"}"#);
    let whole = arguments.clone();
    schema.fill_defaults(&mut arguments).unwrap();
    assert_eq!(arguments, whole);
    let mut other = Object::parse(r#"{"b": 1, "a": null}"#).unwrap();
    schema.fill_defaults(&mut other).unwrap();
    assert_eq!(other.text(), r#"{"b": 1, "a": null}"#);
}

#[test]
fn arguments_that_defaults_make_too_deep_are_refused_and_not_emptied() {
    let deep = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    let default: Value = serde_json::from_str(&deep(100)).unwrap();
    let mut schema = json!({"properties": {"d": {"default": default}}});
    for _ in 0..30 {
        schema = json!({"properties": {"a": schema}});
    }
    let schema = Schema::parse(schema).unwrap();
    let given = format!("{}{{}}{}", r#"{"a":"#.repeat(30), "}".repeat(30));
    let mut arguments = Object::parse(&given).unwrap();
    assert!(schema.fill_defaults(&mut arguments).is_err());
    assert_eq!(arguments.text(), given);
}
