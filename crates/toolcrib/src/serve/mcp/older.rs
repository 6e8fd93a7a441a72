//! What revisions before 2026-07-28 want otherwise: structured content is always an object, and so is its schema.

use serde_json::{Map, Value, json};
use toolcrib_core::Tool;

/// Is the data of this tool put into an object of its own, because its schema is not one of objects?
pub fn wraps(tool: &Tool) -> bool {
    let schema = tool.spec.output_schema.as_ref();
    schema.is_some_and(|schema| !is_of_objects(schema.value()))
}

fn is_of_objects(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("object")
}

/// A tool of a list, as older revisions see it.
pub fn tool(mut listed: Value) -> Value {
    if let Some(schema) = listed.get_mut("outputSchema")
        && !is_of_objects(schema)
    {
        *schema = wrapped(schema.take());
    }
    listed
}

/// The schema of `{"result": …}` around data of that schema.
fn wrapped(mut schema: Value) -> Value {
    let mut whole = Map::new();
    if let Some(dialect) = schema
        .as_object_mut()
        .and_then(|map| map.shift_remove("$schema"))
    {
        whole.insert("$schema".into(), dialect);
    }
    // One with a name of its own is found by it wherever it stands.
    if schema.get("$id").is_none() {
        repoint(&mut schema);
    }
    whole.insert("type".into(), "object".into());
    whole.insert("properties".into(), json!({"result": schema}));
    whole.insert("required".into(), json!(["result"]));
    Value::Object(whole)
}

/// References from the root point to where the schema now stands.
fn repoint(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                match (key.as_str(), value) {
                    ("const" | "enum" | "default" | "examples", _) => {}
                    ("$ref" | "$dynamicRef", Value::String(target)) => {
                        if let Some(rest) = target.strip_prefix('#')
                            && (rest.is_empty() || rest.starts_with('/'))
                        {
                            *target = format!("#/properties/result{rest}");
                        }
                    }
                    (_, inner) if inner.get("$id").is_some_and(Value::is_string) => {}
                    (_, inner) => repoint(inner),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(repoint),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_of_objects_stays_as_it_is() {
        let listed = json!({"name": "a", "outputSchema": {"type": "object", "$ref": "#/$defs/a"}});
        assert_eq!(tool(listed.clone()), listed);
        assert_eq!(tool(json!({"name": "a"})), json!({"name": "a"}));
    }

    #[test]
    fn any_other_is_wrapped_and_its_references_still_point_to_the_same() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "array",
            "items": {"$ref": "#/$defs/node"},
            "$defs": {
                "node": {"type": "object", "properties": {
                    "all": {"$ref": "#"}, "named": {"$ref": "#anchor"}, "far": {"$ref": "https://x/#/a"},
                    "word": {"const": {"$ref": "#"}},
                }},
                "other": {"$id": "urn:other", "$ref": "#/x"},
            },
        });
        let listed = tool(json!({"name": "a", "outputSchema": schema}));
        let whole = &listed["outputSchema"];
        assert_eq!(
            whole["$schema"],
            "https://json-schema.org/draft/2020-12/schema"
        );
        assert_eq!(
            (&whole["type"], &whole["required"]),
            (&json!("object"), &json!(["result"]))
        );
        let inner = &whole["properties"]["result"];
        assert_eq!(inner.get("$schema"), None);
        assert_eq!(inner["items"]["$ref"], "#/properties/result/$defs/node");
        let of_node = |name: &str| &inner["$defs"]["node"]["properties"][name];
        assert_eq!(of_node("all")["$ref"], "#/properties/result");
        assert_eq!(of_node("named")["$ref"], "#anchor");
        assert_eq!(of_node("far")["$ref"], "https://x/#/a");
        assert_eq!(of_node("word")["const"]["$ref"], "#");
        assert_eq!(inner["$defs"]["other"]["$ref"], "#/x");
    }
}
