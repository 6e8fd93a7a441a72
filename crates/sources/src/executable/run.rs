//! One call of an executable tool.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use serde_json::Value;
use toolcrib_core::words::CommandLine;
use toolcrib_core::{
    BoxFuture, Call, CallError, CallResult, Hidden, Hint, Outcome, Run, Standing, Tool, Walled,
};

use toolcrib_sandbox::Exec;

use crate::Place;
use crate::confine::walled;
use crate::denied::Failure;
use crate::worker::{Execute, Fault, Pool, answered};

/// A tool that a worker runs.
pub struct Executable {
    /// None where the program may not run.
    pub pool: Option<Arc<Pool>>,
    pub tool: Which,
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
            .map(|pool| pool.standing())
            .unwrap_or_default()
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
        Some(Box::pin(pool.check()))
    }
}

impl Executable {
    async fn execute(&self, call: &Call) -> CallResult {
        let name = call.tool.name();
        let Some(pool) = &self.pool else {
            return Err(CallError::denied(format!("`{name}` may not run")));
        };
        let which = match self.tool.name_to_send(pool).await {
            Ok(which) => which,
            Err(fault) => return Err(with_hint(fault, pool, name)),
        };
        let params = Execute::new(call, self.place.directory(), which);
        let context = Some(call.context.clone());
        let (id, start) = (&call.context.call_id, Instant::now());
        tracing::debug!(tool = name, call = %id, "execute");
        let answer = pool.request("execute", params, context).await;
        if let Ok(answer) = &answer {
            let error = answer.as_ref().err().map(|error| error.message.as_str());
            let duration_ms = start.elapsed().as_secs_f64() * 1_000.0;
            tracing::debug!(tool = name, call = %id, duration_ms, error, "response");
        }
        match answer {
            Ok(Ok(value)) => Ok(Outcome::from_json(value)),
            Ok(Err(error)) => {
                pool.answered(&error);
                if let Some(place) = error
                    .data
                    .as_ref()
                    .and_then(|data| data.get("traceback")?.as_str())
                {
                    pool.note(place);
                }
                let failure = Failure {
                    tool: name,
                    directory: self.place.directory(),
                    message: &error.message,
                    data: error.data.as_ref(),
                    denials: &pool.denials(),
                };
                let hint = pool.policy().and_then(|policy| failure.hint(policy));
                answered(error, name).map(|outcome| match hint {
                    Some(hint) => {
                        let output = format!("{}\n\nhint: {hint}", outcome.output);
                        Outcome { output, ..outcome }.meta("hint", hint.to_string())
                    }
                    None => outcome,
                })
            }
            Err(fault) => Err(with_hint(fault, pool, name)),
        }
    }
}

/// What the caller is told of a fault; with the grant that would help, where a program that was not run is to blame.
fn with_hint(fault: Fault, pool: &Pool, name: &str) -> CallError {
    let told = fault.message();
    let error = fault.into_call_error(name);
    let once = pool
        .policy()
        .is_some_and(|policy| policy.exec == Exec::Once);
    match once && is_refusal(&told) {
        true => {
            let grant = CommandLine::new("toolcrib grant")
                .operand(name)
                .switch("--exec");
            let why = "the sandbox lets it run no other programs; if it should, say ";
            error.hint(Hint::run(grant).before(why))
        }
        false => error,
    }
}

/// Do these words say that something was not allowed?
pub fn is_refusal(told: &str) -> bool {
    let words = [
        "Operation not permitted",
        "Permission denied",
        "EPERM",
        "EACCES",
    ];
    words.iter().any(|words| told.contains(words))
}
