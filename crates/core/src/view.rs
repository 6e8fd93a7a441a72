//! What one agent has at one moment: the tools it sees, the chain its calls pass, and whatever surfaces make of them.
//!
//! [`Crib::view`](crate::Crib::view) gives it, and there is no other way to list or to call. All callers of an agent
//! share one view until tools or settings change, so what is made of it is made once ([`View::derived`]).

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use crate::catalog::{Catalog, Tools};
use crate::middleware::{Next, Shared, record_unknown};
use crate::slots::Slots;
use crate::{
    Access, Call, CallError, ErrorCode, Outcome, Problem, Profile, Request, Selection, Severity,
    SourceKind, Status, Tool,
};

pub struct View {
    catalog: Arc<Catalog>,
    /// The catalog's own where nothing is hidden.
    tools: Arc<Tools>,
    profile: Arc<Profile>,
    shared: Arc<Shared>,
    is_everything: bool,
    list_hash: OnceLock<u64>,
    problems: OnceLock<Vec<Problem>>,
    derived: Slots,
}

/// What a call gave, and the tool that gave it.
#[derive(Debug)]
pub struct Answer {
    pub tool: Arc<Tool>,
    pub outcome: Outcome,
}

impl View {
    pub(crate) fn new(
        catalog: &Arc<Catalog>,
        sees: &Selection,
        profile: &Arc<Profile>,
        shared: &Arc<Shared>,
    ) -> View {
        View {
            catalog: catalog.clone(),
            tools: catalog.select(sees),
            profile: profile.clone(),
            shared: shared.clone(),
            is_everything: sees.is_everything(),
            list_hash: OnceLock::new(),
            problems: OnceLock::new(),
            derived: Slots::default(),
        }
    }

    /// Runs one call through the chain. Dropping the future cancels the call.
    pub async fn call(&self, request: Request) -> Result<Answer, CallError> {
        let Request {
            tool: name,
            arguments,
            caller,
            context,
        } = request;
        let tool = match self.find(&name) {
            Ok(tool) => tool.clone(),
            Err(error) => {
                let audit = self.profile.settings().audit;
                let told =
                    record_unknown(&self.shared, audit, &name, &caller, &context, error).await;
                return Err(told);
            }
        };
        let given_up = context.cancel.clone().drop_guard();
        let mut call = Call {
            tool,
            arguments,
            caller,
            context,
        };
        let outcome = Next::new(self.profile.chain(), &self.shared)
            .run(&mut call)
            .await?;
        given_up.disarm();
        Ok(Answer {
            tool: call.tool,
            outcome,
        })
    }

    /// What a surface makes of this view, one of each type: made when first asked for, kept as long as the view.
    pub fn derived<T: Send + Sync + 'static>(&self, make: impl FnOnce(&View) -> T) -> &T {
        self.derived.get(|| make(self))
    }

    /// What outlives this view, by its type.
    pub(crate) fn state<T: Default + Send + Sync + 'static>(&self) -> &T {
        self.shared.state()
    }

    pub(crate) fn all(&self) -> &Arc<Tools> {
        &self.tools
    }

    /// Is anything of the catalog hidden?
    pub(crate) fn is_whole(&self) -> bool {
        self.len() == self.catalog.tools().len()
    }

    /// The version of the catalog that it shows.
    pub fn version(&self) -> u64 {
        self.catalog.version()
    }

    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    pub fn get(&self, name: &str) -> Option<&Arc<Tool>> {
        self.tools.get(name)
    }

    /// The tool of this name, or the error that says so and gives the three nearest names.
    pub fn find(&self, name: &str) -> Result<&Arc<Tool>, CallError> {
        self.get(name).ok_or_else(|| self.unknown(name))
    }

    /// All tools, sorted by name.
    pub fn tools(&self) -> impl ExactSizeIterator<Item = &Arc<Tool>> {
        self.tools.values()
    }

    /// The tools that agents see in lists, sorted by name: all but those that wait for trust, or for somebody to want them.
    pub fn listed(&self) -> impl Iterator<Item = &Arc<Tool>> {
        self.tools()
            .filter(|tool| !waits_for_trust(tool) && !tool.is_off())
    }

    /// How many tools wait for trust.
    pub fn waiting(&self) -> usize {
        self.tools().filter(|tool| waits_for_trust(tool)).count()
    }

    /// Differs when an agent would read another list.
    pub fn list_hash(&self) -> u64 {
        *self.list_hash.get_or_init(|| {
            let mut hasher = DefaultHasher::new();
            for tool in self.listed() {
                tool.spec.as_listed().hash(&mut hasher);
            }
            hasher.finish()
        })
    }

    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// How many tools there are for whoever asks, without those that are off.
    pub fn count(&self) -> usize {
        self.tools().filter(|tool| !tool.is_off()).count()
    }

    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// Why something did not load. What an agent does not see has no problems for it either: a problem that names no tool
    /// is shown where all tools of its file are.
    pub fn problems(&self) -> &[Problem] {
        if self.is_everything {
            return self.catalog.problems();
        }
        self.problems.get_or_init(|| {
            let all = self.catalog.problems().iter();
            all.filter(|problem| self.may_show(problem))
                .cloned()
                .collect()
        })
    }

    /// Does it hide nothing at all?
    pub fn shows_all(&self) -> bool {
        self.is_everything
    }

    /// May whoever has this view read of this problem?
    pub fn shows(&self, problem: &Problem) -> bool {
        self.is_everything || self.may_show(problem)
    }

    fn may_show(&self, problem: &Problem) -> bool {
        match (&problem.tool_name, &problem.file) {
            (Some(name), _) => self.get(name).is_some(),
            (None, Some(file)) => {
                let is_of_it = |tool: &&Arc<Tool>| tool.file.as_ref() == Some(file);
                let mut of_it = self.catalog.tools().filter(is_of_it).peekable();
                of_it.peek().is_some() && of_it.all(|tool| self.get(tool.name()).is_some())
            }
            (None, None) => false,
        }
    }

    /// Files in the tools folders that hold no tool; no problem, but a person may wonder.
    pub fn idle_files(&self) -> &[PathBuf] {
        match self.is_everything {
            true => self.catalog.idle_files(),
            false => &[],
        }
    }

    /// How many tools each source gives, in the sources' order, without those that are off.
    pub fn counts_by_source(&self) -> Vec<(SourceKind, usize)> {
        let of = |kind, tool: &Tool| tool.source == kind && !tool.is_off();
        let count = |kind| self.tools().filter(|tool| of(kind, tool)).count();
        SourceKind::ALL
            .into_iter()
            .map(|kind| (kind, count(kind)))
            .collect()
    }

    pub fn counts_by_status(&self) -> BTreeMap<Status, usize> {
        let mut counts = BTreeMap::from_iter(Status::ALL.map(|status| (status, 0)));
        for tool in self.tools() {
            *counts.entry(tool.status()).or_insert(0) += 1;
        }
        counts
    }

    fn unknown(&self, name: &str) -> CallError {
        let shown: String = name.chars().take(crate::tool::MAX_NAME).collect();
        let error = CallError::new(
            ErrorCode::UnknownTool,
            format!("there is no tool `{shown}`"),
        );
        let broken = self.problems().iter().find(|problem| {
            let file = problem.file.as_deref();
            let stem = file.and_then(|file| file.file_stem()?.to_str());
            let folder = file.and_then(|file| file.parent()?.file_name()?.to_str());
            problem.severity == Severity::Error
                && [problem.tool_name.as_deref(), stem, folder].contains(&Some(name))
        });
        if let Some(file) = broken.and_then(|problem| problem.file.as_ref()) {
            let told = format!(
                "`{}` did not load: `toolcrib errors` says why",
                file.display()
            );
            return error.hint(told);
        }
        match self.nearest(name).as_slice() {
            [] => error.hint("`toolcrib list` shows the tools there are"),
            near => error.hint(format!("did you mean `{}`?", near.join("`, `"))),
        }
    }

    /// The three names most like `name`, best first. What is longer than any name is like none: to compare it would take
    /// as long as it is.
    fn nearest(&self, name: &str) -> Vec<&str> {
        if name.len() > 2 * crate::tool::MAX_NAME {
            return Vec::new();
        }
        let mut scored: Vec<(f64, &str)> = self
            .tools()
            .map(|known| (strsim::jaro_winkler(name, known.name()), known.name()))
            .filter(|(score, _)| *score > 0.7)
            .collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
        scored.into_iter().take(3).map(|(_, name)| name).collect()
    }
}

fn waits_for_trust(tool: &Tool) -> bool {
    matches!(tool.access, Access::Untrusted { .. })
}

impl std::fmt::Debug for View {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("View")
            .field("profile", &self.profile.name())
            .field("version", &self.version())
            .field("tools", &self.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
