//! The port: takes connections, bounds them in number and time, and stops in good order.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::any;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::Service;

use super::auth::{self, Auth};
use super::guard::Guard;
use super::visitors::{Seat, Visitors};
use super::{Served, mcp, rest};

/// How long calls in flight may go on after a stop was asked for.
pub const GRACE: Duration = Duration::from_secs(5);

/// How long the last answers may take to be read.
pub const LAST_WORDS: Duration = Duration::from_secs(1);

/// For those who have shown a token: a request's head must be whole within this time, and an idle connection is closed
/// after it. Longer than the half minute that clients commonly keep idle connections for, so that they, not we, close
/// first. Strangers have less, see [`super::visitors`].
const HEAD_TIMEOUT: Duration = Duration::from_secs(75);

/// After a failed accept (out of file descriptors, mostly): give others time to close theirs.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Every route, behind the guard and the door. `own` is the address that the listener is bound to.
pub fn router(served: Arc<Served>, own: SocketAddr, auth: Auth) -> Router {
    let door = mcp::door(served.clone());
    rest::router(served.clone())
        .route("/mcp", any(door.clone()))
        .route("/mcp/{agent}", any(door))
        .layer(from_fn_with_state((auth, served.crib.clone()), auth::check))
        .layer(Guard::new(own))
}

/// Serves until `served.shutdown` fires, then waits for what is in flight until `served.given_up` does, and for the last
/// answers a moment longer.
pub async fn serve(listener: TcpListener, router: Router, served: Arc<Served>) -> io::Result<()> {
    let shutdown = served.shutdown.clone();
    let visitors = Visitors::default();
    let mut connections = JoinSet::new();
    // Who knocked and has no place yet.
    let mut arrived = None;
    loop {
        tokio::select! {
            () = shutdown.cancelled() => break,
            Some(_) = connections.join_next() => {}
            seat = visitors.seat(), if arrived.is_some() => {
                if let Some(stream) = arrived.take() {
                    connections.spawn(connection(stream, seat, router.clone(), shutdown.clone()));
                }
            }
            accepted = listener.accept(), if arrived.is_none() => match accepted {
                Ok((stream, _)) => arrived = Some(stream),
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    let ended = async {
        while connections.join_next().await.is_some() {}
        served.calls_ended().await;
    };
    tokio::select! {
        () = ended => {}
        () = served.over() => {
            tracing::warn!("connections were still open when the grace ended; they are closed");
        }
    }
    // Dropping the set cuts the connections that are left.
    Ok(())
}

async fn connection(stream: TcpStream, seat: Seat, router: Router, shutdown: CancellationToken) {
    // Answers are small and awaited: holding them back for a fuller packet only adds latency.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY could not be set");
    }
    let visitor = seat.visitor();
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        if !visitor.is_known() {
            visitor.asked();
            request.extensions_mut().insert(visitor.clone());
        }
        router.clone().call(request)
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT);
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    // A token of its own: all of them together are asked for every request.
    let shutdown = shutdown.child_token();
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => ended,
        () = seat.overstayed() => return,
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        // Clients go away in the middle all the time; that is theirs to know.
        tracing::debug!(%error, "a connection ended early");
    }
}
