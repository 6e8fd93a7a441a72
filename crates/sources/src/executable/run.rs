//! One call of an executable tool.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use serde_json::Value;
use toolcrib_core::words::CommandLine;
use toolcrib_core::{
    BoxFuture, Call, CallError, CallResult, Hidden, Hint, Outcome, Run, Standing, Tool, Walled,
};

use crate::Place;
use crate::confine::walled;
use crate::denied::{self, Failure, Lacking};
use crate::worker::{Execute, Fault, Pool, answered};

/// A tool that a worker runs.
pub struct Executable {
    /// None where the program may not run.
    pub pool: Option<Arc<Pool>>,
    pub tool: Which,
    /// What the crib calls it.
    pub name: String,
    pub place: Arc<Place>,
}

/// What the program calls the tool.
#[derive(Clone)]
pub enum Which {
    /// Nothing: it has no other.
    Only,
    Named(String),
    /// Known once the program was asked: it may have several, of which this is the one of that name.
    Asked {
        name: String,
        said: Arc<OnceLock<Option<String>>>,
    },
}

impl Which {
    pub fn asked(name: &str) -> Which {
        Which::Asked {
            name: name.to_owned(),
            said: Arc::default(),
        }
    }

    /// The tool's name for `execute`, where the program has to be told.
    async fn name_to_send<'a>(&'a self, pool: &Arc<Pool>) -> Result<Option<&'a str>, Fault> {
        match self {
            Which::Only => Ok(None),
            Which::Named(name) => Ok(Some(name)),
            Which::Asked { name, said } => {
                if let Some(said) = said.get() {
                    return Ok(said.as_deref());
                }
                let hello = pool.hello().await?;
                let own = one_of(&hello, name).and_then(|one| one.get("name")?.as_str());
                Ok(said.get_or_init(|| own.map(str::to_owned)).as_deref())
            }
        }
    }
}

/// What helps a tool that says it could get no more memory: its limit, and how to raise it.
fn out_of_memory(told: &str, pool: &Pool, name: &str) -> Option<Hint> {
    const WORDS: [&str; 4] = [
        "MemoryError",
        "ENOMEM",
        "Cannot allocate memory",
        "Array buffer allocation failed",
    ];
    let mb = pool.memory_mb()?;
    let more = (mb * 2).to_string();
    let command = CommandLine::new("toolcrib grant")
        .operand(name)
        .flag("--memory", &more);
    let why = format!("it may use {mb} MB of memory; ask for less at once, or say ");
    let hint = Hint::run(command).before(why);
    WORDS
        .iter()
        .any(|words| told.contains(words))
        .then_some(hint)
}

/// Of a program that has several tools: the one of this name, or the only one.
pub fn one_of<'a>(hello: &'a Value, name: &str) -> Option<&'a Value> {
    let tools = hello.get("tools")?.as_array()?;
    let named = tools
        .iter()
        .find(|one| one.get("name").and_then(Value::as_str) == Some(name));
    named.or(match tools.as_slice() {
        [only] => Some(only),
        _ => None,
    })
}

impl Run for Executable {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, CallResult> {
        Box::pin(self.execute(call))
    }

    fn standing(&self) -> Standing {
        self.pool
            .as_ref()
            .map(|pool| pool.standing(&self.name))
            .unwrap_or_default()
    }

    fn missing(&self) -> Option<String> {
        self.pool.as_ref()?.missing()
    }

    fn walled<'a>(&'a self, _: &'a Tool) -> BoxFuture<'a, Walled> {
        Box::pin(async {
            match &self.pool {
                None => Walled::NotAtAll,
                Some(pool) => walled(pool.account().await),
            }
        })
    }

    fn hidden(&self, _: &Tool) -> Option<Hidden> {
        self.pool.as_ref()?.hidden()
    }

    fn check(&self) -> Option<BoxFuture<'_, Standing>> {
        let pool = self.pool.as_ref()?;
        Some(Box::pin(pool.check(&self.name)))
    }

    fn warm_up(&self) -> Option<BoxFuture<'_, Result<(), CallError>>> {
        let pool = self.pool.as_ref()?;
        Some(Box::pin(async {
            let hello = pool.hello().await;
            hello
                .map(drop)
                .map_err(|fault| fault.into_call_error(pool.name()))
        }))
    }

    fn is_warm(&self) -> bool {
        self.pool.as_ref().is_some_and(|pool| pool.is_warm())
    }
}

impl Executable {
    async fn execute(&self, call: &Call) -> CallResult {
        let name = call.tool.name();
        let Some(pool) = &self.pool else {
            return Err(match call.tool.pending {
                Some(_) => CallError::unavailable(format!(
                    "`{name}` can't be called yet: it is being loaded"
                ))
                .hint("call it again in a moment"),
                None => CallError::denied(format!("`{name}` may not run")),
            });
        };
        let which = match self.tool.name_to_send(pool).await {
            Ok(which) => which,
            Err(fault) => return Err(self.with_hint(fault, pool, name)),
        };
        let params = Execute::new(call, self.place.directory(), which);
        let context = Some(call.context.clone());
        let (id, start) = (&call.context.call_id, Instant::now());
        tracing::debug!(tool = name, call = %id, "execute");
        let answer = pool.request(&self.name, "execute", params, context).await;
        if let Ok(answer) = &answer {
            let error = answer.as_ref().err().map(|error| error.message.as_str());
            let duration_ms = start.elapsed().as_secs_f64() * 1_000.0;
            tracing::debug!(tool = name, call = %id, duration_ms, error, "response");
        }
        match answer {
            Ok(Ok(value)) => Ok(Outcome::from_json(value)),
            Ok(Err(error)) => {
                pool.answered(&self.name, &error);
                if let Some(place) = error
                    .data
                    .as_ref()
                    .and_then(|data| data.get("traceback")?.as_str())
                {
                    pool.note(place);
                }
                let failure = Failure {
                    tool: name,
                    program: None,
                    directory: self.place.directory(),
                    message: &error.message,
                    data: error.data.as_ref(),
                    stderr: &error.said,
                    denials: &pool.denials(),
                };
                let held = pool.held();
                let lacking = held.and_then(|held| failure.lacking(&held));
                if lacking.as_ref().is_some_and(Lacking::is_for_this_process) {
                    pool.renew();
                }
                let hint = lacking.map(|lacking| lacking.hint(name));
                let hint = hint.or_else(|| out_of_memory(&error.message, pool, name));
                match (answered(error, name), hint) {
                    (Ok(outcome), Some(hint)) => Ok(denied::hinted(outcome, &hint)),
                    (Err(error), Some(hint)) => Err(error.hint(hint)),
                    (answer, None) => answer,
                }
            }
            Err(fault) => Err(self.with_hint(fault, pool, name)),
        }
    }

    /// What the caller reads about a fault; with the grant that would help, where the walls are to blame.
    fn with_hint(&self, fault: Fault, pool: &Pool, name: &str) -> CallError {
        let held = pool.held();
        let lacking = held.and_then(|held| fault.lacking(name, self.place.directory(), &held));
        let error = fault.into_call_error(name);
        match lacking {
            Some(lacking) => error.hint(lacking.hint(name)),
            None => error,
        }
    }
}
