//! What a tool may do beyond the default, as data: what it declares, what a person granted, and what is missing.
//!
//! The default of every tool: it reads the project and itself, has a place of its own for temporary files, writes nothing
//! else, has no network, no further programs and no variables beyond a short list, installs nothing, and uses 512 MB and
//! one processor. A [`Permit`] is what comes on top.
//!
//! * [`limits`]: how much memory and processor a tool has.
//! * [`paths`]: which path gives which.
//! * [`hosts`]: which host pattern gives which.
//! * [`reads`]: what it reads of the project by default, which a tool may narrow.
//! * [`presets`]: ready sets for tools that run a build.
//! * [`missing`]: what of a permit is not granted, in words and as flags.
//!
//! A path is absolute, or relative to the project in which the tool runs; `.` is the project itself. Nothing here looks
//! at the disk: who follows links does so before.

pub mod hosts;
pub mod limits;
mod missing;
pub mod paths;
pub mod presets;
mod reads;
#[cfg(test)]
mod tests;

use std::path::Path;

use serde::{Deserialize, Serialize};

pub use limits::Limits;
pub use missing::Missing;
pub use paths::GUARDED;
pub use reads::Reads;

use crate::{Permissions, SandboxOptions};

/// What a tool may do beyond the default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Permit {
    /// Files and folders that it may read, with all that lies in them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<String>,
    /// Files and folders that it may read and write, but for what is [`GUARDED`] in them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<String>,
    #[serde(skip_serializing_if = "Network::is_none")]
    pub network: Network,
    /// May it run programs beyond its own?
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub exec: bool,
    /// May the packages that it names be installed?
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub install: bool,
    /// Megabytes of memory that it may use, where that is more than every tool has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_mb: Option<u64>,
    /// Processor time that it may use, where that is more than every tool has; 100 is one processor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_percent: Option<u32>,
    /// Names of environment variables that it may read, and secrets as `secret://NAME`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
}

/// How a secret is named where its value is wanted.
pub const SECRET: &str = "secret://";

/// The longest name that a secret may have.
const MAX_SECRET: usize = 64;

/// The name of the secret that this text refers to, if it is such a reference.
pub fn secret_name(text: &str) -> Option<&str> {
    text.strip_prefix(SECRET).filter(|name| is_secret(name))
}

/// Could a secret have this name?
pub fn is_secret(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    // One that begins with a dash would be an option to the program that asks the keyring.
    let length = (1..=MAX_SECRET).contains(&name.len());
    length && !name.starts_with('-') && name.chars().all(fits)
}

/// Which part of the network a tool may use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    #[default]
    None,
    /// These hosts, each `host`, `host:port` or `*.suffix`.
    Hosts(Vec<String>),
    /// The machine's own network, loopback included.
    Open,
}

impl Network {
    pub fn is_none(&self) -> bool {
        *self == Network::None
    }

    fn of_hosts(hosts: Vec<String>) -> Network {
        match hosts.is_empty() {
            true => Network::None,
            false => Network::Hosts(hosts),
        }
    }
}

impl Permit {
    /// What a tool asks for: the lesser of its two blocks, spelled out.
    ///
    /// `allowedPaths` are asked for to be read, unless `canReadFiles` is false; with `canWriteFiles` they, or the project when none are given, to be
    /// written. The network is asked for by `canNetwork` alone, which `allowNetwork: false` overrules and `allowedHosts`
    /// narrows. Limits above the default are asked for; lower ones only tighten.
    pub fn declared(permissions: &Permissions, sandbox: &SandboxOptions) -> Permit {
        let permissions = permissions.clone().expanded();
        let mut permit = Permit {
            exec: permissions.can_execute_commands,
            memory_mb: sandbox.max_memory_mb,
            cpu_percent: sandbox.max_cpu_percent,
            env: permissions.allowed_environment_vars,
            ..Permit::default()
        };
        let paths = sandbox.allowed_paths.clone();
        match (permissions.can_write_files, permissions.can_read_files) {
            (true, _) if paths.is_empty() => permit.write = vec![".".to_owned()],
            (true, _) => permit.write = paths,
            (false, Some(false)) => {}
            (false, _) => permit.read = paths,
        }
        if permissions.can_network && sandbox.allow_network != Some(false) {
            permit.network = match sandbox.allowed_hosts.is_empty() {
                true => Network::Open,
                false => Network::Hosts(sandbox.allowed_hosts.clone()),
            };
        }
        permit.tidy()
    }

    pub fn is_empty(&self) -> bool {
        *self == Permit::default()
    }

    /// The same permit, each thing said once and in one spelling.
    #[must_use]
    pub fn tidy(self) -> Permit {
        let env = sorted(self.env);
        let write = paths::tidy(&self.write, paths::may_write);
        // Who writes a place reads it too, but for what is guarded there.
        let mut read = paths::tidy(&self.read, paths::may_read);
        read.retain(|path| !write.iter().any(|place| paths::may_write(place, path)));
        let network = match self.network {
            Network::Hosts(list) => Network::of_hosts(hosts::tidy(&list)),
            other => other,
        };
        Permit {
            read,
            write,
            network,
            exec: self.exec,
            install: self.install,
            // What every tool has needs no word.
            memory_mb: self.memory_mb.filter(|mb| *mb > limits::DEFAULT_MEMORY_MB),
            cpu_percent: self
                .cpu_percent
                .filter(|percent| *percent > limits::DEFAULT_CPU_PERCENT),
            env,
        }
    }

    /// The permit with every path absolute. Without a project a relative path leads nowhere, and is left out.
    #[must_use]
    pub fn at(&self, project: Option<&Path>) -> Permit {
        self.with_paths(|path| paths::absolute(project, path))
    }

    /// The permit with other paths; those without another one are left out.
    #[must_use]
    pub fn with_paths(&self, other: impl Fn(&str) -> Option<String>) -> Permit {
        let each = |list: &[String]| list.iter().filter_map(|path| other(path)).collect();
        let permit = Permit {
            read: each(&self.read),
            write: each(&self.write),
            ..self.clone()
        };
        permit.tidy()
    }

    /// Both together.
    #[must_use]
    pub fn join(&self, other: &Permit) -> Permit {
        let network = match (&self.network, &other.network) {
            (Network::Open, _) | (_, Network::Open) => Network::Open,
            (Network::Hosts(a), Network::Hosts(b)) => Network::Hosts([a.as_slice(), b].concat()),
            (Network::None, some) | (some, Network::None) => some.clone(),
        };
        let permit = Permit {
            read: [self.read.as_slice(), &other.read].concat(),
            write: [self.write.as_slice(), &other.write].concat(),
            network,
            exec: self.exec || other.exec,
            install: self.install || other.install,
            // Unset is the default, and less than any number.
            memory_mb: self.memory_mb.max(other.memory_mb),
            cpu_percent: self.cpu_percent.max(other.cpu_percent),
            env: [self.env.as_slice(), &other.env].concat(),
        };
        permit.tidy()
    }

    /// The lesser of the two: what both give.
    #[must_use]
    pub fn within(&self, other: &Permit) -> Permit {
        let both = |gives: fn(&Permit, &str) -> bool, of: fn(&Permit) -> Vec<String>| {
            let mine = of(self).into_iter().filter(|path| gives(other, path));
            let theirs = of(other).into_iter().filter(|path| gives(self, path));
            mine.chain(theirs).collect()
        };
        let all_read = |permit: &Permit| [permit.read.as_slice(), &permit.write].concat();
        let network = match (&self.network, &other.network) {
            (Network::None, _) | (_, Network::None) => Network::None,
            (Network::Open, lesser) | (lesser, Network::Open) => lesser.clone(),
            (Network::Hosts(a), Network::Hosts(b)) => {
                let in_b = a.iter().filter(|host| hosts::any_gives(b, host));
                let in_a = b.iter().filter(|host| hosts::any_gives(a, host));
                Network::of_hosts(in_b.chain(in_a).cloned().collect())
            }
        };
        let env = self.env.iter().filter(|name| other.env.contains(name));
        let permit = Permit {
            read: both(Permit::gives_read, all_read),
            write: both(Permit::gives_write, |permit| permit.write.clone()),
            network,
            exec: self.exec && other.exec,
            install: self.install && other.install,
            memory_mb: self.memory_mb.min(other.memory_mb),
            cpu_percent: self.cpu_percent.min(other.cpu_percent),
            env: env.cloned().collect(),
        };
        permit.tidy()
    }

    /// Does this permit give all that is asked for? Else, what is missing. Paths of both must be of one kind.
    pub fn covers(&self, asked: &Permit) -> Result<(), Missing> {
        let network = match (&self.network, &asked.network) {
            (_, Network::None) | (Network::Open, _) => Network::None,
            (Network::Hosts(given), Network::Hosts(wanted)) => {
                let lacking = wanted.iter().filter(|host| !hosts::any_gives(given, host));
                Network::of_hosts(lacking.cloned().collect())
            }
            (_, wanted) => wanted.clone(),
        };
        let lacking = |list: &[String], given: &dyn Fn(&str) -> bool| {
            let left = list.iter().filter(|one| !given(one));
            left.cloned().collect()
        };
        let missing = Permit {
            read: lacking(&asked.read, &|path| self.gives_read(path)),
            write: lacking(&asked.write, &|path| self.gives_write(path)),
            network,
            exec: asked.exec && !self.exec,
            install: asked.install && !self.install,
            memory_mb: asked.memory_mb.filter(|_| asked.memory_mb > self.memory_mb),
            cpu_percent: asked
                .cpu_percent
                .filter(|_| asked.cpu_percent > self.cpu_percent),
            env: lacking(&asked.env, &|name| self.env.iter().any(|one| one == name)),
        };
        match missing.is_empty() {
            true => Ok(()),
            false => Err(Missing(Box::new(missing))),
        }
    }

    /// How much a tool with this permit has: what it declares for itself, but no more than it was granted.
    pub fn limits(&self, declared: &SandboxOptions) -> Limits {
        let memory_mb = self.memory_mb.unwrap_or(limits::DEFAULT_MEMORY_MB);
        let cpu_percent = self.cpu_percent.unwrap_or(limits::DEFAULT_CPU_PERCENT);
        Limits {
            memory_mb: declared
                .max_memory_mb
                .map_or(memory_mb, |most| most.min(memory_mb)),
            cpu_percent: declared
                .max_cpu_percent
                .map_or(cpu_percent, |most| most.min(cpu_percent)),
        }
    }

    fn gives_read(&self, path: &str) -> bool {
        self.read.iter().any(|place| paths::may_read(place, path))
            || self.write.iter().any(|place| paths::may_write(place, path))
    }

    fn gives_write(&self, path: &str) -> bool {
        self.write.iter().any(|place| paths::may_write(place, path))
    }

    /// What it lets a tool do, each in a few words that follow "it may" or "it asks".
    pub fn words(&self) -> Vec<String> {
        missing::words(self)
    }

    /// The flags of `toolcrib grant` that say the same.
    pub fn flags(&self) -> Vec<String> {
        missing::flags(self)
    }
}

fn sorted(mut list: Vec<String>) -> Vec<String> {
    list.sort();
    list.dedup();
    list
}
