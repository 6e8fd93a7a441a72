//! Who sends a request, and in which revision: by `initialize` before it, or by what it says of itself.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::json;

use super::codes;
use super::message::{Fields, Id, Params, Request};
use super::peer::Questions;
use super::reply::Answer;
use super::revision::Revision;
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
    pub questions: Questions,
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
            questions: self.questions,
        }
    }
}

/// The revision that a request names in itself.
pub fn named<'a>(params: &Params<'a>) -> Option<Cow<'a, str>> {
    params.meta.text(VERSION)
}

/// Does a request say all that one which stands alone has to?
pub fn is_complete(params: &Params) -> bool {
    missing(params).is_empty()
}

/// Takes a request at its own word. It stands alone, so nothing that was said before counts.
pub fn alone(who: Who, request: &Request) -> Result<Asker, Answer> {
    let refused = |answer| Err(answer);
    let version = named(&request.params);
    let revision = version.as_deref().map(Revision::named);
    let missing = missing(&request.params);
    match (revision, missing.is_empty()) {
        (Some(None), _) => refused(unsupported(
            &request.id,
            version.as_deref().unwrap_or_default(),
        )),
        (Some(Some(revision)), true) => Ok(Asker {
            who,
            revision,
            client: client(&request.params).into(),
            questions: Questions::default(),
        }),
        _ => refused(incomplete(&request.id, &missing)),
    }
}

/// Takes a request in a conversation of lines, where `greeted` is who said `initialize` before, if anybody did.
pub fn on_lines(greeted: Option<&Asker>, request: &Request) -> Result<Asker, Answer> {
    let standing_alone = named(&request.params).is_some_and(|version| {
        is_complete(&request.params) || super::revision::stands_alone(&version)
    });
    match greeted {
        Some(asker) if !standing_alone && request.method != "server/discover" => Ok(asker.clone()),
        // One may ask whether anybody is there before saying hello.
        None if !standing_alone && request.method == "ping" => Ok(Asker {
            who: Who::owner(),
            revision: Revision::V2025_11_25,
            client: "mcp".into(),
            questions: Questions::default(),
        }),
        _ => alone(Who::owner(), request),
    }
}

/// Says which fields a request lacks.
pub fn incomplete(id: &Id, missing: &[&str]) -> Answer {
    let message = format!(
        "request _meta is missing or has malformed required fields: {}",
        missing.join(", ")
    );
    Answer::error(Some(id), codes::INVALID_PARAMS, &message)
}

/// What a request that stands alone lacks.
pub fn missing(params: &Params) -> Vec<&'static str> {
    let mut missing = Vec::new();
    if named(params).is_none() {
        missing.push(VERSION);
    }
    let capabilities = params.meta.get(CAPABILITIES);
    if !capabilities.is_some_and(|raw| raw.get().starts_with('{')) {
        missing.push(CAPABILITIES);
    }
    missing
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
