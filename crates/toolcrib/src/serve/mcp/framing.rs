//! One message a line: reads lines up to a length, and of longer ones only the id of their message.
//!
//! The sender of a line that is too long waits for an answer. So whoever reads lines, the server and the relay, looks at
//! the bytes as they pass by and keeps nothing but the id, however long the line is.

use std::io;

use serde_json::value::RawValue;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt};

use super::codes;
use super::message::Id;
use super::reply::Answer;

/// The longest line that is read, its end included.
pub const MAX_LINE: usize = 16 * 1_024 * 1_024;
/// No honest id is longer than this.
const MAX_ID: usize = 256;
/// A key that fills this is not `"id"`.
const MAX_KEY: usize = 8;

/// Finds the `id` of a message while its text passes by.
#[derive(Debug, Default)]
pub struct Scan {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// What stands where a key of the message may stand.
    key: Vec<u8>,
    in_id: bool,
    id: Vec<u8>,
}

impl Scan {
    pub fn feed(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.step(*byte));
    }

    /// The id that was found, if it is one.
    pub fn id(&self) -> Option<Id> {
        let raw: &RawValue = serde_json::from_slice(&self.id).ok()?;
        Id::of(raw).filter(|_| self.id.len() < MAX_ID)
    }

    fn step(&mut self, byte: u8) {
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' if self.in_string => self.escaped = true,
            b'"' => self.in_string = !self.in_string,
            _ if self.in_string => {}
            b'{' | b'[' => {
                self.depth += 1;
                if self.depth == 1 {
                    return;
                }
            }
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            b':' if self.depth == 1 => {
                self.in_id = self.key == b"\"id\"";
                return self.key.clear();
            }
            b',' if self.depth == 1 => {
                self.in_id = false;
                return self.key.clear();
            }
            _ if byte.is_ascii_whitespace() => return,
            _ => {}
        }
        if self.depth == 0 {
            return;
        }
        if self.in_id && self.id.len() < MAX_ID {
            self.id.push(byte);
        } else if self.depth == 1 && self.key.len() < MAX_KEY {
            self.key.push(byte);
        }
    }
}

/// The answer to a message whose line is too long.
pub fn refusal(id: Option<&Id>, what: &str) -> Vec<u8> {
    let limit = MAX_LINE / (1_024 * 1_024);
    let reason = format!("the {what} is a line of more than {limit} MiB, which is not read");
    Answer::error(id, codes::INVALID_REQUEST, &reason).body
}

/// What came of reading a line.
#[derive(Debug)]
pub enum Read {
    /// A line with its end.
    Line(Vec<u8>),
    /// It was passed over; this is the id of its message, if one was found.
    TooLong(Option<Id>),
    End,
}

/// A line that is being read.
#[derive(Default)]
pub struct Line {
    bytes: Vec<u8>,
    /// Looks at what is no longer kept.
    passing: Option<Scan>,
}

impl Line {
    /// Reads on to the line's end. What was read stays when this future is dropped.
    pub async fn read(&mut self, stream: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Read> {
        loop {
            let chunk = stream.fill_buf().await?;
            if chunk.is_empty() {
                // The last line may lack its end.
                return Ok(match self.bytes.is_empty() && self.passing.is_none() {
                    true => Read::End,
                    false => {
                        self.take(b"\n");
                        self.whole()
                    }
                });
            }
            let (taken, ends) = match chunk.iter().position(|byte| *byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (chunk.len(), false),
            };
            self.take(&chunk[..taken]);
            stream.consume(taken);
            if ends {
                return Ok(self.whole());
            }
        }
    }

    fn whole(&mut self) -> Read {
        let Line { bytes, passing } = std::mem::take(self);
        match passing {
            Some(scan) => Read::TooLong(scan.id()),
            None => Read::Line(bytes),
        }
    }

    fn take(&mut self, part: &[u8]) {
        if self.passing.is_none() && self.bytes.len() + part.len() > MAX_LINE {
            let mut scan = Scan::default();
            scan.feed(&std::mem::take(&mut self.bytes));
            self.passing = Some(scan);
        }
        match &mut self.passing {
            Some(scan) => scan.feed(part),
            None => self.bytes.extend_from_slice(part),
        }
    }
}

/// Writes one message as a line, at once.
pub async fn write_line(
    stream: &mut (impl AsyncWrite + Unpin + ?Sized),
    message: &[u8],
) -> io::Result<()> {
    stream.write_all(message).await?;
    stream.write_all(b"\n").await?;
    stream.flush().await
}

#[cfg(test)]
mod tests {
    use tokio::io::BufReader;

    use super::*;

    fn found(line: &str) -> Option<String> {
        let mut scan = Scan::default();
        // However the bytes are cut.
        line.as_bytes().chunks(3).for_each(|part| scan.feed(part));
        scan.id().map(|id| id.as_json().to_owned())
    }

    #[test]
    fn the_id_is_found_wherever_it_stands() {
        let long = "x".repeat(9_000);
        for (line, id) in [
            (r#"{"id":7,"method":"m"}"#.to_owned(), "7"),
            (
                r#" { "jsonrpc" : "2.0" , "id" : "a,\"}b" }"#.to_owned(),
                r#""a,\"}b""#,
            ),
            (
                format!(
                    r#"{{"method":"m","params":{{"id":1,"a":["{long}",{{"id":2}}]}},"id":-3}}"#
                ),
                "-3",
            ),
            (
                format!(r#"{{"params":{{"a":"\"id\":9,{long}\\"}},"id":4,"jsonrpc":"2.0"}}"#),
                "4",
            ),
            (
                r#"{"id":123456789012345678901234567890}"#.to_owned(),
                "123456789012345678901234567890",
            ),
        ] {
            assert_eq!(found(&line).as_deref(), Some(id), "{}", &line[..20]);
        }
    }

    #[test]
    fn what_is_no_id_is_not_taken_for_one() {
        let long = format!(r#"{{"id":"{}"}}"#, "x".repeat(MAX_ID));
        for line in [
            "",
            "xxxx",
            "{",
            r#"{"params":{"id":1}}"#,
            r#"{"a":"id","b":1}"#,
            r#"{"id":{"id":1}}"#,
            r#"{"id":null}"#,
            r#"{"id":1.5}"#,
            r#"[{"id":1}]"#,
            r#"["id",1]"#,
            &long,
        ] {
            assert_eq!(found(line), None, "{line}");
        }
    }

    #[tokio::test]
    async fn of_a_line_that_is_too_long_only_the_id_is_read() {
        let message = r#"{"id":1,"word":""}"#;
        let word = "x".repeat(MAX_LINE - message.len() - 1);
        let longest = format!("{}{word}{}\n", &message[..16], &message[16..]);
        let text = format!("{longest} {longest}short\nlast");
        let mut stream = BufReader::new(text.as_bytes());
        let mut line = Line::default();
        let mut next = async || line.read(&mut stream).await.unwrap();
        assert!(matches!(next().await, Read::Line(line) if line.len() == MAX_LINE));
        assert!(matches!(next().await, Read::TooLong(Some(id)) if id.as_json() == "1"));
        assert!(matches!(next().await, Read::Line(line) if line == b"short\n"));
        assert!(matches!(next().await, Read::Line(line) if line == b"last\n"));
        assert!(matches!(next().await, Read::End));
    }
}
