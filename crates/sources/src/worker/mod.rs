//! Workers: child processes that run tools, and the pools they are kept in.
//!
//! A worker speaks JSON-RPC 2.0 over its stdin and stdout (`docs/reference/worker-protocol.md`). Every language's host
//! and every executable speaks the same, so there is one worker, one pool, one protocol:
//!
//! * [`lines`] cuts stdout into messages and everything else, [`message`] says what a message is, [`salvage`] whose answer
//!   one was that can't be read.
//! * [`process`] is one worker: started, greeted, asked, cancelled, ended.
//! * [`pool`] hands workers out: bounded in number, queue and time; [`lease`] gives each one back however a call ends.
//! * [`workers`] knows all pools: it shares them by key, stops what is idle, asks for health, and shuts down.
//!
//! Why: `docs/design/0010-workers.md`.

mod budget;
mod fault;
mod lease;
mod lines;
mod log;
mod message;
mod patience;
mod pool;
mod process;
mod request;
mod salvage;
mod workers;

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fmt;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::{Map, Value};
use toolcrib_core::{Mask, Retries};
use toolcrib_sandbox::{Command, Confinement, Exec, Launcher};

use crate::code::Code;
use crate::denied::Held;
use crate::safe::{Safe, Unread};
use crate::shell_script;

pub use budget::WorkerBudget;
pub(crate) use fault::{Fault, answered, said};
pub(crate) use message::NOT_LOADED;
pub(crate) use patience::AT_MOST;
pub use pool::Pool;
pub(crate) use request::Execute;
pub use workers::{Key, Workers};

/// What a pool starts, what holds it, and how it is kept. There is none without something that holds it.
#[derive(Debug, Clone)]
pub struct Recipe {
    pub blueprint: Blueprint,
    pub confinement: Confinement,
    /// What other tools load code from: no process writes there.
    pub code: Arc<Code>,
}

impl Deref for Recipe {
    type Target = Blueprint;

    fn deref(&self) -> &Blueprint {
        &self.blueprint
    }
}

/// How a program is started and kept, whatever holds it.
#[derive(Debug, Clone)]
pub struct Blueprint {
    /// The file's name without its suffix: what its log is called, and the tool until its name is known.
    pub name: String,
    pub program: OsString,
    pub args: Vec<OsString>,
    pub dir: PathBuf,
    /// The project whose files choose between versions of the program.
    pub versions: Option<PathBuf>,
    pub vars: Vec<(String, String)>,
    /// How many workers there may be at once.
    pub size: usize,
    /// Is a worker kept after its call?
    pub keep: Keep,
    pub retries: Retries,
    /// Variables whose values are secrets.
    pub secrets: Vec<Lent>,
    /// What is hidden in all that it says; its secrets come on top when they are read.
    pub mask: Mask,
    /// What `initialize` tells it beside the usual.
    pub greeting: Option<Greeting>,
}

impl Recipe {
    /// Is there anything that must not be seen in what it says?
    fn hides(&self) -> bool {
        !self.secrets.is_empty() || !self.mask.is_empty()
    }

    /// The variables that hold secrets, as they are now.
    async fn read_secrets(&self) -> Result<Vec<(&str, String)>, Unread> {
        let mut read = Vec::with_capacity(self.secrets.len());
        for lent in &self.secrets {
            read.push((lent.variable.as_str(), lent.safe.read(&lent.secret).await?));
        }
        Ok(read)
    }

    /// The first program that it would start itself, where it is a shell script whose text tells.
    pub(crate) fn starts_other(&self) -> Option<String> {
        shell_script::starts_other(&self.program, &self.args, &self.dir)
    }

    /// Is it a shell script that starts other programs, and may not?
    fn is_hindered(&self) -> bool {
        let exec = self.confinement.policy().map(|policy| policy.exec);
        exec == Some(Exec::Once) && self.starts_other().is_some()
    }

    /// What holds it, where something does.
    pub(crate) fn held(&self, launcher: &Launcher) -> Option<Held> {
        let confinement = self.code.guarded(self.confinement.clone());
        Held::by(confinement, launcher.walls_rung())
    }

    /// The process that is started, as far as no secret is needed for it.
    fn command(&self) -> Command {
        let confinement = self.code.guarded(self.confinement.clone());
        let mut command = Command::new(&self.program, &self.dir, confinement)
            .args(&self.args)
            .versions_of(self.versions.clone())
            .piped_stdin();
        for (name, value) in &self.vars {
            command = command.var(name, value);
        }
        command
    }
}

/// A variable whose value is a secret, read when a process starts.
#[derive(Debug, Clone)]
pub struct Lent {
    pub variable: String,
    /// The secret's name.
    pub secret: String,
    pub safe: Arc<Safe>,
}

/// What `initialize` tells a worker beside the usual; made when it is needed, for it may be large.
#[derive(Clone)]
pub struct Greeting(pub Arc<dyn Fn() -> Map<String, Value> + Send + Sync>);

impl fmt::Debug for Greeting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Greeting")
    }
}

/// What becomes of a worker after a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    Warm,
    /// One process per call.
    Never,
}

/// The bounds within which all workers live.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The most workers one pool may have.
    pub pool_size: usize,
    /// How long `initialize` may take, on a machine that is not busy.
    pub handshake: Duration,
    /// How long a `health` request may take.
    pub health: Duration,
    /// How often running workers are asked for their health.
    pub health_every: Duration,
    /// How long a cancelled call may take to end by itself.
    pub cancel_grace: Duration,
    /// How long a worker may take to end after it was asked to.
    pub end_grace: Duration,
    /// After how long without a call a worker is stopped.
    pub idle: Duration,
    /// After how many calls a worker is replaced.
    pub max_calls: u64,
    /// How many calls may wait for a worker of one pool.
    pub queue: usize,
    /// What the workers of all pools together may use.
    pub budget: WorkerBudget,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            pool_size: 10,
            handshake: Duration::from_secs(10),
            health: Duration::from_secs(5),
            health_every: Duration::from_secs(60),
            cancel_grace: Duration::from_millis(500),
            end_grace: Duration::from_secs(2),
            idle: Duration::from_secs(300),
            max_calls: 10_000,
            queue: 256,
            budget: WorkerBudget::default(),
        }
    }
}

pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}
