//! One call of a tool that does nothing, over REST, against a bare axum echo of the same body.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, Pid, sched_setaffinity};

use crate::stats::{Samples, ratio, verdict};

const BODY: &str = r#"{"arguments":{"a":"some text"}}"#;
/// Blocks of calls alternate between the two servers, so that noise meets both.
const BLOCKS: usize = 20;
const BLOCK: usize = 1_000;
const CLIENTS: usize = 32;

/// A server of ours in a process of its own, killed when dropped.
pub struct Running {
    child: Child,
    pub port: u16,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a bench starts what it measures, by hand"
)]
pub fn command(program: &std::path::Path) -> Command {
    Command::new(program)
}

fn start(role: &str, core: usize) -> Option<Running> {
    let mut command = command(&std::env::current_exe().ok()?);
    command.arg(role);
    let running = Running::of(command)?;
    pin(running.child.id(), &[core]);
    Some(running)
}

impl Running {
    /// Starts a server that prints its port first.
    pub fn of(mut command: Command) -> Option<Running> {
        let mut child = command.stdout(Stdio::piped()).spawn().ok()?;
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut()?)
            .read_line(&mut line)
            .ok()?;
        Some(Running {
            child,
            port: line.trim().parse().ok()?,
        })
    }
}

/// Binds every thread of a process to these cores.
fn pin(pid: u32, cores: &[usize]) {
    let mut set = CpuSet::new();
    cores.iter().for_each(|core| set.set(*core));
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let ids = tasks.filter_map(|task| task.file_name().to_str()?.parse().ok());
    for task in ids.filter_map(Pid::from_raw) {
        // A thread that is gone is no harm.
        let _ = sched_setaffinity(Some(task), &set);
    }
}

fn pin_self(cores: &[usize]) {
    pin(std::process::id(), cores);
}

/// The plainest client there is: prepared bytes out, one answer in.
pub struct Client {
    stream: BufReader<TcpStream>,
    request: Vec<u8>,
    body: Vec<u8>,
    /// The session that the last answer named, if it named one.
    pub session: Option<String>,
}

impl Client {
    pub fn post(port: u16, path: &str, body: &str) -> std::io::Result<Client> {
        Client::post_with(port, path, "", body)
    }

    /// The same with further headers, each ended by a line break.
    pub fn post_with(port: u16, path: &str, headers: &str, body: &str) -> std::io::Result<Client> {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\n\r\n",
            body.len()
        );
        Client::new(port, format!("{head}{body}"))
    }

    pub fn get(port: u16, path: &str) -> std::io::Result<Client> {
        Client::new(
            port,
            format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n\r\n"),
        )
    }

    fn new(port: u16, request: String) -> std::io::Result<Client> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        Ok(Client {
            stream: BufReader::with_capacity(64 * 1_024, stream),
            request: request.into(),
            body: Vec::new(),
            session: None,
        })
    }

    /// Sends the request and reads the whole answer; gives its body.
    pub fn ask(&mut self) -> std::io::Result<&[u8]> {
        self.stream.get_mut().write_all(&self.request)?;
        let mut length = 0;
        let mut chunked = false;
        let mut line = String::new();
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            if let Some(session) = line.strip_prefix("mcp-session-id:") {
                self.session = Some(session.trim().to_owned());
            }
            chunked |= line.starts_with("transfer-encoding:") && line.contains("chunked");
            if line.starts_with("http/1.1") && !line.contains(" 20") {
                return Err(std::io::Error::other(line));
            }
            if line.is_empty() {
                break;
            }
        }
        self.body.clear();
        if !chunked {
            self.body.resize(length, 0);
            self.stream.read_exact(&mut self.body)?;
            return Ok(&self.body);
        }
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            let size = usize::from_str_radix(line.trim(), 16).map_err(std::io::Error::other)?;
            let start = self.body.len();
            self.body.resize(start + size, 0);
            self.stream.read_exact(&mut self.body[start..])?;
            line.clear();
            self.stream.read_line(&mut line)?;
            if size == 0 {
                return Ok(&self.body);
            }
        }
    }
}

pub fn block(client: &mut Client, calls: usize) -> Vec<Duration> {
    let mut samples = Vec::with_capacity(calls);
    for _ in 0..calls {
        let start = Instant::now();
        if client.ask().is_ok() {
            samples.push(start.elapsed());
        }
    }
    samples
}

/// Calls a second with many connections at once.
fn throughput(port: u16, path: &str) -> f64 {
    let start = Instant::now();
    let done: usize = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                scope.spawn(move || {
                    Client::post(port, path, BODY)
                        .map_or(0, |mut client| block(&mut client, 500).len())
                })
            })
            .collect();
        clients
            .into_iter()
            .map(|client| client.join().unwrap_or(0))
            .sum()
    });
    done as f64 / start.elapsed().as_secs_f64()
}

pub fn run() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    for (what, client_core, server_core) in [("one core", 0, 0), ("two cores", 0, 1 % cores)] {
        pin_self(&[client_core]);
        let (Some(echo), Some(noop)) = (start("__echo", server_core), start("__noop", server_core))
        else {
            println!("calls: a server did not start");
            return;
        };
        let tool = "/api/tools/noop/call";
        let (Ok(mut bare), Ok(mut ours)) = (
            Client::post(echo.port, "/echo", BODY),
            Client::post(noop.port, tool, BODY),
        ) else {
            println!("calls: no connection");
            return;
        };
        block(&mut bare, BLOCK);
        block(&mut ours, BLOCK);
        let (mut bare_samples, mut our_samples) = (Samples::default(), Samples::default());
        for _ in 0..BLOCKS {
            bare_samples.extend(block(&mut bare, BLOCK));
            our_samples.extend(block(&mut ours, BLOCK));
        }
        let times = ratio(our_samples.at(50), bare_samples.at(50));
        println!(
            "\nno-op call over REST, client and server on {what} ({} calls each)",
            BLOCKS * BLOCK
        );
        println!("  bare axum echo   {}", bare_samples.line());
        println!("  toolcrib         {}", our_samples.line());
        println!(
            "  ratio at p50     {times:.2} (aim ≤ 2): {}",
            verdict(times <= 2.0)
        );
        let (theirs, mine) = (throughput(echo.port, "/echo"), throughput(noop.port, tool));
        println!(
            "  {CLIENTS} connections   echo {theirs:.0}/s, toolcrib {mine:.0}/s, ratio {:.2}",
            theirs / mine.max(1.0)
        );
    }
    // What comes next starts processes of its own, which may use every core.
    pin_self(&(0..cores).collect::<Vec<_>>());
}
