//! The tool TOOL_NAME. Its name and its parameters are in tool.json beside this file.
//!
//! Build it again after a change, in this folder: `rustc --edition 2021 -O -o tool main.rs`

mod json;

use json::Json;
use std::io::{BufRead, Write};

/// What the tool does: change this. `Err` is a failure, and so is a panic.
fn run(input: &Json) -> Result<Json, String> {
    let text = input.get("text").as_str().ok_or("`text` is not a string")?;
    let times = match input.get("times") {
        Json::Null => 1,
        times => times.as_usize().ok_or("`times` is not a whole number")?,
    };
    if times > 100 {
        return Err("a hundred times is enough".into());
    }
    // For people: stdout belongs to the protocol, stderr is kept as the tool's log.
    eprintln!("times: {times}");
    Ok(Json::text(format!("{text}\n").repeat(times)))
}

// Below is the worker protocol: one JSON-RPC message per line. It can stay as it is.

/// An error's code and words.
type Refused = (i32, String);

fn answer(method: &str, params: &Json) -> Result<Json, Refused> {
    match method {
        "initialize" => spec().map_err(|error| (-32001, format!("tool.json: {error}"))),
        "health" => Ok(Json::object([("status", Json::text("healthy"))])),
        "execute" => execute(params.get("input")),
        _ => Err((-32601, format!("there is no method {method:?}"))),
    }
}

fn execute(input: &Json) -> Result<Json, Refused> {
    if !matches!(input, Json::Object(_)) {
        return Err((-32602, "params.input is not an object".into()));
    }
    let spec = spec().map_err(|error| (-32001, format!("tool.json: {error}")))?;
    if let Json::List(required) = spec.get("inputSchema").get("required") {
        let mut names = required.iter().filter_map(Json::as_str);
        if let Some(name) = names.find(|name| input.find(name).is_none()) {
            return Err((-32602, format!("the parameter `{name}` is missing")));
        }
    }
    match std::panic::catch_unwind(|| run(input)) {
        Ok(result) => result.map_err(|error| (-32001, error)),
        Err(_) => Err((-32001, "the tool panicked; its log says where".into())),
    }
}

/// What tool.json, beside this program, says of the tool.
fn spec() -> Result<Json, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let text = std::fs::read_to_string(program.with_file_name("tool.json"));
    let spec = Json::parse(&text.map_err(|error| error.to_string())?)?;
    let keys = ["name", "description", "version", "inputSchema"];
    Ok(Json::object(keys.map(|key| (key, spec.get(key).clone()))))
}

/// The answer to one line; nothing where there is none to give.
fn reply(line: &[u8]) -> Option<Json> {
    let text = std::str::from_utf8(line).map_err(|error| error.to_string());
    let (id, result) = match text.and_then(Json::parse) {
        Err(error) => (Json::Null, Err((-32700, format!("not JSON: {error}")))),
        Ok(message) => match (message.get("jsonrpc").as_str(), message.get("method")) {
            (Some("2.0"), Json::Text(method)) => {
                let id = message.find("id")?.clone(); // without one it is a notification
                (id, answer(method, message.get("params")))
            }
            _ => {
                let shape = "a message is an object with \"jsonrpc\": \"2.0\" and a method";
                (message.get("id").clone(), Err((-32600, shape.into())))
            }
        },
    };
    let (key, value) = match result {
        Ok(result) => ("result", result),
        Err((code, message)) => {
            let code = Json::Number(code.to_string());
            (
                "error",
                Json::object([("code", code), ("message", Json::text(message))]),
            )
        }
    };
    Some(Json::object([
        ("jsonrpc", Json::text("2.0")),
        ("id", id),
        (key, value),
    ]))
}

fn main() -> std::io::Result<()> {
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        if !line.iter().all(u8::is_ascii_whitespace) {
            if let Some(message) = reply(&line) {
                writeln!(output, "{message}")?;
                output.flush()?;
            }
        }
        line.clear();
    }
    Ok(())
}
