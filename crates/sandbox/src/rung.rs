//! How much the machine lets the launcher do, and which launcher that is.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::launcher::Order;

/// What keeps a tool's processes together, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rung {
    /// A pid namespace of their own: the kernel kills all of them with its first process.
    Namespaces,
    /// A process group that they can't leave, and a launcher that orphans fall to.
    Group,
}

/// The program that is executed as the launcher: this binary itself. Clones share what was found out about the
/// machine.
#[derive(Debug, Clone)]
pub struct Launcher {
    program: PathBuf,
    most: Rung,
    found: Arc<OnceLock<Rung>>,
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
        }
    }

    /// At most this much isolation; for tests and machines where namespaces misbehave.
    #[must_use]
    pub fn at_most(self, rung: Rung) -> Launcher {
        Launcher {
            most: rung,
            found: Arc::default(),
            ..self
        }
    }

    /// Which rung processes really get; `None` until the first process was started, because it is found by trying.
    pub fn rung(&self) -> Option<Rung> {
        self.found.get().copied()
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    pub(crate) fn order(&self) -> Order {
        match (self.most, self.rung()) {
            (Rung::Group, _) | (_, Some(Rung::Group)) => Order::Group,
            (Rung::Namespaces, Some(Rung::Namespaces)) => Order::Namespaces,
            (Rung::Namespaces, None) => Order::Try,
        }
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
}
