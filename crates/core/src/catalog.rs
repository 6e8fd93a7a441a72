//! The immutable set of tools at one version. Only [`Registry::apply`](crate::Registry::apply) makes one.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::{Problem, SourceKind, Status, Tool, ToolName};

#[derive(Debug, Default)]
pub struct Catalog {
    version: u64,
    tools: BTreeMap<ToolName, Arc<Tool>>,
    problems: Vec<Problem>,
    idle_files: Vec<PathBuf>,
}

impl Catalog {
    pub(crate) fn new(
        version: u64,
        tools: BTreeMap<ToolName, Arc<Tool>>,
        problems: Vec<Problem>,
        idle_files: Vec<PathBuf>,
    ) -> Catalog {
        Catalog {
            version,
            tools,
            problems,
            idle_files,
        }
    }

    pub fn version(&self) -> u64 {
        self.version
    }

    pub fn get(&self, name: &str) -> Option<&Arc<Tool>> {
        self.tools.get(name)
    }

    /// All tools, sorted by name.
    pub fn tools(&self) -> impl ExactSizeIterator<Item = &Arc<Tool>> {
        self.tools.values()
    }

    pub fn len(&self) -> usize {
        self.tools.len()
    }

    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Files in the tools folders that hold no tool; no problem, but a person may wonder.
    pub fn idle_files(&self) -> &[PathBuf] {
        &self.idle_files
    }

    /// How many tools each source gives, in the sources' order.
    pub fn counts_by_source(&self) -> Vec<(SourceKind, usize)> {
        let count = |kind| self.tools().filter(|tool| tool.source == kind).count();
        SourceKind::ALL
            .into_iter()
            .map(|kind| (kind, count(kind)))
            .collect()
    }

    pub fn counts_by_status(&self) -> BTreeMap<Status, usize> {
        let mut counts = BTreeMap::new();
        for tool in self.tools() {
            *counts.entry(tool.status()).or_insert(0) += 1;
        }
        counts
    }

    /// The three names most like `name`, best first.
    pub fn nearest(&self, name: &str) -> Vec<&str> {
        let mut scored: Vec<(f64, &str)> = self
            .tools
            .keys()
            .map(|known| (strsim::jaro_winkler(name, known.as_str()), known.as_str()))
            .filter(|(score, _)| *score > 0.7)
            .collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
        scored.into_iter().take(3).map(|(_, name)| name).collect()
    }
}
