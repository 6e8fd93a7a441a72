//! The project's socket: where commands and agents of the same user find the crib that already serves it.
//!
//! It speaks HTTP like the port does, and one thing more: a request for [`PATH`] with our own upgrade turns the
//! connection into MCP lines, which `toolcrib mcp` relays for its agent. So one set of workers serves all of them.

use std::fs::File;
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::Request;
use axum::http::header::{CONNECTION, UPGRADE};
use axum::http::{HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::json;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::Service;

use super::auth::{Approves, LocalProcess, Scope, Who, no_login};
use super::mcp::{self, Mcp};
use super::rest::ErrorResponse;
use super::{Served, rest};
use crate::approver::process::ProcessId;
use crate::approver::terminal::note_agent;
use crate::env::Env;

/// Where a relay knocks.
pub const PATH: &str = "/relay";
/// The header in which a relay says what its agent's calls have in common, whichever crib answers them.
pub const SESSION_HEADER: &str = "toolcrib-session";
/// The header in which a relay says which agent it is for, where one was chosen.
pub const AGENT_HEADER: &str = "toolcrib-agent";
/// The header in which a relay says what its agent wants to be handed of its tools, where that was chosen.
pub const SURFACE_HEADER: &str = "toolcrib-surface";
/// Where `toolcrib token login` asks for a login URL. The port has no such route.
pub const LOGIN_PATH: &str = "/login-url";

/// Makes a login URL; none where there is no login.
pub type NewLogin = Arc<dyn Fn(Approves) -> Option<String> + Send + Sync>;

/// What a relay asks to talk: MCP lines, between two programs of the very same version.
pub fn protocol() -> String {
    format!("toolcrib-mcp/{}", crate::VERSION)
}

/// The socket of one project, held by one crib at a time.
pub struct Socket {
    listener: UnixListener,
    path: PathBuf,
    /// Held as long as the socket is ours, so that a crib that died leaves no claim.
    _claim: File,
}

impl Socket {
    /// Claims the project's socket; gives nothing when another crib holds it.
    pub fn claim(path: &Path) -> io::Result<Option<Socket>> {
        let folder = path.parent().unwrap_or(Path::new("/"));
        std::fs::create_dir_all(folder)?;
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))?;
        let claim = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path.with_extension("lock"))?;
        if claim.try_lock().is_err() {
            return Ok(None);
        }
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(path)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        Ok(Some(Socket {
            listener,
            path: path.to_path_buf(),
            _claim: claim,
        }))
    }

    /// Serves until `served.shutdown` fires; calls in flight get their grace.
    pub async fn serve(self, served: Arc<Served>, login: NewLogin) {
        let mcp = Mcp::new(served.clone());
        let relays = Relays {
            served: served.clone(),
            running: Arc::default(),
        };
        let all = relays.clone();
        let relay = get(move |request: Request| relay(all.clone(), mcp.clone(), request));
        let env = served.opened.as_ref();
        let env = env.map(|opened| Arc::new(opened.env.clone()));
        let router = rest::router(served.clone()).route(PATH, relay).route(
            LOGIN_PATH,
            post(async move |who: Who, uri: Uri| login_url(&who, &uri, &login)),
        );
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                () = served.shutdown.cancelled() => break,
                Some(_) = connections.join_next() => {}
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) if is_same_user(&stream) => {
                        let who = who_asks(&stream, env.as_ref());
                        let shutdown = served.shutdown.child_token();
                        connections.spawn(connection(stream, who, router.clone(), shutdown));
                    }
                    Ok(_) => tracing::warn!("another user's process knocked at the socket"),
                    Err(error) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                    }
                },
            }
        }
        // The next crib may have the place at once, while the last answers are read here.
        drop(self);
        let ended = async {
            relays.ended().await;
            while connections.join_next().await.is_some() {}
        };
        tokio::select! {
            () = ended => {}
            () = served.over() => {}
        }
    }
}

/// The relays that are connected.
#[derive(Clone)]
struct Relays {
    served: Arc<Served>,
    running: Arc<Mutex<JoinSet<()>>>,
}

impl Relays {
    fn spawn(&self, relay: impl Future<Output = ()> + Send + 'static) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        while running.try_join_next().is_some() {}
        running.spawn(relay);
    }

    async fn ended(&self) {
        let mut running = {
            let mut all = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *all)
        };
        while running.join_next().await.is_some() {}
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn is_same_user(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == own)
}

/// Only this user's processes get here, and the user is the owner. Which process it is decides what it may approve.
fn who_asks(stream: &UnixStream, env: Option<&Arc<Env>>) -> Who {
    let peer = stream.peer_cred().ok().and_then(|peer| peer.pid());
    let id = peer.and_then(|pid| ProcessId::now(u32::try_from(pid).ok()?));
    match (id, env) {
        (Some(id), Some(env)) => Who::owner_with(LocalProcess {
            id,
            env: env.clone(),
        }),
        _ => Who::owner(),
    }
}

async fn connection(stream: UnixStream, who: Who, router: Router, shutdown: CancellationToken) {
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(who.clone());
        router.clone().call(request)
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new());
    let served = builder.serve_connection(TokioIo::new(stream), service);
    let mut served = std::pin::pin!(served.with_upgrades());
    let ended = tokio::select! {
        biased;
        ended = served.as_mut() => ended,
        // What was asked for is answered, and read, before it ends.
        () = shutdown.cancelled() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// The query that asks for a login which may decide.
pub const APPROVE: &str = "approve";

fn login_url(who: &Who, uri: &Uri, login: &NewLogin) -> Response {
    let approves = match uri.query() {
        Some(APPROVE) => match who.needs(Scope::Approve) {
            Ok(()) => Approves::Yes,
            Err(error) => return ErrorResponse::from(error).into_response(),
        },
        _ => Approves::No,
    };
    match login(approves) {
        Some(login) => Json(json!({"login": login})).into_response(),
        None => ErrorResponse::from(no_login()).into_response(),
    }
}

/// Turns the connection into MCP lines, if both ends are of one version.
async fn relay(relays: Relays, mcp: Arc<Mcp>, mut request: Request) -> Response {
    // Whoever speaks for an agent marks the program behind it, which then decides on nothing.
    if let Some(process) = request.extensions().get::<Who>().and_then(Who::process) {
        note_agent(process.id);
    }
    let wanted = request
        .headers()
        .get(UPGRADE)
        .and_then(|value| value.to_str().ok());
    if wanted != Some(protocol().as_str()) {
        return (StatusCode::UPGRADE_REQUIRED, crate::VERSION).into_response();
    }
    let header = |name| request.headers().get(name)?.to_str().ok();
    let session = header(SESSION_HEADER).map_or_else(mcp::new_session, Arc::from);
    let who = match header(AGENT_HEADER) {
        None => Ok(Who::owner()),
        Some(agent) => Who::owner().choose(agent, &relays.served.crib),
    };
    let who = match who {
        // Both ends are of one version, so what can't be read is not there.
        Ok(who) => who.with_surface(header(SURFACE_HEADER).and_then(|name| name.parse().ok())),
        Err(error) => return ErrorResponse::from(error).into_response(),
    };
    let upgrade = hyper::upgrade::on(&mut request);
    let served = relays.served.clone();
    relays.spawn(async move {
        let Ok(upgraded) = upgrade.await else { return };
        let (read, write) = tokio::io::split(TokioIo::new(upgraded));
        let stop = async {
            served.shutdown.cancelled().await;
            // What runs may end; the relay then finds the next crib.
            tokio::select! {
                () = served.calls_ended() => {}
                () = served.over() => {}
            }
        };
        let _ = mcp::lines_until(mcp, (who, session), read, write, stop).await;
    });
    let switched =
        HeaderValue::from_str(&protocol()).unwrap_or(HeaderValue::from_static("toolcrib-mcp"));
    let headers = [
        (CONNECTION, HeaderValue::from_static("upgrade")),
        (UPGRADE, switched),
    ];
    (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
}
