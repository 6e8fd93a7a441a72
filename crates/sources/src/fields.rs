//! Reads a tool's JSON field by field, so that every problem names the file, the tool, the field and the remedy.

use std::path::Path;

use serde_json::{Map, Value};
use toolcrib_core::words::counted;
use toolcrib_core::{ErrorType, Problem, SourceKind};

/// How a name is put right.
pub const NAME_HINT: &str = "use 1 to 64 letters, digits, `_` and `-`, such as \"list-todos\"";
/// How many problems one file may have before the rest is only counted.
const MAX_PROBLEMS: usize = 100;

/// Collects the problems of one file.
pub struct Report<'a> {
    file: Option<&'a Path>,
    source: SourceKind,
    /// The tool being read, once its name is known.
    pub tool: Option<String>,
    /// Was there an error since this was last reset?
    pub failed: bool,
    problems: Vec<Problem>,
    uncounted: usize,
}

impl<'a> Report<'a> {
    pub fn new(file: &'a Path, source: SourceKind) -> Report<'a> {
        Report {
            file: Some(file),
            ..Report::without_file(source)
        }
    }

    /// For what was not read from a file.
    pub fn without_file(source: SourceKind) -> Report<'a> {
        Report {
            file: None,
            source,
            tool: None,
            failed: false,
            problems: Vec::new(),
            uncounted: 0,
        }
    }

    /// An error at `field`; `what` goes on after the field's name.
    pub fn error(&mut self, kind: ErrorType, field: &str, what: &str, hint: &str) {
        self.push(Problem::error(self.source, kind, format!("`{field}` {what}")).hint(hint));
        self.failed = true;
    }

    pub fn invalid(&mut self, field: &str, what: &str, hint: &str) {
        self.error(ErrorType::Validation, field, what, hint);
    }

    pub fn warn(&mut self, field: &str, what: &str, hint: &str) {
        let message = format!("`{field}` {what}");
        self.push(
            Problem::error(self.source, ErrorType::Validation, message)
                .hint(hint)
                .warning(),
        );
    }

    /// The program that `field` names is not there. The tool is one all the same, and works once it is.
    pub fn absent(&mut self, field: &str, missing: &str) {
        let what = format!("can't run: {missing}, so the tool is unavailable");
        let hint =
            "install it (or `chmod +x` it) and run `toolcrib reload`, or correct the command";
        self.warn(field, &what, hint);
    }

    pub fn push(&mut self, problem: Problem) {
        if self.problems.len() >= MAX_PROBLEMS {
            self.uncounted += 1;
            return;
        }
        let problem = self.placed(problem);
        self.problems.push(match &self.tool {
            Some(name) => problem.tool(name.as_str()),
            None => problem,
        });
    }

    fn placed(&self, problem: Problem) -> Problem {
        match self.file {
            Some(file) => problem.file(file),
            None => problem,
        }
    }

    pub fn finish(mut self) -> Vec<Problem> {
        if self.uncounted > 0 {
            let message = format!("the file has {}", counted(self.uncounted, "more problem"));
            let rest = Problem::error(self.source, ErrorType::Validation, message)
                .hint("fix the ones listed, then the rest is shown");
            self.problems.push(self.placed(rest));
        }
        self.problems
    }
}

/// One JSON object of the file, and where it stands.
#[derive(Clone, Copy)]
pub struct Fields<'a> {
    path: &'a str,
    map: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    pub fn new(path: &'a str, map: &'a Map<String, Value>) -> Fields<'a> {
        Fields { path, map }
    }

    /// The full name of one of its fields, such as `tools[1].handler.command`.
    pub fn at(&self, key: &str) -> String {
        match self.path {
            "" => key.to_owned(),
            path => format!("{path}.{key}"),
        }
    }

    /// The field's value; `null` counts as left out.
    pub fn get(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key).filter(|value| !value.is_null())
    }

    /// A field that must be there.
    pub fn required(&self, report: &mut Report, key: &str, hint: &str) -> Option<&'a Value> {
        let value = self.get(key);
        if value.is_none() {
            report.invalid(&self.at(key), "is missing", hint);
        }
        value
    }

    pub fn required_text(&self, report: &mut Report, key: &str, hint: &str) -> Option<&'a str> {
        let value = self.required(report, key, hint)?;
        match value.as_str() {
            Some(text) if !text.trim().is_empty() => Some(text),
            Some(_) => {
                report.invalid(&self.at(key), "is empty", hint);
                None
            }
            None => self.wrong(report, key, "a string", hint),
        }
    }

    pub fn text(&self, report: &mut Report, key: &str) -> Option<&'a str> {
        let hint = format!("write \"{key}\": \"…\", or leave it out");
        self.get(key).and_then(|value| {
            value
                .as_str()
                .or_else(|| self.wrong(report, key, "a string", &hint))
        })
    }

    pub fn flag(&self, report: &mut Report, key: &str) -> Option<bool> {
        let hint = format!("write \"{key}\": true or false, without quotes");
        self.get(key).and_then(|value| {
            value
                .as_bool()
                .or_else(|| self.wrong(report, key, "true or false", &hint))
        })
    }

    /// A whole number from 1 to `max`.
    pub fn count(&self, report: &mut Report, key: &str, max: u64) -> Option<u64> {
        self.number(report, key, 1, max)
    }

    /// A whole number from `min` to `max`.
    pub fn number(&self, report: &mut Report, key: &str, min: u64, max: u64) -> Option<u64> {
        let value = self.get(key)?;
        match value.as_u64() {
            Some(number) if (min..=max).contains(&number) => Some(number),
            _ => {
                let hint =
                    format!("write \"{key}\": a whole number without quotes, or leave it out");
                self.wrong(
                    report,
                    key,
                    &format!("a whole number from {min} to {max}"),
                    &hint,
                )
            }
        }
    }

    /// A list of strings, none of them empty.
    pub fn texts(&self, report: &mut Report, key: &str) -> Vec<String> {
        let Some(value) = self.get(key) else {
            return Vec::new();
        };
        let fits = |item: &Value| {
            item.as_str()
                .filter(|text| !text.is_empty() && !text.contains('\0'))
                .map(str::to_owned)
        };
        let texts = value
            .as_array()
            .and_then(|items| items.iter().map(fits).collect());
        let hint = format!("write \"{key}\": [\"…\"]");
        texts
            .or_else(|| self.wrong(report, key, "a list of strings that are not empty", &hint))
            .unwrap_or_default()
    }

    pub fn object(&self, report: &mut Report, key: &str) -> Option<&'a Map<String, Value>> {
        let hint = format!("write \"{key}\": {{…}}");
        self.get(key).and_then(|value| {
            value
                .as_object()
                .or_else(|| self.wrong(report, key, "an object", &hint))
        })
    }

    fn wrong<T>(&self, report: &mut Report, key: &str, wanted: &str, hint: &str) -> Option<T> {
        let found = match self.get(key) {
            Some(value) => kind(value),
            None => "nothing",
        };
        report.invalid(
            &self.at(key),
            &format!("must be {wanted}, not {found}"),
            hint,
        );
        None
    }

    /// Names each field that nobody knows, so that a slip of the pen is seen.
    pub fn unknown(&self, known: &[&str], mut tell: impl FnMut(&str, &str, &str)) {
        for key in self.map.keys().filter(|key| !known.contains(&key.as_str())) {
            let hint = match nearest(key, known) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("known fields are {}", known.join(", ")),
            };
            let shown: String = key.chars().take(60).collect();
            tell(&self.at(&shown), "is not a known field", &hint);
        }
    }
}

/// What a value is, in words.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(number) if number.is_f64() => "a fraction",
        Value::Number(number) if number.as_i64().is_some_and(|n| n <= 0) => "zero or less",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// The known word that was probably meant: other case, `snake_case`, or a slip or two.
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    if word.len() > 40 {
        return None;
    }
    let plain = |text: &str| text.replace(['_', '-', ' '], "").to_lowercase();
    let word = plain(word);
    known
        .iter()
        .map(|candidate| {
            (
                strsim::damerau_levenshtein(&word, &plain(candidate)),
                *candidate,
            )
        })
        .filter(|(distance, candidate)| *distance <= (candidate.len() / 3).min(3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_understood() {
        let known = ["name", "inputSchema", "description", "timeoutMs"];
        for (word, meant) in [
            ("input_schema", Some("inputSchema")),
            ("InputSchema", Some("inputSchema")),
            ("desciption", Some("description")),
            ("timeout", Some("timeoutMs")),
            ("nmae", Some("name")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, &known), meant, "{word}");
        }
    }
}
