//! The MCP surface: our own server side of every revision, over lines and streamable HTTP, from one set of methods.
//!
//! - [`revision`], [`codes`]: the words of the protocol. [`message`] reads them, [`reply`] writes them, without a tree.
//! - [`asker`]: who sends a request and in which revision, told from the message and what was said before.
//! - [`methods`]: THE LIST of methods. `call`, `resources`, `subscribe`: what takes longer. `lists`: the tools.
//! - `small`, `find`: a search that stands for many tools.
//! - `conversation`, `peer`: what a client has under way, and asking it something. `session`: signed ids over HTTP.
//! - [`lines`] and [`http`]: the two ways in. [`framing`], `headers`, `stream`: what only one of them has.
//!
//! Why it is our own: `docs/design/0009-mcp.md`.

pub mod asker;
mod call;
pub mod codes;
mod conversation;
mod find;
pub mod framing;
mod headers;
pub mod http;
pub mod lines;
mod lists;
pub mod message;
pub mod methods;
mod notices;
mod older;
mod peer;
pub mod reply;
mod resources;
pub mod revision;
mod routing;
mod session;
mod small;
mod stream;
mod subscribe;

use std::sync::Arc;
use std::time::Duration;

use self::session::Sessions;
use super::Served;

pub use self::small::SMALL_SURFACE;

pub use self::http::door;
pub use self::lines::{lines, lines_until};

/// A name for a connection, for what its calls have in common.
pub fn new_session() -> Arc<str> {
    uuid::Uuid::now_v7().to_string().into()
}

/// What every result of 2026-07-28 says.
const COMPLETE: &str = "complete";

/// Answers MCP out of a crib.
pub struct Mcp {
    served: Arc<Served>,
    sessions: Sessions,
    handed: small::Handed,
}

/// How long `initialize` waits for the first look at the tools, of which it tells a little.
const GREETING: Duration = Duration::from_millis(50);

impl Mcp {
    pub fn new(served: Arc<Served>) -> Arc<Mcp> {
        Arc::new(Mcp {
            served,
            sessions: Sessions::default(),
            handed: small::Handed::default(),
        })
    }
}
