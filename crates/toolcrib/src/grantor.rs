//! Grants as people give and take them: checked, kept, and followed at once.
//!
//! REST and the command line both come here, so a grant is the same thing wherever it is given.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use toolcrib_core::permit::presets::{PRESETS, Preset};
use toolcrib_core::permit::{limits, secret_name};
use toolcrib_core::words::CommandLine;
use toolcrib_core::{
    Access, Binding, CallError, Crib, ErrorCode, Grant, Hint, Network, NewGrant, Permit,
    SourceKind, Tool,
};
use toolcrib_sources::{HostPattern, Place, Sources, permits};
use toolcrib_store::GrantBook;

use crate::open::Opened;
use crate::store_handle::{StoreHandle, refused};
use crate::wire::GrantCreate;

/// No path is longer, and nobody names as many things at once.
const MAX_PATH: usize = 4_096;
const MAX_ITEMS: usize = 100;

pub struct Grantor {
    store: Arc<StoreHandle>,
    crib: Arc<Crib>,
    project: Option<PathBuf>,
    place: Arc<Place>,
    sources: Arc<OnceLock<Sources>>,
}

impl Grantor {
    /// `sources` may be filled later, or never where nothing runs on after the change.
    pub fn new(opened: &Opened, sources: Arc<OnceLock<Sources>>) -> Grantor {
        Grantor {
            store: opened.store.clone(),
            crib: opened.crib.clone(),
            project: opened.project.as_ref().map(|project| project.root.clone()),
            place: opened.place.clone(),
            sources,
        }
    }

    fn book(&self) -> Result<GrantBook, CallError> {
        Ok(self.store.ready().map_err(refused)?.grants())
    }

    pub async fn list(&self, tool: Option<&str>) -> Result<Vec<Grant>, CallError> {
        self.book()?.list(tool).await.map_err(refused)
    }

    /// Grants a tool of the catalog what it asks for, or what is named.
    pub async fn give(&self, wanted: &GrantCreate) -> Result<Grant, CallError> {
        let view = self.crib.owners_view();
        let tool = view.find(&wanted.tool)?;
        let mut permit = self.checked(wanted)?;
        for secret in permit.env.iter().filter(|name| secret_name(name).is_some()) {
            if tool.access == Access::Open && !tool.asks.env.contains(secret) {
                return Err(unnamed(tool.name(), secret));
            }
        }
        if wanted.all {
            permit = permit.join(&self.asked(tool));
        }
        for name in &wanted.preset {
            permit = permit.join(&self.preset(name)?);
        }
        let new = of(tool, permit, wanted.follow)?;
        let (grant, _) = self.book()?.add(new).await.map_err(refused)?;
        self.catch_up().await;
        Ok(grant)
    }

    /// Grants each of these tools what it asks for; gives what was granted.
    pub async fn give_declared<'a>(
        &self,
        tools: impl Iterator<Item = &'a Arc<Tool>>,
        follow: bool,
    ) -> Result<Vec<Grant>, CallError> {
        let asking = tools.filter(|tool| !tool.asks.is_empty());
        let new: Result<Vec<NewGrant>, CallError> = asking
            .map(|tool| of(tool, tool.asks.clone(), follow))
            .collect();
        let new = new?;
        if new.is_empty() {
            return Ok(Vec::new());
        }
        let given = self.book()?.add_all(new).await.map_err(refused)?;
        self.catch_up().await;
        Ok(given)
    }

    /// What a tool asks for. A built-in tool is the same in every project, and is granted something in this one.
    fn asked(&self, tool: &Tool) -> Permit {
        let project = self.project.as_deref();
        match tool.source {
            SourceKind::Builtin => tool
                .asks
                .with_paths(|path| permits::absolute(project, path)),
            _ => tool.asks.clone(),
        }
    }

    pub async fn take(&self, id: &str) -> Result<(), CallError> {
        // No other character is in any id, and not every store takes every character.
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let book = self.book()?;
        if !id.chars().all(plain) || !book.revoke(id).await.map_err(refused)? {
            return Err(no_grant());
        }
        self.catch_up().await;
        Ok(())
    }

    /// What a ready set opens here.
    fn preset(&self, name: &str) -> Result<Permit, CallError> {
        let Some(preset) = Preset::named(name) else {
            let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
            let error = bad(format!("there is no preset `{}`", short(name)));
            return Err(error.hint(format!("there are {}", names.join(", "))));
        };
        let home = self.place.environment.get("HOME").and_then(OsStr::to_str);
        let variable = |name: &str| self.place.variable(name);
        let permit = preset.permit(home, variable, |path| Path::new(path).exists());
        let project = self.project.as_deref();
        Ok(permit.with_paths(|path| permits::absolute(project, path)))
    }

    /// What is named, each thing looked at, and every path as it really is.
    fn checked(&self, wanted: &GrantCreate) -> Result<Permit, CallError> {
        let mut permit = wanted.named();
        for list in [&wanted.read, &wanted.write] {
            for path in list {
                if path.is_empty() || path.len() > MAX_PATH || path.contains('\0') {
                    return Err(bad("a path is empty, too long, or contains a null byte")
                        .hint("write the path of a file or folder"));
                }
            }
        }
        let hosts: &[String] = match &permit.network {
            Network::Hosts(hosts) => hosts,
            Network::None | Network::Open => &[],
        };
        if let Some(host) = hosts.iter().find(|host| HostPattern::parse(host).is_err()) {
            return Err(bad(format!("`{}` is not a host", short(host))).hint(HostPattern::HINT));
        }
        if let Some(name) = permit.env.iter().find(|name| !permits::is_variable(name)) {
            return Err(bad(format!("`{}` can't be a variable's name", short(name)))
                .hint("write the name alone, such as API_TOKEN"));
        }
        in_range(wanted)?;
        let lists = [&permit.read, &permit.write, &permit.env];
        if lists.iter().any(|list| list.len() > MAX_ITEMS) || hosts.len() > MAX_ITEMS {
            return Err(bad(format!("a list has more than {MAX_ITEMS} entries"))
                .hint("name folders instead of the files in them"));
        }
        if let (Some(path), None) = (first_relative(&permit), &self.project) {
            return Err(bad(format!(
                "`{}` starts at a project, and there is none",
                short(path)
            ))
            .hint("write an absolute path"));
        }
        let project = self.project.as_deref();
        permit = permit.with_paths(|path| permits::absolute(project, path));
        for path in permit.read.iter().chain(&permit.write) {
            let leads = Path::new(path).canonicalize().ok();
            if let Some(leads) = leads.filter(|leads| leads != Path::new(path)) {
                return Err(bad(format!(
                    "`{}` leads to `{}`, which must be named itself",
                    short(path),
                    leads.display()
                ))
                .hint("name the place that it leads to, if you mean that"));
            }
        }
        Ok(permit)
    }

    async fn catch_up(&self) {
        if let Some(sources) = self.sources.get() {
            sources.regrant(self.store.grants()).await;
        }
    }
}

/// A secret goes into the variable or header that the tool's file names it in; without one it would go nowhere.
fn unnamed(tool: &str, secret: &str) -> CallError {
    bad(format!("`{tool}` does not name `{secret}`, so it would not get it")).hint(format!(
        "say in its file which variable gets it, and save: \"env\": {{\"TOKEN\": \"{secret}\"}} in tool.json and in `tool({{…}})`, @tool(env={{\"TOKEN\": \"{secret}\"}}) in Python"
    ))
}

/// The grant of a permit to a tool.
fn of(tool: &Tool, permit: Permit, follow: bool) -> Result<NewGrant, CallError> {
    let name = tool.name();
    if let Access::Untrusted { project, .. } = &tool.access {
        let error = format!("tool `{name}` belongs to a project that is not trusted");
        let trust = CommandLine::new("toolcrib trust").operand(project.display());
        return Err(CallError::denied(error)
            .hint(Hint::run(trust).after(" says yes to it, and grants what its tools declare")));
    }
    let Some(origin) = tool.origin() else {
        return Err(bad(format!("nothing can be granted to `{name}`"))
            .hint("this built-in tool needs no grant; a file must have a path that is UTF-8"));
    };
    if permit.is_empty() {
        return Err(bad(format!("there is nothing to grant to `{name}`")).hint(
            "`--all` grants what it declares, if it declares anything; else name it: --read, --write, --net, --exec, --install, --memory, --cpu, --env, --preset",
        ));
    }
    Ok(NewGrant {
        tool: name.to_owned(),
        origin: origin.to_owned(),
        binding: match follow {
            true => Binding::Follow,
            false => Binding::Content(tool.content.to_string()),
        },
        permit,
    })
}

/// A limit that is granted is more than every tool has, and no more than any machine has.
fn in_range(wanted: &GrantCreate) -> Result<(), CallError> {
    use limits::{DEFAULT_CPU_PERCENT, DEFAULT_MEMORY_MB, MAX_CPU_PERCENT, MAX_MEMORY_MB};
    if let Some(mb) = wanted.memory_mb {
        if mb <= DEFAULT_MEMORY_MB {
            return Err(bad(format!(
                "{mb} MB of memory need no grant: every tool may use {DEFAULT_MEMORY_MB} MB"
            ))
            .hint(
                "name more than that; a tool gets less by `maxMemoryMB` in its `sandbox` block",
            ));
        }
        if mb > MAX_MEMORY_MB {
            return Err(
                bad(format!("{mb} MB of memory are more than can be granted"))
                    .hint(format!("name at most {MAX_MEMORY_MB} megabytes")),
            );
        }
    }
    if let Some(percent) = wanted.cpu_percent {
        if percent <= DEFAULT_CPU_PERCENT {
            return Err(bad(format!(
                "{percent} % of a processor need no grant: every tool may use one processor ({DEFAULT_CPU_PERCENT} %)"
            ))
            .hint("name more than that, such as 200 for two processors; a tool gets less by `maxCpuPercent` in its `sandbox` block"));
        }
        if percent > MAX_CPU_PERCENT {
            return Err(bad(format!(
                "{percent} % of processor time are more than can be granted"
            ))
            .hint(format!(
                "name at most {MAX_CPU_PERCENT}; 100 is one processor"
            )));
        }
    }
    Ok(())
}

fn first_relative(permit: &Permit) -> Option<&str> {
    let mut paths = permit.read.iter().chain(&permit.write);
    paths
        .find(|path| !path.starts_with('/'))
        .map(String::as_str)
}

fn bad(message: impl Into<String>) -> CallError {
    CallError::new(ErrorCode::BadRequest, message)
}

fn short(text: &str) -> String {
    text.chars().take(100).collect()
}
/// The same words, whether there is none or who asks does not see it.
fn no_grant() -> CallError {
    CallError::new(ErrorCode::NotFound, "there is no such grant")
        .hint("GET /api/grants lists them, and so does `toolcrib grant --list`")
}
