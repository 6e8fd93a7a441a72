//! What holds for an agent: which tools it sees, and the chain that its calls pass.
//!
//! Profiles are values: a change of settings makes new ones and swaps them in ([`Crib::set_profiles`]). Nothing that
//! is counted or remembered lives in them.
//!
//! [`Crib::set_profiles`]: crate::Crib::set_profiles

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::call::DEFAULT_AGENT;
use crate::middleware::{self, Middleware};
use crate::{OutputRules, Tool};

/// What one agent sees, and how its calls are governed.
pub struct Profile {
    name: Arc<str>,
    sees: Selection,
    settings: ChainSettings,
    chain: Vec<Arc<dyn Middleware>>,
}

impl Profile {
    pub fn new(name: &str, sees: Selection, settings: ChainSettings) -> Profile {
        Profile {
            name: name.into(),
            sees,
            chain: middleware::chain(&settings),
            settings,
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn settings(&self) -> &ChainSettings {
        &self.settings
    }

    pub(crate) fn sees(&self) -> &Selection {
        &self.sees
    }

    pub(crate) fn chain(&self) -> &[Arc<dyn Middleware>] {
        &self.chain
    }
}

/// Which tools an agent sees. A tool outside is not there for it: neither listed nor called.
#[derive(Clone, Default)]
pub enum Selection {
    #[default]
    Everything,
    /// Those of which this is true.
    Only(Arc<dyn Fn(&Tool) -> bool + Send + Sync>),
}

/// What a chain is built from.
#[derive(Clone)]
pub struct ChainSettings {
    /// How long a call of a tool without a limit of its own may take.
    pub default_timeout: Duration,
    pub audit: Audit,
    /// How much text is handed over at once.
    pub output: OutputRules,
    /// Links that are there by choice.
    pub middleware: Vec<ListedLink>,
}

/// A link that settings list, with its parameters.
#[derive(Clone)]
pub struct ListedLink {
    name: Arc<str>,
    link: Arc<dyn Middleware>,
}

/// What happens to a call that can't be written down.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Audit {
    /// It runs, and the loss is counted.
    #[default]
    BestEffort,
    /// It is refused.
    Required,
}

/// One link as settings list it: `{ name = "…", … }`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct MiddlewareTable {
    pub name: String,
    #[serde(flatten)]
    pub parameters: Map<String, Value>,
}

/// Why a link can't be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MiddlewareError {
    #[error("there is no middleware `{0}`")]
    Unknown(String),
    #[error("middleware `{name}`: {reason}")]
    Parameters { name: String, reason: String },
}

impl ChainSettings {
    /// Settings that list no middleware.
    pub fn new(default_timeout: Duration) -> ChainSettings {
        ChainSettings {
            default_timeout,
            audit: Audit::default(),
            output: OutputRules::default(),
            middleware: Vec::new(),
        }
    }
}

impl ListedLink {
    /// Takes the parameters, or says what is wrong with them.
    pub fn read(table: &MiddlewareTable) -> Result<ListedLink, MiddlewareError> {
        Ok(ListedLink {
            name: table.name.as_str().into(),
            link: middleware::read(table)?,
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn link(&self) -> &Arc<dyn Middleware> {
        &self.link
    }
}

/// All profiles there are.
pub struct Profiles {
    /// The first is the default one.
    all: Vec<Arc<Profile>>,
}

impl Profiles {
    /// One profile for everybody: it sees everything.
    pub fn everybody(settings: ChainSettings) -> Profiles {
        let default = Profile::new(DEFAULT_AGENT, Selection::Everything, settings);
        Profiles::new(default, [])
    }

    /// `default` holds for every agent that has no profile of its name.
    pub fn new(default: Profile, others: impl IntoIterator<Item = Profile>) -> Profiles {
        let all = std::iter::once(default).chain(others).map(Arc::new);
        Profiles { all: all.collect() }
    }

    pub(crate) fn all(&self) -> &[Arc<Profile>] {
        &self.all
    }

    /// Which of them holds for this agent.
    pub(crate) fn place_of(&self, agent: &str) -> usize {
        let own = self.all.iter().position(|profile| &*profile.name == agent);
        own.unwrap_or(0)
    }
}
