//! What the crib says on stderr while it works: JSON lines for programs, text for people on a terminal.
//!
//! A line is handed to a thread of its own through a bounded queue, so that a reader who does not read, or a disk that
//! is full, costs lines and never a call. Fields are bounded, and control characters are escaped.

use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

/// The most bytes that one field takes.
const MAX_FIELD: usize = 8 * 1_024;
/// How many lines may wait to be written.
const QUEUE: usize = 4_096;
/// What a command that runs on says to people; it is logged whatever the filter.
pub const REMARK: &str = "remark";
/// How long the end of the process waits for the last lines.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// What a message says when it is the name of an event, as the event stream spells them, and the worker's own.
const EVENTS: [&str; 18] = [
    "tools_changed",
    "tool_error",
    "tool.start",
    "tool.progress",
    "tool.complete",
    "tool.failed",
    "worker.spawn",
    "worker.exit",
    "status_changed",
    "health_changed",
    "approval_requested",
    "approval_decided",
    "spawn",
    "execute",
    "response",
    "error",
    "health",
    "terminate",
];

/// How lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Json,
    Text,
}

/// One line while it is put together. The names are those of the documented format.
#[derive(Default)]
struct Line {
    message: String,
    tool: Option<String>,
    event: Option<String>,
    request_id: Option<String>,
    duration_ms: Option<f64>,
    error: Option<String>,
    /// What else was said, in its order, as JSON.
    others: Vec<(&'static str, String)>,
}

impl Line {
    fn text(&mut self, field: &Field, value: &str) {
        let value = cut(value).to_owned();
        match field.name() {
            "message" if self.message.is_empty() => self.message = value,
            "tool" => self.tool = Some(value),
            "event" => self.event = Some(value),
            "call" => self.request_id = Some(value),
            "error" => self.error = Some(value),
            name => {
                let mut json = String::new();
                quote(&mut json, &value);
                self.others.push((name, json));
            }
        }
    }

    fn json(mut self, level: Level, timestamp: &str) -> String {
        let mut line = format!(
            "{{\"timestamp\":\"{timestamp}\",\"level\":\"{}\"",
            word(level)
        );
        if self.event.is_none() && EVENTS.contains(&self.message.as_str()) {
            self.event = Some(std::mem::take(&mut self.message));
        }
        if self.event.is_none() && level <= Level::WARN {
            self.event = Some("error".to_owned());
        }
        let mut put = |key: &str, value: Option<&str>| {
            if let Some(value) = value {
                let _ = write!(line, ",\"{key}\":");
                quote(&mut line, value);
            }
        };
        put("tool", self.tool.as_deref());
        put("event", self.event.as_deref());
        put("requestId", self.request_id.as_deref());
        put("error", self.error.as_deref());
        put(
            "message",
            Some(&*self.message).filter(|text| !text.is_empty()),
        );
        if let Some(ms) = self.duration_ms.filter(|ms| ms.is_finite()) {
            let _ = write!(line, ",\"durationMs\":{ms:.3}");
        }
        for (key, json) in &self.others {
            let _ = write!(line, ",\"{}\":{json}", camel(key));
        }
        line.push_str("}\n");
        line
    }

    fn plain(self, level: Level, timestamp: &str) -> String {
        let mut line = format!("{timestamp} {:>5} {}", level.as_str(), bare(&self.message));
        let duration = self.duration_ms.map(|ms| format!("{ms:.3}"));
        let named = [
            ("event", self.event),
            ("tool", self.tool),
            ("call", self.request_id),
            ("duration_ms", duration),
            ("error", self.error),
        ];
        for (key, value) in named
            .into_iter()
            .filter_map(|(key, value)| Some((key, value?)))
        {
            let _ = write!(line, " {key}={}", bare(&value));
        }
        for (key, json) in self.others {
            let _ = write!(line, " {key}={json}");
        }
        line.push('\n');
        line
    }
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Never more is made of a value than is kept of it.
        let mut text = Bounded(String::new());
        let _ = write!(text, "{value:?}");
        self.text(field, &text.0);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        match field.name() {
            "duration_ms" => self.duration_ms = Some(value),
            name if value.is_finite() => self.others.push((name, value.to_string())),
            _ => {}
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.others.push((field.name(), value.to_string()));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.others.push((field.name(), value.to_string()));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.others.push((field.name(), value.to_string()));
    }
}

/// A text that takes no more than a field may.
struct Bounded(String);

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = MAX_FIELD.saturating_sub(self.0.len());
        self.0.push_str(&text[..text.floor_char_boundary(room)]);
        match text.len() <= room {
            true => Ok(()),
            false => Err(fmt::Error),
        }
    }
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_FIELD)]
}

/// Trace counts as debug: the format knows four levels.
fn word(level: Level) -> &'static str {
    match level {
        Level::ERROR => "error",
        Level::WARN => "warn",
        Level::INFO => "info",
        Level::DEBUG | Level::TRACE => "debug",
    }
}

/// What could steer a terminal or turn writing around, beside what JSON escapes anyway.
fn risky(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// Writes a JSON string.
fn quote(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if risky(c) => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Text for a terminal: one line, and nothing that steers it.
fn bare(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match risky(c) {
            true => out.extend(c.escape_default()),
            false => out.push(c),
        }
    }
    out
}

fn camel(name: &str) -> String {
    let mut out = String::new();
    let mut up = false;
    for c in name.chars() {
        match (c, up) {
            ('_' | '.', _) => up = true,
            (c, true) => {
                out.push(c.to_ascii_uppercase());
                up = false;
            }
            (c, false) => out.push(c),
        }
    }
    out
}

/// Where lines go.
#[derive(Clone)]
pub struct Sink {
    lines: SyncSender<String>,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// Handed in and not yet written.
    waiting: Mutex<usize>,
    done: Condvar,
    lost: AtomicU64,
}

impl State {
    fn waiting(&self) -> std::sync::MutexGuard<'_, usize> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink {
    /// Writes to stderr, in a thread of its own.
    pub fn stderr() -> Sink {
        let (lines, given) = sync_channel(QUEUE);
        let state = Arc::new(State::default());
        let told = state.clone();
        // Without the thread nothing is logged, and all else works.
        let _ = std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || write_all(&given, &told));
        Sink { lines, state }
    }

    /// Hands a line over; one that finds no room counts as this many lost.
    fn put(&self, line: String, lost: u64) {
        *self.state.waiting() += 1;
        if self.lines.try_send(line).is_err() {
            *self.state.waiting() -= 1;
            self.state.lost.fetch_add(lost, Ordering::Relaxed);
        }
    }

    /// Waits a moment for what was said last.
    pub fn flush(&self) {
        let deadline = Instant::now() + LAST_WORDS;
        let mut waiting = self.state.waiting();
        while *waiting > 0 && Instant::now() < deadline {
            let left = deadline.saturating_duration_since(Instant::now());
            let woken = self.state.done.wait_timeout(waiting, left);
            waiting = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

fn write_all(given: &Receiver<String>, state: &State) {
    loop {
        let line = match given.recv_timeout(Duration::from_secs(3_600)) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        // A log that can't be written is nobody's trouble but its reader's.
        let _ = std::io::stderr().lock().write_all(line.as_bytes());
        let mut waiting = state.waiting();
        *waiting = waiting.saturating_sub(1);
        if *waiting == 0 {
            state.done.notify_all();
        }
    }
}

/// The layer that makes lines of events.
pub struct Log {
    form: Form,
    sink: Sink,
}

impl Log {
    pub fn new(form: Form, sink: Sink) -> Log {
        Log { form, sink }
    }

    fn line(&self, level: Level, line: Line) -> String {
        let timestamp = now();
        match self.form {
            Form::Json => line.json(level, &timestamp),
            Form::Text => line.plain(level, &timestamp),
        }
    }
}

impl<S: Subscriber> Layer<S> for Log {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut line = Line::default();
        event.record(&mut line);
        let lost = self.sink.state.lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            let said = Line {
                message: format!(
                    "the log was not read in time: {} lost",
                    toolcrib_core::words::counted(lost, "line")
                ),
                ..Line::default()
            };
            // Where even this finds no room, the count stands.
            self.sink.put(self.line(Level::WARN, said), lost);
        }
        self.sink.put(self.line(*event.metadata().level(), line), 1);
    }
}

fn now() -> String {
    crate::wire::rfc3339(crate::now_ms())
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
