//! How the crib itself is doing on the wire: problems, reloads, health.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toolcrib_core::{Change, Problem, Severity, View};
use utoipa::ToSchema;

/// Why something did not load: where, what, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProblemView {
    #[schema(example = "plugin")]
    pub source: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    #[schema(example = "SyntaxError")]
    pub error_type: String,
    /// `error` keeps something from working; `warning` is advice.
    #[schema(example = "error")]
    pub severity: String,
    pub message: String,
    pub hint: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// When it was first seen (RFC 3339, UTC).
    #[schema(format = DateTime)]
    pub timestamp: String,
}

impl From<&Problem> for ProblemView {
    fn from(problem: &Problem) -> ProblemView {
        ProblemView {
            source: problem.source.as_str().to_owned(),
            file: problem.file.as_ref().map(|file| file.display().to_string()),
            tool_name: problem.tool_name.clone(),
            error_type: problem.error_type.as_str().to_owned(),
            severity: problem.severity.as_str().to_owned(),
            message: problem.message.clone(),
            hint: problem.hint.to_string(),
            line: problem.line,
            column: problem.column,
            timestamp: rfc3339(problem.timestamp_ms),
        }
    }
}

/// Always with three digits after the second, so that times sort as texts and columns stay columns. A time that no
/// calendar holds is a broken clock; the epoch says so plainly enough.
pub fn rfc3339(ms: u64) -> String {
    let ms = i64::try_from(ms).unwrap_or_default();
    let at = jiff::Timestamp::from_millisecond(ms).unwrap_or_default();
    format!("{at:.3}")
}

/// Every problem of the current catalog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProblemList {
    pub errors: Vec<ProblemView>,
    pub count: usize,
}

impl ProblemList {
    /// Does any of them keep something from working?
    pub fn has_errors(&self) -> bool {
        let error = Severity::Error.as_str();
        self.errors.iter().any(|problem| problem.severity == error)
    }
}

impl From<&View> for ProblemList {
    fn from(view: &View) -> ProblemList {
        let errors: Vec<ProblemView> = view.problems().iter().map(ProblemView::from).collect();
        ProblemList {
            count: errors.len(),
            errors,
        }
    }
}

/// What a reload found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReloadView {
    /// True when there is no problem of severity `error`.
    pub success: bool,
    pub tool_count: usize,
    /// Every problem there is now, warnings too.
    pub errors: Vec<ProblemView>,
    pub added: Vec<String>,
    pub changed: Vec<String>,
    pub removed: Vec<String>,
}

impl ReloadView {
    /// What changed of what a view shows. Of what is gone nobody knows whether a view that hides something had it.
    pub fn new(change: Change, view: &View) -> ReloadView {
        let shown = |mut names: Vec<String>| {
            names.retain(|name| view.shows_all() || view.get(name).is_some());
            names
        };
        let broken = |problem: &Problem| problem.severity == Severity::Error;
        ReloadView {
            success: !view.problems().iter().any(broken),
            tool_count: view.count(),
            errors: view.problems().iter().map(ProblemView::from).collect(),
            added: shown(change.added),
            changed: shown(change.changed),
            removed: shown(change.removed),
        }
    }
}

/// How the crib is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HealthView {
    /// `starting`, `ready`, `degraded` or `stopping`.
    #[schema(example = "ready")]
    pub status: String,
    /// Why it is not simply ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// The version of Toolcrib.
    pub version: String,
    /// Goes up by one with every change of the catalog.
    pub catalog_version: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The project and its trust, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_line: Option<String>,
    /// How many tools there are of each status.
    pub counts: BTreeMap<String, usize>,
}

/// Whether the crib takes calls yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReadyView {
    /// `starting`, `ready`, `degraded` or `stopping`.
    #[schema(example = "ready")]
    pub status: String,
    pub reasons: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolcrib_core::{ErrorType, SourceKind};

    #[test]
    fn a_problem_says_when() {
        let mut problem = Problem::error(SourceKind::Plugin, ErrorType::Syntax, "no")
            .file("a.json")
            .at(2, 3);
        problem.timestamp_ms = 1_700_000_000_000;
        let view = ProblemView::from(&problem);
        assert_eq!(view.timestamp, "2023-11-14T22:13:20.000Z");
        assert_eq!((view.line, view.column), (Some(2), Some(3)));
        let json = serde_json::to_value(&view).unwrap();
        assert_eq!(json["errorType"], "SyntaxError");
        assert!(json.get("toolName").is_none());
        problem.timestamp_ms = u64::MAX;
        assert_eq!(
            ProblemView::from(&problem).timestamp,
            "1970-01-01T00:00:00.000Z"
        );
    }
}
