//! Where a tool file lies and what reading it gave: the same for every language a tool can be written in.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolcrib_core::{Access, Problem, Scope, Severity, Tool};

use crate::{Place, plugin};

/// Where a tool file lies and what that means for it.
#[derive(Debug, Clone)]
pub struct Origin<'a> {
    pub file: &'a Path,
    pub scope: Scope,
    /// [`Access::Open`], or [`Access::Untrusted`]: then nothing but the file's text is looked at.
    pub access: Access,
    /// Is it trusted by itself, and nothing that lies around it?
    pub alone: bool,
}

impl Origin<'_> {
    /// The programs of its project that this text of a plugin runs. A tool of every project is the same in each.
    pub fn programs(&self, text: &[u8], place: &Place) -> BTreeSet<PathBuf> {
        match (self.scope, &self.access) {
            (Scope::Local, Access::Open) => plugin::programs::paths(text, place),
            _ => BTreeSet::new(),
        }
    }

    /// The project whose files choose between versions of what runs it: its own, if it is trusted with all of that.
    pub fn versions(&self, place: &Place) -> Option<PathBuf> {
        let own = self.scope == Scope::Local && self.access == Access::Open && !self.alone;
        let project = place.project.as_deref().filter(|_| own);
        project.map(Path::to_path_buf)
    }
}

/// What one file gave: tools and problems, for a bad tool never hides its neighbours.
#[derive(Debug, Default)]
pub struct Loaded {
    pub tools: Vec<Arc<Tool>>,
    pub problems: Vec<Problem>,
    /// Must it be asked afresh at every start and reload, because what it says may differ?
    pub afresh: bool,
    /// What to say of a file without tools, unless a file with tools imports it.
    pub without_tools: Option<Box<Problem>>,
    /// Is it to be looked at again when something that it needs was installed?
    pub waits: bool,
}

impl Loaded {
    /// No tool, only this.
    pub fn problems(problems: Vec<Problem>) -> Loaded {
        Loaded {
            problems,
            ..Loaded::default()
        }
    }

    /// The same with these problems before its own.
    pub fn after(mut self, problems: Vec<Problem>) -> Loaded {
        self.problems.splice(0..0, problems);
        self
    }

    /// Does something not work?
    pub fn is_broken(&self) -> bool {
        let mut problems = self.problems.iter();
        problems.any(|problem| problem.severity == Severity::Error)
    }
}
