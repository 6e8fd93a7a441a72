//! What makes a tool hard to choose, hard to call or costly: looked for in what agents read of it, and in its file.
//!
//! A new check is a line in [`CHECKS`] and a finding with its code in `description.rs`, `schema.rs` or `code.rs`. Nothing
//! runs, and nothing is called: it is advice, and the sandbox enforces.

mod code;
mod description;
mod fix;
mod schema;

use serde::Serialize;

use crate::wire::ToolView;

pub use fix::{Fixed, fix};

/// How much it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Agents choose it wrongly, call it wrongly, or can't call it somewhere.
    Warning,
    /// It works, and could be better.
    Advice,
}

/// One kind of fault.
#[derive(Debug, Clone, Copy)]
pub struct Check {
    pub code: &'static str,
    pub level: Level,
    pub finds: &'static str,
    /// What to do about it.
    pub helps: &'static str,
    /// Can `--fix` do it?
    pub fixes: bool,
}

const fn warns(code: &'static str, finds: &'static str, helps: &'static str) -> Check {
    Check {
        code,
        level: Level::Warning,
        finds,
        helps,
        fixes: false,
    }
}

const fn advises(code: &'static str, finds: &'static str, helps: &'static str) -> Check {
    Check {
        level: Level::Advice,
        ..warns(code, finds, helps)
    }
}

/// THE LIST of checks.
pub const CHECKS: &[Check] = &[
    warns(
        "description-missing",
        "a tool without a description",
        "say in one sentence what it does",
    ),
    warns(
        "description-short",
        "a description that hardly says more than the name",
        "say what it does, to what, and what it needs",
    ),
    warns(
        "description-long",
        "a description of more than 40 tokens",
        "keep what it does and what it must not be used for; details belong to the parameters",
    ),
    advises(
        "description-wordy",
        "a tool of at most two parameters with a description of more than 20 tokens",
        "one sentence is enough for a simple tool",
    ),
    warns(
        "description-code",
        "code in a description",
        "say it in words; examples cost tokens in every conversation",
    ),
    warns(
        "description-response",
        "the form of the answer in a description",
        "leave it out, or declare an output schema",
    ),
    warns(
        "description-parameters",
        "parameters told in a description",
        "move it to the `description` of each parameter",
    ),
    Check {
        fixes: true,
        ..advises(
            "description-space",
            "a description that begins or ends with white space, or has two spaces in a row",
            "remove it, or run `toolcrib lint --fix`",
        )
    },
    warns(
        "parameter-undescribed",
        "a parameter without a description",
        "say what it is for, with an example where its form is not plain",
    ),
    advises(
        "parameter-repeats",
        "a description that only repeats the parameter's name",
        "say what the value stands for",
    ),
    warns(
        "parameter-name",
        "a parameter whose name some clients refuse",
        "use letters, digits, `_`, `-` and `.`, 64 at most",
    ),
    warns(
        "name-long",
        "a name that is longer than 64 characters for agents, with `mcp__toolcrib__`",
        "choose a shorter name",
    ),
    warns(
        "schema-choice-on-top",
        "`anyOf`, `oneOf`, `allOf`, `not` or `if` at the top of the schema",
        "list all parameters as optional, and say in words which go together",
    ),
    warns(
        "schema-choice",
        "`anyOf`, `oneOf` or `allOf` in a parameter",
        "use one type, or two parameters",
    ),
    warns(
        "schema-type-list",
        "a list of types, such as [\"string\", \"null\"]",
        "use one type, and leave the parameter out of `required`",
    ),
    warns(
        "schema-reference",
        "`$ref` in the schema",
        "write the schema where it is used",
    ),
    warns(
        "schema-untyped",
        "a parameter without a type",
        "give it a `type` or an `enum`",
    ),
    warns(
        "schema-items",
        "an array that does not say what it holds",
        "give it `items` with a type",
    ),
    warns(
        "schema-tuple",
        "an array with a type for each place",
        "use an object with a name for each value",
    ),
    warns(
        "schema-map",
        "`patternProperties`, `propertyNames` or typed `additionalProperties`",
        "use an array of objects with a name and a value",
    ),
    warns(
        "schema-pattern",
        "a pattern with look-around, which few validators know",
        "use a plain pattern, or say it in words",
    ),
    warns(
        "schema-required",
        "a required parameter that is not among the properties",
        "describe it, or take it out of `required`",
    ),
    warns(
        "schema-default",
        "a default that its own schema refuses",
        "give a default that fits, or none",
    ),
    advises(
        "schema-deep",
        "parameters nested deeper than four levels",
        "flatten it: models fill flat schemas better",
    ),
    advises(
        "schema-many",
        "more than 20 parameters",
        "split the tool, or give most of them defaults elsewhere",
    ),
    warns(
        "model-import",
        "code that imports a library for calling models",
        "leave models to the agent: a tool never calls one",
    ),
    warns(
        "permission-network",
        "code that uses the network, and no `canNetwork`",
        "declare it; undeclared, the sandbox refuses it",
    ),
    warns(
        "permission-exec",
        "code that starts programs, and no `canExecuteCommands`",
        "declare it; undeclared, the sandbox refuses it",
    ),
    warns(
        "permission-write",
        "code that writes files, and no `canWriteFiles`",
        "declare it; undeclared, the sandbox refuses it",
    ),
    warns(
        "permission-contradicts",
        "a tool that says it only reads, and asks to write or says it destroys",
        "correct `readOnlyHint` or the permission",
    ),
    advises(
        "output-unbounded",
        "a tool that gives all of something, without a parameter that bounds it",
        "take a `limit` or a `page`, or give a summary with the first few",
    ),
];

/// A fault that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    pub code: &'static str,
    pub level: Level,
    pub tool: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    pub message: String,
    pub hint: &'static str,
}

/// A tool, and the text of its file where that can be read.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    pub tool: &'a ToolView,
    pub text: Option<&'a str>,
}

/// Everything that is found in one tool, in the order of its lines.
pub fn lint(subject: &Subject<'_>) -> Vec<Finding> {
    let mut report = Report {
        subject: *subject,
        findings: Vec::new(),
    };
    description::look(&mut report);
    schema::look(&mut report);
    code::look(&mut report);
    report.findings.sort_by_key(|finding| finding.line);
    report.findings
}

/// Where checks write what they find.
struct Report<'a> {
    subject: Subject<'a>,
    findings: Vec<Finding>,
}

impl<'a> Report<'a> {
    fn tool(&self) -> &'a ToolView {
        self.subject.tool
    }

    /// A finding at the first of these places that stands in the file.
    fn find(&mut self, code: &'static str, message: impl Into<String>, near: &[&str]) {
        let line = self.line_of(near);
        self.find_at(code, message, line);
    }

    fn find_at(&mut self, code: &'static str, message: impl Into<String>, line: Option<usize>) {
        let Some(check) = CHECKS.iter().find(|check| check.code == code) else {
            return;
        };
        self.findings.push(Finding {
            code,
            level: check.level,
            tool: self.tool().name.clone(),
            file: self.tool().file.clone(),
            line,
            message: message.into(),
            hint: check.helps,
        });
    }

    /// The line on which the tool is named and, after that, the first of these words.
    fn line_of(&self, near: &[&str]) -> Option<usize> {
        let text = self.subject.text?;
        let name = &self.tool().name;
        let own = [
            format!("\"{name}\""),
            format!("def {name}("),
            format!("{name} ="),
        ];
        let start = own.iter().find_map(|own| text.find(own)).unwrap_or(0);
        let place = near.iter().find_map(|word| {
            let after = text[start..].find(word).map(|at| start + at);
            after.or_else(|| text.find(word))
        });
        let at = place.or((start > 0).then_some(start))?;
        Some(1 + text[..at].matches('\n').count())
    }
}

/// The page of all checks, for the reference.
pub fn reference() -> String {
    let mut text = String::from(
        "`toolcrib lint` looks for these. Exit code 1 when it finds a warning, or with `--strict` anything; else 0.\n\n\
         | code | level | finds | what to do |\n| --- | --- | --- | --- |\n",
    );
    for check in CHECKS {
        let level = match check.level {
            Level::Warning => "warning",
            Level::Advice => "advice",
        };
        text.push_str(&format!(
            "| `{}` | {level} | {} | {} |\n",
            check.code, check.finds, check.helps
        ));
    }
    text
}

#[cfg(test)]
mod tests;
