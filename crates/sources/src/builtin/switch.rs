//! Whether a built-in tool is on: always, once it was granted something, or once settings name what it needs.

use std::sync::Arc;

use serde_json::{Map, json};
use toolcrib_core::grant::BUILTIN;
use toolcrib_core::words::CommandLine;
use toolcrib_core::{
    Access, CallError, Hint, Network, Permit, Schema, SourceKind, Spec, Tool, ToolName,
};

use super::Builtin;
use crate::{Place, permits};

/// What has to be said before agents see a tool.
pub enum Switch {
    On,
    /// Any part of this has to be granted. What was granted is all that the tool then does.
    Granted(Asks),
    /// Settings have to name what it needs; else this is what is missing.
    Set(Result<(), CallError>),
}

/// What a built-in tool asks for.
pub struct Asks {
    /// All of it, which `--all` grants.
    pub all: Permit,
    /// The flag that grants a part, and what stands for its value.
    pub flag: (&'static str, &'static str),
    /// What it would do, in words that follow "to".
    pub what: &'static str,
}

impl Asks {
    fn is_granted(&self, granted: &Permit) -> bool {
        let written = self.all.write.is_empty() || !granted.write.is_empty();
        let reached = self.all.network.is_none() || !granted.network.is_none();
        written && reached
    }

    /// What a call is told while nothing was granted.
    fn refusal(&self, name: &str, unknown: Option<&str>) -> CallError {
        let what = self.what;
        if let Some(reason) = unknown {
            let message = format!(
                "`{name}` needs a grant to {what}; whether it has one is not known: {reason}"
            );
            return CallError::denied(message)
                .hint("repair the store, then call again; `toolcrib list` says when it answers");
        }
        let (flag, value) = self.flag;
        let grant = CommandLine::new("toolcrib grant")
            .operand(name)
            .flag(flag, value);
        CallError::denied(format!("`{name}` is off: it needs a grant to {what}"))
            .hint(Hint::run(grant).before("to switch it on, run "))
    }
}

impl Builtin {
    pub fn into_tool(self, place: &Arc<Place>) -> Result<Tool, String> {
        let mut schema = Map::from_iter([
            ("type".to_owned(), json!("object")),
            ("properties".to_owned(), self.parameters),
            ("additionalProperties".to_owned(), json!(false)),
        ]);
        if !self.required.is_empty() {
            schema.insert("required".to_owned(), json!(self.required));
        }
        let schema = Schema::parse(schema.into()).map_err(|error| error.to_string())?;
        let name = ToolName::new(self.name).map_err(|error| error.to_string())?;
        let version = env!("CARGO_PKG_VERSION");
        let mut spec = Spec::new(name, self.description, schema);
        spec.version = Some(version.to_owned());
        spec.annotations = self.effects.annotations(self.title);
        let hash = format!("builtin:{}:{version}", self.name);
        let mut tool = Tool::new(spec, SourceKind::Builtin, Access::Open, hash, self.run);
        // What a person says yes to is the tool's name: a new version of the crib does not end it.
        tool.content = format!("builtin:{}", self.name).into();
        match self.switch {
            Switch::On | Switch::Set(Ok(())) => {}
            Switch::Set(Err(error)) => tool.access = Access::Off(Box::new(error)),
            Switch::Granted(asks) => {
                let grants = place.grants.borrow().clone();
                let granted = grants.for_tool(BUILTIN, self.name, &tool.content);
                let granted = permits::located(&granted, place);
                tool.asks = asks.all.clone();
                match asks.is_granted(&granted) {
                    true => tool.permit = granted,
                    false => {
                        let refusal = asks.refusal(self.name, grants.trouble());
                        tool.access = Access::Off(Box::new(refusal));
                    }
                }
            }
        }
        Ok(tool)
    }
}

/// The whole network, this machine's own included.
pub fn whole_network() -> Permit {
    Permit {
        network: Network::Open,
        ..Permit::default()
    }
}
