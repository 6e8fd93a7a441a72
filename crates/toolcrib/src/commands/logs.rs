//! `toolcrib logs`: what a tool's worker said on stderr, or the record of calls.

use std::time::Duration;

use clap::Args;
use toolcrib_core::{ErrorCode, SourceKind};
use toolcrib_sources::Follow;
use toolcrib_store::LogFiles;

use super::calls::{Shown, not_both, parse_age};
use super::{Done, Scene, Target};
use crate::config::Flags;
use crate::failure::Failure;
use crate::open::Opened;

/// How much of the past is shown.
const PAST: u64 = 64 * 1_024;
/// How often a log is looked at when it is followed.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Show what a tool's worker said on stderr, or the record of calls
#[derive(Debug, Args)]
#[command(
    after_help = "`--calls` reads the store of every crib of this user; `--host` and `--port` ask a crib elsewhere."
)]
pub struct Logs {
    /// The tool's name
    #[arg(required_unless_present = "calls")]
    pub name: Option<String>,
    /// Go on showing what is said or called, until Ctrl-C
    #[arg(long, short)]
    pub follow: bool,
    /// Show the record of calls, newest first
    #[arg(long)]
    pub calls: bool,
    /// Only calls of this tool
    #[arg(long, value_name = "NAME", requires = "calls")]
    pub tool: Option<String>,
    /// Only calls that failed
    #[arg(long, requires = "calls")]
    pub failed: bool,
    /// Only calls that began no longer ago: 90s, 15m, 1h, 7d
    #[arg(long, value_name = "AGE", requires = "calls", value_parser = parse_age)]
    pub since: Option<Duration>,
    /// At most so many calls
    #[arg(long, value_name = "N", requires = "calls", default_value_t = 50,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub limit: u32,
    #[command(flatten)]
    pub target: Target,
}

impl Logs {
    pub async fn run(self, scene: &Scene) -> Done {
        let name = match (self.name, self.calls) {
            (Some(_), true) => return Err(not_both()),
            (Some(name), false) => name,
            (None, _) => {
                let shown = Shown {
                    tool: self.tool,
                    failed: self.failed,
                    since: self.since,
                    limit: self.limit as usize,
                    follow: self.follow,
                };
                return shown.run(scene, &self.target).await;
            }
        };
        Worker {
            name,
            follow: self.follow,
        }
        .run(scene)
        .await
    }
}

/// The worker whose log is shown.
struct Worker {
    name: String,
    follow: bool,
}

impl Worker {
    async fn run(self, scene: &Scene) -> Done {
        let opened = Opened::wire(
            scene.env.clone(),
            Flags::default(),
            scene.globals.project.as_deref(),
        )
        .await?;
        let log = log_of(&opened, &self.name).await?;
        let mut at = self.print(scene, &opened.logs, &log, 0)?;
        if !self.follow {
            return Ok(0);
        }
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            if opened.logs.end(&log) != at {
                at = self.print(scene, &opened.logs, &log, at)?;
            }
        }
    }

    fn print(&self, scene: &Scene, logs: &LogFiles, log: &str, from: u64) -> Result<u64, Failure> {
        let (text, end) = logs.read(log, from, PAST).map_err(|error| {
            Failure::new(
                ErrorCode::Unavailable,
                format!("the log of `{}` can't be read", self.name),
            )
            .cause(error)
            .hint("check the permissions of Toolcrib's data folder")
        })?;
        let text = String::from_utf8_lossy(&text);
        if scene.printer.is_json() {
            for line in text.lines() {
                let said = serde_json::json!({"tool": self.name, "line": line});
                scene.printer.json_line(&said);
            }
        } else if text.is_empty() && from == 0 && !self.follow {
            scene
                .printer
                .note(format!("`{}` has said nothing yet", self.name));
        } else if !text.is_empty() {
            scene.printer.text(text.trim_end_matches('\n'));
        }
        Ok(end)
    }
}

/// What the tool's log is called: its file's name without the suffix. A program that does not load has one too.
pub async fn log_of(opened: &Opened, name: &str) -> Result<String, Failure> {
    let _sources = opened.load(Follow::Nothing).await;
    let view = opened.crib.owners_view();
    match view.find(name) {
        Ok(tool) if matches!(tool.source, SourceKind::Builtin | SourceKind::Plugin) => {
            Err(Failure::new(
                ErrorCode::BadRequest,
                format!("`{name}` has no process of its own, so there is no log"),
            )
            .hint("what its program says on stderr comes with the outcome of a call"))
        }
        Ok(tool) => {
            let log = tool.module.split_once('.').map_or(name, |(_, stem)| stem);
            Ok(log.to_owned())
        }
        Err(_) if opened.logs.file(name).exists() => Ok(name.to_owned()),
        Err(error) => Err(error.into()),
    }
}
