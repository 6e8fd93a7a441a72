//! The chain that every call passes, on whatever surface it came.
//!
//! A new link is one file here and one line in [`ORDER`]. Its file says what parameters it takes, and how it is made of
//! them ([`Always`], [`Listed`]). A link looks at the call on the way in, hands it to [`Next`], and looks at the outcome
//! on the way out. Cancelling a call drops the future: what must happen even then belongs into a drop guard.
//!
//! A link holds its parameters and nothing else. New settings make new links, so what a link counts or remembers is
//! kept by the crib ([`Shared::state`]).

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::profile::{ChainSettings, MiddlewareError, MiddlewareTable};
use crate::registry::Clock;
use crate::slots::Slots;
use crate::store::CallBook;
use crate::{BoxFuture, Call, CallResult, Events, Outputs};

mod authorize;
mod cover;
mod fit;
#[cfg(test)]
mod made_up;
mod pii;
mod record;
mod redact;
mod retry;
mod timeout;
mod trace;
mod trim;
mod validate;

pub(crate) use record::{record_given_up, record_unknown};

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
    // limit · approve
    #[cfg(test)]
    listed::<made_up::Ration>(),
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

/// Where the links of one kind stand.
enum ChainLink {
    Always(fn(&ChainSettings) -> Arc<dyn Middleware>),
    Listed(&'static str, fn(Value) -> ReadLink),
}

type ReadLink = serde_json::Result<Arc<dyn Middleware>>;

const fn always<L: Always>() -> ChainLink {
    ChainLink::Always(|settings| Arc::new(L::of(settings)))
}

const fn listed<L: Listed>() -> ChainLink {
    ChainLink::Listed(L::NAME, |parameters| {
        let link: L = serde_json::from_value(parameters)?;
        Ok(Arc::new(link))
    })
}

/// What settings may list.
pub fn names() -> Vec<&'static str> {
    let names = ORDER.iter().filter_map(|place| match place {
        ChainLink::Listed(name, _) => Some(*name),
        ChainLink::Always(_) => None,
    });
    names.collect()
}

/// Makes the link that a table of settings asks for.
pub(crate) fn read(table: &MiddlewareTable) -> Result<Arc<dyn Middleware>, MiddlewareError> {
    let read = ORDER.iter().find_map(|place| match place {
        ChainLink::Listed(name, read) => (*name == table.name).then_some(read),
        ChainLink::Always(_) => None,
    });
    let read = read.ok_or_else(|| MiddlewareError::Unknown(table.name.clone()))?;
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
    let scored = known
        .iter()
        .map(|name| (strsim::jaro_winkler(name, unknown), name));
    let best = scored
        .filter(|(score, _)| *score > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    match best {
        Some((_, near)) => format!("{reason}; did you mean `{near}`?"),
        None => reason,
    }
}

/// The chain that these settings ask for.
pub(crate) fn chain(settings: &ChainSettings) -> Vec<Arc<dyn Middleware>> {
    let mut chain = Vec::new();
    for place in ORDER {
        match place {
            ChainLink::Always(make) => chain.push(make(settings)),
            ChainLink::Listed(name, _) => {
                let of_name = settings.middleware.iter().filter(|one| one.name() == *name);
                chain.extend(of_name.map(|one| one.link().clone()));
            }
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
                run.run(call).await
            }),
        }
    }
}

/// What links use and no chain owns: it outlives every change of settings.
pub(crate) struct Shared {
    pub events: Events,
    pub outputs: Arc<dyn Outputs>,
    pub clock: Clock,
    pub book: Option<Arc<dyn CallBook>>,
    state: Slots,
}

impl Shared {
    pub fn new(outputs: Arc<dyn Outputs>, clock: Clock, book: Option<Arc<dyn CallBook>>) -> Shared {
        Shared {
            events: Events::default(),
            outputs,
            clock,
            book,
            state: Slots::default(),
        }
    }

    /// What is kept from call to call and from view to view, by its type.
    pub fn state<T: Default + Send + Sync + 'static>(&self) -> &T {
        self.state.get(T::default)
    }
}

#[cfg(test)]
mod tests;
