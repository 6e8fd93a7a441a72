//! All that is printed: answers on stdout, everything else on stderr; colour and tables for people, JSON for programs.

use std::borrow::Cow;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use anstyle::{AnsiColor, Style};
use serde::Serialize;
use serde_json::json;

use crate::failure::Failure;
use crate::log::{self, Form};

mod table;

pub use table::Column;

pub const BOLD: Style = Style::new().bold();
pub const DIM: Style = Style::new().dimmed();
pub const RED: Style = AnsiColor::Red.on_default().bold();
pub const YELLOW: Style = AnsiColor::Yellow.on_default();
pub const GREEN: Style = AnsiColor::Green.on_default();

/// Text out of files and from servers, made harmless for a terminal: no escape sequences, no turned-around writing.
pub fn plain(text: &str) -> Cow<'_, str> {
    let risky = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
    };
    if text.contains(risky) {
        Cow::Owned(text.replace(risky, "\u{FFFD}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// How a command speaks.
#[derive(Debug, Clone, Copy)]
pub struct Printer {
    json: bool,
    /// How stderr is written where a command runs on.
    log: Form,
}

impl Printer {
    pub fn new(json: bool) -> Printer {
        Printer {
            json,
            log: Form::Text,
        }
    }

    #[must_use]
    pub fn with_log(self, log: Form) -> Printer {
        Printer { log, ..self }
    }

    /// Do programs read this?
    pub fn is_json(self) -> bool {
        self.json
    }

    /// An answer, on stdout. A reader that went away is no error.
    pub fn line(self, text: impl AsRef<str>) {
        let _ = writeln!(anstream::stdout(), "{}", text.as_ref());
    }

    /// Is somebody there who reads this and can answer?
    pub fn has_person(self) -> bool {
        let reads = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        reads && !self.json
    }

    /// Asks a person; only what is plainly a yes is one.
    pub fn ask(self, question: &str) -> bool {
        let _ = write!(anstream::stderr(), "{BOLD}{question}{BOLD:#} [y/N] ");
        let mut answer = String::new();
        let read = std::io::stdin().read_line(&mut answer);
        let answer = answer.trim().to_lowercase();
        read.is_ok() && matches!(answer.as_str(), "y" | "yes")
    }

    /// An answer as it is, without a further newline if it has one.
    pub fn text(self, text: &str) {
        // A person's screen gets no escape sequences out of a tool; a pipe gets the bytes as they are.
        let text = match std::io::stdout().is_terminal() {
            true => plain(text),
            false => Cow::Borrowed(text),
        };
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(text.as_bytes());
        if !text.is_empty() && !text.ends_with('\n') {
            let _ = out.write_all(b"\n");
        }
        let _ = out.flush();
    }

    /// A word beside the answer, on stderr; for programs an object a line.
    pub fn note(self, text: impl AsRef<str>) {
        self.aside("note", text.as_ref());
    }

    fn aside(self, kind: &str, text: &str) {
        let line = match self.json {
            true => json!({kind: anstream::adapter::strip_str(text).to_string()}).to_string(),
            false => text.to_owned(),
        };
        let _ = writeln!(anstream::stderr(), "{line}");
    }

    /// A word of a command that runs on: where its stderr is read by programs, one more line of the log.
    pub fn remark(self, text: impl AsRef<str>) {
        match self.log {
            Form::Text => self.note(text),
            Form::Json => {
                let bare = anstream::adapter::strip_str(text.as_ref());
                tracing::info!(target: log::REMARK, "{bare}");
            }
        }
    }

    pub fn hint(self, text: impl AsRef<str>) {
        match self.json {
            true => self.aside("hint", text.as_ref()),
            false => self.note(format!("{DIM}hint:{DIM:#} {}", text.as_ref())),
        }
    }

    pub fn json(self, value: &impl Serialize) {
        if let Ok(text) = serde_json::to_string_pretty(value) {
            self.line(text);
        }
    }

    /// JSON on one line, for readers of a stream.
    pub fn json_line(self, value: &impl Serialize) {
        if let Ok(text) = serde_json::to_string(value) {
            self.line(text);
        }
    }

    /// Rows for people, as wide as their terminal.
    pub fn table(self, columns: &[Column], rows: &[Vec<String>]) {
        let laid = table::lay_out(columns, rows, table::terminal_width());
        for line in &laid.lines {
            self.line(line);
        }
        if laid.left_out {
            self.note(format!(
                "{DIM}some columns do not fit; `--json` has all of them{DIM:#}"
            ));
        }
    }

    pub fn failure(self, failure: &Failure) {
        let hint = failure.hint.as_ref().map(ToString::to_string);
        if self.json {
            let error =
                json!({"code": failure.code.as_str(), "message": whole(failure), "hint": hint});
            self.json(&json!({"error": error}));
            return;
        }
        self.note(format!("{RED}error:{RED:#} {}", plain(&failure.message)));
        for cause in &failure.causes {
            self.note(format!("  caused by: {}", plain(cause)));
        }
        if let Some(hint) = hint.filter(|hint| !hint.is_empty()) {
            self.hint(plain(&hint));
        }
    }
}

/// A line on stderr that tells how far long work has come: rewritten in place for a person, now and then for a log.
#[derive(Debug, Default)]
pub struct Progress {
    told: Option<Instant>,
    shown: bool,
}

/// How often a log hears of the same work.
const TOLD_EVERY: Duration = Duration::from_secs(5);
/// How often a person's line changes.
const SHOWN_EVERY: Duration = Duration::from_millis(100);

impl Progress {
    /// Tells what is being done now; nothing once it is over.
    pub fn tell(&mut self, work: Option<&str>) {
        let terminal = std::io::stderr().is_terminal();
        let Some(work) = work else {
            self.clear();
            return;
        };
        let every = if terminal { SHOWN_EVERY } else { TOLD_EVERY };
        if self.told.is_some_and(|at| at.elapsed() < every) {
            return;
        }
        self.told = Some(Instant::now());
        if terminal {
            self.shown = true;
            let _ = write!(anstream::stderr(), "\r\x1b[2K{DIM}{} …{DIM:#}", plain(work));
        } else {
            tracing::info!("{work}");
        }
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = write!(anstream::stderr(), "\r\x1b[2K");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

fn whole(failure: &Failure) -> String {
    let mut text = failure.message.clone();
    for cause in &failure.causes {
        text.push_str(": ");
        text.push_str(cause);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_cannot_steer_a_terminal() {
        assert_eq!(plain("a\tb\nc ä"), "a\tb\nc ä");
        assert_eq!(
            plain("\u{1b}[2Jx\r\u{202e}"),
            "\u{fffd}[2Jx\u{fffd}\u{fffd}"
        );
    }
}
