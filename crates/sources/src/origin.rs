//! Where a tool file lies and what reading it gave: the same for every language a tool can be written in.

use std::path::Path;
use std::sync::Arc;

use toolcrib_core::{Access, Problem, Scope, Severity, Tool};

/// Where a tool file lies and what that means for it.
#[derive(Debug, Clone)]
pub struct Origin<'a> {
    pub file: &'a Path,
    pub scope: Scope,
    /// [`Access::Open`], or [`Access::Untrusted`]: then nothing but the file's text is looked at.
    pub access: Access,
}

/// What one file gave: tools and problems, for a bad tool never hides its neighbours.
#[derive(Debug, Default)]
pub struct Loaded {
    pub tools: Vec<Arc<Tool>>,
    pub problems: Vec<Problem>,
    /// Must it be asked afresh at every start and reload, because what it says may differ?
    pub afresh: bool,
    /// Is it to be looked at again when something that it needs was installed?
    pub waits: bool,
}

impl Loaded {
    /// Does something not work?
    pub fn is_broken(&self) -> bool {
        let mut problems = self.problems.iter();
        problems.any(|problem| problem.severity == Severity::Error)
    }
}
