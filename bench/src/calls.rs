//! One call of a tool that does nothing, over REST, against a bare axum echo of the same body.
//!
//! Every wait has an end: sockets time out, and a process that says nothing is killed.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::cores::{self, pin_self, pin_tree};
use crate::stats::{Samples, ratio, verdict};

const BODY: &str = r#"{"arguments":{"a":"some text"}}"#;
/// Blocks of calls alternate between the two servers, so that noise meets both.
const BLOCKS: usize = 20;
const BLOCK: usize = 1_000;
const CLIENTS: usize = 32;
/// How long anything that was asked may take to answer.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Kills a process that is not done in time, so that whoever reads from it comes to its end. Done is when it is dropped.
pub struct Limit(#[expect(dead_code, reason = "dropping it is what counts")] Sender<()>);

impl Limit {
    pub fn of(child: &Child, limit: Duration) -> Limit {
        let (done, wait) = channel::<()>();
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        std::thread::spawn(move || {
            if let (Err(RecvTimeoutError::Timeout), Some(pid)) = (wait.recv_timeout(limit), pid) {
                let _ = kill_process(pid, Signal::KILL);
            }
        });
        Limit(done)
    }
}

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

/// Starts this program in one of its other roles.
pub fn own(role: &str) -> Option<Running> {
    let mut command = command(&std::env::current_exe().ok()?);
    command.arg(role);
    Running::of(command)
}

impl Running {
    /// Starts a server that first prints its port, or as JSON its URL.
    pub fn of(command: Command) -> Option<Running> {
        // Python loads much before it listens.
        Running::within(command, 3 * PATIENCE)
    }

    /// The same, for one that may take so long.
    pub fn within(mut command: Command, limit: Duration) -> Option<Running> {
        let child = command.stdout(Stdio::piped()).spawn().ok()?;
        let mut running = Running { child, port: 0 };
        let _limit = Limit::of(&running.child, limit);
        let mut line = String::new();
        BufReader::new(running.child.stdout.as_mut()?)
            .read_line(&mut line)
            .ok()?;
        let banner: serde_json::Value = serde_json::from_str(&line).ok()?;
        running.port = match banner["url"].as_str() {
            Some(url) => url.rsplit(':').next()?.parse().ok()?,
            None => banner.as_u64()?.try_into().ok()?,
        };
        Some(running)
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn pinned(self, core: usize) -> Running {
        pin_tree(self.id(), core);
        self
    }
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
    /// Posts a body; further headers are each ended by a line break.
    pub fn post(port: u16, path: &str, headers: &str, body: &str) -> std::io::Result<Client> {
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
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
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
            let written = line.trim_end();
            let line = written.to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            if line.starts_with("mcp-session-id:") {
                let (_, session) = written.split_once(':').unwrap_or_default();
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

/// Times so many calls, one after the other; fewer when the server fails or takes too long for all of them.
pub fn block(client: &mut Client, calls: usize) -> Vec<Duration> {
    let begun = Instant::now();
    let timed = (0..calls).map_while(|_| {
        let start = Instant::now();
        client.ask().ok()?;
        (begun.elapsed() < PATIENCE).then(|| start.elapsed())
    });
    timed.collect()
}

/// What is asked of a server, again and again.
pub struct Ask {
    pub path: &'static str,
    pub headers: String,
    pub body: String,
}

impl Ask {
    pub fn client(&self, port: u16) -> Option<Client> {
        Client::post(port, self.path, &self.headers, &self.body).ok()
    }

    /// Calls a second with many connections at once.
    fn throughput(&self, port: u16) -> f64 {
        let start = Instant::now();
        let done: usize = std::thread::scope(|scope| {
            let asks = || {
                self.client(port)
                    .map_or(0, |mut one| block(&mut one, 500).len())
            };
            let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(asks)).collect();
            let done = clients.into_iter().map(|client| client.join());
            done.map(|done| done.unwrap_or(0)).sum()
        });
        done as f64 / start.elapsed().as_secs_f64()
    }
}

/// Holds a call of our no-op tool against the bare echo: with client and server on one core, and on two.
pub fn against_echo(surface: &str, bare: &Ask, ours: &Ask, aim: f64) {
    for (what, client_core, server_core) in layouts() {
        pin_self(&[client_core]);
        println!(
            "\nno-op call over {surface}, client and server on {what} ({} calls each)",
            BLOCKS * BLOCK
        );
        if compare(bare, ours, server_core, aim).is_none() {
            println!("  could not be measured: a server did not start or answer");
        }
    }
    // What comes next starts processes of its own, which may use every core.
    pin_self(&cores::all());
}

/// Where client and server run, so that neither is moved in mid-call.
pub fn layouts() -> [(&'static str, usize, usize); 2] {
    [("one core", 0, 0), ("two cores", 0, 1 % cores::all().len())]
}

fn compare(bare: &Ask, ours: &Ask, core: usize, aim: f64) -> Option<()> {
    let (echo, noop) = (own("__echo")?.pinned(core), own("__noop")?.pinned(core));
    let (mut to_echo, mut to_noop) = (bare.client(echo.port)?, ours.client(noop.port)?);
    block(&mut to_echo, BLOCK);
    block(&mut to_noop, BLOCK);
    let (mut theirs, mut mine) = (Samples::default(), Samples::default());
    for _ in 0..BLOCKS {
        theirs.extend(block(&mut to_echo, BLOCK));
        mine.extend(block(&mut to_noop, BLOCK));
    }
    if theirs.len() + mine.len() < 2 * BLOCKS * BLOCK {
        return None;
    }
    let times = ratio(mine.at(50), theirs.at(50));
    println!("  bare axum echo   {}", theirs.line());
    println!("  toolcrib         {}", mine.line());
    println!(
        "  ratio at p50     {times:.2} (aim ≤ {aim}): {}",
        verdict(times <= aim)
    );
    let (theirs, mine) = (bare.throughput(echo.port), ours.throughput(noop.port));
    println!(
        "  {CLIENTS} connections   echo {theirs:.0}/s, toolcrib {mine:.0}/s, ratio {:.2}",
        theirs / mine.max(1.0)
    );
    Some(())
}

pub fn run() {
    let ask = |path| Ask {
        path,
        headers: String::new(),
        body: BODY.to_owned(),
    };
    against_echo("REST", &ask("/echo"), &ask("/api/tools/noop/call"), 2.0);
}
