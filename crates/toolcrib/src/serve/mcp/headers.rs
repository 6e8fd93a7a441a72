//! The headers of 2026-07-28, which say again what the message says, so that others route by them: they must agree.

use std::borrow::Cow;

use axum::http::header::AsHeaderName;
use axum::http::{HeaderMap, HeaderName};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use serde_json::value::RawValue;
use toolcrib_core::Object;

use super::message::Params;

static METHOD: HeaderName = HeaderName::from_static("mcp-method");
static NAME: HeaderName = HeaderName::from_static("mcp-name");

/// A parameter of a tool that is told in a header too (`x-mcp-header` in its schema).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamHeader {
    /// Where it stands in the arguments.
    path: Vec<String>,
    /// The whole name of the header.
    header: String,
}

/// All parameters of a schema that are told in headers: those that properties alone lead to.
pub fn param_headers(schema: &Value) -> Vec<ParamHeader> {
    let mut found = Vec::new();
    collect(schema, &mut Vec::new(), &mut found);
    found
}

fn collect(schema: &Value, path: &mut Vec<String>, found: &mut Vec<ParamHeader>) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return;
    };
    for (name, inner) in properties {
        path.push(name.clone());
        let header = inner.get("x-mcp-header").and_then(Value::as_str);
        if let Some(header) = header.filter(|header| !header.is_empty()) {
            found.push(ParamHeader {
                path: path.clone(),
                header: format!("Mcp-Param-{header}"),
            });
        }
        collect(inner, path, found);
        path.pop();
    }
}

/// The only value of a header; none where it is missing or no text. `shown` is how people write its name.
fn single<'a>(
    headers: &'a HeaderMap,
    name: impl AsHeaderName,
    shown: &str,
) -> Result<Option<&'a str>, String> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (_, Some(_)) => Err(format!("duplicate {shown} header")),
        (Some(value), None) => Ok(value.to_str().ok()),
        (None, None) => Ok(None),
    }
}

/// Says where `Mcp-Method` and `Mcp-Name` differ from the message.
pub fn check(headers: &HeaderMap, method: &str, params: &Params) -> Result<(), String> {
    match single(headers, &METHOD, "Mcp-Method")? {
        None => return Err("missing required Mcp-Method header".to_owned()),
        Some(value) if value != method => {
            return Err(format!(
                "Mcp-Method header `{value}` does not match body method `{method}`"
            ));
        }
        Some(_) => {}
    }
    let field = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return Ok(()),
    };
    let Some(named) = params.text(field) else {
        return Ok(());
    };
    let Some(value) = single(headers, &NAME, "Mcp-Name")? else {
        return Err(format!("missing required Mcp-Name header for `{method}`"));
    };
    let decoded = decoded(value).ok_or("Mcp-Name header is not valid Base64")?;
    if decoded != named {
        return Err(format!(
            "Mcp-Name header `{decoded}` does not match body value `{named}`"
        ));
    }
    Ok(())
}

/// Says where the headers of a tool's parameters differ from its arguments. They are read as the call reads them, so that
/// no number or name makes the two see different ones; what the call refuses needs no header.
pub fn check_arguments(
    headers: &HeaderMap,
    wanted: &[ParamHeader],
    arguments: Option<&RawValue>,
) -> Result<(), String> {
    let arguments = arguments.map_or(Ok(Object::default()), |raw| Object::new(raw.to_owned()));
    arguments.map_or(Ok(()), |arguments| {
        check_params(headers, wanted, arguments.json().value())
    })
}

fn check_params(
    headers: &HeaderMap,
    wanted: &[ParamHeader],
    arguments: &Value,
) -> Result<(), String> {
    for ParamHeader { path, header } in wanted {
        let place = path.join(".");
        let value = path.iter().try_fold(arguments, |value, key| value.get(key));
        let value = value.and_then(plain);
        match (single(headers, header.as_str(), header)?, value) {
            (None, None) => {}
            (Some(_), None) => {
                return Err(format!(
                    "unexpected {header} header for absent or null `{place}`"
                ));
            }
            (None, Some(_)) => return Err(format!("missing {header} header for `{place}`")),
            (Some(raw), Some(value)) => {
                let decoded =
                    decoded(raw).ok_or_else(|| format!("{header} header is not valid Base64"))?;
                if decoded != value {
                    return Err(format!(
                        "{header} header `{decoded}` does not match body value `{value}`"
                    ));
                }
            }
        }
    }
    Ok(())
}

/// What a header says; text that a header can't hold comes as Base64.
fn decoded(value: &str) -> Option<Cow<'_, str>> {
    let inner = value
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="));
    match inner {
        None => Some(value.into()),
        Some(inner) => {
            let bytes = BASE64_STANDARD.decode(inner).ok()?;
            String::from_utf8(bytes).ok().map(Cow::Owned)
        }
    }
}

/// A plain value as a header has it.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(*name, value.parse().unwrap());
        }
        map
    }

    #[test]
    fn no_number_hides_the_other_arguments() {
        let wanted = param_headers(&json!({"properties": {"a": {"x-mcp-header": "A"}}}));
        let says = |pairs: &[(&'static str, &str)], arguments: &str| {
            let raw: &RawValue = serde_json::from_str(arguments).unwrap();
            check_arguments(&headers(pairs), &wanted, Some(raw)).is_ok()
        };
        for arguments in [
            r#"{"a": "x", "n": 1e999}"#,
            r#"{"a": "y", "\u0061": "x", "n": -1e999}"#,
        ] {
            assert!(says(&[("mcp-param-a", "x")], arguments), "{arguments}");
            assert!(!says(&[("mcp-param-a", "y")], arguments), "{arguments}");
            assert!(!says(&[], arguments), "{arguments}");
        }
        assert_eq!(check_arguments(&headers(&[]), &wanted, None), Ok(()));
    }

    #[test]
    fn nested_parameters_are_found_and_checked() {
        let schema = json!({"properties": {
            "a": {"type": "string", "x-mcp-header": "A"},
            "b": {"properties": {"c": {"x-mcp-header": "C"}}},
            "odd": {"x-mcp-header": 7}, "none": {"x-mcp-header": ""},
            "list": {"items": {"x-mcp-header": "No"}},
        }});
        let wanted = param_headers(&schema);
        assert_eq!(wanted.len(), 2);
        let says = |pairs: &[(&'static str, &str)], arguments: Value| {
            check_params(&headers(pairs), &wanted, &arguments)
        };
        let both = json!({"a": "x", "b": {"c": 7}});
        assert_eq!(
            says(&[("mcp-param-a", "x"), ("mcp-param-c", "7")], both.clone()),
            Ok(())
        );
        assert!(says(&[("mcp-param-a", "x")], both.clone()).is_err());
        assert!(says(&[("mcp-param-a", "x"), ("mcp-param-c", "8")], both.clone()).is_err());
        let twice = [
            ("mcp-param-a", "x"),
            ("mcp-param-a", "x"),
            ("mcp-param-c", "7"),
        ];
        assert!(says(&twice, both).is_err());
        assert!(says(&[("mcp-param-a", "x")], json!({"a": null})).is_err());
        assert_eq!(
            says(&[("mcp-param-a", "=?base64?w6Q=?=")], json!({"a": "ä"})),
            Ok(())
        );
        assert!(says(&[("mcp-param-a", "=?base64?!?=")], json!({"a": "ä"})).is_err());
        assert_eq!(says(&[], json!({})), Ok(()));
    }
}
