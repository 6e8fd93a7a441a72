//! The chain that every call passes, on whatever surface it came.
//!
//! A new link is one file here and one line in [`ORDER`]. Its file says what parameters it takes and how it is made of
//! a profile's settings ([`Link`]). A link looks at the call on the way in, hands it to [`Next`], and looks at the
//! outcome on the way out. Cancelling a call drops the future: what must happen even then belongs into a drop guard.
//!
//! A link holds its parameters and nothing else. New settings make new links, so what a link counts or remembers is
//! kept by the crib ([`Shared::state`]).

use std::sync::Arc;

use crate::profile::{ChainSettings, MiddlewareError};
use crate::registry::Clock;
use crate::slots::Slots;
use crate::store::CallBook;
use crate::{BoxFuture, Call, CallResult, Events, Outputs};

mod authorize;
#[cfg(test)]
mod made_up;
mod record;
mod redact;
mod retry;
mod timeout;
mod trace;
mod trim;
mod validate;

pub(crate) use record::record_unknown;
pub use trim::{MAX_BYTES, MAX_LINES};

/// THE ORDER, outermost first. Links that later parts bring stand in it as comments, in their place:
/// all that `record` writes and `trim` keeps is already redacted, and a person approves validated arguments.
const ORDER: &[Place] = &[
    link::<trace::Trace>(),
    link::<record::Record>(),
    link::<authorize::Authorize>(),
    link::<validate::Validate>(),
    link::<trim::Trim>(),
    link::<redact::Redact>(),
    // limit · approve
    #[cfg(test)]
    link::<made_up::Ration>(),
    link::<retry::Retry>(),
    link::<timeout::Timeout>(),
];

/// One link of the chain.
pub trait Middleware: Send + Sync {
    fn handle<'a>(&'a self, call: &'a mut Call, next: Next<'a>) -> BoxFuture<'a, CallResult>;
}

/// How a kind of link comes into a chain.
trait Link: Middleware + Sized + 'static {
    /// What settings call it, where a profile has it by choice; every chain has the others.
    const NAME: Option<&'static str> = None;

    /// The links of this kind that these settings ask for, in order.
    fn of(settings: &ChainSettings) -> Result<Vec<Self>, MiddlewareError>;
}

/// Where the links of one kind stand.
struct Place {
    name: Option<&'static str>,
    make: fn(&ChainSettings) -> Result<Vec<Box<dyn Middleware>>, MiddlewareError>,
}

const fn link<L: Link>() -> Place {
    Place {
        name: L::NAME,
        make: |settings| {
            let links = L::of(settings)?.into_iter();
            Ok(links.map(|link| Box::new(link) as _).collect())
        },
    }
}

/// Builds the chain that these settings ask for.
pub(crate) fn chain(
    settings: &ChainSettings,
) -> Result<Box<[Box<dyn Middleware>]>, MiddlewareError> {
    for table in &settings.middleware {
        if !ORDER.iter().any(|place| place.name == Some(&table.name)) {
            return Err(MiddlewareError::Unknown(table.name.clone()));
        }
    }
    let mut chain = Vec::new();
    for place in ORDER {
        chain.extend((place.make)(settings)?);
    }
    Ok(chain.into())
}

/// The rest of the chain, down to the tool itself.
#[derive(Clone, Copy)]
pub struct Next<'a> {
    rest: &'a [Box<dyn Middleware>],
    shared: &'a Shared,
}

impl<'a> Next<'a> {
    pub(crate) fn new(rest: &'a [Box<dyn Middleware>], shared: &'a Shared) -> Next<'a> {
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

    /// What a link keeps from call to call, by its type.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "of today's links none counts or remembers")
    )]
    pub fn state<T: Default + Send + Sync + 'static>(&self) -> &T {
        self.state.get(T::default)
    }
}

#[cfg(test)]
mod tests;
