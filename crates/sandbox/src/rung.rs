//! How much the machine lets the launcher do, and which launcher that is.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;

use crate::groups;
use crate::launcher::{self, Order};
use crate::machine::{CannotConfine, Machine};

/// How long it may take to find out what the machine offers.
const LOOK: Duration = Duration::from_secs(20);

/// What keeps a tool's processes together, and in, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Rung {
    /// A: a pid namespace of their own: the kernel kills all of them with its first process. With a policy, mounts and
    /// a network of their own too, and Landlock behind them.
    Namespaces,
    /// C: the same without Landlock. Without a policy it is no different.
    NamespacesOnly,
    /// B: a process group that they can't leave, and a launcher that orphans fall to. With a policy, Landlock.
    Group,
}

impl Rung {
    pub(crate) const ALL: [Rung; 3] = [Rung::Namespaces, Rung::NamespacesOnly, Rung::Group];

    /// The letter that people know it by.
    pub fn letter(self) -> char {
        match self {
            Rung::Namespaces => 'A',
            Rung::NamespacesOnly => 'C',
            Rung::Group => 'B',
        }
    }

    pub fn from_letter(letter: &str) -> Option<Rung> {
        Rung::ALL
            .into_iter()
            .find(|rung| letter.chars().eq([rung.letter()]))
    }
}

/// The program that is executed as the launcher: this binary itself. Clones share what was found out about the
/// machine.
#[derive(Debug, Clone)]
pub struct Launcher {
    program: PathBuf,
    most: Rung,
    found: Arc<OnceLock<Rung>>,
    machine: Arc<OnceCell<Machine>>,
    /// The rung of confined processes, or why there is none.
    walls: Arc<OnceLock<Result<Rung, CannotConfine>>>,
}

impl Launcher {
    /// The running binary, which must call [`crate::launcher::run_if_asked`] first thing in `main`. The link names
    /// the very file that runs, even after an upgrade replaced it on disk.
    pub fn current() -> Launcher {
        Launcher::at("/proc/self/exe")
    }

    /// Another program that calls [`crate::launcher::run_if_asked`]; for tests, whose own binary does not.
    pub fn at(program: impl Into<PathBuf>) -> Launcher {
        Launcher {
            program: program.into(),
            most: Rung::Namespaces,
            found: Arc::default(),
            machine: Arc::default(),
            walls: Arc::default(),
        }
    }

    /// At most this much isolation; for tests and machines where namespaces misbehave.
    #[must_use]
    pub fn at_most(self, rung: Rung) -> Launcher {
        Launcher {
            most: rung,
            found: Arc::default(),
            walls: Arc::default(),
            ..self
        }
    }

    /// Which rung processes really get; `None` until the first process was started, because it is found by trying.
    pub fn rung(&self) -> Option<Rung> {
        self.found.get().copied()
    }

    /// Which rung confined processes get; `None` until one was started or asked about.
    pub fn walls_rung(&self) -> Option<Rung> {
        self.walls.get()?.as_ref().ok().copied()
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    pub(crate) fn order(&self) -> Order {
        match (self.most, self.rung()) {
            (Rung::Group, _) | (_, Some(Rung::Group)) => Order::Group,
            (_, Some(_)) => Order::Namespaces,
            (_, None) => Order::Try,
        }
    }

    /// The most that is allowed.
    pub(crate) fn most(&self) -> Rung {
        self.most
    }

    /// What the machine offers for walls: found out once, by a launcher that does it all and ends.
    pub async fn machine(&self) -> io::Result<&Machine> {
        self.machine.get_or_try_init(|| self.look_around()).await
    }

    /// The same, and the rung that confined processes get on it, or why none can be confined. Worked out once.
    pub(crate) async fn walls(&self) -> io::Result<(&Machine, &Result<Rung, CannotConfine>)> {
        let machine = self.machine().await?;
        let rung = self.walls.get_or_init(|| machine.rung(self.most));
        Ok((machine, rung))
    }

    async fn look_around(&self) -> io::Result<Machine> {
        #[expect(clippy::disallowed_methods, reason = "the launcher itself, not a tool")]
        let mut command = tokio::process::Command::new(&self.program);
        command
            .arg0("toolcrib")
            .arg(launcher::PROBE)
            .current_dir("/")
            .env_clear()
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        let told = tokio::time::timeout(LOOK, command.output()).await;
        let told = told.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        let mut machine: Machine = serde_json::from_slice(&told.stdout)?;
        if let Err(lack) = &machine.namespaces {
            let error = io::Error::from_raw_os_error(lack.errno);
            // The machine is short of something now; that says nothing about later.
            if launcher::lacks_resources(&error) {
                return Err(error);
            }
        }
        machine.groups = groups::controllers();
        tracing::debug!(?machine, "what the machine offers for walls");
        Ok(machine)
    }

    pub(crate) fn remember(&self, rung: Rung) {
        if self.found.set(rung).is_ok() {
            tracing::debug!(?rung, "processes are kept together");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_name_rungs() {
        for rung in Rung::ALL {
            assert_eq!(Rung::from_letter(&rung.letter().to_string()), Some(rung));
        }
        assert_eq!(Rung::from_letter("AB"), None);
        assert_eq!(Rung::from_letter(""), None);
    }

    #[test]
    fn it_is_tried_once_and_clones_know() {
        let launcher = Launcher::current();
        let other = launcher.clone();
        assert_eq!((launcher.rung(), launcher.order()), (None, Order::Try));
        launcher.remember(Rung::Namespaces);
        assert_eq!(other.rung(), Some(Rung::Namespaces));
        assert_eq!(other.order(), Order::Namespaces);
        let less = other.at_most(Rung::Group);
        assert_eq!((less.rung(), less.order()), (None, Order::Group));
    }

    #[tokio::test]
    async fn the_rung_is_worked_out_once_for_all_clones() {
        let launcher = Launcher::at("/nonexistent");
        launcher.machine.set(crate::machine::tests::full()).unwrap();
        let other = launcher.clone();
        let (_, first) = launcher.walls().await.unwrap();
        let (_, again) = other.walls().await.unwrap();
        assert!(std::ptr::eq(first, again));
        assert_eq!(first.as_ref().ok(), Some(&Rung::Namespaces));
        let less = other.at_most(Rung::Group);
        let (_, rung) = less.walls().await.unwrap();
        assert_eq!(rung.as_ref().ok(), Some(&Rung::Group));
    }
}
