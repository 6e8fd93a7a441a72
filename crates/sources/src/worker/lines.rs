//! Cuts a worker's stdout into messages and everything else.
//!
//! One message is one line. A line that begins an object and does not end it is joined with the lines after it, because
//! programs that paste their JSON together print it so. Whatever is no message is text for the log.

use tokio::io::{AsyncRead, AsyncReadExt};

use super::message::{Message, NoMessage};
use super::salvage;

/// The largest message.
pub const MAX_MESSAGE: usize = 10 * 1_024 * 1_024;
/// How much a worker may print between two messages.
const MAX_NOISE: usize = 64 * 1_024 * 1_024;
const CHUNK: usize = 64 * 1_024;
/// What some programs write before their first letter.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

#[derive(Debug, PartialEq)]
pub enum Line {
    Message(Box<Message>),
    Text(String),
    /// The answer that the text before it was meant to be, and why it is none.
    Unreadable(Box<Message>),
}

/// Why nothing more is read of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Overflow {
    #[error("it wrote a message of more than {} MB", MAX_MESSAGE / 1_048_576)]
    Message,
    #[error("it printed more than {} MB between two messages", MAX_NOISE / 1_048_576)]
    Noise,
}

pub struct Lines<R> {
    stream: R,
    /// What was read and not yet handed out; `start` bytes of it are used up.
    buffer: Vec<u8>,
    start: usize,
    /// Up to where there is no line's end.
    scanned: usize,
    pending: Pending,
    /// What to hand out before anything more is read.
    ready: std::collections::VecDeque<Line>,
    noise: usize,
    ended: bool,
}

/// The lines of an object whose end has not come yet.
#[derive(Default)]
struct Pending {
    text: String,
    /// How many brackets are open.
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// How many bytes were parsed in vain.
    tried: usize,
}

impl Pending {
    fn push(&mut self, line: &[u8]) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        for byte in line {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
        self.text.push_str(&String::from_utf8_lossy(line));
    }

    /// Is it worth a parse? Where all brackets are closed, yes. Before that a parse could only find that the beginning was
    /// none, and may cost as much again as what there is, so that many lines take no more than a few times one.
    fn is_ripe(&self) -> bool {
        self.depth == 0 || self.tried <= 2 * self.text.len() + CHUNK
    }
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub fn new(stream: R) -> Lines<R> {
        Lines {
            stream,
            buffer: Vec::new(),
            start: 0,
            scanned: 0,
            pending: Pending::default(),
            ready: std::collections::VecDeque::new(),
            noise: 0,
            ended: false,
        }
    }

    /// How many bytes are held at the moment.
    #[cfg(test)]
    pub fn held(&self) -> usize {
        self.buffer.capacity() + self.pending.text.capacity()
    }

    /// The next line; nothing at the end of the stream. May be dropped at any time without losing bytes.
    pub async fn next(&mut self) -> Result<Option<Line>, Overflow> {
        loop {
            if let Some(line) = self.ready.pop_front() {
                return self.counted(line).map(Some);
            }
            if self.cut_line() {
                continue;
            }
            if self.ended {
                return Ok(None);
            }
            if self.buffer.len() - self.start + self.pending.text.len() > MAX_MESSAGE {
                return Err(Overflow::Message);
            }
            if self.start > 0 {
                self.buffer.drain(..self.start);
                self.scanned -= self.start;
                self.start = 0;
            }
            self.buffer.reserve(CHUNK);
            match self.stream.read_buf(&mut self.buffer).await {
                Ok(0) | Err(_) => self.finish(),
                Ok(_) => {}
            }
        }
    }

    fn counted(&mut self, line: Line) -> Result<Line, Overflow> {
        match &line {
            Line::Message(_) => self.noise = 0,
            Line::Text(text) => self.noise += text.len() + 1,
            Line::Unreadable(_) => {}
        }
        if self.noise > MAX_NOISE {
            return Err(Overflow::Noise);
        }
        Ok(line)
    }

    /// Takes one whole line out of the buffer, if there is one.
    fn cut_line(&mut self) -> bool {
        let found = self.buffer[self.scanned..]
            .iter()
            .position(|byte| *byte == b'\n');
        let Some(at) = found else {
            self.scanned = self.buffer.len();
            return false;
        };
        let end = self.scanned + at;
        let line = std::mem::take(&mut self.buffer);
        self.take(&line[self.start..end]);
        self.buffer = line;
        self.start = end + 1;
        self.scanned = self.start;
        if self.start == self.buffer.len() {
            self.buffer.clear();
            (self.start, self.scanned) = (0, 0);
            // A large answer does not keep its room for ever.
            self.buffer.shrink_to(2 * CHUNK);
        }
        true
    }

    /// What came last may lack its newline.
    fn finish(&mut self) {
        self.ended = true;
        let rest = std::mem::take(&mut self.buffer);
        if self.start < rest.len() {
            self.take(&rest[self.start..]);
        }
        (self.start, self.scanned) = (0, 0);
        let pending = std::mem::take(&mut self.pending);
        self.salvaged(pending.text.as_bytes(), "it ends in the middle");
    }

    /// Decides what a line is.
    fn take(&mut self, line: &[u8]) {
        let line = line.trim_ascii();
        if line.is_empty() {
            return;
        }
        if self.pending.text.is_empty() {
            self.fresh(line);
            return;
        }
        self.pending.push(line);
        // Only an end can end it; anything else is not worth the look.
        if !line.ends_with(b"}") || !self.pending.is_ripe() {
            return;
        }
        match Message::parse(self.pending.text.as_bytes()) {
            Ok(message) => {
                self.pending = Pending::default();
                self.ready.push_back(Line::Message(Box::new(message)));
            }
            Err(error) if error.is_unfinished() => self.pending.tried += self.pending.text.len(),
            // The beginning was none: this line may well be a message of its own.
            Err(error) => {
                let pending = std::mem::take(&mut self.pending).text;
                match Message::parse(line) {
                    Err(_) => self.unreadable(pending.as_bytes(), &error),
                    Ok(message) => {
                        let before = pending.rsplit_once('\n').map_or("", |(before, _)| before);
                        self.unreadable(before.as_bytes(), &error);
                        self.ready.push_back(Line::Message(Box::new(message)));
                    }
                }
            }
        }
    }

    fn fresh(&mut self, line: &[u8]) {
        let bare = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        if bare.first() != Some(&b'{') {
            self.salvaged(line, "it does not begin with `{`");
            return;
        }
        match Message::parse(bare) {
            Ok(message) => self.ready.push_back(Line::Message(Box::new(message))),
            Err(error) if error.is_unfinished() => {
                self.pending.push(line);
            }
            Err(error) => self.unreadable(line, &error),
        }
    }

    /// A text that is no message: for the log, and for whoever waits for the answer that it was meant to be.
    fn unreadable(&mut self, text: &[u8], why: &NoMessage) {
        self.salvaged(text, &why.to_string());
    }

    fn salvaged(&mut self, text: &[u8], why: &str) {
        self.text(&String::from_utf8_lossy(text));
        let answer = salvage::answer(text, why).map(|answer| Line::Unreadable(Box::new(answer)));
        self.ready.extend(answer);
    }

    fn text(&mut self, text: &str) {
        let lines = text.lines().filter(|line| !line.is_empty());
        self.ready
            .extend(lines.map(|line| Line::Text(line.to_owned())));
    }
}
