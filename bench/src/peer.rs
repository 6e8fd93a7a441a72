//! The servers that are measured: a bare axum echo, and a crib with one tool that does nothing.

use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use axum::body::Bytes;
use tokio::net::TcpListener;
use toolcrib::config::Flags;
use toolcrib::env::Env;
use toolcrib::open::Opened;
use toolcrib::serve::auth::{Auth, Who};
use toolcrib::serve::{Served, http, mcp};
use toolcrib_core::{
    Access, BoxFuture, Call, CallResult, Crib, Loading, Outcome, Rank, Run, Schema, SourceKey,
    SourceKind, Spec, Tool, ToolName, Update,
};

/// Prints the port and serves until killed.
fn serve(work: impl AsyncFnOnce(TcpListener)) -> ExitCode {
    let Ok(runtime) = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    else {
        return ExitCode::FAILURE;
    };
    runtime.block_on(async {
        let Ok(listener) = TcpListener::bind("127.0.0.1:0").await else {
            return;
        };
        if let Ok(address) = listener.local_addr() {
            println!("{}", address.port());
        }
        work(listener).await;
    });
    ExitCode::SUCCESS
}

pub fn serve_echo() -> ExitCode {
    serve(async |listener| {
        let echo = axum::routing::post(|body: Bytes| async move { body });
        let router = axum::Router::new().route("/echo", echo);
        let _ = axum::serve(listener, router).await;
    })
}

struct Nothing;

impl Run for Nothing {
    fn run<'a>(&'a self, _: &'a Call) -> BoxFuture<'a, CallResult> {
        Box::pin(std::future::ready(Ok(Outcome::text("ok"))))
    }
}

pub fn noop() -> Option<Tool> {
    let schema = serde_json::json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let spec = Spec::new(
        ToolName::new("noop").ok()?,
        "Does nothing",
        Schema::parse(schema).ok()?,
    );
    let (source, access) = (SourceKind::Builtin, Access::Open);
    Some(Tool::new(spec, source, access, "noop", Arc::new(Nothing)))
}

/// The same tool over stdin and stdout.
pub fn serve_stdio() -> ExitCode {
    let Ok(runtime) = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    else {
        return ExitCode::FAILURE;
    };
    runtime.block_on(async {
        let Ok(home) = tempfile::tempdir() else {
            return;
        };
        if let Some(served) = noop_crib(home.path()).await {
            let _ = mcp::lines(
                mcp::Mcp::new(served),
                (Who::owner(), mcp::new_session()),
                tokio::io::stdin(),
                tokio::io::stdout(),
            )
            .await;
        }
    });
    runtime.shutdown_background();
    ExitCode::SUCCESS
}

fn update(tool: Tool) -> Vec<Update> {
    vec![Update {
        key: SourceKey("bench".into()),
        rank: Rank::Builtin,
        file: None,
        tools: vec![Arc::new(tool)],
        problems: Vec::new(),
    }]
}

/// A crib with this tool in it.
pub fn with_tool(crib: Crib, tool: Tool) -> Crib {
    crib.apply(update(tool));
    crib
}

/// The product's own crib; only the tool is the bench's.
async fn noop_crib(home: &Path) -> Option<Arc<Served>> {
    let env = Env::of(&[("HOME", home.to_str()?)], home);
    let opened = Opened::wire(env, Flags::default(), None).await.ok()?;
    opened.crib.apply(update(noop()?));
    opened.crib.set_loading(Loading::Done);
    Some(Arc::new(Served::new(opened.crib.clone())))
}

/// The product's own server over that crib.
pub fn serve_noop() -> ExitCode {
    serve(async |listener| {
        let Ok(home) = tempfile::tempdir() else {
            return;
        };
        let Some(served) = noop_crib(home.path()).await else {
            return;
        };
        let own = listener
            .local_addr()
            .unwrap_or(SocketAddr::from(([127, 0, 0, 1], 0)));
        let _ = http::serve(
            listener,
            http::router(served.clone(), own, Auth::off()),
            served,
        )
        .await;
    })
}
