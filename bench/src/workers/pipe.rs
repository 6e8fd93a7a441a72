//! A process that is asked in lines: the bare program in the worker protocol, or `toolcrib mcp`.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::calls::Limit;

/// Longer than any part takes.
const LIFE: Duration = Duration::from_secs(600);

pub struct Pipe {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// The request, up to its id and from there on.
    request: (String, String),
    next_id: u64,
    line: String,
    _limit: Limit,
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Pipe {
    /// Starts a process that will be asked this, with `ID` in place of the id.
    pub fn start(mut command: Command, request: &str) -> Option<Pipe> {
        let (before, after) = request.split_once("ID")?;
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        Some(Pipe {
            input: child.stdin.take()?,
            output: BufReader::new(child.stdout.take()?),
            request: (before.to_owned(), format!("{after}\n")),
            next_id: 1,
            line: String::new(),
            _limit: Limit::of(&child, LIFE),
            child,
        })
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends the next request; gives its id.
    fn send(&mut self) -> Option<u64> {
        let id = self.next_id;
        self.next_id += 1;
        let line = format!("{}{id}{}", self.request.0, self.request.1);
        self.input.write_all(line.as_bytes()).ok()?;
        Some(id)
    }

    fn receive(&mut self) -> Option<&str> {
        self.line.clear();
        let read = self.output.read_line(&mut self.line).ok()?;
        (read > 0).then_some(self.line.as_str())
    }

    /// One call and its answer.
    pub fn ask(&mut self) -> Option<&str> {
        self.send()?;
        self.receive()
    }

    /// Keeps so many calls in flight for a while; how long each took.
    pub fn busy(&mut self, at_once: usize, time: Duration) -> Option<Vec<Duration>> {
        let begun = Instant::now();
        let mut sent = HashMap::new();
        let mut took = Vec::new();
        for _ in 0..at_once {
            let start = Instant::now();
            sent.insert(self.send()?, start);
        }
        while !sent.is_empty() {
            let id = id_of(self.receive()?)?;
            took.push(sent.remove(&id)?.elapsed());
            if begun.elapsed() < time {
                let start = Instant::now();
                sent.insert(self.send()?, start);
            }
        }
        Some(took)
    }
}

/// Answers name their ids as numbers, or as numbers in strings.
fn id_of(line: &str) -> Option<u64> {
    let (_, rest) = line.split_once(r#""id":"#)?;
    let rest = rest.trim_start_matches([' ', '"']);
    let end = rest.find(|c: char| !c.is_ascii_digit())?;
    rest[..end].parse().ok()
}
