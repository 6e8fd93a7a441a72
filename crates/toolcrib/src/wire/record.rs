//! Calls on record, as they go over the wire.

use serde::{Deserialize, Serialize};
use toolcrib_core::call::{Decision, Mark};
use toolcrib_core::store::{CallRecord, Level};
use toolcrib_store::CallPage;
use utoipa::ToSchema;

use super::problem::rfc3339;

/// One call that ended, without its arguments and output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordView {
    pub id: String,
    /// When it began (RFC 3339, UTC).
    #[schema(format = DateTime)]
    pub timestamp: String,
    pub client: String,
    pub agent: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The root of the project that it was made in; left out where it was made in none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Which token was shown, never the token itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_id: Option<String>,
    pub tool: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_version: Option<String>,
    /// The hash of the tool's content at that moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_hash: Option<String>,
    /// The same for equal arguments of calls in this store; left out for a call that was refused before it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argument_hash: Option<String>,
    /// `ok`, `cancelled`, or `unfinished` where the end was not recorded.
    #[schema(example = "ok")]
    pub transport: String,
    /// `ok`, an error code, or `unreached`.
    #[schema(example = "ok")]
    pub protocol: String,
    /// What the tool said: `ok`, `is_error`, or `unreached`.
    #[schema(example = "ok")]
    pub outcome: String,
    /// The error's code, where the call gave no outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    pub duration_ms: f64,
    /// How much text was handed over.
    pub output_bytes: u64,
    /// What middleware did to the call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub middleware: Vec<MarkView>,
    /// Who decided about the call, where somebody did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<DecisionView>,
}

/// What one middleware did to a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MarkView {
    #[schema(example = "pii")]
    pub name: String,
    /// `changed`, `delayed` or `refused`.
    #[schema(example = "changed")]
    pub did: String,
}

/// What a person said about a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecisionView {
    /// Who decided.
    #[schema(example = "owner")]
    pub approver: String,
    #[schema(format = DateTime)]
    pub timestamp: String,
    /// `approve`, `edit`, `reject` or `respond`.
    #[schema(example = "approve")]
    pub how: String,
}

impl RecordView {
    /// How it ended, in one word.
    pub fn ending(&self) -> &str {
        [&self.transport, &self.protocol, &self.outcome]
            .into_iter()
            .find(|level| *level != "ok" && *level != UNREACHED)
            .map_or("ok", String::as_str)
    }
}

impl RecordView {
    /// What middleware did to it and who decided, in a few words; nothing where nobody did.
    pub fn notes(&self) -> String {
        let marks = self.middleware.iter();
        let marks = marks.map(|mark| format!("{} {}", mark.name, mark.did));
        let decided = self.decision.iter();
        let decided = decided.map(|one| format!("{} by {}", one.how, one.approver));
        marks.chain(decided).collect::<Vec<_>>().join(", ")
    }
}

const UNREACHED: &str = "unreached";

impl From<&CallRecord> for RecordView {
    fn from(record: &CallRecord) -> RecordView {
        let level = |level: &Level| level.as_word().unwrap_or(UNREACHED).to_owned();
        let text = |text: &Option<std::sync::Arc<str>>| text.as_deref().map(str::to_owned);
        RecordView {
            id: record.id.to_string(),
            timestamp: rfc3339(record.at_ms),
            client: record.client.to_string(),
            agent: record.agent.to_string(),
            session_id: text(&record.session),
            project: text(&record.project),
            token_id: text(&record.token),
            tool: record.tool.to_string(),
            tool_version: text(&record.tool_version),
            tool_hash: text(&record.tool_hash),
            argument_hash: record.argument_hash.clone(),
            transport: level(&record.transport),
            protocol: level(&record.protocol),
            outcome: level(&record.outcome),
            error: record.error.map(|code| code.as_str().to_owned()),
            duration_ms: record.duration_us as f64 / 1_000.0,
            output_bytes: record.output_bytes,
            middleware: record.marks.iter().map(MarkView::from).collect(),
            decision: record.decision.as_ref().map(DecisionView::from),
        }
    }
}

impl From<&Mark> for MarkView {
    fn from(mark: &Mark) -> MarkView {
        MarkView {
            name: mark.middleware.to_string(),
            did: mark.deed.as_str().to_owned(),
        }
    }
}

impl From<&Decision> for DecisionView {
    fn from(decision: &Decision) -> DecisionView {
        DecisionView {
            approver: decision.approver.to_string(),
            timestamp: rfc3339(decision.at_ms),
            how: decision.how.to_string(),
        }
    }
}

/// A page of calls, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RecordList {
    pub calls: Vec<RecordView>,
    /// The `cursor` of the next page, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl From<&CallPage> for RecordList {
    fn from(page: &CallPage) -> RecordList {
        RecordList {
            calls: page.calls.iter().map(RecordView::from).collect(),
            next: page.next.as_ref().map(ToString::to_string),
        }
    }
}
