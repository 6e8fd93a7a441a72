//! Processes of this machine, as `/proc` tells of them: who started whom, when, in which terminal.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A process that is told from a later one with its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProcessId {
    pub pid: u32,
    /// Ticks since the machine started.
    pub start: u64,
}

impl ProcessId {
    /// The process that has this number now.
    pub fn now(pid: u32) -> Option<ProcessId> {
        Some(Process::of(pid)?.id)
    }

    pub fn own() -> Option<ProcessId> {
        ProcessId::now(std::process::id())
    }

    pub fn lives(self) -> bool {
        ProcessId::now(self.pid) == Some(self)
    }
}

/// What is known of a process.
#[derive(Debug, Clone)]
pub struct Process {
    pub id: ProcessId,
    pub parent: u32,
    pub group: u32,
    pub session: u32,
    /// The number of its controlling terminal; 0 where it has none.
    pub terminal: u32,
    /// The group that its terminal listens to.
    pub foreground: u32,
    pub user: u32,
    /// The name of its program, of which the kernel keeps 15 bytes.
    pub name: String,
}

impl Process {
    pub fn of(pid: u32) -> Option<Process> {
        let folder = PathBuf::from(format!("/proc/{pid}"));
        let stat = std::fs::read_to_string(folder.join("stat")).ok()?;
        let status = std::fs::read_to_string(folder.join("status")).ok()?;
        let user = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
        let mut process = Process::read(pid, &stat)?;
        process.user = user.split_whitespace().next()?.parse().ok()?;
        Some(process)
    }

    /// Takes a line of `stat` apart. A name may hold anything, so what follows is behind its last bracket.
    fn read(pid: u32, stat: &str) -> Option<Process> {
        let (before, after) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = after.split_whitespace().collect();
        // Numbers of ours are never negative; a terminal that nobody listens to has the group -1.
        let number = |at: usize| -> Option<i64> { fields.get(at)?.parse().ok() };
        let small = |at: usize| Some(u32::try_from(number(at)?).unwrap_or(0));
        Some(Process {
            id: ProcessId {
                pid,
                start: u64::try_from(number(19)?).ok()?,
            },
            parent: small(1)?,
            group: small(2)?,
            session: small(3)?,
            terminal: small(4)?,
            foreground: small(5)?,
            user: u32::MAX,
            name: before.split_once('(')?.1.to_owned(),
        })
    }

    /// Itself, its parent, and so on, up to the first that nobody can see.
    pub fn line(self) -> Vec<Process> {
        let mut line = vec![self];
        while let Some(last) = line.last() {
            let parent = last.parent;
            if parent == 0 || line.len() > 256 {
                break;
            }
            match Process::of(parent) {
                // Somebody else has the number by now.
                Some(parent) if parent.id.start <= last.id.start => line.push(parent),
                _ => break,
            }
        }
        line
    }

    /// The words that it was started with.
    pub fn words(&self) -> Vec<String> {
        let read = std::fs::read(format!("/proc/{}/cmdline", self.id.pid));
        let bytes = read.unwrap_or_default();
        let words = bytes
            .split(|byte| *byte == 0)
            .filter(|word| !word.is_empty());
        words
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect()
    }

    /// Does it run the program that we run?
    pub fn is_ours(&self) -> bool {
        let program = |pid: &str| {
            let found = Path::new("/proc").join(pid).join("exe").metadata().ok()?;
            Some((found.dev(), found.ino()))
        };
        let own = program("self");
        let theirs = program(&self.id.pid.to_string());
        self.name == "toolcrib" || (own.is_some() && own == theirs)
    }

    /// A variable that it has from its start.
    pub fn variable(&self, name: &str) -> Option<OsString> {
        let bytes = std::fs::read(format!("/proc/{}/environ", self.id.pid)).ok()?;
        let mut all = bytes.split(|byte| *byte == 0);
        let value = all.find_map(|one| one.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
        Some(OsString::from_vec(value.to_vec()))
    }

    pub fn has_variable(&self, name: &str) -> bool {
        self.variable(name).is_some()
    }

    /// Does it hold the other end of this pseudo terminal? Nobody knows of one that may not be looked at.
    pub fn holds_terminal(&self, number: u32) -> bool {
        let Ok(open) = std::fs::read_dir(format!("/proc/{}/fd", self.id.pid)) else {
            return false;
        };
        let index = format!("tty-index:\t{number}");
        open.flatten().any(|one| {
            let target = std::fs::read_link(one.path()).unwrap_or_default();
            let is_master = target.file_name().is_some_and(|name| name == "ptmx");
            let about = || {
                let name = one.file_name();
                let path = format!("/proc/{}/fdinfo/{}", self.id.pid, name.to_string_lossy());
                std::fs::read_to_string(path).unwrap_or_default()
            };
            is_master && about().lines().any(|line| line == index)
        })
    }
}

/// All processes of one user.
pub fn of_user(user: u32) -> Vec<Process> {
    let Ok(all) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = all
        .flatten()
        .filter_map(|one| one.file_name().to_str()?.parse().ok());
    pids.filter_map(Process::of)
        .filter(|process| process.user == user)
        .collect()
}

/// This process as a name that others on its machine, and only those, can ask after.
pub fn runner() -> String {
    let own = ProcessId::own().map_or(0, |own| own.start);
    format!("{} {} {own}", machine(), std::process::id())
}

/// May the process of this name still run? Of another machine nobody knows.
pub fn may_live(runner: &str) -> bool {
    let mut words = runner.rsplitn(3, ' ');
    let (start, pid, of) = (words.next(), words.next(), words.next());
    let (Some(start), Some(pid), Some(of)) = (start, pid, of) else {
        return true;
    };
    match (start.parse(), pid.parse()) {
        (Ok(start), Ok(pid)) if of == machine() => ProcessId { pid, start }.lives(),
        _ => true,
    }
}

/// This start of this machine, and the part of it whose processes we see.
fn machine() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let part = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!("{} {}", boot.trim(), part.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_knows_itself_and_its_line() {
        let own = Process::of(std::process::id()).unwrap();
        assert!(own.id.lives() && own.user == crate::store_handle::user());
        assert!(own.has_variable("PATH") && !own.has_variable("PAT"));
        let line = own.clone().line();
        assert_eq!(line[1].id.pid, own.parent);
        let later = ProcessId {
            start: own.id.start + 1,
            ..own.id
        };
        assert!(!later.lives());
    }

    #[test]
    fn a_name_may_hold_brackets() {
        let stat = "7 (a) b (c) S 3 7 7 34816 7 4194304 1 2 3 4 5 6 7 8 20 0 1 0 99 1 2";
        let process = Process::read(7, stat).unwrap();
        assert_eq!(
            (process.parent, process.terminal, process.id.start),
            (3, 34_816, 99)
        );
        assert_eq!(process.name, "a) b (c");
    }

    #[test]
    fn a_runner_lives_as_long_as_its_process() {
        let own = runner();
        assert!(may_live(&own));
        let (before, start) = own.rsplit_once(' ').unwrap();
        let start: u64 = start.parse().unwrap();
        assert!(!may_live(&format!("{before} {}", start + 1)));
        assert!(may_live("elsewhere ns 1 1") && may_live("x"));
    }
}
