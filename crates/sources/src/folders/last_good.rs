//! The last good version of a broken tool, which serves in its place and is marked stale.

use std::sync::Arc;

use toolcrib_core::{Access, ErrorType, Problem, Severity, Tool};

use crate::origin::Loaded;

/// May the last good version serve in place of this? Not where the scan refused it.
pub(super) fn may_stand_in(loaded: &Loaded) -> bool {
    let refused = |problem: &Problem| {
        problem.severity == Severity::Error && problem.error_type == ErrorType::Security
    };
    loaded.is_broken() && !loaded.problems.iter().any(refused)
}

/// Lets the last good version of each broken tool stand in for it, marked stale. A problem without a tool's name
/// may be about any tool that is missing now.
pub(super) fn stand_in(loaded: &mut Loaded, good: Vec<Arc<Tool>>) {
    let errors: Vec<&Problem> = loaded
        .problems
        .iter()
        .filter(|p| p.severity == Severity::Error)
        .collect();
    let broken = |tool: &Tool| {
        errors.iter().any(|problem| {
            problem
                .tool_name
                .as_deref()
                .is_none_or(|name| name == tool.name())
        })
    };
    // What can't be called yet serves nobody.
    let serves = |new: &Tool| new.pending.is_none();
    let missing = |tool: &Tool| {
        let mut tools = loaded.tools.iter();
        !tools.any(|new| serves(new) && new.name() == tool.name())
    };
    let standing_in = good
        .into_iter()
        .filter(|tool| broken(tool) && missing(tool))
        .collect();
    let standing_in = stale(standing_in);
    let replaced = |new: &Arc<Tool>| standing_in.iter().any(|old| old.name() == new.name());
    loaded.tools.retain(|new| !replaced(new));
    loaded.tools.extend(standing_in);
}

/// Marks last good versions as such. One that lost its grant has ended.
pub(super) fn stale(mut tools: Vec<Arc<Tool>>) -> Vec<Arc<Tool>> {
    tools.retain(|tool| tool.access == Access::Open);
    for tool in &mut tools {
        Arc::make_mut(tool).stale = true;
    }
    tools
}
