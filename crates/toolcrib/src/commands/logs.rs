//! `toolcrib logs`: what a tool's worker said on stderr, or the record of calls.

use std::time::Duration;

use clap::Args;

use super::calls::{Shown, not_both, parse_age};
use super::reach::Reach;
use super::{Done, Scene, Target};
use crate::failure::Failure;
use crate::wire::LogView;

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
    /// Keep showing what is said or called, until Ctrl-C
    #[arg(long, short)]
    pub follow: bool,
    /// Show the record of calls, newest first
    #[arg(long)]
    pub calls: bool,
    /// Only calls of this tool
    #[arg(long, value_name = "NAME", requires = "calls")]
    pub tool: Option<String>,
    /// Calls of all projects, not of this one alone
    #[arg(long, requires = "calls")]
    pub all_projects: bool,
    /// Only calls that failed
    #[arg(long, requires = "calls")]
    pub failed: bool,
    /// Only calls that began within this time: 90s, 15m, 1h, 7d
    #[arg(long, value_name = "AGE", requires = "calls", value_parser = parse_age)]
    pub since: Option<Duration>,
    /// At most this many calls
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
                    all_projects: self.all_projects,
                    failed: self.failed,
                    since: self.since,
                    limit: self.limit as usize,
                    follow: self.follow,
                };
                return shown.run(scene, &self.target).await;
            }
        };
        let worker = Worker {
            name,
            follow: self.follow,
        };
        worker.run(scene, &self.target).await
    }
}

/// The worker whose log is shown.
struct Worker {
    name: String,
    follow: bool,
}

impl Worker {
    async fn run(self, scene: &Scene, target: &Target) -> Done {
        let reach = Reach::open(scene, target).await?;
        let log = read_on(&reach, &self.name, 0, None).await?;
        if log.text.is_empty() && !self.follow && !scene.printer.is_json() {
            let line = format!("`{}` has said nothing yet", self.name);
            scene.printer.note(line);
        }
        self.print(scene, &log);
        if !self.follow {
            return Ok(0);
        }
        let mut at = log.end;
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let log = read_on(&reach, &self.name, at, None).await?;
            self.print(scene, &log);
            at = log.end;
        }
    }

    fn print(&self, scene: &Scene, log: &LogView) {
        if scene.printer.is_json() {
            for line in log.text.lines() {
                let said = serde_json::json!({"tool": self.name, "line": line});
                scene.printer.json_line(&said);
            }
        } else if !log.text.is_empty() {
            scene.printer.text(log.text.trim_end_matches('\n'));
        }
    }
}

/// What a tool's worker said since its log reached so far; at most `limit` bytes of it.
pub async fn read_on(
    reach: &Reach,
    tool: &str,
    from: u64,
    limit: Option<u64>,
) -> Result<LogView, Failure> {
    let mut query = vec![("tool", tool.to_owned()), ("from", from.to_string())];
    query.extend(limit.map(|limit| ("limit", limit.to_string())));
    reach.ask("/logs", &query).await
}
