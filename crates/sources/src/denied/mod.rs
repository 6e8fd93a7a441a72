//! What a tool was kept from, as far as can be told from how it failed, and the grant that would help.
//!
//! A hint names what was tried and a grant that helps on this machine's rung. Where no grant does, it says so and what can.
//!
//! * [`attempt`]: what the process tried, from what a host or a system's message tells.
//! * [`lacking`]: what would have to be granted, in words and as a command.

mod attempt;
mod lacking;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use serde_json::Value;
use toolcrib_core::permit::paths;
use toolcrib_core::permit::presets::Preset;
use toolcrib_core::{Hint, Outcome};
use toolcrib_sandbox::{
    Confinement, Denial, Exec, GUARDED, Network, Policy, Rung, is_never_opened,
};

use crate::shell_script::is_program;
use attempt::{Attempt, Tried};
pub use lacking::Lacking;
use lacking::{First, Need, PlainPath};

/// What a failed call shows: what its process said of it, and what the proxy refused meanwhile.
pub struct Failure<'a> {
    pub tool: &'a str,
    /// The program that was run, where the tool is nothing else.
    pub program: Option<&'a str>,
    /// Where its process started.
    pub directory: &'a Path,
    pub message: &'a str,
    pub data: Option<&'a Value>,
    /// The end of what it said beside its answers.
    pub stderr: &'a str,
    pub denials: &'a [Denial],
}

/// What is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entry {
    File,
    Folder,
}

/// What held the process: its policy as it was enforced, and by which rung, where that is known.
pub struct Held {
    pub policy: Policy,
    pub rung: Option<Rung>,
}

impl Held {
    /// None where nothing held it.
    pub fn by(confinement: Confinement, rung: Option<Rung>) -> Option<Held> {
        match confinement {
            Confinement::Walled(policy) => Some(Held {
                policy: *policy,
                rung,
            }),
            Confinement::ByUser(_) => None,
        }
    }
}

/// A failed call's outcome with what would help: for who reads its output, and as data.
pub fn hinted(outcome: Outcome, hint: &Hint) -> Outcome {
    let output = match (&outcome.whole, outcome.rest_is_lost) {
        (None, false) => format!("{}\n\nhint: {hint}", outcome.output),
        // The rest of it is elsewhere, and goes on where this ends.
        _ => outcome.output.clone(),
    };
    Outcome { output, ..outcome }.meta("hint", hint.to_string())
}

impl Failure<'_> {
    /// The command that would help, where the walls are to blame.
    pub fn hint(&self, held: &Held) -> Option<Hint> {
        Some(self.lacking(held)?.hint(self.tool))
    }

    /// What the walls kept it from.
    pub fn lacking(&self, held: &Held) -> Option<Lacking> {
        let told = self.host().or_else(|| {
            let mut attempts = self.attempts().into_iter();
            attempts.find_map(|attempt| self.judge(&attempt, held))
        });
        let told = told.or_else(|| self.preset(held));
        let told = told.or_else(|| self.network(&held.policy));
        let of = self.program.and_then(Preset::of);
        told.map(|need| Lacking::new(need, held.rung).of_program(of))
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.data?.get(key)?.as_str()
    }

    /// What it tried, the most telling first.
    fn attempts(&self) -> Vec<Attempt> {
        let told = self.data.and_then(Attempt::told);
        let said = Attempt::all_said(self.message).chain(Attempt::all_said(self.stderr));
        told.into_iter().chain(said).collect()
    }

    /// A program of a build says in words of its own what it lacks.
    fn preset(&self, held: &Held) -> Option<Need> {
        let said = self.stderr.to_ascii_lowercase();
        let program = self.program?;
        let preset = Preset::of(program)?;
        let once = held.policy.exec == Exec::Once && preset.always_runs_others(program);
        let lacks = once || preset.signs.iter().any(|sign| said.contains(sign));
        lacks.then_some(Need::Preset(preset))
    }

    /// A host that the proxy refused.
    fn host(&self) -> Option<Need> {
        let denial = self.denials.first()?;
        let host = match (denial.port, denial.host.contains(':')) {
            (443, _) => denial.host.clone(),
            (port, true) => format!("[{}]:{port}", denial.host),
            (port, false) => format!("{}:{port}", denial.host),
        };
        let why = denial.reason.trim_end_matches('.').to_owned();
        Some(lacking::host_named(&host).map_or(Need::Network, |host| Need::Host(host, why)))
    }

    /// What a refused attempt would have needed.
    fn judge(&self, attempt: &Attempt, held: &Held) -> Option<Need> {
        let policy = &held.policy;
        if attempt.tried == Some(Tried::Connect) {
            return None;
        }
        let named = attempt.path.as_deref().map(Path::new);
        if let Some(need) = self.program(attempt, named, policy) {
            return Some(need);
        }
        let named = named.filter(|_| attempt.tried != Some(Tried::Run))?;
        // A tool that may not read the project starts elsewhere, and what it calls so is no path of the project's.
        if named.is_relative() && !within(&policy.read, self.directory) {
            return None;
        }
        // A relative path starts where the tool does, which is the project in most cases.
        let path = self.directory.join(named);
        let path = PathBuf::from(paths::clean(path.to_str()?));
        let own = within(&policy.hide, &path) || within(&policy.never, &path);
        if !path.is_absolute() || own || is_never_opened(&path) {
            return None;
        }
        self.file(attempt, &path, held)
    }

    /// A program that may not be run. Only the filter of calls refuses that, and it says EPERM.
    fn program(&self, attempt: &Attempt, named: Option<&Path>, policy: &Policy) -> Option<Need> {
        let refused = match attempt.tried {
            Some(Tried::Run) => ["EPERM", "EACCES"].contains(&attempt.errno),
            Some(_) => false,
            None => attempt.errno == "EPERM" && named.is_some_and(|path| self.is_program(path)),
        };
        let refused = refused && policy.exec == Exec::Once;
        refused.then(|| Need::Exec(named.and_then(PlainPath::new)))
    }

    /// A program by its path, or by its bare name.
    fn is_program(&self, path: &Path) -> bool {
        let bare = path.components().count() == 1 && !self.directory.join(path).exists();
        (path.is_absolute() || bare) && path.to_str().is_some_and(is_program)
    }

    /// A file that is hidden, not to be written, or not to be made.
    fn file(&self, attempt: &Attempt, path: &Path, held: &Held) -> Option<Need> {
        let policy = &held.policy;
        let there = path.symlink_metadata().is_ok();
        let open = [&policy.read, &policy.granted, &policy.write];
        let readable = open.into_iter().any(|places| within(places, path));
        let root = policy.write.iter().find(|root| path.starts_with(root));
        let refused = ["EROFS", "EACCES", "EPERM"].contains(&attempt.errno);
        // Who may write the file itself and is refused would take it from its folder.
        let alone = root.is_some_and(|root| root == path) && path.is_file();
        if refused && there && (attempt.tried == Some(Tried::Remove) || alone) {
            return removed(path, root, held);
        }
        let writes = matches!(
            attempt.tried,
            Some(Tried::Write | Tried::MakeFolder | Tried::Remove)
        );
        let entry = match attempt.tried {
            Some(Tried::MakeFolder) => Entry::Folder,
            _ => Entry::File,
        };
        match (attempt.errno, there) {
            // Where mounts keep files apart, what may not be read is not there at all.
            ("ENOENT", true) if !readable => opened(attempt, path),
            // What is not there for anybody is missed by its reader, and hidden from who would make it.
            ("ENOENT", false) if !readable && writes && path.parent().is_some_and(Path::exists) => {
                create(path, entry, root, held)
            }
            // Node says so of a folder that it may not make, with all that is missing around it.
            ("ENOENT", false)
                if entry == Entry::Folder && path.parent().is_some_and(Path::exists) =>
            {
                create(path, entry, root, held)
            }
            ("EROFS", true) => written(path, root, policy),
            ("EACCES" | "EROFS", false) => create(path, entry, root, held),
            ("EACCES", true) if !readable => opened(attempt, path),
            ("EACCES", true) => written(path, root, policy),
            // Modes, owners and the like, which are the filter's: no grant changes that.
            ("EPERM", true) if writes && root.is_none() => written(path, root, policy),
            _ => None,
        }
    }

    /// A network that it does not have.
    fn network(&self, policy: &Policy) -> Option<Need> {
        if policy.network != Network::None {
            return None;
        }
        let named = |host: &str| {
            let host = lacking::host_named(host);
            host.map_or(Need::Network, |host| Need::Host(host, String::new()))
        };
        if let Some(host) = self.text("host") {
            return Some(named(host));
        }
        if self.text("path").is_some() {
            return None;
        }
        let trace = self.text("traceback").unwrap_or_default();
        let told = format!("{}\n{trace}", self.message);
        let host = [self.stderr, &told]
            .into_iter()
            .find_map(attempt::host_wanted);
        match host {
            Some(host) => Some(named(&host)),
            None => attempt::is_about_network(&told, self.stderr).then_some(Need::Network),
        }
    }
}

/// To open what is there and hidden: to be read, unless it was to be written.
fn opened(attempt: &Attempt, path: &Path) -> Option<Need> {
    let path = PlainPath::new(path)?;
    Some(match attempt.tried {
        Some(Tried::Write | Tried::MakeFolder) => Need::Write(path),
        Some(Tried::Read) => Need::Read(path),
        _ => Need::Open(path),
    })
}

/// To write what is there. Inside of what was granted only what is protected is refused, until it is named itself.
fn written(path: &Path, root: Option<&PathBuf>, policy: &Policy) -> Option<Need> {
    match root {
        Some(root) if !is_protected(path, root, policy) => None,
        _ => PlainPath::new(path).map(Need::Write),
    }
}

/// To remove or replace what is there: a change of its folder.
fn removed(path: &Path, root: Option<&PathBuf>, held: &Held) -> Option<Need> {
    let folder = path.parent()?;
    if root.is_some_and(|root| folder.starts_with(root) && !is_protected(path, root, &held.policy))
    {
        return None;
    }
    let Policy { protect, keep, .. } = &held.policy;
    let kept = protect
        .iter()
        .chain(keep)
        .any(|kept| kept.starts_with(folder));
    // There a grant of the folder is one of what is in it.
    if held.rung == Some(Rung::Group) && kept {
        return Some(Need::CreateBeside(PlainPath::new(path)?, First::Touch));
    }
    Some(Need::Remove(PlainPath::new(path)?, PlainPath::new(folder)?))
}

/// To make what is not there. A grant of the very path makes it: a file where its name has a suffix, else a folder.
fn create(path: &Path, entry: Entry, root: Option<&PathBuf>, held: &Held) -> Option<Need> {
    // What git makes it makes for a moment: a grant that made it first would stand in its way.
    let granted = |folder: &Path| root.is_some_and(|root| root.starts_with(folder));
    if let Some(repository) = repository_of(path).filter(|folder| !granted(folder)) {
        return PlainPath::new(repository).map(Need::Write);
    }
    let plain = PlainPath::new(path)?;
    let by_name = path.extension().is_some() == (entry == Entry::File);
    let first = match (by_name, entry) {
        (true, _) => First::Grant,
        (false, Entry::File) => First::Touch,
        (false, Entry::Folder) => First::MakeFolder,
    };
    Some(match root {
        // All around it was granted, so it is this rung that makes nothing beside something protected.
        Some(root) if !is_protected(path, root, &held.policy) => {
            let made = match entry {
                Entry::File => First::Touch,
                Entry::Folder => First::MakeFolder,
            };
            Need::CreateBeside(plain, made)
        }
        _ => Need::Create(plain, first),
    })
}

/// The folder in which git keeps what this path belongs to.
fn repository_of(path: &Path) -> Option<&Path> {
    let above = path.ancestors().skip(1);
    above.into_iter().find(|folder| folder.ends_with(".git"))
}

fn within(folders: &[PathBuf], path: &Path) -> bool {
    folders.iter().any(|folder| path.starts_with(folder))
}

/// Does a grant of this folder leave that path out?
fn is_protected(path: &Path, root: &Path, policy: &Policy) -> bool {
    let below = path.strip_prefix(root).unwrap_or(path);
    let named = |part: std::path::Component| GUARDED.iter().any(|name| part.as_os_str() == *name);
    let kept = [&policy.protect, &policy.keep];
    let kept = kept
        .into_iter()
        .flatten()
        .any(|kept| path.starts_with(kept) && kept.starts_with(root) && kept != root);
    kept || below.components().any(named)
}
