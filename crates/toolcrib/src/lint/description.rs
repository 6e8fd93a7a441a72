//! What an agent reads first: the name, the description, and what each parameter says of itself.

use serde_json::Value;
use toolcrib_core::tokens::estimate;

use super::Report;

const LONGEST: usize = 40;
const LONGEST_SIMPLE: usize = 20;
/// A tool with so many parameters is a simple one.
const SIMPLE: usize = 2;
/// Fewer tokens say nothing.
const SHORTEST: usize = 4;
const LONGEST_NAME: usize = 64;

const CODE: [&str; 9] = [
    "```",
    "=>",
    "();",
    "(\"",
    "('",
    "console.log",
    "print(",
    "function(",
    "curl -",
];
const RESPONSE: [&str; 10] = [
    "{\"",
    "{ \"",
    "[{",
    "returns json",
    "returns a json",
    "returns an object",
    "returns a dict",
    "response:",
    "output:",
    "return value:",
];
const PARAMETERS: [&str; 7] = [
    "parameters:",
    "params:",
    "args:",
    "arguments:",
    "@param",
    ":param",
    "inputs:",
];

pub(super) fn look(report: &mut Report<'_>) {
    let tool = report.tool();
    if tool.mcp_name.len() > LONGEST_NAME {
        let message = format!(
            "agents read it as `{}`, {} characters",
            tool.mcp_name,
            tool.mcp_name.len()
        );
        report.find("name-long", message, &[]);
    }
    let text = &tool.description;
    let near = ["\"description\"", "description:", "\"\"\""];
    if text.trim().is_empty() {
        report.find("description-missing", "it has no description", &[]);
    } else {
        told(report, text, &near);
    }
    let properties = tool.input_schema["properties"].as_object();
    for (name, property) in properties.into_iter().flatten() {
        parameter(report, name, property);
    }
}

fn told(report: &mut Report<'_>, text: &str, near: &[&str]) {
    let tool = report.tool();
    let parameters = tool.input_schema["properties"].as_object();
    let count = parameters.map_or(0, serde_json::Map::len);
    let tokens = estimate(text);
    let lower = text.to_lowercase();
    if tokens < SHORTEST || words(text) == words(&tool.name) {
        report.find(
            "description-short",
            format!("the description is {tokens} tokens"),
            near,
        );
    } else if tokens > LONGEST {
        report.find(
            "description-long",
            format!("the description is about {tokens} tokens"),
            near,
        );
    } else if tokens > LONGEST_SIMPLE && count <= SIMPLE {
        report.find(
            "description-wordy",
            format!("the description is about {tokens} tokens"),
            near,
        );
    }
    let response = RESPONSE.iter().find(|sign| lower.contains(**sign));
    if let Some(sign) = response {
        report.find(
            "description-response",
            format!("it tells the form of the answer: `{sign}`"),
            near,
        );
    } else if let Some(sign) = CODE.iter().find(|sign| text.contains(**sign)) {
        report.find("description-code", format!("it holds code: `{sign}`"), near);
    }
    let named = parameters.into_iter().flatten().find(|(name, _)| {
        let forms = [
            format!("{name} ("),
            format!("`{name}`:"),
            format!("- {name}:"),
            format!("\n{name}:"),
        ];
        forms.iter().any(|form| text.contains(form))
    });
    let sign = PARAMETERS.iter().find(|sign| lower.contains(**sign));
    if let Some(told) = sign
        .map(|sign| (*sign).to_owned())
        .or(named.map(|(name, _)| name.clone()))
    {
        report.find(
            "description-parameters",
            format!("it tells of parameters: `{told}`"),
            near,
        );
    }
    if text.trim() != text || text.contains("  ") {
        report.find(
            "description-space",
            "it has white space that says nothing",
            near,
        );
    }
}

fn parameter(report: &mut Report<'_>, name: &str, property: &Value) {
    let quoted = [format!("\"{name}\""), format!("{name}:")];
    let near: Vec<&str> = quoted.iter().map(String::as_str).collect();
    let said = property["description"].as_str().unwrap_or_default();
    if said.trim().is_empty() {
        report.find(
            "parameter-undescribed",
            format!("`{name}` has no description"),
            &near,
        );
    } else if words(said) == words(name) {
        report.find(
            "parameter-repeats",
            format!("`{name}` is described as \"{said}\""),
            &near,
        );
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(fits) {
        report.find(
            "parameter-name",
            format!("some clients refuse the name `{name}`"),
            &near,
        );
    }
    // What lies in an object is filled by a model too.
    let inner = property["properties"].as_object();
    let of_items = property["items"]["properties"].as_object();
    for (inner, property) in inner.into_iter().chain(of_items).flatten() {
        let has_text = property["description"]
            .as_str()
            .is_some_and(|text| !text.trim().is_empty());
        if !has_text {
            let message = format!("`{name}.{inner}` has no description");
            report.find("parameter-undescribed", message, &[&format!("\"{inner}\"")]);
        }
    }
}

/// The words of a text, however it is spelled: `userName` and `The user name.` are the same.
fn words(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut before = ' ';
    for c in text.chars().chain([' ']) {
        let ends = !c.is_alphanumeric() || (c.is_uppercase() && before.is_lowercase());
        if ends && !word.is_empty() {
            found.push(std::mem::take(&mut word).to_lowercase());
        }
        if c.is_alphanumeric() {
            word.push(c);
        }
        before = c;
    }
    found.retain(|word| !["the", "a", "an"].contains(&word.as_str()));
    found
}
