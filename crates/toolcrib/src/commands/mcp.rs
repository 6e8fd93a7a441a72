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
use toolcrib_core::words::counted;
use toolcrib_sources::Follow;

use super::relay::{self, Door, NoCrib, Stream};
use super::serve::asked_to_stop;
use super::{Done, Scene};
use crate::config::Flags;
use crate::env;
use crate::failure::Failure;
use crate::open::Opened;
use crate::printer::Printer;
use crate::serve::auth::Who;
use crate::serve::http::LAST_WORDS;
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
    /// The agent whose tools these are; `default` where none is named
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// What the agent is handed of its tools, whatever its settings say: all, a search, or whichever is shorter
    #[arg(long, value_name = "SURFACE", value_parser = ["auto", "list", "search"])]
    pub surface: Option<String>,
    /// Run alone, even where a crib serves this project
    #[arg(long)]
    pub standalone: bool,
}

impl Mcp {
    pub async fn run(self, scene: &Scene) -> Done {
        let project = scene.globals.project.as_deref();
        let opened = Opened::wire(scene.env.clone(), Flags::default(), project).await?;
        let who = match &self.agent {
            None => Who::owner(),
            Some(agent) => Who::owner().choose(agent, &opened.crib)?,
        };
        let surface = self.surface.as_deref().and_then(|name| name.parse().ok());
        let who = who.with_surface(surface);
        if self.print_config {
            return print_config(scene, &opened, self.agent.as_deref()).await;
        }
        let session = session(scene);
        let socket = opened.socket().filter(|_| !self.standalone);
        let door = socket.map(|socket| Door {
            socket,
            session: session.clone(),
            agent: self.agent.clone(),
            surface,
        });
        let crib = match &door {
            Some(door) => relay::connect(door).await,
            None => Err(NoCrib::Silent),
        };
        let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
        let ended = match (&door, crib) {
            (Some(door), Ok(crib)) => {
                scene.printer.remark(format!(
                    "toolcrib {}: the crib that serves {} answers",
                    crate::VERSION,
                    opened.project_line()
                ));
                let alone = async |reason| {
                    say_why(scene.printer, &reason);
                    let (ours, theirs) = tokio::io::duplex(64 * 1_024);
                    let (printer, caller) = (scene.printer, (who, session));
                    tokio::spawn(async move {
                        let (input, output) = tokio::io::split(theirs);
                        let _ = serve_alone(opened, printer, caller, input, output).await;
                    });
                    Box::new(ours) as Box<dyn Stream>
                };
                let relayed = relay::run(input, output, door, crib, alone).await;
                relayed.map_err(|error| error.to_string())
            }
            (_, reason) => {
                if let Err(reason) = reason {
                    say_why(scene.printer, &reason);
                }
                serve_alone(opened, scene.printer, (who, session), input, output).await
            }
        };
        ended.map_err(|reason| {
            Failure::new(ErrorCode::Unavailable, "the client did not speak MCP").cause(reason).hint(
                "this command is started by an agent; `toolcrib connect CLIENT --print` shows how",
            )
        })?;
        Ok(0)
    }
}

/// Says why the crib that serves is not used, where there is one.
fn say_why(printer: Printer, reason: &NoCrib) {
    match reason {
        NoCrib::Silent => {}
        NoCrib::OtherVersion(other) => printer.remark(format!(
            "the crib that serves this project is toolcrib {other}, and this is {}, so the tools are loaded here too; \
             restart `toolcrib serve` with this version to share one set of workers",
            crate::VERSION
        )),
    }
}

/// Loads the tools here and answers on the two streams until the client hangs up.
async fn serve_alone(
    opened: Opened,
    printer: Printer,
    (who, session): (Who, Arc<str>),
    input: impl AsyncRead + Send + Sync + Unpin + 'static,
    output: impl AsyncWrite + Send + Sync + Unpin + 'static,
) -> Result<(), String> {
    let root = opened.project.as_ref().map(|project| project.root.clone());
    let served = Served::new(opened.crib.clone())
        .with_project(root)
        .with_list_wait(opened.settings.list_wait);
    let served = Arc::new(served);
    let (input, hung_up) = Heard::new(input);
    let ended = tokio::select! {
        // The client is answered meanwhile: what is known at once is there in a moment, and the rest comes later.
        () = async {
            let sources = opened.start(Follow::Changes).await;
            printer.remark(format!(
                "toolcrib {} serves {} of {}",
                crate::VERSION,
                counted(opened.crib.view(who.agent()).listed().count(), "tool"),
                opened.project_line()
            ));
            let followed = opened.follow(&sources, |reasons| {
                for reason in reasons {
                    tracing::warn!(reason, "degraded");
                }
            });
            tokio::join!(followed, opened.tell_progress());
        } => Ok(()),
        ended = mcp::lines_until(mcp::Mcp::new(served.clone()), (who.clone(), session), input, output, async {
            asked_to_stop().await;
            // Said before the calls in flight are given up, so that workers are asked to end. Then they are answered.
            opened.place.workers.closing();
            served.given_up.cancel();
            let _ = tokio::time::timeout(LAST_WORDS, served.calls_ended()).await;
        }) => ended,
        () = async {
            // Calls in flight still have their grace; those that it does not suffice for are given up.
            hung_up.cancelled().await;
            opened.place.workers.closing();
            std::future::pending().await
        } => Ok(()),
    };
    opened.close().await;
    ended
}

/// What the calls of this connection have in common: the client's own session where it tells, else a name of ours.
fn session(scene: &Scene) -> Arc<str> {
    let told = scene.env.text(env::CLAUDE_SESSION);
    let is_name =
        |name: &&str| name.len() <= 128 && name.bytes().all(|byte| byte.is_ascii_graphic());
    told.filter(is_name)
        .map_or_else(mcp::new_session, Arc::from)
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
async fn print_config(scene: &Scene, opened: &Opened, agent: Option<&str>) -> Done {
    let _sources = opened.load().await;
    let view = opened.crib.view(agent.unwrap_or(DEFAULT_AGENT));
    let allowed: Vec<String> = view.listed().map(|tool| tool.mcp_name()).collect();
    let mut args = vec!["mcp".to_owned()];
    if let Some(agent) = agent {
        args.extend(["--agent".to_owned(), agent.to_owned()]);
    }
    if let Some(project) = &opened.project {
        args.extend(["--project".to_owned(), project.root.display().to_string()]);
    }
    let server = json!({"type": "stdio", "command": "toolcrib", "args": args});
    scene
        .printer
        .json(&json!({"mcpServers": {"toolcrib": server}, "allowedTools": allowed}));
    Ok(0)
}
