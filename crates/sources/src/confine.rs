//! What a tool's process may touch, as a policy of the sandbox: the default, and what was granted on top.
//!
//! The default of every tool: it reads the project and itself, has a tmp and a home of its own, writes nothing else, and
//! has no network and no further programs. [`Permit`] is what a person granted. Where a policy can't be enforced, the
//! process is not started; only the user's own settings take the walls away ([`Walls`]).
//!
//! Why: `docs/design/0013-sandbox.md`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};
use toolcrib_core::permit::{Network as Granted, presets, secret_name};
use toolcrib_core::{Permit, Reads, SandboxOptions, Scope, SourceKind, Tool, Walled};
use toolcrib_sandbox::{Account, Confinement, Consent, Exec, Network, Policy, StartError};

use crate::Place;
use crate::code::Code;
use crate::worker::{Blueprint, Key, Lent, Pool, Recipe};

/// No program starts with less.
const LEAST_MEMORY_MB: u64 = 16;

/// Which tools are confined. Only the user's own settings say so: nothing else makes a [`Consent`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Walls {
    /// The user's word that no tool is confined.
    pub none: Option<Consent>,
    /// The user's word that these tools are not: by name, and tools of projects by the path of their file.
    pub off: BTreeMap<String, Consent>,
}

impl Walls {
    pub fn are_up(&self, tool: &Tool) -> bool {
        self.consent(tool).is_none()
    }

    /// A project chooses the names of its own tools, so one of those is meant only by the path of its file.
    fn consent(&self, tool: &Tool) -> Option<Consent> {
        let named = match tool.scope {
            Some(Scope::Local) => tool.origin(),
            _ => Some(tool.name()),
        };
        self.none.or_else(|| self.off.get(named?).copied())
    }

    /// These walls, unless the user said that this tool needs none.
    pub fn around(&self, tool: &Tool, policy: Policy) -> Confinement {
        let consent = self.consent(tool);
        consent.map_or_else(|| policy.into(), Into::into)
    }

    /// The same for a registered tool, which is the user's own.
    pub fn around_registered(&self, name: &str, policy: Policy) -> Confinement {
        let consent = self.none.or_else(|| self.off.get(name).copied());
        consent.map_or_else(|| policy.into(), Into::into)
    }

    /// Did the user let a tool of this name out, one that is no project's?
    pub fn let_out(&self, name: &str) -> bool {
        self.off.contains_key(name)
    }

    /// The same for a process that is no named tool's: no tool's setting lets it out.
    pub fn around_unnamed(&self, policy: Policy) -> Confinement {
        self.none.map_or_else(|| policy.into(), Into::into)
    }
}

impl Place {
    /// What holds a process of the crib's own, whose policy the crib itself has made. No tool's setting lets it out.
    pub fn holding(&self, policy: Policy) -> Confinement {
        self.walls.around_unnamed(policy)
    }

    /// What holds a process of this tool.
    pub fn holding_tool(&self, tool: &Tool, policy: Policy) -> Confinement {
        self.code.guarded(self.walls.around(tool, policy))
    }

    /// The variables that a permit gives, as far as they are set.
    pub fn granted<'a>(&'a self, permit: &'a Permit) -> Vec<(&'a str, Cow<'a, str>)> {
        let value = |name: &str| match self.variables.get(name) {
            Some(value) => Some(Cow::Borrowed(value.as_str())),
            None => self.variable(name).map(Cow::Owned),
        };
        let set = |name: &'a String| Some((name.as_str(), value(name)?));
        permit.env.iter().filter_map(set).collect()
    }

    /// The value of a variable where the crib runs; of one that is not set, the place that programs then look at.
    pub fn variable(&self, name: &str) -> Option<String> {
        let home = self.environment.get("HOME").and_then(OsStr::to_str);
        let project = self.project.as_deref().and_then(Path::to_str);
        let set = self.variables.get(name).cloned();
        set.or_else(|| presets::usual(name, home, project))
    }

    /// The values among them that every tool does not know anyway.
    pub fn to_hide<'a>(
        &'a self,
        granted: &'a [(&'a str, Cow<'a, str>)],
    ) -> impl Iterator<Item = &'a str> {
        // Where programs look anyway is no secret.
        let known =
            |name: &str| self.environment.get(name).is_some() || !self.variables.contains_key(name);
        let hidden = granted.iter().filter(move |(name, _)| !known(name));
        hidden.map(|(_, value)| value.as_ref())
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
    policy.granted = paths(&permit.read);
    policy.write = paths(&permit.write);
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
pub fn start(dir: PathBuf, confinement: &Confinement, place: &Place) -> PathBuf {
    let real = dir.canonicalize().unwrap_or_else(|_| dir.clone());
    let opens = |policy: &Policy| {
        let mut open = policy
            .read
            .iter()
            .chain(&policy.granted)
            .chain(&policy.write);
        open.any(|path| dir.starts_with(path) || real.starts_with(path))
    };
    match confinement.policy() {
        Some(policy) if dir == place.directory() && !opens(policy) => PathBuf::from("/"),
        _ => dir,
    }
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

/// Where the workers of a tool come from: how they are started, for which content, and what is their own.
#[derive(Clone)]
pub struct Workshop {
    blueprint: Blueprint,
    key: Key,
    own: Vec<PathBuf>,
    /// Variables that hold secrets, and the names of those.
    secrets: Vec<(String, String)>,
    /// What its processes do not see of what they read.
    hidden: Vec<PathBuf>,
}

impl Workshop {
    pub fn new(blueprint: Blueprint, key: Key, own: Vec<PathBuf>) -> Workshop {
        Workshop {
            blueprint,
            key,
            own,
            secrets: Vec::new(),
            hidden: Vec::new(),
        }
    }

    /// The same for a tool that sees none of these.
    #[must_use]
    pub fn without(self, hidden: Vec<PathBuf>) -> Workshop {
        Workshop { hidden, ..self }
    }

    /// The same for a tool that names secrets. Only processes of a tool that may have them get them.
    #[must_use]
    pub fn with_secrets(self, secrets: Vec<(String, String)>) -> Workshop {
        Workshop { secrets, ..self }
    }

    /// The same for a tool that sets variables for its process: hidden in all that it says, and in no neighbour's.
    #[must_use]
    pub fn with_variables(mut self, vars: Vec<(String, String)>) -> Workshop {
        let values = vars.iter().map(|(_, value)| value.as_str());
        self.blueprint.mask = self.blueprint.mask.with(values);
        self.blueprint.vars.extend(vars);
        self
    }

    /// The same under another key: with workers of its own.
    #[must_use]
    pub fn renamed(self, key: Key) -> Workshop {
        Workshop { key, ..self }
    }

    /// The recipe of the process that is asked what it is, with what was granted to it so far.
    pub fn unproved(&self, permit: &Permit, place: &Place) -> Recipe {
        let (reads, limits) = (Reads::default(), SandboxOptions::default());
        let mut policy = policy(&self.own, permit, &reads, &limits, place);
        policy.hide.extend(self.hidden.iter().cloned());
        Recipe {
            blueprint: self.blueprint.clone(),
            confinement: place.walls.around_unnamed(policy),
            code: self.noted(place),
        }
    }

    /// The pool of the process that is asked what it is. A tool that was granted nothing runs in the same.
    pub fn first_pool(&self, permit: &Permit, place: &Place) -> Arc<Pool> {
        self.pool_of(self.unproved(permit, place), place)
    }

    /// The recipe of a tool's own workers, with what it was granted.
    pub fn recipe(&self, tool: &Tool, place: &Place) -> Recipe {
        let mut blueprint = self.blueprint.clone();
        let Tool { permit, reads, .. } = tool;
        let mut policy = policy(&self.own, permit, reads, &tool.spec.sandbox, place);
        policy.hide.extend(self.hidden.iter().cloned());
        let confinement = place.walls.around(tool, policy);
        blueprint.dir = start(blueprint.dir, &confinement, place);
        let granted = place.granted(&tool.permit);
        blueprint.mask = blueprint.mask.with(place.to_hide(&granted));
        let own = |(name, value): (&str, Cow<str>)| (name.to_owned(), value.into_owned());
        blueprint.vars.extend(granted.into_iter().map(own));
        let secrets = self.secrets.iter();
        let may_have = secrets.filter(|(_, secret)| place.lends(secret, tool));
        blueprint.secrets = may_have.map(|one| place.lent(one)).collect();
        Recipe {
            blueprint,
            confinement,
            code: self.noted(place),
        }
    }

    /// Other tools' processes do not write what this tool is made of, nor the environment of its interpreter.
    fn noted(&self, place: &Place) -> Arc<Code> {
        let program = Path::new(&self.blueprint.program);
        let prefix = program.parent().and_then(Path::parent);
        let environment = prefix.filter(|prefix| prefix.join("pyvenv.cfg").exists());
        let own = self.own.iter().map(PathBuf::as_path);
        let program = program.is_absolute().then_some(program);
        place.code.note(own.chain(program).chain(environment));
        place.code.clone()
    }

    /// The pool of a tool: shared by tools of the same content that may do the same.
    pub fn pool(&self, tool: &Tool, place: &Place) -> Arc<Pool> {
        self.pool_of(self.recipe(tool, place), place)
    }

    fn pool_of(&self, recipe: Recipe, place: &Place) -> Arc<Pool> {
        let mut hash = Sha256::new();
        // Whatever bytes its paths have: two policies never look alike.
        hash.update(format!("{:?}{:?}", recipe.confinement, recipe.versions));
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
        let walls = crate::hex(&hash.finalize()[..8]);
        let key = Key(format!("{}-{walls}", self.key.0).into());
        place.workers.pool(key, recipe)
    }
}
