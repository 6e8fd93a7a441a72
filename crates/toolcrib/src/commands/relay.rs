//! The relay: hands an agent's MCP lines to the crib that serves the project, and outlives that crib's restarts.
//!
//! It knows just enough of the protocol for that: which requests are unanswered, which of them may be asked again,
//! and what a client of the old era said first, because a new server has to hear it too.

use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufRead, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::time::Instant;
use toolcrib_core::Surface;

use crate::serve::http::{GRACE, LAST_WORDS};
use crate::serve::mcp::framing::{Line, Read, refusal, write_line};
use crate::serve::mcp::message::Id;
use crate::serve::socket::{AGENT_HEADER, PATH, SESSION_HEADER, SURFACE_HEADER, protocol};

mod state;

use state::RelayState;

/// How long new requests are held while no crib answers.
const HOLD: Duration = Duration::from_secs(10);
const RETRY_EVERY: Duration = Duration::from_millis(50);

/// Both directions of one connection.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Why no crib is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoCrib {
    /// None answers.
    Silent,
    /// One answers that is of this version, and not of ours.
    OtherVersion(String),
}

/// Where a relay knocks, and what it says there.
#[derive(Debug, Clone)]
pub struct Door {
    pub socket: PathBuf,
    /// What the calls of the agent have in common.
    pub session: Arc<str>,
    /// The agent that was chosen.
    pub agent: Option<String>,
    /// What it wants to be handed of its tools.
    pub surface: Option<Surface>,
}

impl Door {
    fn head(&self) -> String {
        let agent = self.agent.as_ref();
        let agent = agent.map(|agent| format!("{AGENT_HEADER}: {agent}\r\n"));
        let surface = self.surface.map(Surface::as_str);
        let surface = surface.map(|surface| format!("{SURFACE_HEADER}: {surface}\r\n"));
        format!(
            "GET {PATH} HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: {}\r\n{SESSION_HEADER}: {}\r\n{}{}\r\n",
            protocol(),
            self.session,
            agent.unwrap_or_default(),
            surface.unwrap_or_default()
        )
    }
}

/// Connects to the crib that serves the project, if there is one of this very version.
pub async fn connect(door: &Door) -> Result<Box<dyn Stream>, NoCrib> {
    let stream = UnixStream::connect(&door.socket).await;
    let mut stream = stream.map_err(|_| NoCrib::Silent)?;
    let head = door.head();
    let greeted = tokio::time::timeout(Duration::from_secs(2), async {
        stream.write_all(head.as_bytes()).await.ok()?;
        let mut answer = Vec::new();
        // Byte by byte: what follows the head is already the server's.
        while !answer.ends_with(b"\r\n\r\n") && answer.len() < 4_096 {
            answer.push(stream.read_u8().await.ok()?);
        }
        if answer.starts_with(b"HTTP/1.1 101") {
            return Some(Ok(()));
        }
        if !answer.starts_with(b"HTTP/1.1 426") {
            return None;
        }
        // It says which version it is, and nothing else.
        let mut version = [0; 32];
        let length = stream.read(&mut version).await.ok()?;
        let version = String::from_utf8_lossy(&version[..length]);
        let plain = |c: &char| c.is_ascii_alphanumeric() || ".-+".contains(*c);
        let version = version.chars().take_while(plain).collect();
        Some(Err(NoCrib::OtherVersion(version)))
    });
    match greeted.await {
        Ok(Some(greeted)) => greeted.map(|()| Box::new(stream) as Box<dyn Stream>),
        Ok(None) | Err(_) => Err(NoCrib::Silent),
    }
}

/// Why a relay ended.
enum Ended {
    ClientGone,
    ServerGone,
}

/// Lines that wait for the client to read them.
const QUEUE: usize = 16;

/// Relays between the client's two streams and a crib, until the client hangs up. `alone` makes a crib of one's own
/// when no other answers for [`HOLD`].
pub async fn run(
    client_in: impl AsyncRead + Send + Unpin,
    mut client_out: impl AsyncWrite + Send + Unpin,
    door: &Door,
    first: Box<dyn Stream>,
    alone: impl AsyncFnOnce(NoCrib) -> Box<dyn Stream>,
) -> std::io::Result<()> {
    let (outlet, mut lines) = mpsc::channel::<Vec<u8>>(QUEUE);
    // One place writes to the client, whole lines only, whichever crib comes and goes meanwhile.
    let write = async {
        while let Some(line) = lines.recv().await {
            client_out.write_all(&line).await?;
            client_out.flush().await?;
        }
        Ok(())
    };
    let mut client = Client {
        input: BufReader::new(client_in),
        line: Line::default(),
        outlet,
        state: Mutex::default(),
    };
    let relay = async {
        let mut alone = Some(alone);
        let mut server = first;
        while let Ended::ServerGone = client.pump(server).await? {
            server = match (reconnect(door).await, alone.take()) {
                (Ok(next), own) => {
                    alone = own;
                    next
                }
                (Err(reason), Some(own)) => own(reason).await,
                (Err(_), None) => break,
            };
            client.start_over(&mut server).await;
        }
        // With the last that could send, the writing ends too.
        drop(client);
        Ok(())
    };
    tokio::try_join!(write, relay).map(|_| ())
}

/// The client at the near end.
struct Client<I> {
    input: BufReader<I>,
    /// What came of the line that it is sending. It outlives the crib that was there when the line began.
    line: Line,
    outlet: mpsc::Sender<Vec<u8>>,
    state: Mutex<RelayState>,
}

impl<I: AsyncRead + Send + Unpin> Client<I> {
    /// Relays until one of the two hangs up. Both ways go on by themselves: who waits until the other reads still listens.
    async fn pump(&mut self, server: Box<dyn Stream>) -> std::io::Result<Ended> {
        let (server_in, mut server_out) = tokio::io::split(server);
        let Client {
            input,
            line,
            outlet,
            state,
        } = self;
        let mut back = pin!(to_client(server_in, outlet, state));
        let ended = tokio::select! {
            biased;
            () = back.as_mut() => return Ok(Ended::ServerGone),
            ended = to_server((input, line), &mut server_out, outlet, state) => ended?,
        };
        // What was asked for is still answered, and what was answered is still told.
        let longest = match ended {
            Ended::ClientGone => {
                let _ = server_out.shutdown().await;
                GRACE + LAST_WORDS
            }
            Ended::ServerGone => LAST_WORDS,
        };
        let _ = tokio::time::timeout(longest, back).await;
        Ok(ended)
    }

    /// Tells a new server what it has to know, and the client what it will not hear.
    async fn start_over(&self, server: &mut Box<dyn Stream>) {
        let (to_server, to_client) = lock(&self.state).start_over();
        for mut message in to_client {
            message.push(b'\n');
            let _ = self.outlet.send(message).await;
        }
        for message in to_server {
            // A server that is gone again is noticed when it is read from.
            let _ = write_line(server, &message).await;
        }
    }
}

fn lock(state: &Mutex<RelayState>) -> MutexGuard<'_, RelayState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn reconnect(door: &Door) -> Result<Box<dyn Stream>, NoCrib> {
    let deadline = Instant::now() + HOLD;
    while Instant::now() < deadline {
        match connect(door).await {
            Err(NoCrib::Silent) => tokio::time::sleep(RETRY_EVERY).await,
            // Waiting makes it no other one.
            answered => return answered,
        }
    }
    Err(NoCrib::Silent)
}

/// Hands the client's lines to the server, until either is gone.
async fn to_server(
    (input, line): (&mut (impl AsyncBufRead + Unpin), &mut Line),
    server: &mut (impl AsyncWrite + Unpin),
    outlet: &mpsc::Sender<Vec<u8>>,
    state: &Mutex<RelayState>,
) -> std::io::Result<Ended> {
    loop {
        let line = match line.read(input).await? {
            Read::Line(line) => line,
            Read::TooLong(id) => {
                let _ = outlet.send(refused(id.as_ref(), "request")).await;
                continue;
            }
            Read::End => return Ok(Ended::ClientGone),
        };
        lock(state).sent(&line);
        if server.write_all(&line).await.is_err() || server.flush().await.is_err() {
            return Ok(Ended::ServerGone);
        }
    }
}

/// Hands the server's lines to the client, until the server is gone.
async fn to_client(
    server: impl AsyncRead + Unpin,
    outlet: &mpsc::Sender<Vec<u8>>,
    state: &Mutex<RelayState>,
) {
    let (mut server, mut line) = (BufReader::new(server), Line::default());
    loop {
        let line = match line.read(&mut server).await {
            Ok(Read::Line(line)) => line,
            // Its request is answered all the same, if this is an answer.
            Ok(Read::TooLong(Some(id))) => refused(Some(&id), "answer"),
            Ok(Read::TooLong(None)) => continue,
            Ok(Read::End) | Err(_) => return,
        };
        if lock(state).received(&line) {
            let _ = outlet.send(line).await;
        }
    }
}

/// The answer to a line that is too long, as a line.
fn refused(id: Option<&Id>, what: &str) -> Vec<u8> {
    let mut refusal = refusal(id, what);
    refusal.push(b'\n');
    refusal
}

#[cfg(test)]
mod tests;
