//! What a tool's process may touch, as a policy of the sandbox: the default, and what was granted on top.
//!
//! The default of every tool: it reads the project and itself, has a tmp and a home of its own, writes nothing else, and
//! has no network and no further programs. [`Permit`] is what a person granted. Where a policy can't be enforced, the
//! process is not started; only the user's own settings take the walls away ([`Walls`]).
//!
//! Why: `docs/design/0013-sandbox.md`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};
use toolcrib_core::permit::{Network as Granted, secret_name};
use toolcrib_core::{Permit, Reads, SandboxOptions, SourceKind, Tool, Walled};
use toolcrib_sandbox::{Account, Command, Exec, Modes, Network, Policy, StartError};

use crate::Place;
use crate::worker::{Key, Lent, Pool, Recipe};

/// The most cores that an installer takes.
const MOST_CPU_PERCENT: u32 = 64 * 100;
/// No program starts with less.
const LEAST_MEMORY_MB: u64 = 16;

/// Which tools are confined. Only the user's own settings say so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walls {
    pub enabled: bool,
    /// Tools that may do what the user may, by name.
    pub off: BTreeSet<String>,
}

impl Default for Walls {
    fn default() -> Walls {
        Walls {
            enabled: true,
            off: BTreeSet::new(),
        }
    }
}

impl Walls {
    pub fn are_up(&self, tool: &str) -> bool {
        self.enabled && !self.off.contains(tool)
    }
}

impl Place {
    /// Confines a command of the crib's own, which no tool's setting lets out.
    pub fn confined(&self, command: Command, policy: Policy) -> Command {
        match self.walls.enabled {
            true => command.confined(policy),
            false => command,
        }
    }

    /// The variables that a permit gives, as far as they are set.
    pub fn granted<'a>(&'a self, permit: &'a Permit) -> Vec<(&'a str, &'a str)> {
        let set = |name: &'a String| Some((name.as_str(), self.variables.get(name)?.as_str()));
        permit.env.iter().filter_map(set).collect()
    }

    /// The values among them that every tool does not know anyway.
    pub fn to_hide<'a>(&'a self, granted: &[(&'a str, &'a str)]) -> impl Iterator<Item = &'a str> {
        let known = |name: &str| self.environment.get(name).is_some();
        let hidden = granted.iter().filter(move |(name, _)| !known(name));
        hidden.map(|(_, value)| *value)
    }

    /// May a tool that names this secret have it? A registered one may: who registered it said so.
    pub fn lends(&self, secret: &str, tool: &Tool) -> bool {
        let granted = |entry: &String| secret_name(entry) == Some(secret);
        tool.source == SourceKind::Registered || tool.permit.env.iter().any(granted)
    }

    /// A variable that holds a secret of this place.
    pub fn lent(&self, (variable, secret): &(String, String)) -> Lent {
        Lent {
            variable: variable.clone(),
            secret: secret.clone(),
            safe: self.safe.clone(),
        }
    }
}

/// The policy of a tool that was granted this; `own` is what it is made of.
pub fn policy(
    own: &[PathBuf],
    permit: &Permit,
    reads: &Reads,
    limits: &SandboxOptions,
    place: &Place,
) -> Policy {
    let paths = |list: &[String]| list.iter().map(PathBuf::from).collect::<Vec<_>>();
    let project = place.project.as_deref();
    let mut policy = match own.first().map(PathBuf::as_path).or(project) {
        Some(first) => Policy::default_for(first, project),
        None => Policy::default(),
    };
    policy.read.extend(own.iter().skip(1).cloned());
    if let (Some(project), Some(only)) = (project, reads.narrowed()) {
        // Nor what the project lies in, though it be the tool's own folder.
        policy.read.retain(|path| !project.starts_with(path));
        policy
            .read
            .extend(only.iter().map(|path| project.join(path)));
    }
    policy.read.extend(paths(&permit.read));
    // What is not there can't be read; and rules are about what is there.
    policy.read.retain(|path| path.exists());
    policy.write = paths(&permit.write);
    policy.write.retain(|path| path.exists() || made(path));
    policy.exec = match permit.exec {
        true => Exec::Allowed,
        false => Exec::Once,
    };
    policy.network = match &permit.network {
        Granted::None => Network::None,
        Granted::Hosts(hosts) => {
            let rules = hosts.iter().filter_map(|host| host.parse().ok());
            Network::Hosts(rules.collect())
        }
        Granted::Open => Network::Open,
    };
    let limits = permit.limits(limits);
    policy.memory_mb = limits.memory_mb.max(LEAST_MEMORY_MB);
    policy.cpu_percent = limits.cpu_percent.max(1);
    policy
}

/// Where a process starts that would start here. Who may not read the project starts in the root, where nothing is to be
/// seen; any other folder was named by somebody, and is refused where it can't be entered.
pub fn start(dir: PathBuf, policy: Option<&Policy>, place: &Place) -> PathBuf {
    let real = dir.canonicalize().unwrap_or_else(|_| dir.clone());
    let opens = |policy: &Policy| {
        let mut open = policy.read.iter().chain(&policy.write);
        open.any(|path| dir.starts_with(path) || real.starts_with(path))
    };
    match policy {
        Some(policy) if dir == place.directory() && !opens(policy) => PathBuf::from("/"),
        _ => dir,
    }
}

/// Makes what was granted to be written and is not there yet: a folder, or a file where the name has a suffix.
fn made(path: &Path) -> bool {
    let made = match path.extension() {
        None => std::fs::create_dir_all(path),
        Some(_) => std::fs::File::create_new(path).map(drop),
    };
    if let Err(error) = &made {
        tracing::warn!(%error, path = %path.display(), "what a tool may write can't be made");
    }
    made.is_ok()
}

/// What a process is promised, in words.
pub fn walled(account: Result<Option<Account>, StartError>) -> Walled {
    match account {
        Ok(None) => Walled::Open,
        Ok(Some(account)) => Walled::Confined {
            enforced: account.enforced.to_string(),
            lost: account.lost,
        },
        Err(error) => Walled::Refused(error.to_string()),
    }
}

/// The policy of an installer of packages: it may fetch, run what it brings, and write below this folder alone.
pub fn installing(folder: &Path, read: Vec<PathBuf>) -> Policy {
    Policy {
        read,
        write: vec![folder.to_path_buf()],
        exec: Exec::Allowed,
        network: Network::Open,
        modes: Modes::Changed,
        memory_mb: 4_096,
        cpu_percent: MOST_CPU_PERCENT,
        processes: 512,
        file_mb: 4_096,
        tmp_mb: 4_096,
        ..Policy::default()
    }
}

/// Where the workers of a tool come from: how they are started, for which content, and what is their own.
pub struct Workshop {
    recipe: Recipe,
    key: Key,
    own: Vec<PathBuf>,
    /// Variables that hold secrets, and the names of those.
    secrets: Vec<(String, String)>,
}

impl Workshop {
    pub fn new(recipe: Recipe, key: Key, own: Vec<PathBuf>) -> Workshop {
        Workshop {
            recipe,
            key,
            own,
            secrets: Vec::new(),
        }
    }

    /// The same for a tool that names secrets. Only processes of a tool that may have them get them.
    #[must_use]
    pub fn with_secrets(self, secrets: Vec<(String, String)>) -> Workshop {
        Workshop { secrets, ..self }
    }

    /// The same under another key: with workers of its own.
    #[must_use]
    pub fn renamed(self, key: Key) -> Workshop {
        Workshop { key, ..self }
    }

    /// The recipe of the process that is asked what it is, before anything of it is granted.
    pub fn unproved(&self, place: &Place) -> Recipe {
        let policy = || {
            policy(
                &self.own,
                &Permit::default(),
                &Reads::default(),
                &SandboxOptions::default(),
                place,
            )
        };
        Recipe {
            policy: place.walls.enabled.then(policy),
            ..self.recipe.clone()
        }
    }

    /// The pool of the process that is asked what it is. A tool that was granted nothing runs in the same.
    pub fn first_pool(&self, place: &Place) -> Arc<Pool> {
        self.pool_of(self.unproved(place), place)
    }

    /// The recipe of a tool's own workers, with what it was granted.
    pub fn recipe(&self, tool: &Tool, place: &Place) -> Recipe {
        let mut recipe = self.recipe.clone();
        let Tool { permit, reads, .. } = tool;
        let policy = || policy(&self.own, permit, reads, &tool.spec.sandbox, place);
        recipe.policy = place.walls.are_up(tool.name()).then(policy);
        recipe.dir = start(recipe.dir, recipe.policy.as_ref(), place);
        let granted = place.granted(&tool.permit);
        recipe.mask = recipe.mask.with(place.to_hide(&granted));
        let own = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        recipe.vars.extend(granted.into_iter().map(own));
        let secrets = self.secrets.iter();
        let may_have = secrets.filter(|(_, secret)| place.lends(secret, tool));
        recipe.secrets = may_have.map(|one| place.lent(one)).collect();
        recipe
    }

    /// The pool of a tool: shared by tools of the same content that may do the same.
    pub fn pool(&self, tool: &Tool, place: &Place) -> Arc<Pool> {
        self.pool_of(self.recipe(tool, place), place)
    }

    fn pool_of(&self, recipe: Recipe, place: &Place) -> Arc<Pool> {
        let policy = recipe.policy.as_ref().map(serde_json::to_vec);
        let policy = policy.and_then(Result::ok).unwrap_or_default();
        let mut hash = Sha256::new();
        hash.update(policy);
        for (name, value) in &recipe.vars {
            hash.update(name);
            hash.update([0]);
            hash.update(value);
            hash.update([0]);
        }
        // Of a secret only the name counts: another value is taken up at the next start.
        for lent in &recipe.secrets {
            hash.update([1]);
            hash.update(&lent.variable);
            hash.update([0]);
            hash.update(&lent.secret);
        }
        let walls = crate::folder::hex(&hash.finalize()[..8]);
        let key = Key(format!("{}-{walls}", self.key.0).into());
        place.workers.pool(key, recipe)
    }
}
