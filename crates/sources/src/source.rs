//! What a source of tools is: something that finds tools and problems, and tells when that changes.

use std::path::PathBuf;

use toolcrib_core::{BoxFuture, Update};

use crate::Folder;
use crate::remotes::Remotes;

/// Should changes be followed, or is one answer enough?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follow {
    Changes,
    Nothing,
}

/// What settings and trust say to the sources. All get the same, and each takes what concerns it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Configuration {
    /// The tools folders, and what holds for each.
    pub folders: Vec<Folder>,
    /// Whether there may be registered tools.
    pub registered: bool,
    /// The built-in tools there are, by name; all of them where nothing is said.
    pub builtins: Option<Vec<String>>,
    /// The servers elsewhere that built-in tools may use.
    pub remotes: Remotes,
}

/// What a source found: the whole present content of each of its parts that is different.
pub type Updates<'a> = BoxFuture<'a, Vec<Update>>;

/// A source of tools. One task owns it and calls one method at a time.
///
/// Nothing but [`Source::wait`] waits for what may take long, such as a server that is far away or a program that has to
/// be asked: that is begun, and `wait` tells when it is there. So a slow source never holds up the others.
pub trait Source: Send {
    /// The first look: gives what is known at once.
    fn open<'a>(&'a mut self, configuration: &'a Configuration, follow: Follow) -> Updates<'a>;

    /// Waits until there is something to take. May be dropped at any time, and loses nothing by it.
    fn wait(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    /// Takes in what was waited for.
    fn take(&mut self) -> Updates<'_> {
        none()
    }

    /// Is something on its way that the catalog lacks, such as what a program says of itself? What may take minutes, such
    /// as an install, counts only for who asked for it.
    fn is_busy(&mut self) -> bool {
        false
    }

    /// Looks at once whether something changed, for whoever just changed it and must not wait until that is noticed.
    fn refresh(&mut self) -> Updates<'_> {
        none()
    }

    /// Reads everything again.
    fn reload(&mut self) -> Updates<'_> {
        self.refresh()
    }

    /// What was granted is different: makes every tool anew that asks for something. Starts no process again.
    fn regrant(&mut self) -> Updates<'_> {
        none()
    }

    /// Settings or trust are different.
    fn configure<'a>(&'a mut self, _to: &'a Configuration) -> Updates<'a> {
        none()
    }

    /// Somebody waits for the tools of these files: installs what they need and asks what they are, whatever failed
    /// before. Is busy until that is done.
    fn want<'a>(&'a mut self, _files: &'a [PathBuf]) -> Updates<'a> {
        none()
    }

    /// Nobody waits any longer for what is on its way: whoever comes next is not to wait for it again.
    fn put_off(&mut self) -> Updates<'_> {
        none()
    }

    /// Why changes may be noticed late, if they may.
    fn trouble(&self) -> Option<String> {
        None
    }
}

/// Nothing is different.
fn none<'a>() -> Updates<'a> {
    Box::pin(std::future::ready(Vec::new()))
}
