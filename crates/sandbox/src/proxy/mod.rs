//! The crib's proxy: the only way out for a tool that may reach some hosts.
//!
//! One for each confined process, with that process's rules. It looks the name up itself, checks every address, and
//! connects to the very address it checked. What passes through a tunnel it does not read.

mod body;
mod request;

use std::collections::HashSet;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::address::{self, Never, Reach};
use crate::host::{HostRule, Transport};
use crate::off_limits;
use request::Request;

/// The longest head of a request.
const HEAD: usize = 32 * 1_024;
const HEAD_TIME: Duration = Duration::from_secs(20);
const CONNECT_TIME: Duration = Duration::from_secs(20);
/// Connections of one process at a time.
const CONNECTIONS: usize = 256;

/// A host that a process asked for and was not allowed to reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    pub host: String,
    pub port: u16,
    /// Why, in words.
    pub reason: String,
}

/// Addresses of connections that the crib has made for a process. Where the proxy listens on the machine's own
/// loopback, it serves no others.
pub(crate) type Guests = Arc<Mutex<HashSet<SocketAddr>>>;

/// At which addresses a host may lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Addresses {
    /// Public ones, and those that a rule names itself.
    Granted,
    /// All that anybody may call, because the user's own settings name the host.
    All,
}

/// What one process's proxy knows.
#[derive(Clone)]
pub(crate) struct Proxy {
    pub rules: Arc<[HostRule]>,
    pub addresses: Addresses,
    pub denied: Option<mpsc::Sender<Denial>>,
    /// None where nobody else can reach the listener.
    pub guests: Option<Guests>,
}

impl Proxy {
    /// Serves until it is dropped.
    pub(crate) async fn serve(self, listener: TcpListener) {
        let room = Arc::new(Semaphore::new(CONNECTIONS));
        let mut running = JoinSet::new();
        loop {
            while running.try_join_next().is_some() {}
            let Ok(place) = room.clone().acquire_owned().await else {
                return;
            };
            match listener.accept().await {
                Ok((stream, from)) if self.knows(from) => {
                    let proxy = self.clone();
                    running.spawn(async move {
                        // A connection that breaks is told to its two ends by the break itself.
                        let _ = proxy.attend(stream).await;
                        drop(place);
                    });
                }
                Ok(_) => {}
                // Out of descriptors, perhaps; others may end meanwhile.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }

    fn knows(&self, from: SocketAddr) -> bool {
        self.guests.as_ref().is_none_or(|guests| {
            let mut guests = guests.lock().unwrap_or_else(PoisonError::into_inner);
            guests.remove(&from)
        })
    }

    /// One connection: one request, and the tunnel or the answer that follows.
    async fn attend(&self, mut client: TcpStream) -> io::Result<()> {
        let head = match timeout(HEAD_TIME, read_head(&mut client)).await {
            Ok(head) => head?,
            Err(_) => return Ok(()),
        };
        let Some((head, rest)) = head else {
            return answer(&mut client, 400, "the request can't be read").await;
        };
        let Some(request) = Request::parse(&head) else {
            return answer(
                &mut client,
                400,
                "only CONNECT and plain http:// requests are served",
            )
            .await;
        };
        let addresses = match self.allowed(&request).await {
            Ok(addresses) => addresses,
            Err(reason) => {
                self.tell(&request, &reason);
                return answer(&mut client, 403, &reason).await;
            }
        };
        let Some(mut server) = connect(&addresses).await else {
            let reason = format!("{}:{} can't be reached", request.host, request.port);
            return answer(&mut client, 502, &reason).await;
        };
        match request.way {
            Transport::Connect => {
                client
                    .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    .await?;
                server.write_all(&rest).await?;
                tokio::io::copy_bidirectional(&mut client, &mut server)
                    .await
                    .map(|_| ())
            }
            Transport::Plain => {
                server.write_all(&request.forwarded()).await?;
                let (mut from_client, mut to_client) = client.split();
                let (mut from_server, mut to_server) = server.split();
                // One request, one answer: nothing behind the body is passed on.
                let body = body::pass(request.body, &rest, &mut from_client, &mut to_server);
                let answer = tokio::io::copy(&mut from_server, &mut to_client);
                tokio::pin!(answer);
                tokio::select! {
                    passed = body => passed?,
                    answered = &mut answer => return answered.map(|_| ()),
                }
                answer.await.map(|_| ())
            }
        }
    }

    fn tell(&self, request: &Request, reason: &str) {
        tracing::debug!(host = %request.host, port = request.port, reason, "a host was denied");
        if let Some(denied) = &self.denied {
            // Whoever does not listen has heard enough of them.
            let _ = denied.try_send(Denial {
                host: request.host.clone(),
                port: request.port,
                reason: reason.to_owned(),
            });
        }
    }

    /// The addresses that may be connected to, all checked; or why there is none.
    async fn allowed(&self, request: &Request) -> Result<Vec<SocketAddr>, String> {
        let Request {
            host, port, way, ..
        } = request;
        if !self.rules.iter().any(|rule| rule.allows(host, *port, *way)) {
            return Err(format!(
                "{host}:{port} is not among the hosts that were granted"
            ));
        }
        if let Some(why) = address::name_refusal(host) {
            return Err(format!("{host} may not be reached: {why}"));
        }
        let found = match host.parse() {
            Ok(address) => vec![SocketAddr::new(address, *port)],
            Err(_) => match timeout(
                CONNECT_TIME,
                tokio::net::lookup_host((host.as_str(), *port)),
            )
            .await
            {
                Ok(Ok(found)) => found.collect(),
                _ => return Ok(Vec::new()),
            },
        };
        let mut good = Vec::new();
        let mut refused = None;
        for address in found {
            let ip = address.ip().to_canonical();
            let listed = || self.rules.iter().any(|rule| rule.lists(ip, *port, *way));
            match address::reach(ip) {
                Reach::Public => good.push(address),
                Reach::Private if self.addresses == Addresses::All || listed() => {
                    good.push(address);
                }
                // Networks without the internet have their mirrors there.
                Reach::Never(Never::Reserved) if self.addresses == Addresses::All => {
                    good.push(address);
                }
                Reach::Private => {
                    refused = Some(format!(
                        "{ip}, which is not public and was not granted itself"
                    ));
                }
                Reach::Never(why) => refused = Some(format!("{ip}, which is never reached: {why}")),
            }
        }
        if good.iter().copied().any(off_limits::leads_to_a_crib) {
            return Err(format!(
                "{host}:{port} is where Toolcrib listens, which no tool may call"
            ));
        }
        match refused {
            Some(refused) if good.is_empty() => Err(format!("{host} leads to {refused}")),
            _ => Ok(good),
        }
    }
}

async fn connect(addresses: &[SocketAddr]) -> Option<TcpStream> {
    for address in addresses {
        if let Ok(Ok(stream)) = timeout(CONNECT_TIME, TcpStream::connect(address)).await {
            return Some(stream);
        }
    }
    None
}

/// The head up to its empty line, and what came behind it; nothing where it is too long or ends early.
async fn read_head(client: &mut TcpStream) -> io::Result<Option<(Vec<u8>, Vec<u8>)>> {
    let mut head = Vec::with_capacity(1_024);
    loop {
        if let Some(end) = head.windows(4).position(|part| part == b"\r\n\r\n") {
            let rest = head.split_off(end + 4);
            return Ok(Some((head, rest)));
        }
        if head.len() > HEAD || client.read_buf(&mut head).await? == 0 {
            return Ok(None);
        }
    }
}

async fn answer(client: &mut TcpStream, status: u16, reason: &str) -> io::Result<()> {
    let word = match status {
        400 => "Bad Request",
        403 => "Forbidden",
        _ => "Bad Gateway",
    };
    let body = format!("toolcrib: {reason}\n");
    let head = format!(
        "HTTP/1.1 {status} {word}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nX-Toolcrib: {reason}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    client.write_all(head.as_bytes()).await?;
    client.write_all(body.as_bytes()).await?;
    client.shutdown().await
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
