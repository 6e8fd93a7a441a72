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
use crate::middleware::{self, Middleware, Part, Rule};
use crate::tool::MAX_NAME;
use crate::{CallError, ErrorCode, Limits, OutputRules, Selection, SurfaceRule};

/// What one agent sees, and how its calls are governed.
pub struct Profile {
    name: Arc<str>,
    mode: Mode,
    sees: Selection,
    surface: SurfaceRule,
    settings: ChainSettings,
    chain: Vec<Arc<dyn Middleware>>,
}

impl Profile {
    pub fn new(name: &str, sees: Selection, settings: ChainSettings) -> Profile {
        Profile {
            name: name.into(),
            mode: Mode::Primary,
            sees,
            surface: SurfaceRule::default(),
            chain: middleware::chain(&settings),
            settings,
        }
    }

    #[must_use]
    pub fn with_mode(mut self, mode: Mode) -> Profile {
        self.mode = mode;
        self
    }

    #[must_use]
    pub fn with_surface(mut self, surface: SurfaceRule) -> Profile {
        self.surface = surface;
        self
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is handed of its tools.
    pub fn surface(&self) -> &SurfaceRule {
        &self.surface
    }

    pub fn mode(&self) -> Mode {
        self.mode
    }

    pub fn settings(&self) -> &ChainSettings {
        &self.settings
    }

    /// Which tools it sees.
    pub fn sees(&self) -> &Selection {
        &self.sees
    }

    /// What settings list for it, in the order of the chain.
    pub fn listed(&self) -> impl Iterator<Item = &MiddlewareTable> {
        let names = middleware::names().into_iter();
        names.flat_map(|name| {
            let links = self.settings.middleware.iter();
            links
                .map(ListedLink::table)
                .filter(move |table| table.name == name)
        })
    }

    pub(crate) fn chain(&self) -> &[Arc<dyn Middleware>] {
        &self.chain
    }
}

/// Who may use a profile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// Whoever chooses it, or has a token for it.
    #[default]
    Primary,
    /// Sessions of the crib, and nobody else.
    Subagent,
}

impl Mode {
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Primary => "primary",
            Mode::Subagent => "subagent",
        }
    }
}

/// What a chain is built from.
#[derive(Clone)]
pub struct ChainSettings {
    /// How long a call of a tool without a limit of its own may take.
    pub default_timeout: Duration,
    pub audit: Audit,
    /// How much text is handed over at once.
    pub output: OutputRules,
    /// How much each token and agent may ask for.
    pub limits: Limits,
    /// Links that are there by choice.
    pub middleware: Vec<ListedLink>,
}

/// A link that settings list, with its parameters.
#[derive(Clone)]
pub struct ListedLink {
    table: Arc<MiddlewareTable>,
    part: Part,
}

/// A link is its parameters and nothing else.
impl PartialEq for ListedLink {
    fn eq(&self, other: &ListedLink) -> bool {
        self.table == other.table
    }
}

impl Eq for ListedLink {}

impl std::fmt::Debug for ListedLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ListedLink").field(&self.table).finish()
    }
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
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
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
            limits: Limits::default(),
            middleware: Vec::new(),
        }
    }
}

impl ChainSettings {
    /// What is listed of one kind of rule, in its order.
    pub(crate) fn rules<R: Rule>(&self) -> Vec<Arc<R>> {
        let rules = self
            .middleware
            .iter()
            .filter_map(|listed| match &listed.part {
                Part::Rule(rule) => rule.clone().downcast().ok(),
                Part::Link(_) => None,
            });
        rules.collect()
    }
}

impl ListedLink {
    /// Takes the parameters, or says what is wrong with them.
    pub fn read(table: &MiddlewareTable) -> Result<ListedLink, MiddlewareError> {
        Ok(ListedLink {
            table: Arc::new(table.clone()),
            part: middleware::read(table)?,
        })
    }

    /// What it is called, and its parameters, as settings say them.
    pub fn table(&self) -> &MiddlewareTable {
        &self.table
    }

    pub(crate) fn name(&self) -> &str {
        &self.table.name
    }

    pub(crate) fn link(&self) -> Option<&Arc<dyn Middleware>> {
        match &self.part {
            Part::Link(link) => Some(link),
            Part::Rule(_) => None,
        }
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
        let default = Profile::new(DEFAULT_AGENT, Selection::default(), settings);
        Profiles::new(default, [])
    }

    /// `default` holds where no agent was chosen. Who chose one that is not among these has none.
    pub fn new(default: Profile, others: impl IntoIterator<Item = Profile>) -> Profiles {
        let all = std::iter::once(default).chain(others).map(Arc::new);
        Profiles { all: all.collect() }
    }

    pub(crate) fn all(&self) -> &[Arc<Profile>] {
        &self.all
    }

    /// Where the profile of this name stands, whoever may use it.
    pub(crate) fn place_named(&self, name: &str) -> Option<usize> {
        self.all.iter().position(|profile| &*profile.name == name)
    }

    /// Where the profile stands that a caller of this agent has, if it may have one.
    pub(crate) fn place_of(&self, agent: &str) -> Option<usize> {
        let place = self.place_named(agent)?;
        (self.all[place].mode == Mode::Primary).then_some(place)
    }

    /// Says why no caller can be this agent, if so.
    pub fn admits(&self, agent: &str) -> Result<(), CallError> {
        let shown: String = agent.chars().take(64).collect();
        match self.place_named(agent).map(|place| self.all[place].mode) {
            Some(Mode::Primary) => Ok(()),
            Some(Mode::Subagent) => {
                let message = format!("the agent `{shown}` is a subagent");
                Err(CallError::new(ErrorCode::Forbidden, message)
                    .hint("only sessions of the crib use it; choose another agent"))
            }
            None => {
                let message = format!("there is no agent `{shown}`");
                Err(CallError::new(ErrorCode::NotFound, message).hint(self.others(agent)))
            }
        }
    }

    /// The agents that may have been meant.
    fn others(&self, agent: &str) -> String {
        let open = self.all.iter().filter(|one| one.mode == Mode::Primary);
        let names: Vec<&str> = open.map(|profile| profile.name()).collect();
        let score = |name: &str| strsim::jaro_winkler(agent, name);
        // What is longer than any name is like none, and to compare it would take as long as it is.
        let may_be_one = agent.len() <= 2 * MAX_NAME;
        let near = names.iter().filter(|name| may_be_one && score(name) > 0.75);
        match near.max_by(|a, b| score(a).total_cmp(&score(b))) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                let names: Vec<&str> = names.into_iter().take(10).collect();
                format!(
                    "add `[agents.NAME]` to your config.toml, or choose one of: {}",
                    names.join(", ")
                )
            }
        }
    }
}
