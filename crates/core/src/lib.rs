//! What a tool is and how it is called: no file, socket, process, environment or SQL, and no wire format.
//!
//! # Glossary
//!
//! One word per thing, the same in code, REST, CLI and docs.
//!
//! | word | meaning | here |
//! | --- | --- | --- |
//! | tool | something an agent can call | [`Tool`] |
//! | spec | its name, description, schemas, options | [`Spec`] |
//! | source | where tools come from | [`SourceKind`], [`Update`] |
//! | catalog | the immutable set of tools at one version | `catalog.rs` |
//! | registry | swaps catalogs | `registry.rs` |
//! | profile | which tools an agent sees, and the chain of its calls | [`profile::Profile`] |
//! | surface | what an agent is handed of its tools: all, or a few and a search | [`Surface`] |
//! | view | what an agent has at one moment: lists, searches, and calls | [`View`] |
//! | call | one use of a tool | [`Call`] |
//! | outcome | what a call gave | [`Outcome`] |
//! | content | the blocks of a result in MCP's own form | [`Content`], [`Block`] |
//! | JSON | text that passes through, and its value | [`Json`], [`Object`] |
//! | counter | what calls are counted in, exact for all who share it | [`counter::Counter`] |
//! | caller | who asks: client, agent, session | [`Caller`] |
//! | peer | the client of a call, which may be asked something | [`Peer`] |
//! | middleware | a link of the chain every call passes | [`middleware::Middleware`] |
//! | trust | yes to a folder's code | [`Access::Untrusted`] |
//! | permit | what a tool may do beyond the default | [`Permit`] |
//! | grant | yes to one tool's permission | [`Grant`], [`Access::NeedsGrant`] |
//! | approval | yes to one call | [`store::Approval`] |
//! | secret | a value that only a tool's process may see | [`Hidden`], [`Mask`] |
//! | worker | a child process that runs tools | [`Standing`] |
//! | problem | why something did not load | [`Problem`] |
//! | hint | what to do about an error or a problem | [`Hint`] |
//!
//! [`Crib`] is all that a surface needs: an agent's view, which lists and calls, and changes.

mod access;
mod approval;
pub mod call;
mod catalog;
pub mod client;
pub mod content;
pub mod counter;
pub mod crib;
pub mod error;
pub mod event;
pub mod grant;
pub mod hint;
pub mod json;
pub mod limits;
pub mod mask;
pub mod middleware;
pub mod options;
pub mod outcome;
pub mod output_limit;
pub mod outputs;
pub mod peer;
pub mod permit;
pub mod preview;
pub mod profile;
pub mod registry;
pub mod schema;
pub mod search;
pub mod selection;
mod slots;
pub mod source;
pub mod standing;
pub mod store;
pub mod surface;
#[cfg(test)]
mod testing;
pub mod tokens;
pub mod tool;
pub mod view;
pub mod words;

pub use access::Access;
pub use approval::canonical;
pub use call::{Call, Caller, Context, Progress};
pub use content::{Block, BlockKind, Content};
pub use crib::{Crib, ListChanges, Loading, Request, Seen};
pub use error::{CallError, ErrorCode};
pub use event::{Event, Events};
pub use grant::{Binding, Grant, Grants, NewGrant, Ungranted};
pub use hint::Hint;
pub use json::{Json, JsonError, Object};
pub use limits::{CallerLimits, Limits};
pub use mask::{Hidden, Mask, Masked};
pub use middleware::{Books, validated};
pub use options::{Annotations, Permissions, Retries, SandboxOptions};
pub use outcome::{Attachment, AttachmentKind, Outcome};
pub use output_limit::{OutputLimit, OutputRule, OutputRules};
pub use outputs::{KeptOutput, OutputId, Outputs, Page, Spool, Whole};
pub use peer::{Peer, PeerError, Question};
pub use permit::{Missing, Network, Permit, Reads};
pub use profile::{Audit, ChainSettings, ListedLink, MiddlewareTable, Mode, Profile, Profiles};
pub use registry::Change;
pub use schema::{Schema, SchemaError, Violation};
pub use selection::{Namespace, Selection, ToolPattern};
pub use source::{ErrorType, Problem, Rank, Scope, Severity, SourceKey, SourceKind, Update};
pub use standing::{Health, Standing, Status};
pub use surface::{Surface, SurfaceRule};
pub use tool::{LastWord, Pending, Run, Spec, Tool, ToolName, Walled};
pub use view::{Answer, View};

/// A boxed future: the chain is a slice of trait objects, so each link gives one of these.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What every link of the chain and every runner gives back.
pub type CallResult = Result<Outcome, CallError>;
