//! Holds a tool to its output schema: what it gives is data that fits, or the call has failed and says where.
//!
//! Clients refuse a whole result whose data is missing or fits no schema that they were told. So a text is read as data
//! where that is what the schema asks for, and data is never cut.

use super::{Always, Middleware, Next};
use crate::profile::ChainSettings;
use crate::{BoxFuture, Call, CallResult, Json, Outcome, Outputs, Schema};

/// The most data that a tool with an output schema hands over.
pub(super) const MAX_DATA: usize = 1_024 * 1_024;
/// What the crib says about a result that does not fit.
const MAX_REMARK: usize = 1_200;

pub(super) struct Fit;

impl Always for Fit {
    fn of(_: &ChainSettings) -> Fit {
        Fit
    }
}

impl Middleware for Fit {
    fn handle<'a>(&'a self, call: &'a mut Call, next: Next<'a>) -> BoxFuture<'a, CallResult> {
        if call.tool.spec.output_schema.is_none() {
            return next.run(call);
        }
        let outputs = next.shared().outputs.as_ref();
        Box::pin(async move {
            let mut outcome = next.run(call).await?;
            if !outcome.is_error
                && let Some(schema) = &call.tool.spec.output_schema
            {
                match fitting(schema, &outcome, outputs, &call.caller.agent).await {
                    Ok(data) => outcome.structured = Some(data),
                    Err(reason) => refuse(&mut outcome, call.tool.name(), &reason),
                }
            }
            Ok(outcome)
        })
    }
}

/// The tool has failed. What it gave stays readable below the reason.
fn refuse(outcome: &mut Outcome, name: &str, reason: &str) {
    let mut remark = format!("`{name}` gave a result that {reason}");
    if remark.len() > MAX_REMARK {
        remark.truncate(remark.floor_char_boundary(MAX_REMARK));
        remark.push('…');
    }
    remark.push_str("\nhint: correct the tool, or its `outputSchema`");
    outcome.remark = Some(remark);
    outcome.structured = None;
    outcome.is_error = true;
}

/// The data of an outcome, which fits the schema; or why there is none, as the end of a sentence.
async fn fitting(
    schema: &Schema,
    outcome: &Outcome,
    outputs: &dyn Outputs,
    owner: &str,
) -> Result<Json, String> {
    let data = match &outcome.structured {
        Some(data) => data.clone(),
        None => {
            let text = whole_text(outcome, outputs, owner).await?;
            read(schema, text.as_deref().unwrap_or(&outcome.output))?
        }
    };
    let size = data.text().len();
    if size > MAX_DATA {
        return Err(too_large(size as u64));
    }
    let violations = schema.violations(data.value());
    if violations.is_empty() {
        return Ok(data);
    }
    let said: Vec<String> = violations.iter().map(ToString::to_string).collect();
    Err(format!(
        "does not fit its `outputSchema`: {}",
        said.join("; ")
    ))
}

fn too_large(size: u64) -> String {
    format!(
        "has {size} bytes, and one with an `outputSchema` is handed over whole up to {MAX_DATA} bytes"
    )
}

/// All of a text of which the outcome holds only the beginning.
async fn whole_text(
    outcome: &Outcome,
    outputs: &dyn Outputs,
    owner: &str,
) -> Result<Option<String>, String> {
    if outcome.rest_is_lost {
        return Err("could not be kept whole, so it is not data for its `outputSchema`".to_owned());
    }
    let Some(whole) = &outcome.whole else {
        return Ok(None);
    };
    if whole.cut || whole.bytes > MAX_DATA as u64 {
        return Err(too_large(whole.bytes));
    }
    let page = outputs.read(owner, &whole.id, 0, MAX_DATA).await;
    let bytes = page
        .map_err(|error| format!("could not be read again: {error}"))?
        .bytes;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// Reads a text as the data that the schema asks for: itself where that is text, else its JSON.
fn read(schema: &Schema, text: &str) -> Result<Json, String> {
    let fits = |data: &Json| schema.violations(data.value()).is_empty();
    let itself = || Json::from(serde_json::Value::from(text));
    let asks_for_text = match schema.value().get("type") {
        Some(serde_json::Value::String(kind)) => kind == "string",
        Some(serde_json::Value::Array(kinds)) => kinds.iter().any(|kind| kind == "string"),
        _ => false,
    };
    if asks_for_text {
        let itself = itself();
        if fits(&itself) {
            return Ok(itself);
        }
    }
    match Json::parse(text.trim()) {
        Ok(data) => Ok(data),
        Err(_) if text.trim().is_empty() && fits(&Json::from(serde_json::Value::Null)) => {
            Ok(Json::from(serde_json::Value::Null))
        }
        Err(_) if fits(&itself()) => Ok(itself()),
        Err(error) => Err(format!(
            "is not JSON, which its `outputSchema` asks for: {error}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::NoOutputs;

    async fn given(schema: Value, outcome: Outcome) -> Result<Value, String> {
        let schema = Schema::parse_result(schema).unwrap();
        let data = fitting(&schema, &outcome, &NoOutputs, "a").await?;
        Ok(data.value().clone())
    }

    #[tokio::test]
    async fn a_text_is_read_as_what_the_schema_asks_for() {
        for (schema, text, data) in [
            (json!({"type": "integer"}), "42\n", json!(42)),
            (json!({"type": "string"}), "42\n", json!("42\n")),
            (json!({"type": ["string", "integer"]}), "42", json!("42")),
            (json!({"type": "array"}), " [1, 2]", json!([1, 2])),
            (json!({"type": "null"}), "", json!(null)),
            (json!({"type": "null"}), "null", json!(null)),
            (json!({"type": "boolean"}), "true", json!(true)),
            (
                json!({"properties": {"a": true}}),
                r#"{"a": 1}"#,
                json!({"a": 1}),
            ),
            (json!({}), "words", json!("words")),
            (json!({"enum": ["on", "off"]}), "on", json!("on")),
        ] {
            let read = given(schema.clone(), Outcome::text(text)).await;
            assert_eq!(read, Ok(data), "{schema} {text}");
        }
    }

    #[tokio::test]
    async fn what_does_not_fit_says_where() {
        let schema = json!({"type": "object", "properties": {"rows": {"type": "array", "items": {"type": "integer"}}}});
        let data = Outcome::structured(json!({"rows": [1, "two"]}));
        let reason = given(schema.clone(), data).await.unwrap_err();
        assert!(reason.contains("/rows/1: "), "{reason}");
        let reason = given(schema.clone(), Outcome::text("words")).await;
        assert!(reason.unwrap_err().contains("is not JSON"));
        let reason = given(schema, Outcome::structured(json!([1]))).await;
        assert!(reason.unwrap_err().contains("does not fit"));
        let reason = given(json!({"type": "object"}), Outcome::structured(json!(3))).await;
        assert!(reason.unwrap_err().contains("does not fit"));
        let large = Outcome::structured(json!("x".repeat(MAX_DATA)));
        let reason = given(json!({"type": "string"}), large).await.unwrap_err();
        assert!(reason.contains("handed over whole"), "{reason}");
    }
}
