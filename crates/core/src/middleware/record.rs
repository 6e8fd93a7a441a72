//! Writes every call down when it has ended: well, with an error, or given up by its caller.
//!
//! A call does not wait for its record. Only where the owner said that none may go unrecorded (`audit = "required"`) it
//! does, twice: that it began is on disk before it runs, and how it ended before it is answered.
//!
//! Why: `docs/design/0011-store.md`.

use std::sync::Arc;

use tokio::time::Instant;

use super::{Always, Middleware, Next, Shared};
use crate::profile::{Audit, ChainSettings};
use crate::store::{CallBook, CallRecord, Level, StoreError, UNFINISHED};
use crate::{BoxFuture, Call, CallError, CallResult, Caller, Context, ErrorCode};

/// What a name may take in a record; they come from clients.
const LONGEST: usize = 256;

pub(super) struct Record {
    audit: Audit,
}

impl Always for Record {
    fn of(settings: &ChainSettings) -> Record {
        Record {
            audit: settings.audit,
        }
    }
}

impl Middleware for Record {
    fn handle<'a>(&'a self, call: &'a mut Call, next: Next<'a>) -> BoxFuture<'a, CallResult> {
        let shared = next.shared();
        let Some(book) = shared.book.as_deref() else {
            return next.run(call);
        };
        let at_ms = (shared.clock)();
        if self.audit == Audit::Required {
            return Box::pin(durably(book, call, at_ms, next));
        }
        Box::pin(async move {
            let mut entry = Entry::new(book, call, at_ms);
            let result = next.run(entry.call).await;
            entry.ended(&result);
            result
        })
    }
}

async fn durably<'a>(
    book: &'a dyn CallBook,
    call: &'a mut Call,
    at_ms: u64,
    next: Next<'a>,
) -> CallResult {
    let mut entry = Entry::new(book, call, at_ms);
    if let Err(error) = book.record_durably(entry.record()).await {
        let refused = Err(refused(&error).unreached());
        entry.ended(&refused);
        return refused;
    }
    let result = next.run(entry.call).await;
    entry.ended(&result);
    match book.record_durably(entry.record()).await {
        Ok(()) => {
            entry.written = true;
            result
        }
        // That it ran is on disk already. How it ended is tried again without anybody waiting.
        Err(error) => Err(withheld(&error)),
    }
}

/// A name that no tool has: no chain runs, and it is written down all the same. Gives what the caller is told.
pub(crate) async fn record_unknown(
    shared: &Shared,
    audit: Audit,
    name: &str,
    caller: &Caller,
    context: &Context,
    error: CallError,
) -> CallError {
    let Some(book) = shared.book.as_deref() else {
        return error;
    };
    let record = CallRecord {
        tool: bounded(&name.into()),
        transport: Level::Ok,
        protocol: failed(error.code),
        error: Some(error.code),
        ..blank(caller, context, (shared.clock)())
    };
    if audit == Audit::BestEffort {
        book.record(record);
        return error;
    }
    match book.record_durably(record).await {
        Ok(()) => error,
        Err(trouble) => refused(&trouble).unreached(),
    }
}

/// A call that was given up before it was known which tool it is of.
pub(crate) fn record_given_up(shared: &Shared, name: &str, caller: &Caller, context: &Context) {
    if let Some(book) = shared.book.as_deref() {
        book.record(CallRecord {
            tool: bounded(&name.into()),
            transport: Level::Failed("cancelled".into()),
            ..blank(caller, context, (shared.clock)())
        });
    }
}

/// A call on its way into the book. Hands itself in when it is dropped, so that a call given up is recorded too.
struct Entry<'a> {
    book: &'a dyn CallBook,
    call: &'a mut Call,
    at_ms: u64,
    start: Instant,
    end: End,
    /// It is on disk already.
    written: bool,
}

enum End {
    /// It has not come to an end.
    None,
    Outcome {
        is_error: bool,
        bytes: u64,
    },
    Error(ErrorCode),
}

impl<'a> Entry<'a> {
    fn new(book: &'a dyn CallBook, call: &'a mut Call, at_ms: u64) -> Entry<'a> {
        Entry {
            book,
            call,
            at_ms,
            start: Instant::now(),
            end: End::None,
            written: false,
        }
    }

    fn ended(&mut self, result: &CallResult) {
        self.end = match result {
            Ok(outcome) => End::Outcome {
                is_error: outcome.is_error,
                bytes: outcome.output.len() as u64,
            },
            Err(error) => End::Error(error.code),
        };
    }

    fn record(&self) -> CallRecord {
        let Call {
            tool,
            arguments,
            caller,
            context,
        } = &*self.call;
        let mut record = CallRecord {
            tool: tool.spec.name.shared(),
            tool_version: tool.spec.version.as_deref().map(Arc::from),
            tool_hash: Some(tool.hash.clone()),
            transport: Level::Failed(UNFINISHED.into()),
            duration_us: u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX),
            ..blank(caller, context, self.at_ms)
        };
        record.marks.clone_from(&context.marks);
        record.decision.clone_from(&context.decision);
        if context.admitted {
            record.argument_hash = self.book.argument_hash(arguments);
        }
        match self.end {
            End::None => {}
            End::Outcome { is_error, bytes } => {
                (record.transport, record.protocol) = (Level::Ok, Level::Ok);
                record.output_bytes = bytes;
                record.outcome = match is_error {
                    true => Level::Failed("is_error".into()),
                    false => Level::Ok,
                };
            }
            End::Error(code) => {
                (record.transport, record.protocol) = (Level::Ok, failed(code));
                record.error = Some(code);
            }
        }
        record
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        if self.written {
            return;
        }
        let mut record = self.record();
        if let End::None = self.end {
            record.transport = Level::Failed("cancelled".into());
        }
        // A book that is full counts what it lost.
        self.book.record(record);
    }
}

/// What is known of every call before it is looked at.
fn blank(caller: &Caller, context: &Context, at_ms: u64) -> CallRecord {
    CallRecord {
        id: context
            .record_id
            .as_ref()
            .unwrap_or(&context.call_id)
            .clone(),
        at_ms,
        client: bounded(&caller.client),
        agent: caller.agent.clone(),
        session: context.session_id.as_ref().map(bounded),
        project: context
            .directory
            .as_ref()
            .map(|root| root.to_string_lossy().into()),
        token: caller.token.clone(),
        tool: "".into(),
        tool_version: None,
        tool_hash: None,
        argument_hash: None,
        transport: Level::Unreached,
        protocol: Level::Unreached,
        outcome: Level::Unreached,
        error: None,
        duration_us: 0,
        output_bytes: 0,
        marks: Vec::new(),
        decision: None,
    }
}

fn failed(code: ErrorCode) -> Level {
    Level::Failed(code.as_str().into())
}

fn bounded(text: &Arc<str>) -> Arc<str> {
    match text.len() <= LONGEST {
        true => text.clone(),
        false => text[..text.floor_char_boundary(LONGEST)].into(),
    }
}

const HINT: &str = "repair the store, or let calls run unrecorded with `audit = \"best-effort\"`";

fn refused(error: &StoreError) -> CallError {
    CallError::unavailable(format!(
        "the call can't be recorded, and `audit = \"required\"` lets none run unrecorded: {error}"
    ))
    .hint(HINT)
}

fn withheld(error: &StoreError) -> CallError {
    CallError::unavailable(format!(
        "the call ran, but how it ended can't be recorded, and `audit = \"required\"` withholds its outcome: {error}"
    ))
    .hint(HINT)
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
