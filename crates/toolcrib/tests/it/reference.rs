//! `docs/reference` is made from the code, and this test fails when the two differ: run `make docs`.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde_json::Value;
use toolcrib::config::file::json_schema;
use toolcrib::{commands, env, error, serve};
use toolcrib_core::ErrorCode;

use crate::tidy::root;

/// Pages of the folder that people write.
const WRITTEN: [&str; 1] = ["worker-protocol.md"];
const MADE: &str = "<!-- Made from the code by `make docs`; do not edit. -->\n\n";
/// Help is laid out for this many columns, whatever terminal the test runs in.
const WIDTH: usize = 90;

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "`make docs` asks by a variable, for a test takes no flags"
)]
fn the_reference_is_what_the_code_says() {
    let folder = root().join("docs/reference");
    let update = std::env::var_os("UPDATE_REFERENCE").is_some();
    let made = all();
    if update {
        std::fs::create_dir_all(&folder).unwrap();
        for (name, text) in &made {
            std::fs::write(folder.join(name), text).unwrap();
        }
    }
    let stale: Vec<PathBuf> = made
        .iter()
        .map(|(name, text)| (folder.join(name), text))
        .filter(|(path, text)| std::fs::read_to_string(path).ok().as_ref() != Some(*text))
        .map(|(path, _)| path)
        .collect();
    assert!(stale.is_empty(), "run `make docs`: {stale:?} differ");
    for entry in std::fs::read_dir(&folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(
            made.iter().any(|(known, _)| *known == name) || WRITTEN.contains(&name.as_str()),
            "nothing makes docs/reference/{name}: remove it"
        );
    }
}

fn all() -> [(&'static str, String); 6] {
    [
        ("cli.md", cli()),
        ("settings.md", settings()),
        ("errors.md", errors()),
        (
            "lint.md",
            format!("# Lint\n\n{MADE}{}", toolcrib::lint::reference()),
        ),
        ("toolcrib.schema.json", json_schema()),
        ("openapi.json", openapi()),
    ]
}

fn cli() -> String {
    let mut command = commands::command_line().term_width(WIDTH);
    command.build();
    let mut text = format!("# Command line\n\n{MADE}");
    let mut block = |title: &str, help: String| {
        let lines: Vec<&str> = help.trim().lines().map(str::trim_end).collect();
        let _ = write!(text, "## {title}\n\n```text\n{}\n```\n\n", lines.join("\n"));
    };
    block("toolcrib", command.render_long_help().to_string());
    for verb in command.get_subcommands_mut() {
        if verb.get_name() != "help" {
            let title = format!("toolcrib {}", verb.get_name());
            block(&title, verb.render_long_help().to_string());
            for inner in verb.get_subcommands_mut() {
                if inner.get_name() != "help" {
                    let title = format!("{title} {}", inner.get_name());
                    block(&title, inner.render_long_help().to_string());
                }
            }
        }
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

fn settings() -> String {
    let schema: Value = serde_json::from_str(&json_schema()).unwrap();
    let mut text = format!("# Settings\n\n{MADE}");
    text.push_str(
        "`config.toml` takes these keys; every one is optional, and an unknown one is refused. The layers are\n\
         described in [the guide](../guides/settings.md).\n\n",
    );
    text.push_str("| key | type | meaning |\n| --- | --- | --- |\n");
    keys("", &schema, &schema, &mut text);
    text.push_str("\n## Variables\n\n| variable | meaning |\n| --- | --- |\n");
    for variable in env::VARIABLES {
        let _ = writeln!(text, "| `{}` | {} |", variable.name, variable.meaning);
    }
    text
}

/// One row per key, those of a table after it.
fn keys(prefix: &str, section: &Value, schema: &Value, text: &mut String) {
    let Some(properties) = section["properties"].as_object() else {
        return;
    };
    for (key, property) in properties {
        let meaning = property["description"].as_str().unwrap_or_default();
        let table = referenced(property, schema);
        let kind = if table.is_some() {
            "table"
        } else {
            kind(property)
        };
        let meaning = meaning.split_whitespace().collect::<Vec<_>>().join(" ");
        let _ = writeln!(text, "| `{prefix}{key}` | {kind} | {meaning} |");
        if let Some(table) = table {
            keys(&format!("{prefix}{key}."), table, schema, text);
        }
    }
}

fn referenced<'a>(property: &Value, schema: &'a Value) -> Option<&'a Value> {
    let one = |value: &Value| value["$ref"].as_str().map(str::to_owned);
    let link = one(property).or_else(|| property["anyOf"].as_array()?.iter().find_map(one))?;
    schema.pointer(link.strip_prefix('#')?)
}

fn kind(property: &Value) -> &'static str {
    let named = |name: &str| {
        property["type"] == name
            || property["type"]
                .as_array()
                .is_some_and(|names| names.iter().any(|one| one == name))
    };
    match () {
        () if named("integer") => "whole number",
        () if named("array") => "list of strings",
        () if named("boolean") => "true or false",
        () if named("object") => "a table per name",
        () => "string",
    }
}

fn errors() -> String {
    let mut text = format!("# Errors\n\n{MADE}");
    text.push_str(
        "Every error has a code. REST answers `{\"error\": {\"code\", \"message\", \"hint\"}}` with the status of the\n\
         table; the command line prints message and hint on stderr and ends with the exit code. With `--json` it\n\
         prints that object on stdout. (`bad_request` also comes with 405 and 416, where HTTP has a status of its own.)\n\n",
    );
    text.push_str("| code | when | HTTP status | exit code |\n| --- | --- | --- | --- |\n");
    for code in ErrorCode::ALL {
        let (status, exit) = (error::http_status(code), error::exit_code(code));
        let _ = writeln!(text, "| `{code}` | {} | {status} | {exit} |", when(code));
    }
    let failed = error::EXIT_TOOL_FAILED;
    let _ = writeln!(
        text,
        "| (none) | the tool itself reports failure: an outcome with `isError` | 200 | {failed} |"
    );
    let _ = write!(
        text,
        "\nExit code 0 means done. `list`, `errors` and `reload` end with {failed} when something did not load.\n"
    );
    text
}

fn when(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::UnknownTool => "there is no tool of that name; the hint gives the nearest",
        ErrorCode::InvalidArguments => "the tool's schema, or the tool, refuses the arguments",
        ErrorCode::Denied => {
            "the project is not trusted, or the tool needs permissions it hasn't been granted"
        }
        ErrorCode::ApprovalPending => "waits for a person (not used yet)",
        ErrorCode::LimitReached => {
            "as many run, wait or listen already as may: calls of a tool, of a session, programs that are validated, listeners"
        }
        ErrorCode::TimedOut => "the call took longer than it may, and was stopped",
        ErrorCode::Crashed => "the tool's process was lost",
        ErrorCode::Unavailable => "the tool can't be started, or what it needs is not there",
        ErrorCode::Internal => "a bug of Toolcrib",
        ErrorCode::BadRequest => "the request, the command line or the settings can't be read",
        ErrorCode::Unauthorized => "a token or login is missing, unknown, expired or revoked",
        ErrorCode::Forbidden => {
            "the token lacks the scope, or the request comes from a foreign Host or Origin"
        }
        ErrorCode::NotFound => "there is no such route or output",
        ErrorCode::Conflict => "something of that name is there already",
        ErrorCode::TooLarge => "the body is over 10 MB",
    }
}

fn openapi() -> String {
    let mut text = serde_json::to_string_pretty(&serve::rest::openapi()).unwrap();
    text.push('\n');
    text
}

#[test]
fn every_setting_and_variable_is_listed() {
    let page = settings();
    for word in ["`outputs.max_bytes`", "`tool_dirs`", "`TOOLCRIB_PORT`"] {
        assert!(page.contains(word), "{word}");
    }
    assert!(Path::new(&root()).join("docs/guides/settings.md").exists());
}

/// The guide says of every setting whether a serving crib follows it or has to be started again.
#[test]
fn the_guide_says_which_settings_need_a_restart() {
    let guide = std::fs::read_to_string(root().join("docs/guides/settings.md")).unwrap();
    let said = guide
        .split("## While a crib serves")
        .nth(1)
        .and_then(|rest| rest.split("\n## ").next())
        .unwrap();
    let schema: Value = serde_json::from_str(&json_schema()).unwrap();
    for key in schema["properties"].as_object().unwrap().keys() {
        let words = [
            format!("`{key}`"),
            format!("`[{key}]`"),
            format!("`[{key}.…]`"),
        ];
        assert!(words.iter().any(|word| said.contains(word)), "{key}");
    }
}
