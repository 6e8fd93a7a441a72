//! The chain that every call passes, on whatever surface it came.
//!
//! A new link is one file here and one line in [`ORDER`]. Its file says what parameters it takes, and how it is made of
//! them ([`Always`], [`Listed`]). A link looks at the call on the way in, hands it to [`Next`], and looks at the outcome
//! on the way out. Cancelling a call drops the future: what must happen even then belongs into a drop guard.
//!
//! A link holds its parameters and nothing else. New settings make new links, so what a link counts or remembers is
//! kept by the crib ([`Shared::state`]).

use std::any::Any;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::counter::MemoryCounters;
use crate::profile::{ChainSettings, MiddlewareError, MiddlewareTable};
use crate::registry::Clock;
use crate::slots::Slots;
use crate::store::{ApprovalBook, CallBook, Counters};
use crate::{BoxFuture, Call, CallResult, Events, Outputs, Tool};

mod approve;
mod authorize;
mod count;
mod cover;
mod fit;
mod keys;
mod little;
#[cfg(test)]
mod made_up;
mod names;
mod pii;
mod record;
mod redact;
mod refusal;
mod rehearse;
mod retry;
mod slot;
mod timeout;
mod trace;
mod trim;
mod validate;

use names::nearest;
pub(crate) use record::{record_given_up, record_unknown};
pub use rehearse::rehearse;
pub(crate) use trim::count_lines;
pub use validate::validated;

/// THE ORDER, outermost first. Links that later parts bring stand in it as comments, in their place:
/// all that `record` writes and `trim` keeps is already redacted, and a person approves validated arguments.
const ORDER: &[ChainLink] = &[
    always::<trace::Trace>(),
    always::<record::Record>(),
    always::<authorize::Authorize>(),
    always::<validate::Validate>(),
    always::<trim::Trim>(),
    always::<fit::Fit>(),
    // Outside of `redact`, so that it sees an outcome whose secrets are hidden already, and tears none apart.
    listed::<pii::Pii>(),
    always::<redact::Redact>(),
    rule::<count::ToolCallLimit>(),
    when::<count::Count>(),
    listed::<approve::Approve>(),
    #[cfg(test)]
    listed::<made_up::Ration>(),
    // Behind `approve`: a call that waits for a person holds no place.
    when::<slot::Slot>(),
    rule::<retry::ToolRetry>(),
    always::<retry::Retry>(),
    always::<timeout::Timeout>(),
];

/// One link of the chain.
pub trait Middleware: Send + Sync {
    fn handle<'a>(&'a self, call: &'a mut Call, next: Next<'a>) -> BoxFuture<'a, CallResult>;
}

/// A link that every chain has.
trait Always: Middleware + Sized + 'static {
    fn of(settings: &ChainSettings) -> Self;
}

/// A link that a profile has as often as its settings list it. It is made of its parameters, and is nothing else.
trait Listed: Middleware + DeserializeOwned + 'static {
    /// What settings call it.
    const NAME: &'static str;
}

/// A link that a chain has where its settings ask for it.
trait When: Middleware + Sized + 'static {
    fn of(settings: &ChainSettings) -> Option<Self>;
}

/// What settings list and is no link of its own: one link of the chain goes by all of its kind
/// ([`ChainSettings::rules`]).
pub(crate) trait Rule: DeserializeOwned + Send + Sync + 'static {
    /// What settings call it.
    const NAME: &'static str;
}

/// Where the links of one kind stand.
enum ChainLink {
    Always(fn(&ChainSettings) -> Arc<dyn Middleware>),
    When(fn(&ChainSettings) -> Option<Arc<dyn Middleware>>),
    Listed(&'static str, ReadPart),
    Rule(&'static str, ReadPart),
}

type ReadPart = fn(Value) -> serde_json::Result<Part>;

/// What a table of settings is read as.
#[derive(Clone)]
pub(crate) enum Part {
    Link(Arc<dyn Middleware>),
    Rule(Arc<dyn Any + Send + Sync>),
}

const fn always<L: Always>() -> ChainLink {
    ChainLink::Always(|settings| Arc::new(L::of(settings)))
}

const fn listed<L: Listed>() -> ChainLink {
    ChainLink::Listed(L::NAME, |parameters| {
        let link: L = serde_json::from_value(parameters)?;
        Ok(Part::Link(Arc::new(link)))
    })
}

/// What settings may list.
pub fn names() -> Vec<&'static str> {
    let listed = ORDER.iter().filter_map(ChainLink::listed);
    listed.map(|(name, _)| name).collect()
}

const fn when<L: When>() -> ChainLink {
    ChainLink::When(|settings| {
        let link = L::of(settings)?;
        Some(Arc::new(link))
    })
}

const fn rule<R: Rule>() -> ChainLink {
    ChainLink::Rule(R::NAME, |parameters| {
        let rule: R = serde_json::from_value(parameters)?;
        Ok(Part::Rule(Arc::new(rule)))
    })
}

impl ChainLink {
    /// What settings call it, where they list it, and how it is read.
    fn listed(&self) -> Option<(&'static str, ReadPart)> {
        match self {
            ChainLink::Listed(name, read) | ChainLink::Rule(name, read) => Some((name, *read)),
            ChainLink::Always(_) | ChainLink::When(_) => None,
        }
    }
}

/// Makes what a table of settings asks for.
pub(crate) fn read(table: &MiddlewareTable) -> Result<Part, MiddlewareError> {
    let mut known = ORDER.iter().filter_map(ChainLink::listed);
    let found = known.find(|(name, _)| *name == table.name);
    let (_, read) = found.ok_or_else(|| MiddlewareError::Unknown(table.name.clone()))?;
    let parameters = Value::Object(table.parameters.clone());
    read(parameters).map_err(|error| MiddlewareError::Parameters {
        name: table.name.clone(),
        reason: with_nearest(error.to_string()),
    })
}

/// Adds to "unknown field `x`, expected one of `a`, `b`" which of them was meant.
fn with_nearest(reason: String) -> String {
    let quoted: Vec<&str> = reason.split('`').skip(1).step_by(2).collect();
    let Some((unknown, known)) = quoted
        .split_first()
        .filter(|_| reason.starts_with("unknown "))
    else {
        return reason;
    };
    match nearest(unknown, known.iter().copied()) {
        Some(near) => format!("{reason}; did you mean `{near}`?"),
        None => reason,
    }
}

/// The chain that these settings ask for.
pub(crate) fn chain(settings: &ChainSettings) -> Vec<Arc<dyn Middleware>> {
    let mut chain = Vec::new();
    for place in ORDER {
        match place {
            ChainLink::Always(make) => chain.push(make(settings)),
            ChainLink::When(make) => chain.extend(make(settings)),
            ChainLink::Listed(name, _) => {
                let of_name = settings.middleware.iter().filter(|one| one.name() == *name);
                chain.extend(of_name.filter_map(|one| one.link().cloned()));
            }
            ChainLink::Rule(..) => {}
        }
    }
    chain
}

/// The rest of the chain, down to the tool itself.
#[derive(Clone, Copy)]
pub struct Next<'a> {
    rest: &'a [Arc<dyn Middleware>],
    shared: &'a Shared,
}

impl<'a> Next<'a> {
    pub(crate) fn new(rest: &'a [Arc<dyn Middleware>], shared: &'a Shared) -> Next<'a> {
        Next { rest, shared }
    }

    pub(crate) fn shared(&self) -> &'a Shared {
        self.shared
    }

    pub fn run<'b>(self, call: &'b mut Call) -> BoxFuture<'b, CallResult>
    where
        'a: 'b,
    {
        match self.rest.split_first() {
            Some((link, rest)) => link.handle(call, Next { rest, ..self }),
            None => Box::pin(async move {
                let run = call.tool.run.clone();
                let started = call.context.started.clone();
                let before = started.as_ref();
                let before = before.is_some_and(|started| started.swap(true, Ordering::Relaxed));
                let result = run.run(call).await;
                if let Some(started) = started
                    && result.as_ref().is_err_and(|error| error.unreached)
                {
                    started.store(before, Ordering::Relaxed);
                }
                result
            }),
        }
    }
}

/// Where calls are written down, and what they are counted in.
#[derive(Clone, Default)]
pub struct Books {
    pub calls: Option<Arc<dyn CallBook>>,
    /// The crib's own memory where there are none.
    pub counters: Option<Arc<dyn Counters>>,
    pub approvals: Option<Arc<dyn ApprovalBook>>,
}

/// What links use and no chain owns: it outlives every change of settings.
pub(crate) struct Shared {
    pub events: Events,
    pub outputs: Arc<dyn Outputs>,
    pub clock: Clock,
    pub book: Option<Arc<dyn CallBook>>,
    pub counters: Arc<dyn Counters>,
    /// Where people are asked about calls.
    pub approvals: Option<Arc<dyn ApprovalBook>>,
    /// Finds the tool that an agent has now.
    now: OnceLock<FindTool>,
    state: Slots,
}

/// The tool of this name that this agent has.
type FindTool = Box<dyn Fn(&str, &str) -> Option<Arc<Tool>> + Send + Sync>;

impl Shared {
    pub fn new(outputs: Arc<dyn Outputs>, clock: Clock, books: Books) -> Shared {
        let Books {
            calls,
            counters,
            approvals,
        } = books;
        Shared {
            events: Events::default(),
            outputs,
            clock,
            book: calls,
            counters: counters.unwrap_or_else(|| Arc::new(MemoryCounters::new(clock))),
            approvals,
            now: OnceLock::new(),
            state: Slots::default(),
        }
    }

    /// Tells how tools are found; once.
    pub fn find_with(&self, find: FindTool) {
        let _ = self.now.set(find);
    }

    /// The tool that this agent has now, whatever view its call began in.
    pub fn tool_now(&self, agent: &str, tool: &str) -> Option<Arc<Tool>> {
        self.now.get()?(agent, tool)
    }

    /// What is kept from call to call and from view to view, by its type.
    pub fn state<T: Default + Send + Sync + 'static>(&self) -> &T {
        self.state.get(T::default)
    }
}

#[cfg(test)]
mod tests;
