//! `toolcrib call`: one call from the shell, with arguments as JSON or as `key=value`.

use std::io::Read;

use clap::Args;
use serde_json::Value;
use toolcrib_core::words::{CommandLine, line};
use toolcrib_core::{Block, BlockKind, ErrorCode, Hint, Json, JsonError, Object};

use super::reach::{About, Reach};
use super::serve::asked_to_stop;
use super::watched::Watched;
use super::{Done, Scene, Target};
use crate::error::{EXIT_INTERRUPTED, EXIT_TOOL_FAILED};
use crate::failure::Failure;
use crate::printer::{Printer, plain};
use crate::wire::OutcomeView;

/// The most that is read from stdin.
const MAX_STDIN: u64 = 10 * 1_024 * 1_024;

/// Call a tool
#[derive(Debug, Args)]
#[command(
    after_help = "Arguments are one JSON object, `-` to read it from stdin, or key=value pairs, each read by the \
    type its schema gives:\n\n  toolcrib call file-reader path=README.md startLine=1 endLine=5\n  \
    toolcrib call file-reader '{\"path\": \"README.md\"}'"
)]
pub struct Call {
    /// The tool's name
    pub name: String,
    /// One JSON object, or `-`, or key=value pairs
    #[arg(value_name = "JSON | KEY=VALUE")]
    pub arguments: Vec<String>,
    /// Call it as this agent, whose middleware the call passes
    #[arg(long, value_name = "NAME", conflicts_with = "full")]
    pub agent: Option<String>,
    /// Print the whole output, also what agents are not shown
    #[arg(long)]
    pub full: bool,
    #[command(flatten)]
    pub target: Target,
}

impl Call {
    pub async fn run(self, scene: &Scene) -> Done {
        let reach = Reach::open_for(scene, &self.target, About::CallOf(&self.name)).await?;
        let schema = match self.arguments.iter().any(|argument| is_pair(argument)) {
            true => reach.tool_with_schema(&self.name).await?.input_schema,
            false => Value::Null,
        };
        let arguments = read_arguments(&self.arguments, &schema, &self.name)?;
        let agent = self.agent.as_deref();
        let Some(outcome) = attended(scene, &reach, (&self.name, agent), arguments).await else {
            return Ok(EXIT_INTERRUPTED);
        };
        reach.close().await;
        let mut outcome = outcome.called?;
        if self.full {
            whole(&reach, &mut outcome).await?;
        }
        print(scene.printer, &outcome);
        Ok(if outcome.is_error {
            EXIT_TOOL_FAILED
        } else {
            0
        })
    }
}

/// How a call ended that somebody waited for.
pub struct Attended {
    pub called: Result<OutcomeView, Failure>,
    /// Up to where what the tool printed has been shown.
    pub shown_to: Option<u64>,
}

/// Calls a tool for a person who may lose patience: Ctrl-C cancels the call, and gives nothing.
pub async fn attended(
    scene: &Scene,
    reach: &Reach,
    (name, agent): (&str, Option<&str>),
    arguments: Object,
) -> Option<Attended> {
    let mut watched = Watched::new(reach, scene.printer, name).await;
    tokio::select! {
        called = watched.during(reach.call(name, agent, arguments)) => {
            watched.look().await;
            return Some(Attended {
                called,
                shown_to: watched.shown_to(),
            });
        }
        () = asked_to_stop() => {}
    }
    scene.printer.note(format!("`{name}` was cancelled"));
    // What was started here ends in good order, and the call is on record before the command is gone.
    reach.close().await;
    None
}

/// Puts what was cut of an output back in its place.
pub async fn whole(reach: &Reach, outcome: &mut OutcomeView) -> Result<(), Failure> {
    let id = outcome.metadata.get("outputId");
    if let Some(id) = id.and_then(Value::as_str).map(str::to_owned) {
        outcome.output = reach.output(&id).await?;
    }
    Ok(())
}

/// What a call gave, for a person.
pub fn print(printer: Printer, outcome: &OutcomeView) {
    if printer.is_json() {
        printer.json(outcome);
        return;
    }
    printer.text(&outcome.output);
    for attachment in &outcome.attachments {
        let name = attachment.name.as_deref().unwrap_or("attachment");
        printer.note(format!(
            "{name} ({}): `--json` holds it",
            attachment.mime_type
        ));
    }
    let blocks = outcome.content.iter().flatten();
    let blocks = blocks.filter_map(|block| Block::read(block.text()));
    for block in blocks.filter(|block| !block.is_text()) {
        let what = match block.kind() {
            BlockKind::Text | BlockKind::Other => "content",
            BlockKind::Image => "image",
            BlockKind::Audio => "audio",
            BlockKind::Resource => "resource",
            BlockKind::ResourceLink => "link",
        };
        let label = line(&block.label());
        printer.note(format!("{what} ({}): `--json` holds it", plain(&label)));
    }
    if outcome.is_error {
        let detail = outcome
            .metadata
            .get("exitCode")
            .or(outcome.metadata.get("status"));
        let detail = detail.map(|code| format!(" ({code})")).unwrap_or_default();
        printer.note(format!("the tool reports failure{detail}"));
    }
}

pub fn is_pair(argument: &str) -> bool {
    !argument.trim_start().starts_with('{') && argument != "-"
}

pub fn read_arguments(given: &[String], schema: &Value, tool: &str) -> Result<Object, Failure> {
    match given {
        [] => Ok(Object::default()),
        [one] if one == "-" => {
            let mut text = String::new();
            std::io::stdin()
                .take(MAX_STDIN)
                .read_to_string(&mut text)
                .map_err(|error| bad("stdin can't be read", tool).cause(error))?;
            parse_object(&text, tool)
        }
        [one] if !is_pair(one) => parse_object(one, tool),
        pairs => {
            let mut arguments = Object::default();
            for pair in pairs {
                let (key, value) = read_pair(pair, schema, tool)?;
                arguments.set(&key, &value);
            }
            Ok(arguments)
        }
    }
}

fn bad(message: &str, tool: &str) -> Failure {
    let show =
        Hint::run(CommandLine::new("toolcrib show").operand(tool)).after(" prints the schema");
    let hint = show.before("give one JSON object, or key=value pairs; ");
    Failure::new(ErrorCode::BadRequest, message).hint(hint)
}

fn parse_object(text: &str, tool: &str) -> Result<Object, Failure> {
    match Object::parse(text) {
        Ok(object) => Ok(object),
        Err(JsonError::NoObject) => Err(bad("the arguments are JSON, but not an object", tool)),
        Err(JsonError::Syntax(error)) => {
            Err(bad("the arguments are not valid JSON", tool).cause(error))
        }
        Err(error) => Err(bad("the arguments can't be taken", tool).cause(error)),
    }
}

fn read_pair(pair: &str, schema: &Value, tool: &str) -> Result<(String, Json), Failure> {
    let (key, text) = pair
        .split_once('=')
        .ok_or_else(|| bad(&format!("`{pair}` is neither JSON nor key=value"), tool))?;
    let wanted = schema.pointer(&format!(
        "/properties/{}/type",
        key.replace('~', "~0").replace('/', "~1")
    ));
    Ok((key.to_owned(), typed(text, wanted)))
}

/// Reads a value as the schema wants it; what does not fit stays text, and validation says what is wrong.
fn typed(text: &str, wanted: Option<&Value>) -> Json {
    let as_text = || Json::from(Value::from(text));
    match wanted {
        Some(Value::String(kind)) if kind == "string" => as_text(),
        Some(Value::Array(kinds)) if kinds.iter().any(|kind| kind == "string") => as_text(),
        Some(_) => Json::parse(text).unwrap_or_else(|_| as_text()),
        None => as_text(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(given: &[&str]) -> Result<Value, Failure> {
        let schema = json!({"properties": {"n": {"type": "integer"}, "on": {"type": "boolean"}, "s": {"type": "string"},
                                           "list": {"type": "array"}}});
        let given: Vec<String> = given.iter().map(|text| (*text).to_owned()).collect();
        read_arguments(&given, &schema, "t").map(|arguments| arguments.json().value().clone())
    }

    #[test]
    fn pairs_are_read_by_their_type() {
        let value = read(&["n=3", "on=true", "s=3", "list=[1,2]", "free=3", "s2=a=b"]).unwrap();
        assert_eq!(
            value,
            json!({"n": 3, "on": true, "s": "3", "list": [1, 2], "free": "3", "s2": "a=b"})
        );
    }

    #[test]
    fn json_is_taken_as_it_is() {
        assert_eq!(read(&[r#"{"n": 3}"#]).unwrap(), json!({"n": 3}));
        assert_eq!(read(&[]).unwrap(), json!({}));
        let text = r#"{"n": 123456789012345678901234567890}"#.to_owned();
        let taken = read_arguments(std::slice::from_ref(&text), &Value::Null, "t").unwrap();
        assert_eq!(taken.text(), text);
        let schema = json!({"properties": {"n": {"type": "integer"}}});
        let pair = "n=123456789012345678901234567890".to_owned();
        let taken = read_arguments(&[pair], &schema, "t").unwrap();
        assert_eq!(taken.text(), r#"{"n":123456789012345678901234567890}"#);
    }

    #[test]
    fn nonsense_is_refused() {
        for given in [&["{"][..], &["word"], &["{}", "x"]] {
            assert_eq!(
                read(given).unwrap_err().code,
                ErrorCode::BadRequest,
                "{given:?}"
            );
        }
    }
}
