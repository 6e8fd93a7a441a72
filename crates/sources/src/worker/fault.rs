//! What goes wrong between the crib and a worker, and what the caller reads about it.

use std::path::Path;

use serde_json::{Value, json};
use toolcrib_core::words::counted;
use toolcrib_core::words::{CommandLine, line};
use toolcrib_core::{CallError, CallResult, ErrorCode, Hint, Outcome};
use toolcrib_sandbox::StartError;

use super::message::{NOT_LOADED, RpcError};
use crate::denied::{Failure, Held, Lacking};
use crate::process::start_error;
use crate::safe::Unread;

/// Why a request to a worker gave no result.
#[derive(Debug)]
pub enum Fault {
    Start(StartError),
    /// A secret that it needs could not be read, so nothing was started.
    Secret(Unread),
    /// It was not ready in time; the milliseconds it was given, and what it said meanwhile.
    Handshake {
        ms: u128,
        said: String,
    },
    /// It greeted in a way that is not understood.
    Greeting(String),
    /// It answered the greeting with an error.
    Refused(RpcError),
    /// It ended before it had greeted.
    Unready(Ending),
    /// It ended, or had to be ended.
    Ended {
        how: Ending,
        reached: bool,
    },
    /// It answered with an error.
    Rpc(RpcError),
    /// The crib is shutting down.
    Closing,
    Queue(usize),
    /// The call's time was over before a worker had time for it.
    Waited,
    /// The call's time was over before its worker was ready.
    Starting,
    /// The same, while as many workers of other tools as there may be were busy.
    Crowded(usize),
    /// It failed too often; the next start is tried in so many milliseconds.
    Resting(u128, String),
}

/// How a worker came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// In words that go on after "it": "ended with exit code 3".
    pub how: String,
    /// The end of what it said on stderr.
    pub stderr: String,
    /// It broke the protocol, rather than its own neck.
    pub misbehaved: bool,
}

impl Ending {
    pub fn of(how: &str) -> Ending {
        Ending {
            how: how.to_owned(),
            stderr: String::new(),
            misbehaved: false,
        }
    }

    /// How it ended and what it said last, as one text.
    pub fn message(&self) -> String {
        match self.stderr.trim_end() {
            "" => self.how.clone(),
            said => format!("{}; it last said:\n{said}", self.how),
        }
    }
}

impl Fault {
    /// Is this a fault of the worker's, which counts against it?
    pub fn is_failure(&self) -> bool {
        match self {
            Fault::Start(_)
            | Fault::Handshake { .. }
            | Fault::Greeting(_)
            | Fault::Refused(_)
            | Fault::Unready(_)
            | Fault::Ended { .. } => true,
            // It was never tried: whoever puts the secret there may call again at once.
            Fault::Secret(_)
            | Fault::Rpc(_)
            | Fault::Closing
            | Fault::Queue(_)
            | Fault::Waited
            | Fault::Starting
            | Fault::Crowded(_)
            | Fault::Resting(..) => false,
        }
    }

    /// What its process said beside its answers, before it came to this.
    pub fn said(&self) -> &str {
        match self {
            Fault::Handshake { said, .. } => said,
            Fault::Refused(error) | Fault::Rpc(error) => &error.said,
            Fault::Unready(how) | Fault::Ended { how, .. } => &how.stderr,
            Fault::Resting(_, last) => last,
            _ => "",
        }
    }

    /// What its answer says of it beside the words.
    fn data(&self) -> Option<&Value> {
        match self {
            Fault::Refused(error) | Fault::Rpc(error) => error.data.as_ref(),
            _ => None,
        }
    }

    /// What the walls kept its process from, where they are to blame.
    pub fn lacking(&self, tool: &str, directory: &Path, held: &Held) -> Option<Lacking> {
        let failure = Failure {
            tool,
            program: None,
            directory,
            message: &self.message(),
            data: self.data(),
            stderr: self.said(),
            denials: &[],
        };
        failure.lacking(held)
    }

    /// In one line, for a status or a problem.
    pub fn message(&self) -> String {
        match self {
            Fault::Start(error) => error.to_string(),
            Fault::Secret(unread) => format!("{}; {}", unread.message, unread.hint),
            Fault::Handshake { ms, said } => {
                let how = format!("did not answer `initialize` within {ms} ms");
                let stderr = said.clone();
                let ending = Ending {
                    stderr,
                    ..Ending::of(&how)
                };
                format!("it {}", ending.message())
            }
            Fault::Greeting(what) => format!("its answer to `initialize` {what}"),
            Fault::Refused(error) if error.code == NOT_LOADED => error.message.clone(),
            Fault::Refused(error) => format!(
                "its answer to `initialize` is error {}: {}",
                error.code, error.message
            ),
            Fault::Unready(how) => format!("before it was ready it {}", how.message()),
            Fault::Ended { how, .. } => format!("it {}", how.message()),
            Fault::Rpc(error) => {
                format!("it answered with error {}: {}", error.code, error.message)
            }
            Fault::Closing => "the crib is shutting down".to_owned(),
            Fault::Queue(waiting) => {
                format!("{} already waiting for it", counted(*waiting, "call"))
            }
            Fault::Waited => "the call waited for a free worker until its time was over".to_owned(),
            Fault::Starting => {
                "its worker was not ready before the call's time was over".to_owned()
            }
            Fault::Crowded(workers) => format!(
                "all {workers} workers that this crib may have were busy until the call's time was over"
            ),
            Fault::Resting(_, last) => last.clone(),
        }
    }

    /// What the caller of the tool `name` is told.
    pub fn into_call_error(self, name: &str) -> CallError {
        let told = self.message();
        match self {
            Fault::Start(error) => {
                let error = start_error(error);
                CallError {
                    message: format!("the tool `{name}` can't be started: {}", error.message),
                    ..error
                }
                .unreached()
            }
            Fault::Secret(unread) => unread.into_call_error(name),
            Fault::Refused(RpcError {
                code: NOT_LOADED,
                data,
                ..
            }) => {
                let hint = data.as_ref().and_then(|data| data.get("hint")?.as_str());
                CallError::unavailable(format!("the tool `{name}` can't be used: {told}"))
                    .hint(hint.map_or_else(|| "fix the file and save it".to_owned(), said))
                    .unreached()
            }
            Fault::Handshake { .. } | Fault::Greeting(_) | Fault::Refused(_) => {
                CallError::unavailable(format!("the tool `{name}` can't be used: {told}"))
                    .hint(format!(
                        "run the program by hand and type a request (`toolcrib help worker-protocol`); `{}` shows what it said",
                        logs(name)
                    ))
                    .unreached()
            }
            Fault::Unready(how) => {
                CallError::unavailable(format!("the tool `{name}` can't be used: {told}"))
                    .hint(format!("fix it and save; `{}` shows all it said on stderr", logs(name)))
                    .data(json!({"stderr": how.stderr}))
                    .unreached()
            }
            Fault::Ended { how, reached } => ended(name, &how, reached),
            Fault::Rpc(error) => CallError::unavailable(format!(
                "the tool `{name}` did not understand the crib: {} ({})",
                error.message, error.code
            ))
            .hint("its program must answer `initialize`, `execute` and `health`; see `toolcrib help worker-protocol`"),
            Fault::Closing => CallError::unavailable(told)
                .hint("call again once it serves")
                .unreached(),
            Fault::Queue(_) => CallError::new(
                ErrorCode::LimitReached,
                format!("the tool `{name}` is busy: {told}"),
            )
            .hint("wait for some of them to end, or raise the `poolSize` of a program or the `concurrency` of a file"),
            Fault::Waited => CallError::new(
                ErrorCode::TimedOut,
                format!("the tool `{name}` is busy: {told}, and never started"),
            )
            .hint("raise the tool's `poolSize`, or let its worker take several calls at once (`concurrency` in its answer to `initialize`)")
            .unreached(),
            Fault::Crowded(_) => CallError::new(
                ErrorCode::TimedOut,
                format!("the call of `{name}` never started: {told}"),
            )
            .hint("call less at once, or raise the setting `max_workers`")
            .unreached(),
            Fault::Starting => CallError::new(
                ErrorCode::TimedOut,
                format!("the call of `{name}` never started: {told}"),
            )
            .hint("call again: the worker goes on starting; or raise the tool's `timeoutMs` (in Python `timeout_ms`)")
            .unreached(),
            Fault::Resting(ms, _) => CallError::unavailable(format!(
                "the tool `{name}` failed several times in a row and is tried again in {ms} ms; the last time {told}"
            ))
            .hint(Hint::run(logs(name)).before("fix it and save; ").after(" shows what it said"))
            .unreached(),
        }
    }
}

fn logs(name: &str) -> CommandLine {
    CommandLine::new("toolcrib logs").operand(name)
}

/// Advice that came out of a tool's process, where the tool's own code could have written it: told as such.
pub fn said(hint: &str) -> String {
    format!("{} (says the tool's own process)", line(hint))
}

fn ended(name: &str, how: &Ending, reached: bool) -> CallError {
    let code = if how.misbehaved {
        ErrorCode::Unavailable
    } else {
        ErrorCode::Crashed
    };
    let when = if reached {
        "while it worked on the call"
    } else {
        "before it got the call"
    };
    let error = CallError::new(
        code,
        format!("the tool `{name}` failed {when}: it {}", how.message()),
    )
    .hint(Hint::run(logs(name)).after(" shows all it said on stderr"))
    .data(json!({"stderr": how.stderr}));
    if reached { error } else { error.unreached() }
}

/// What a worker's error in answer to `execute` means.
pub fn answered(error: RpcError, name: &str) -> CallResult {
    let said = if error.message.is_empty() {
        format!("error {}", error.code)
    } else {
        error.message.clone()
    };
    match error.code {
        RpcError::INVALID_PARAMS => {
            let refused = CallError::invalid(format!("`{name}` refuses the arguments: {said}"))
                .hint(
                    Hint::run(CommandLine::new("toolcrib show").operand(name))
                        .after(" prints the schema"),
                );
            Err(match error.data {
                Some(data) => refused.data(data),
                None => refused,
            })
        }
        RpcError::TIMEOUT => Err(CallError::new(
            ErrorCode::TimedOut,
            format!("`{name}` says it ran out of time: {said}"),
        )
        .hint("ask for less at once, or raise the tool's `timeoutMs` (in Python `timeout_ms`)")),
        RpcError::PARSE | RpcError::INVALID_REQUEST | RpcError::METHOD_NOT_FOUND => {
            Err(Fault::Rpc(error).into_call_error(name))
        }
        code => {
            let mut outcome = Outcome::text(said).meta("code", code);
            outcome.is_error = true;
            Ok(match error.data {
                Some(data) => outcome.meta("data", data),
                None => outcome,
            })
        }
    }
}
