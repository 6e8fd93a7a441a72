//! The client at the other end of a call: what it may be asked while the call runs.

use std::time::Duration;

use serde_json::Value;

use crate::BoxFuture;

/// What a client can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// Something that a person fills in or decides.
    Elicit,
    /// Which folders the client works in.
    Roots,
    /// A text that the client's model writes.
    Sample,
    /// A page that a person opens. Whatever the client answers, nobody knows whether a person was there.
    Visit,
}

impl Question {
    pub const ALL: [Question; 4] = [
        Question::Elicit,
        Question::Roots,
        Question::Sample,
        Question::Visit,
    ];
}

/// Why a client gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PeerError {
    #[error("the client did not say that it can be asked this")]
    Unsupported,
    #[error("the client did not answer in time")]
    TimedOut,
    #[error("the client has gone")]
    Gone,
    #[error("the client has too many questions to answer already")]
    Busy,
    #[error("the client refused: {message}")]
    Refused { code: i64, message: String },
}

/// Asks the client of a call. A surface gives one to calls whose client can be asked.
pub trait Peer: Send + Sync {
    /// Did the client say that it can be asked this?
    fn can(&self, question: Question) -> bool;

    /// Asks, and waits no longer than `limit`. Dropping the future takes the question back.
    fn ask(
        &self,
        question: Question,
        params: Value,
        limit: Duration,
    ) -> BoxFuture<'_, Result<Value, PeerError>>;
}
