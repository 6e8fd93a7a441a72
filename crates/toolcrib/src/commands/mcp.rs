//! `toolcrib mcp`: the tools for one agent, over stdin and stdout.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use clap::Args;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::CancellationToken;
use toolcrib_core::ErrorCode;
use toolcrib_core::call::DEFAULT_AGENT;
use toolcrib_sources::Follow;

use super::relay::{self, Stream};
use super::serve::asked_to_stop;
use super::{Done, Scene};
use crate::config::Flags;
use crate::failure::Failure;
use crate::open::Opened;
use crate::printer::Printer;
use crate::serve::{Served, mcp};

/// Speak MCP on stdin and stdout, for an agent that starts it
#[derive(Debug, Args)]
#[command(
    after_help = "Nothing but the protocol is written to stdout; what a person should know goes to stderr."
)]
pub struct Mcp {
    /// Print `mcpServers` and `allowedTools` for Claude agents instead
    #[arg(long)]
    pub print_config: bool,
    /// Run alone, even where a crib serves this project
    #[arg(long)]
    pub standalone: bool,
}

impl Mcp {
    pub async fn run(self, scene: &Scene) -> Done {
        let project = scene.globals.project.as_deref();
        let opened = Opened::wire(scene.env.clone(), Flags::default(), project).await?;
        if self.print_config {
            return print_config(scene, &opened).await;
        }
        let socket = opened.socket().filter(|_| !self.standalone);
        let crib = match &socket {
            Some(socket) => relay::connect(socket).await,
            None => None,
        };
        let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
        let ended = match (socket, crib) {
            (Some(socket), Some(crib)) => {
                scene.printer.remark(format!(
                    "toolcrib {}: the crib that serves {} answers",
                    crate::VERSION,
                    opened.project_line()
                ));
                let alone = async || {
                    let (ours, theirs) = tokio::io::duplex(64 * 1_024);
                    let printer = scene.printer;
                    tokio::spawn(async move {
                        let (input, output) = tokio::io::split(theirs);
                        let _ = serve_alone(opened, printer, input, output).await;
                    });
                    Box::new(ours) as Box<dyn Stream>
                };
                let relayed = relay::run(input, output, socket, crib, alone).await;
                relayed.map_err(|error| error.to_string())
            }
            _ => serve_alone(opened, scene.printer, input, output).await,
        };
        ended.map_err(|reason| {
            Failure::new(ErrorCode::Unavailable, "the client did not speak MCP").cause(reason).hint(
                "this command is started by an agent; `toolcrib connect CLIENT --print` shows how",
            )
        })?;
        Ok(0)
    }
}

/// Loads the tools here and answers on the two streams until the client hangs up.
async fn serve_alone(
    opened: Opened,
    printer: Printer,
    input: impl AsyncRead + Send + Sync + Unpin + 'static,
    output: impl AsyncWrite + Send + Sync + Unpin + 'static,
) -> Result<(), String> {
    let sources = opened.load(Follow::Changes).await;
    printer.remark(format!(
        "toolcrib {} serves {} tools of {}",
        crate::VERSION,
        opened.crib.view(DEFAULT_AGENT).listed().count(),
        opened.project_line()
    ));
    let root = opened.project.as_ref().map(|project| project.root.clone());
    let served = Arc::new(Served::new(opened.crib.clone()).with_project(root));
    let (input, hung_up) = Heard::new(input);
    let ended = tokio::select! {
        () = opened.follow(&sources, |reasons| {
            for reason in reasons {
                tracing::warn!(reason, "degraded");
            }
        }) => Ok(()),
        ended = mcp::lines(mcp::Mcp::new(served), input, output) => ended,
        () = async {
            // Calls in flight still have their grace; those that it does not suffice for are given up.
            hung_up.cancelled().await;
            opened.place.workers.closing();
            std::future::pending().await
        } => Ok(()),
        // Said before the calls in flight are dropped, which happens when this is over.
        () = async {
            asked_to_stop().await;
            opened.place.workers.closing();
        } => Ok(()),
    };
    opened.close().await;
    ended
}

/// A stream that tells when it ends.
struct Heard<R> {
    stream: R,
    ended: CancellationToken,
}

impl<R> Heard<R> {
    fn new(stream: R) -> (Heard<R>, CancellationToken) {
        let ended = CancellationToken::new();
        let told = ended.clone();
        (Heard { stream, ended }, told)
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Heard<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let room = buffer.remaining();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if read.is_ready() && room > 0 && buffer.remaining() == room {
            self.ended.cancel();
        }
        read
    }
}

/// The form of seed 000: what a Claude agent takes as `mcpServers` and `allowedTools`.
async fn print_config(scene: &Scene, opened: &Opened) -> Done {
    let _sources = opened.load(Follow::Nothing).await;
    let view = opened.crib.view(DEFAULT_AGENT);
    let allowed: Vec<String> = view.listed().map(|tool| tool.mcp_name()).collect();
    let mut args = vec!["mcp".to_owned()];
    if let Some(project) = &opened.project {
        args.extend(["--project".to_owned(), project.root.display().to_string()]);
    }
    let server = json!({"type": "stdio", "command": "toolcrib", "args": args});
    scene
        .printer
        .json(&json!({"mcpServers": {"toolcrib": server}, "allowedTools": allowed}));
    Ok(0)
}
