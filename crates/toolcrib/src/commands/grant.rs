//! `toolcrib grant`: yes to what one tool may do beyond the default.

use std::path::Path;

use clap::Args;
use serde::de::IgnoredAny;
use serde_json::json;
use toolcrib_core::grant::{BUILTIN, REGISTERED};
use toolcrib_core::words::{CommandLine, inline, line};
use toolcrib_core::{ErrorCode, SourceKind};

use super::reach::{Reach, segment};
use super::{Done, Scene, Target};
use crate::failure::Failure;
use crate::printer::{BOLD, Column, GREEN, plain};
use crate::wire::{GrantCreate, GrantList, GrantView, NetView, ToolView};

/// What `--net` without a host stands for.
const OWN_NETWORK: &str = "*";

/// Grant a tool what it may do beyond the default, or take it back
#[derive(Debug, Args)]
#[command(
    after_help = "By default a tool reads the project and itself, and that is all: no writes, no network, no further \
    programs, no variables but a few, no packages installed, 512 MB of memory and one processor. A grant is for one tool as it is now; an edit ends it, unless --follow was said. \
    `.toolcrib` and `.git` are not written unless that very path is granted.\n\n  \
    toolcrib grant weather --all\n  toolcrib grant weather --net api.example.com:443 --env API_KEY\n  \
    toolcrib grant weather --revoke"
)]
pub struct Grant {
    /// The tool; with --revoke also the id of one grant
    #[arg(value_name = "NAME", required_unless_present = "list")]
    pub name: Option<String>,
    /// All that it declares
    #[arg(long)]
    pub all: bool,
    /// A file or folder that it may read; may be given several times
    #[arg(long, value_name = "PATH")]
    pub read: Vec<String>,
    /// A file or folder that it may read and write
    #[arg(long, value_name = "PATH")]
    pub write: Vec<String>,
    /// A host that it may call, `*.suffix` for all below one; without a host: the machine's own network, loopback included
    #[arg(long, value_name = "HOST[:PORT]", num_args = 0..=1, default_missing_value = OWN_NETWORK)]
    pub net: Vec<String>,
    /// To run programs beyond its own
    #[arg(long)]
    pub exec: bool,
    /// To install the packages that it names
    #[arg(long)]
    pub install: bool,
    /// Megabytes of memory that it may use; every tool has 512
    #[arg(long, value_name = "MB", value_parser = megabytes)]
    pub memory: Option<u64>,
    /// Processor time that it may use: 200 for two processors; every tool has 100
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub cpu: Option<u32>,
    /// An environment variable that it may read
    #[arg(long, value_name = "VAR")]
    pub env: Vec<String>,
    /// What a tool needs that runs a build: `cargo`, `node`, `python`, `go` or `git`; what that opens is printed
    #[arg(long, value_name = "NAME", value_parser = ["cargo", "node", "python", "go", "git"])]
    pub preset: Vec<String>,
    /// Keep the grant when the tool is edited
    #[arg(long)]
    pub follow: bool,
    /// Take back all that the tool was granted
    #[arg(long, conflicts_with_all = ["all", "read", "write", "net", "exec", "install", "memory", "cpu", "env", "preset", "follow", "list"])]
    pub revoke: bool,
    /// List what was granted, to all tools or to those of this name
    #[arg(long, conflicts_with_all = ["all", "read", "write", "net", "exec", "install", "memory", "cpu", "env", "preset", "follow"])]
    pub list: bool,
    /// With `--list`: grants of all projects, not of this one and your own tools alone
    #[arg(long, requires = "list")]
    pub all_projects: bool,
    #[command(flatten)]
    pub target: Target,
}

fn megabytes(text: &str) -> Result<u64, String> {
    let number = text.parse();
    number.map_err(|_| "write megabytes as a whole number, such as 2048".to_owned())
}

fn percent(text: &str) -> Result<u32, String> {
    let number = text.trim_end_matches('%').parse();
    number.map_err(|_| "write percent as a whole number, such as 200 for two processors".to_owned())
}

impl Grant {
    pub async fn run(self, scene: &Scene) -> Done {
        let reach = Reach::open(scene, &self.target).await?;
        let done = match (self.list, self.revoke) {
            (true, _) => list(scene, &reach, self.name.as_deref(), self.all_projects).await,
            (_, true) => revoke(scene, &reach, &self.name.unwrap_or_default()).await,
            _ => give(scene, &reach, &self.wanted(&scene.env.directory)).await,
        };
        reach.close().await;
        done
    }

    /// What is to be granted, with paths that hold wherever it is kept.
    fn wanted(self, here: &Path) -> GrantCreate {
        let absolute = |paths: Vec<String>| -> Vec<String> {
            let each = paths.into_iter().map(|path| here.join(path));
            each.map(|path| path.to_string_lossy().into_owned())
                .collect()
        };
        let net = match self.net.iter().any(|host| host == OWN_NETWORK) {
            true => Some(NetView::Open(true)),
            false => (!self.net.is_empty()).then_some(NetView::Hosts(self.net)),
        };
        GrantCreate {
            tool: self.name.unwrap_or_default(),
            all: self.all,
            preset: self.preset,
            read: absolute(self.read),
            write: absolute(self.write),
            net,
            exec: self.exec,
            install: self.install,
            memory_mb: self.memory,
            cpu_percent: self.cpu,
            env: self.env,
            follow: self.follow,
        }
    }
}

async fn give(scene: &Scene, reach: &Reach, wanted: &GrantCreate) -> Done {
    let grant: GrantView = reach.post("/grants", wanted).await?;
    let printer = scene.printer;
    if printer.is_json() {
        printer.json(&grant);
        return Ok(0);
    }
    printer.line(format!(
        "{GREEN}granted{GREEN:#} to {BOLD}{}{BOLD:#} ({}), {}",
        plain(&grant.tool),
        plain(&grant.origin),
        until(&grant)
    ));
    for words in grant.permit.words() {
        printer.line(format!("  {}", plain(&words)));
    }
    printer.hint(format!(
        "`{}` takes it back",
        CommandLine::new("toolcrib grant")
            .operand(&grant.tool)
            .switch("--revoke")
    ));
    Ok(0)
}

async fn list(scene: &Scene, reach: &Reach, name: Option<&str>, all_projects: bool) -> Done {
    let tool = name.map(|name| ("tool", name.to_owned()));
    let projects = all_projects.then(|| ("project", "*".to_owned()));
    let query: Vec<_> = tool.into_iter().chain(projects).collect();
    let list: GrantList = reach.ask("/grants", &query).await?;
    let printer = scene.printer;
    if printer.is_json() {
        printer.json(&list);
        return Ok(0);
    }
    if list.grants.is_empty() {
        printer.line("nothing was granted");
        printer.hint("`toolcrib list` shows which tools are `denied`, `toolcrib grant NAME --all` grants what one declares");
        return Ok(0);
    }
    let rows = list.grants.iter().map(|grant| {
        vec![
            grant.tool.clone(),
            grant.permit.words().join("; "),
            until(grant).to_owned(),
            grant.origin.clone(),
            grant.id.clone(),
        ]
    });
    let columns = [
        Column::whole("tool"),
        Column::cut("granted"),
        Column::whole("for"),
        Column::spare("origin", 2),
        Column::spare("id", 1),
    ];
    printer.table(&columns, &rows.collect::<Vec<_>>());
    Ok(0)
}

fn until(grant: &GrantView) -> &'static str {
    match grant.follow {
        true => "also after edits",
        false => "as it is now",
    }
}

/// Takes back one grant by its id, or all of one tool.
async fn revoke(scene: &Scene, reach: &Reach, name: &str) -> Done {
    let GrantList { grants: all, .. } = reach.get("/grants?project=*").await?;
    let ids: Vec<&str> = match all.iter().find(|grant| grant.id == name) {
        Some(grant) => vec![&grant.id],
        None => {
            let origin = match reach.tool(name).await {
                Ok(tool) => origin(tool),
                Err(failure) => return Err(elsewhere(failure, name, &all)),
            };
            let own = all
                .iter()
                .filter(|grant| grant.tool == name && grant.origin == origin);
            own.map(|grant| grant.id.as_str()).collect()
        }
    };
    for id in &ids {
        let path = format!("/grants/{}", segment(id)?);
        let _: IgnoredAny = reach.delete(&path).await?;
    }
    let printer = scene.printer;
    if printer.is_json() {
        printer.json(&json!({"name": name, "revoked": ids, "count": ids.len()}));
        return Ok(0);
    }
    match ids.len() {
        0 => printer.line(format!("nothing was granted to {}", plain(name))),
        1 => printer.line(format!("{GREEN}took back{GREEN:#} one grant")),
        count => printer.line(format!("{GREEN}took back{GREEN:#} {count} grants")),
    }
    Ok(0)
}

fn origin(tool: ToolView) -> String {
    let kept = match tool.source == SourceKind::Builtin.as_str() {
        true => BUILTIN,
        false => REGISTERED,
    };
    tool.file.unwrap_or_else(|| kept.to_owned())
}

/// A tool that is not here may still have grants, under the place where it was.
fn elsewhere(failure: Failure, name: &str, all: &[GrantView]) -> Failure {
    let same = all.iter().filter(|grant| grant.tool == name);
    let ids: Vec<String> = same
        .map(|grant| format!("{} ({})", line(&grant.id), inline(&grant.origin)))
        .collect();
    match ids.is_empty() || failure.code != ErrorCode::UnknownTool {
        true => failure,
        false => failure.hint(format!(
            "tools of this name elsewhere have grants; take one back by its id: {}",
            ids.join(", ")
        )),
    }
}
