//! Approvals on the wire: questions, what was decided, and decisions.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolcrib_core::store::{Approval, Decision, DecisionKind};
use toolcrib_core::{CallError, ErrorCode, Json, Object};
use utoipa::ToSchema;

use super::rfc3339;

/// A person's yes to one call, or the question for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalView {
    pub id: String,
    /// `pending`, `approved`, `edited`, `rejected`, `responded`, `expired`, `executing`, `used` or `interrupted`.
    #[schema(example = "pending")]
    pub state: String,
    pub tool: String,
    /// The program that asks, by its own word.
    pub client: String,
    pub agent: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The arguments that were asked for; secrets are covered.
    #[schema(value_type = BTreeMap<String, Value>)]
    pub arguments: Object,
    /// Why a person is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    pub allowed_decisions: Vec<String>,
    /// The arguments of an edit, until they were used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<BTreeMap<String, Value>>)]
    pub edited: Option<Object>,
    /// Why it was rejected, or what was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
    pub created_at: String,
    pub expires_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    /// `terminal`, `login`, `rest` or `webhook`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_how: Option<String>,
    /// The record of the call that ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// The page where a person decides, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

impl ApprovalView {
    pub fn new(approval: &Approval, url: Option<String>) -> ApprovalView {
        let decided = approval.decided.as_ref();
        ApprovalView {
            id: approval.id.to_string(),
            state: approval.state.as_str().to_owned(),
            tool: approval.tool.to_string(),
            client: approval.client.to_string(),
            agent: approval.agent.to_string(),
            project: approval.project.as_deref().map(str::to_owned),
            arguments: Object::parse(&approval.shown).unwrap_or_default(),
            note: approval.note.clone(),
            allowed_decisions: approval
                .allowed
                .iter()
                .map(|kind| kind.as_str().to_owned())
                .collect(),
            edited: approval.edited.clone(),
            words: approval.words.clone(),
            created_at: rfc3339(approval.created_ms),
            expires_at: rfc3339(approval.expires_ms),
            decided_at: decided.map(|decided| rfc3339(decided.at_ms)),
            decided_by: decided.map(|decided| decided.by.clone()),
            decided_how: decided.map(|decided| decided.how.clone()),
            call_id: approval.call.clone(),
            url,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalList {
    /// Newest first.
    pub approvals: Vec<ApprovalView>,
    pub count: usize,
}

/// A decision.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApprovalDecision {
    /// `approve`, `edit`, `reject` or `respond`.
    #[schema(example = "approve")]
    pub decision: String,
    /// With `edit`: the whole arguments that the call runs with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<BTreeMap<String, Value>>)]
    pub arguments: Option<Object>,
    /// With `reject`: why. The agent reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// With `respond`: what the agent gets in place of the tool's result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A decision that comes in as a signed webhook.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalCallback {
    /// The approval that is decided.
    pub id: String,
    /// Who decided, in the sender's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    #[serde(flatten)]
    pub decision: ApprovalDecisionFields,
}

/// What an [`ApprovalDecision`] holds, beside other fields.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalDecisionFields {
    /// `approve`, `edit`, `reject` or `respond`.
    pub decision: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl TryFrom<ApprovalDecisionFields> for ApprovalDecision {
    type Error = CallError;

    fn try_from(fields: ApprovalDecisionFields) -> Result<ApprovalDecision, CallError> {
        let arguments = match fields.arguments {
            None => None,
            Some(value) => Some(Object::parse(&value.to_string()).map_err(|error| {
                CallError::new(ErrorCode::BadRequest, format!("`arguments`: {error}"))
            })?),
        };
        Ok(ApprovalDecision {
            decision: fields.decision,
            arguments,
            reason: fields.reason,
            text: fields.text,
        })
    }
}

/// Longer words are no reason and no answer.
const MAX_WORDS: usize = 50_000;

impl ApprovalDecision {
    /// What was decided, or what is wrong with how it is said.
    pub fn read(self) -> Result<Decision, CallError> {
        let bad = |message: String| {
            let hint = "send {\"decision\": \"approve\"}, \"edit\" with `arguments`, \"reject\" with a `reason`, or \"respond\" with a `text`";
            CallError::new(ErrorCode::BadRequest, message).hint(hint)
        };
        let ApprovalDecision {
            decision,
            arguments,
            reason,
            text,
        } = self;
        let too_long = [&reason, &text]
            .into_iter()
            .flatten()
            .any(|text| text.len() > MAX_WORDS);
        let holds_nul = [&reason, &text]
            .into_iter()
            .flatten()
            .any(|text| text.contains('\0'));
        if too_long || holds_nul {
            return Err(bad(format!(
                "words of at most {MAX_WORDS} bytes are taken, without NUL"
            )));
        }
        let Some(kind) = DecisionKind::parse(&decision) else {
            let shown: String = decision.chars().take(40).collect();
            return Err(bad(format!("there is no decision `{shown}`")));
        };
        // What goes with another decision is a misunderstanding, and nobody is to guess which half was meant.
        let fits = match kind {
            DecisionKind::Approve => arguments.is_none() && reason.is_none() && text.is_none(),
            DecisionKind::Edit => reason.is_none() && text.is_none(),
            DecisionKind::Reject => arguments.is_none() && text.is_none(),
            DecisionKind::Respond => arguments.is_none() && reason.is_none(),
        };
        if !fits {
            return Err(bad(format!("`{decision}` goes with something else")));
        }
        match kind {
            DecisionKind::Approve => Ok(Decision::Approve),
            DecisionKind::Edit => match arguments {
                Some(arguments) => Ok(Decision::Edit(arguments)),
                None => Err(bad("`edit` takes the whole `arguments`".to_owned())),
            },
            DecisionKind::Reject => Ok(Decision::Reject(
                reason.filter(|why| !why.trim().is_empty()),
            )),
            DecisionKind::Respond => match text {
                Some(text) => Ok(Decision::Respond(text)),
                None => Err(bad("`respond` takes a `text`".to_owned())),
            },
        }
    }
}

/// Arguments over several lines, for a person: numbers and strings as they are written, and nothing in them unseen.
pub fn readable(arguments: &Object) -> String {
    let mut text = String::new();
    write(&mut text, arguments.json(), 0);
    visible(&text)
}

fn write(out: &mut String, json: &Json, depth: usize) {
    let indent = |out: &mut String, depth: usize| {
        out.push('\n');
        out.push_str(&"  ".repeat(depth));
    };
    let text = json.text();
    let mut is_empty = true;
    match text.as_bytes().first() {
        Some(b'{') => {
            out.push('{');
            let object = Object::parse(text).unwrap_or_default();
            for (name, value) in object.parts() {
                if !is_empty {
                    out.push(',');
                }
                is_empty = false;
                indent(out, depth + 1);
                out.push_str(&Value::from(&*name).to_string());
                out.push_str(": ");
                write(out, &value, depth + 1);
            }
        }
        Some(b'[') => {
            out.push('[');
            for item in json.items() {
                if !is_empty {
                    out.push(',');
                }
                is_empty = false;
                indent(out, depth + 1);
                write(out, &item, depth + 1);
            }
        }
        _ => {
            out.push_str(text);
            return;
        }
    }
    if !is_empty {
        indent(out, depth);
    }
    out.push(if text.starts_with('{') { '}' } else { ']' });
}

/// A text in which nothing is unseen: what steers or hides is written as its number.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => shown.push(c),
            c if toolcrib_core::words::is_unseen(c) || is_odd_space(c) => {
                shown.push_str(&format!("\\u{{{:X}}}", u32::from(c)));
            }
            c => shown.push(c),
        }
    }
    shown
}

/// Looks like a space, and is none.
fn is_odd_space(c: char) -> bool {
    c != ' '
        && (c.is_whitespace()
            || matches!(
                c,
                '\u{115F}' | '\u{1160}' | '\u{3164}' | '\u{FFA0}' | '\u{2800}'
            ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Result<Decision, CallError> {
        serde_json::from_value::<ApprovalDecision>(value)
            .unwrap()
            .read()
    }

    #[test]
    fn a_decision_says_one_thing() {
        assert_eq!(
            read(json!({"decision": "approve"})).unwrap(),
            Decision::Approve
        );
        let reject = read(json!({"decision": "reject", "reason": " "})).unwrap();
        assert_eq!(reject, Decision::Reject(None));
        for odd in [
            json!({"decision": "yes"}),
            json!({"decision": "Approve"}),
            json!({"decision": "approve", "arguments": {}}),
            json!({"decision": "reject", "text": "x"}),
            json!({"decision": "edit"}),
            json!({"decision": "respond"}),
            json!({"decision": "respond", "text": "a\0b"}),
        ] {
            assert_eq!(
                read(odd.clone()).unwrap_err().code,
                ErrorCode::BadRequest,
                "{odd}"
            );
        }
    }

    #[test]
    fn a_person_sees_all_of_the_arguments() {
        let arguments = r#"{"to": "a\u202eb","n":1.50,"list":[1,{"deep":[]}],"e":{},"big":100000000000000000000001}"#;
        let shown = readable(&Object::parse(arguments).unwrap());
        let expected = "{\n  \"to\": \"a\\u202eb\",\n  \"n\": 1.50,\n  \"list\": [\n    1,\n    {\n      \"deep\": []\n    }\n  ],\n  \"e\": {},\n  \"big\": 100000000000000000000001\n}";
        assert_eq!(shown, expected);
        let hidden = Object::parse("{\"to\":\"a\u{202e}b\u{200b}\u{a0}\u{e0041}\"}").unwrap();
        let shown = readable(&hidden);
        assert!(
            shown.contains(r"a\u{202E}b\u{200B}\u{A0}\u{E0041}"),
            "{shown}"
        );
    }
}
