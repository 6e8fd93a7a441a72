//! Swaps snapshots: takes what sources found, settles names, and puts a new catalog in place of the old; or takes new
//! profiles and leaves the catalog as it is.
//!
//! Readers take a snapshot without a lock and keep it as long as they like. Nothing is loaded here: start-up is
//! an ordinary [`Registry::apply`] with one large batch.
//!
//! Why: `docs/design/0001-one-catalog-swap.md`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwap;
use tokio::sync::watch;

use crate::catalog::{Catalog, Tools};
use crate::middleware::Shared;
use crate::source::{ErrorType, Problem, Rank, Severity, SourceKey, SourceKind, Update};
use crate::words::CommandLine;
use crate::{Access, CallError, Hint, Profile, Profiles, Selection, Tool, View};

/// Tells the time of day, in milliseconds since the epoch.
pub type Clock = fn() -> u64;

/// What one [`Registry::apply`] changed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Change {
    pub version: u64,
    pub added: Vec<String>,
    pub changed: Vec<String>,
    pub removed: Vec<String>,
    /// Problems that were not there before.
    pub new_problems: Vec<Problem>,
    /// Were there problems that are gone now?
    pub mended: bool,
}

impl Change {
    pub fn tools_changed(&self) -> bool {
        !(self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty())
    }

    /// Adds what a later change brought.
    pub fn join(&mut self, later: Change) {
        self.version = self.version.max(later.version);
        self.added.extend(later.added);
        self.changed.extend(later.changed);
        self.removed.extend(later.removed);
        self.new_problems.extend(later.new_problems);
        self.mended |= later.mended;
    }

    fn is_nothing(&self) -> bool {
        !self.tools_changed() && self.new_problems.is_empty() && !self.mended
    }
}

/// The tools and the profiles of one moment, and the views that they give.
pub(crate) struct Snapshot {
    catalog: Arc<Catalog>,
    profiles: Arc<Profiles>,
    /// One per profile, made when first asked for.
    views: Vec<OnceLock<Arc<View>>>,
    owners: OnceLock<Arc<View>>,
    /// What those see who have no profile.
    nobodys: OnceLock<Arc<View>>,
}

impl Snapshot {
    fn new(catalog: Arc<Catalog>, profiles: Arc<Profiles>) -> Snapshot {
        Snapshot {
            views: profiles.all().iter().map(|_| OnceLock::new()).collect(),
            catalog,
            profiles,
            owners: OnceLock::new(),
            nobodys: OnceLock::new(),
        }
    }

    /// The same one for everybody who has the same profile. Nothing is in it for an agent that has none.
    pub fn view(&self, agent: &str, shared: &Arc<Shared>) -> Arc<View> {
        match self.profiles.place_of(agent) {
            Some(place) => self.view_at(place, shared).clone(),
            None => self.nobodys_view(shared),
        }
    }

    /// What a profile gives, for those who look at profiles.
    pub fn view_named(&self, profile: &str, shared: &Arc<Shared>) -> Option<Arc<View>> {
        let place = self.profiles.place_named(profile)?;
        Some(self.view_at(place, shared).clone())
    }

    pub fn profiles(&self) -> &Profiles {
        &self.profiles
    }

    pub fn admits(&self, agent: &str) -> Result<(), CallError> {
        self.profiles.admits(agent)
    }

    fn view_at(&self, place: usize, shared: &Arc<Shared>) -> &Arc<View> {
        let profile = &self.profiles.all()[place];
        self.views[place].get_or_init(|| {
            let view = View::new(&self.catalog, profile.sees(), profile, shared);
            Arc::new(view)
        })
    }

    /// Everything there is, under the default profile.
    pub fn owners_view(&self, shared: &Arc<Shared>) -> Arc<View> {
        let default = &self.profiles.all()[0];
        let view = self.owners.get_or_init(|| {
            if default.sees().is_everything() {
                return self.view_at(0, shared).clone();
            }
            let everything = Selection::default();
            Arc::new(View::new(&self.catalog, &everything, default, shared))
        });
        view.clone()
    }

    fn nobodys_view(&self, shared: &Arc<Shared>) -> Arc<View> {
        let view = self.nobodys.get_or_init(|| {
            let settings = self.profiles.all()[0].settings().clone();
            let nobody = Profile::new("nobody", Selection::nothing(), settings);
            let (sees, nobody) = (Selection::nothing(), Arc::new(nobody));
            Arc::new(View::new(&self.catalog, &sees, &nobody, shared))
        });
        view.clone()
    }
}

pub(crate) struct Registry {
    current: ArcSwap<Snapshot>,
    /// What each part holds; its lock is every writer's.
    parts: Mutex<BTreeMap<SourceKey, Update>>,
    swaps: watch::Sender<()>,
    clock: Clock,
}

impl Registry {
    pub fn new(clock: Clock, profiles: Profiles) -> Registry {
        let first = Snapshot::new(Arc::default(), Arc::new(profiles));
        Registry {
            current: ArcSwap::from_pointee(first),
            parts: Mutex::default(),
            swaps: watch::Sender::new(()),
            clock,
        }
    }

    /// What stands now; it never changes under its holder.
    pub fn snapshot(&self) -> arc_swap::Guard<Arc<Snapshot>> {
        self.current.load()
    }

    /// Wakes those who wait for a swap, though there was none: what they wait for may have come in another way.
    pub fn wake(&self) {
        self.swaps.send_replace(());
    }

    /// Wakes whenever another snapshot was swapped in.
    pub fn swaps(&self) -> watch::Receiver<()> {
        self.swaps.subscribe()
    }

    fn swap(&self, catalog: Arc<Catalog>, profiles: Arc<Profiles>) {
        self.current
            .store(Arc::new(Snapshot::new(catalog, profiles)));
        self.swaps.send_replace(());
    }

    /// Puts these profiles in place of those that held so far.
    pub fn set_profiles(&self, profiles: Profiles) {
        let _writing = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        self.swap(self.snapshot().catalog.clone(), Arc::new(profiles));
    }

    /// Takes the new content of some parts and swaps the catalog in if a reader could tell the difference.
    pub fn apply(&self, updates: Vec<Update>) -> Change {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.snapshot();
        let before = &now.catalog;
        if updates.is_empty() && before.version() > 0 {
            return Change {
                version: before.version(),
                ..Change::default()
            };
        }
        for update in updates {
            if update.is_gone() {
                parts.remove(&update.key);
            } else {
                parts.insert(update.key.clone(), update);
            }
        }
        let (tools, mut problems) = assign_names(&parts);
        // What keeps nothing from working comes last.
        problems.sort_by_key(|problem| problem.severity == Severity::Note);
        let idle = parts
            .values()
            .filter(|part| part.tools.is_empty() && part.problems.is_empty());
        let idle: Vec<_> = idle.filter_map(|part| part.file.clone()).collect();
        stamp(&mut problems, before.problems(), (self.clock)());
        let mut change = difference(before, &tools, &problems);
        if change.is_nothing() && before.version() > 0 && before.idle_files() == idle {
            change.version = before.version();
            return change;
        }
        change.version = before.version() + 1;
        let catalog = Catalog::new(change.version, tools, problems, idle);
        self.swap(Arc::new(catalog), now.profiles.clone());
        change
    }
}

/// Gives each name to one tool.
fn assign_names(parts: &BTreeMap<SourceKey, Update>) -> (Tools, Vec<Problem>) {
    let mut problems: Vec<Problem> = parts
        .values()
        .flat_map(|part| part.problems.iter().cloned())
        .collect();
    let mut claims: Vec<(Rank, &Arc<Tool>)> = parts
        .values()
        .flat_map(|part| part.tools.iter().map(|tool| (part.rank, tool)))
        .collect();
    // Stable, and parts come by their path: in one folder the kinds' order decides, then the file's name, then the
    // place in the file.
    // What nobody trusted yet takes no name from what may run: a clone can't disable the user's own tools.
    let waits = |tool: &Tool| matches!(tool.access, Access::Untrusted { .. });
    claims.sort_by_key(|(rank, tool)| (waits(tool), *rank, tool.source));
    let mut winners: BTreeMap<_, (Rank, Arc<Tool>)> = BTreeMap::new();
    for (rank, tool) in claims {
        let Some((winner_rank, winner)) = winners.get_mut(&tool.spec.name) else {
            winners.insert(tool.spec.name.clone(), (rank, tool.clone()));
            continue;
        };
        let silent = matches!(rank, Rank::Folder(_)) && *winner_rank != Rank::Builtin;
        if !silent || *winner_rank == rank {
            problems.push(clash(winner, tool));
        } else {
            let shadowed = place_of(tool);
            Arc::make_mut(winner).shadows.push(shadowed);
        }
    }
    (
        winners
            .into_iter()
            .map(|(name, (_, tool))| (name, tool))
            .collect(),
        problems,
    )
}

fn place_of(tool: &Tool) -> String {
    match &tool.file {
        Some(file) => file.display().to_string(),
        None => tool.module.clone(),
    }
}

fn clash(winner: &Tool, loser: &Tool) -> Problem {
    let name = loser.name();
    let holder = match (winner.source, &winner.file) {
        (SourceKind::Builtin, _) => "a built-in tool".to_owned(),
        (_, Some(file)) => format!("`{}`", file.display()),
        (SourceKind::Registered, _) => "a registered tool".to_owned(),
        (_, None) => format!("`{}`", winner.module),
    };
    let hint = match loser.source {
        SourceKind::Registered => {
            let command = CommandLine::new("toolcrib unregister").operand(name);
            Hint::run(command).after(", then register it with another `--name`")
        }
        SourceKind::TypeScript => format!(
            "rename the file or the export that makes `{name}`; `Tool.define` takes another id"
        )
        .into(),
        SourceKind::Python => {
            format!("rename the function, or write @tool(name=…) with another name than `{name}`")
                .into()
        }
        _ => format!("give the tool in field `name` another name than `{name}`").into(),
    };
    let mut problem = Problem::error(
        loser.source,
        ErrorType::NameClash,
        format!("the name `{name}` is taken by {holder}; this tool is left out"),
    )
    .tool(name)
    .hint(hint);
    problem.file = loser.file.clone();
    problem
}

/// A problem that was there before keeps the time it was first seen.
fn stamp(problems: &mut [Problem], before: &[Problem], now: u64) {
    for problem in problems {
        let seen = before
            .iter()
            .find(|old| old.file == problem.file && old.same_as(problem));
        problem.timestamp_ms = seen.map_or(now, |old| old.timestamp_ms);
    }
}

fn difference(before: &Catalog, tools: &Tools, problems: &[Problem]) -> Change {
    let mut change = Change::default();
    for (name, tool) in tools {
        match before.get(name.as_str()) {
            None => change.added.push(name.to_string()),
            Some(old) if Arc::ptr_eq(old, tool) || old.same_as(tool) => {}
            Some(_) => change.changed.push(name.to_string()),
        }
    }
    let gone = before
        .tools()
        .filter(|old| !tools.contains_key(&old.spec.name));
    change.removed = gone.map(|old| old.name().to_owned()).collect();
    let old = before.problems();
    change.new_problems = problems
        .iter()
        .filter(|new| !old.contains(new))
        .cloned()
        .collect();
    change.mended = old.iter().any(|gone| !problems.contains(gone));
    change
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
