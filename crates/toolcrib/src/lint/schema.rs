//! Whether the schema of the arguments means the same to all clients, and can be filled by a model.

use serde_json::{Map, Value};

use super::Report;

const DEEPEST: usize = 4;
const MOST: usize = 20;
const CHOICES: [&str; 3] = ["anyOf", "oneOf", "allOf"];
const NESTED: usize = 32;

pub(super) fn look(report: &mut Report<'_>) {
    let schema = &report.tool().input_schema;
    let Some(top) = schema.as_object() else {
        return;
    };
    for word in CHOICES.into_iter().chain(["not", "if"]) {
        if top.contains_key(word) {
            report.find(
                "schema-choice-on-top",
                format!("the schema has `{word}` at its top"),
                &[&quoted(word)],
            );
        }
    }
    map(report, top, "the arguments");
    if holds(schema, "$ref", 0) {
        report.find(
            "schema-reference",
            "the schema refers to another place with `$ref`",
            &["\"$ref\""],
        );
    }
    let properties = top.get("properties").and_then(Value::as_object);
    let count = properties.map_or(0, Map::len);
    if count > MOST {
        report.find(
            "schema-many",
            format!("it has {count} parameters"),
            &["\"properties\""],
        );
    }
    let required = top.get("required").and_then(Value::as_array);
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        if !properties.is_some_and(|properties| properties.contains_key(name)) {
            report.find(
                "schema-required",
                format!("`{name}` is required and not described"),
                &["\"required\""],
            );
        }
    }
    for (name, property) in properties.into_iter().flatten() {
        value(report, name, property, 1);
    }
}

fn quoted(word: &str) -> String {
    format!("\"{word}\"")
}

fn holds(value: &Value, key: &str, depth: usize) -> bool {
    depth < NESTED
        && match value {
            Value::Object(map) => {
                map.get(key).is_some_and(Value::is_string)
                    || map.values().any(|inner| holds(inner, key, depth + 1))
            }
            Value::Array(items) => items.iter().any(|inner| holds(inner, key, depth + 1)),
            _ => false,
        }
}

/// An object whose names nobody knows.
fn map(report: &mut Report<'_>, schema: &Map<String, Value>, name: &str) {
    let typed = schema
        .get("additionalProperties")
        .is_some_and(Value::is_object);
    for word in ["patternProperties", "propertyNames", "additionalProperties"] {
        if schema.contains_key(word) && (word != "additionalProperties" || typed) {
            report.find(
                "schema-map",
                format!("{name} has `{word}`"),
                &[&quoted(word)],
            );
        }
    }
}

fn value(report: &mut Report<'_>, name: &str, schema: &Value, depth: usize) {
    let Some(map_of) = schema.as_object() else {
        return;
    };
    let near = quoted(name);
    let near = near.as_str();
    if depth == DEEPEST + 1 {
        report.find(
            "schema-deep",
            format!("`{name}` lies {depth} levels deep"),
            &[near],
        );
    }
    if depth > NESTED {
        return;
    }
    let choice = CHOICES.into_iter().find(|word| map_of.contains_key(*word));
    if let Some(word) = choice {
        report.find("schema-choice", format!("`{name}` has `{word}`"), &[near]);
    }
    match map_of.get("type") {
        Some(Value::Array(types)) => {
            let types: Vec<&str> = types.iter().filter_map(Value::as_str).collect();
            report.find(
                "schema-type-list",
                format!("`{name}` may be {}", types.join(" or ")),
                &[near],
            );
        }
        Some(_) => {}
        None => {
            let told = ["enum", "const", "$ref"]
                .iter()
                .any(|word| map_of.contains_key(*word));
            if !told && choice.is_none() {
                report.find("schema-untyped", format!("`{name}` has no type"), &[near]);
            }
        }
    }
    map(report, map_of, &format!("`{name}`"));
    array(report, name, map_of, near);
    let pattern = map_of.get("pattern").and_then(Value::as_str);
    if pattern.is_some_and(|pattern| pattern.contains("(?")) {
        report.find(
            "schema-pattern",
            format!("the pattern of `{name}` has `(?`"),
            &[near],
        );
    }
    if let Some(default) = map_of.get("default")
        && refuses(schema, default)
    {
        report.find(
            "schema-default",
            format!("the default of `{name}` does not fit: {default}"),
            &[near],
        );
    }
    let properties = map_of.get("properties").and_then(Value::as_object);
    for (inner, property) in properties.into_iter().flatten() {
        value(report, &format!("{name}.{inner}"), property, depth + 1);
    }
    if let Some(items) = map_of.get("items").filter(|_| says_items(map_of)) {
        value(report, &format!("{name}[]"), items, depth + 1);
    }
}

fn array(report: &mut Report<'_>, name: &str, schema: &Map<String, Value>, near: &str) {
    let is_array = schema.get("type").and_then(Value::as_str) == Some("array");
    let by_place =
        schema.contains_key("prefixItems") || schema.get("items").is_some_and(Value::is_array);
    if by_place {
        report.find(
            "schema-tuple",
            format!("`{name}` has a type for each place"),
            &[near],
        );
    } else if is_array && !says_items(schema) {
        report.find(
            "schema-items",
            format!("`{name}` does not say what it holds"),
            &[near],
        );
    }
}

/// Does it say what its items are?
fn says_items(schema: &Map<String, Value>) -> bool {
    let items = schema.get("items").and_then(Value::as_object);
    items.is_some_and(|items| !items.is_empty())
}

/// Does the plainest reading of a schema refuse this value?
fn refuses(schema: &Value, value: &Value) -> bool {
    if let Some(choices) = schema["enum"].as_array() {
        return !choices.contains(value);
    }
    let fits = |kind: &str| match kind {
        "string" => value.is_string(),
        "integer" => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n.fract() == 0.0)
        }
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => true,
    };
    let by_type = match &schema["type"] {
        Value::String(kind) => !fits(kind),
        Value::Array(kinds) => !kinds.iter().filter_map(Value::as_str).any(fits),
        _ => false,
    };
    let beyond = |bound: &str, worse: fn(f64, f64) -> bool| {
        let both = schema[bound].as_f64().zip(value.as_f64());
        both.is_some_and(|(bound, value)| worse(value, bound))
    };
    by_type
        || beyond("minimum", |value, bound| value < bound)
        || beyond("maximum", |value, bound| value > bound)
}
