//! The immutable set of tools at one version. Only [`Registry::apply`](crate::registry::Registry::apply) makes one, and
//! only a [`View`](crate::View) shows it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::{Problem, Selection, Tool, ToolName};

pub(crate) type Tools = BTreeMap<ToolName, Arc<Tool>>;

#[derive(Debug, Default)]
pub(crate) struct Catalog {
    version: u64,
    tools: Arc<Tools>,
    problems: Vec<Problem>,
    idle_files: Vec<PathBuf>,
}

impl Catalog {
    pub fn new(
        version: u64,
        tools: Tools,
        problems: Vec<Problem>,
        idle_files: Vec<PathBuf>,
    ) -> Catalog {
        Catalog {
            version,
            tools: Arc::new(tools),
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

    pub fn tools(&self) -> impl ExactSizeIterator<Item = &Arc<Tool>> {
        self.tools.values()
    }

    /// The tools that are left when this decides.
    pub fn select(&self, sees: &Selection) -> Arc<Tools> {
        if sees.is_everything() {
            return self.tools.clone();
        }
        let seen = self.tools.iter().filter(|(_, tool)| sees.sees(tool));
        Arc::new(
            seen.map(|(name, tool)| (name.clone(), tool.clone()))
                .collect(),
        )
    }

    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    pub fn idle_files(&self) -> &[PathBuf] {
        &self.idle_files
    }
}
