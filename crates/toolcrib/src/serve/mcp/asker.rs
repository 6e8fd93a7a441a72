//! Who sends a request, and in which revision: by `initialize` before it, or by what it says of itself.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::json;
use toolcrib_core::Question;

use super::codes;
use super::message::{Fields, Id, Params, Request};
use super::peer::Questions;
use super::reply::Answer;
use super::revision::{Revision, stands_alone};
use crate::serve::auth::Who;

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CLIENT: &str = "io.modelcontextprotocol/clientInfo";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The longest name of a client that is taken as it is.
const MAX_CLIENT: usize = 64;

/// Who asks, in which revision, with which program.
#[derive(Debug, Clone)]
pub struct Asker {
    pub who: Who,
    pub revision: Revision,
    pub client: Arc<str>,
    /// What stays the same from call to call: its session, or the connection it has.
    pub session: Option<Arc<str>>,
    pub questions: Questions,
}

impl Asker {
    /// In this session, or on this connection.
    pub fn within(mut self, session: &Arc<str>) -> Asker {
        self.session = Some(session.clone());
        self
    }
}

/// What a client says of itself with `initialize`.
pub struct Hello<'a> {
    pub wanted: Cow<'a, str>,
    pub client: Cow<'a, str>,
    pub version: Cow<'a, str>,
    pub questions: Questions,
}

impl<'a> Hello<'a> {
    /// None where it does not even say which revision it wants.
    pub fn of(params: &Params<'a>) -> Option<Hello<'a>> {
        let client: Fields = params.fields.read("clientInfo").unwrap_or_default();
        let capabilities: Fields = params.fields.read("capabilities").unwrap_or_default();
        Some(Hello {
            wanted: params.text("protocolVersion")?,
            client: client.text("name").map_or("mcp".into(), shortened),
            version: client.text("version").map_or("".into(), shortened),
            questions: Questions::declared(&capabilities),
        })
    }

    pub fn asker(&self, who: Who) -> Asker {
        Asker {
            who,
            revision: Revision::offered(&self.wanted),
            client: (*self.client).into(),
            session: None,
            questions: self.questions,
        }
    }
}

/// What a request says of itself.
pub struct Stated<'a> {
    /// The revision that it names, known or not.
    pub version: Option<Cow<'a, str>>,
    has_capabilities: bool,
}

impl<'a> Stated<'a> {
    pub fn of(params: &Params<'a>) -> Stated<'a> {
        let capabilities = params.meta.get(CAPABILITIES);
        Stated {
            version: params.meta.text(VERSION),
            has_capabilities: capabilities.is_some_and(|raw| raw.get().starts_with('{')),
        }
    }

    /// Is it all that one which stands alone has to say?
    pub fn is_complete(&self) -> bool {
        self.version.is_some() && self.has_capabilities
    }

    /// Says which fields a request that stands alone lacks.
    pub fn incomplete(&self, id: &Id) -> Answer {
        let version = self.version.is_none().then_some(VERSION);
        let capabilities = (!self.has_capabilities).then_some(CAPABILITIES);
        let missing: Vec<&str> = version.into_iter().chain(capabilities).collect();
        let message = format!(
            "request _meta is missing or has malformed required fields: {}",
            missing.join(", ")
        );
        Answer::error(Some(id), codes::INVALID_PARAMS, &message)
    }

    /// Takes a request at its own word. It stands alone, so nothing that was said before counts.
    pub fn alone(&self, who: Who, request: &Request) -> Result<Asker, Answer> {
        let revision = match &self.version {
            Some(name) => Revision::named(name).ok_or_else(|| unsupported(&request.id, name))?,
            None => return Err(self.incomplete(&request.id)),
        };
        if !self.has_capabilities {
            return Err(self.incomplete(&request.id));
        }
        Ok(Asker {
            who,
            revision,
            client: client(&request.params).into(),
            session: None,
            questions: Questions::default(),
        })
    }
}

/// Does a request that stands alone say that its client opens pages for a person? Who asked before with it, and comes back, is
/// to get an answer that ends.
pub fn opens_pages(params: &Params) -> bool {
    let capabilities: Option<Fields> = params.meta.read(CAPABILITIES);
    let declared = capabilities.is_some_and(|all| Questions::declared(&all).has(Question::Visit));
    declared && params.get("inputResponses").is_none() && params.get("requestState").is_none()
}

/// Takes a request in a conversation of lines, where `greeted` is who said `initialize` before, if anybody did.
pub fn on_lines(who: &Who, greeted: Option<&Asker>, request: &Request) -> Result<Asker, Answer> {
    let stated = Stated::of(&request.params);
    let newest = stated.version.as_deref().is_some_and(stands_alone);
    let in_session = !newest && !stated.is_complete();
    match greeted {
        Some(asker) if in_session && request.method != "server/discover" => Ok(asker.clone()),
        // One may ask whether anybody is there before saying hello.
        None if in_session && request.method == "ping" => Ok(Asker {
            who: who.clone(),
            revision: Revision::V2025_11_25,
            client: "mcp".into(),
            session: None,
            questions: Questions::default(),
        }),
        _ => stated.alone(who.clone(), request),
    }
}

fn unsupported(id: &Id, version: &str) -> Answer {
    let requested: String = version.chars().take(MAX_CLIENT).collect();
    let supported = Revision::ALL.map(Revision::as_str);
    let data = json!({"requested": requested, "supported": supported});
    let message = "Unsupported protocol version";
    Answer::error_with(Some(id), codes::UNSUPPORTED_REVISION, message, Some(data))
}

/// The client's name, from its own words.
fn client<'a>(params: &Params<'a>) -> Cow<'a, str> {
    let client: Option<Fields> = params.meta.read(CLIENT);
    let name = client.and_then(|client| client.text("name"));
    name.map_or("mcp".into(), shortened)
}

fn shortened(name: Cow<'_, str>) -> Cow<'_, str> {
    match name.char_indices().nth(MAX_CLIENT) {
        None => name,
        Some((end, _)) => name[..end].to_owned().into(),
    }
}
