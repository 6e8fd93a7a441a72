//! What is remembered of one call, and the book it is written into.

use std::borrow::Cow;
use std::sync::Arc;

use super::StoreError;
use crate::call::{Decision, Mark};
use crate::{BoxFuture, ErrorCode, Object};

/// How a call ended on one of its three levels: the way here and back (transport), the chain (protocol), the tool.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Level {
    /// It never came that far.
    #[default]
    Unreached,
    Ok,
    /// A short word on what failed, such as an error code, `cancelled` or `is_error`.
    Failed(Cow<'static, str>),
}

impl Level {
    /// As it is stored: nothing, `ok`, or the word.
    pub fn as_word(&self) -> Option<&str> {
        match self {
            Level::Unreached => None,
            Level::Ok => Some("ok"),
            Level::Failed(word) => Some(word),
        }
    }

    pub fn from_word(word: Option<String>) -> Level {
        match word {
            None => Level::Unreached,
            Some(word) if word == "ok" => Level::Ok,
            Some(word) => Level::Failed(word.into()),
        }
    }
}

/// What the transport of a call says that began, and whose end was not written down: it runs still, or the crib died.
/// Only such a record is ever written over, by that of its end.
pub const UNFINISHED: &str = "unfinished";

/// One call, after it ended. Holds no argument and no output.
#[derive(Debug, Clone, PartialEq)]
pub struct CallRecord {
    /// A UUID of version 7.
    pub id: Arc<str>,
    /// When it began, in milliseconds since the epoch.
    pub at_ms: u64,
    pub client: Arc<str>,
    pub agent: Arc<str>,
    pub session: Option<Arc<str>>,
    /// The root of the project that it was made in.
    pub project: Option<Arc<str>>,
    /// The id of the token that was shown, never the token.
    pub token: Option<Arc<str>>,
    pub tool: Arc<str>,
    pub tool_version: Option<Arc<str>>,
    /// The hash of the tool's content at that moment.
    pub tool_hash: Option<Arc<str>>,
    /// See [`CallBook::argument_hash`]; nothing for a call that ended before its arguments were redacted.
    pub argument_hash: Option<String>,
    pub transport: Level,
    pub protocol: Level,
    pub outcome: Level,
    pub error: Option<ErrorCode>,
    pub duration_us: u64,
    pub output_bytes: u64,
    /// What links of the chain did to it.
    pub marks: Vec<Mark>,
    /// Who decided about it, where somebody did.
    pub decision: Option<Decision>,
}

/// What became of a record that was handed over without waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// Written within a second, unless the store can't be used.
    Queued,
    /// There was no room in the queue. It is counted.
    Dropped,
}

/// Where calls are written down.
pub trait CallBook: Send + Sync {
    /// Hands a record over. Never waits: this is on the path of every call.
    fn record(&self, record: CallRecord) -> Recorded;

    /// Comes back when the record is on disk: for `audit = "required"`.
    fn record_durably(&self, record: CallRecord) -> BoxFuture<'_, Result<(), StoreError>>;

    /// The same arguments give the same hash here, whatever the order of their keys, and say nothing elsewhere.
    /// Nothing where the key is out of reach.
    fn argument_hash(&self, arguments: &Object) -> Option<String>;
}
