//! All processes below a launcher, and what they use, as `/proc` tells it.

#![expect(unsafe_code, reason = "signals have no safe interface")]

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

/// What a tree uses now.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// The tool's own processes: neither launcher nor the namespace's first.
    pub pids: Vec<u32>,
    pub threads: u64,
    /// Bytes that are resident, where what several processes share counts for each, and shared memory of no file
    /// counts whole: it stays when a process has let go of its pages.
    pub memory: u64,
    shared: u64,
    /// What sockets and pipes may hold, as if they were full.
    buffers: u64,
    /// What the kernel keeps about memory and files of the processes: page tables, parts of the map, watched files.
    books: u64,
    /// Processes that are at work in this moment.
    pub running: u32,
    /// Processor time of all that live and of those that were waited for.
    pub used: Duration,
}

/// The number that follows the name in `stat`, counted from the state on.
fn field(stat: &str, index: usize) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(index)?.parse().ok()
}

fn stat(pid: u32) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/stat")).ok()
}

/// When a process was started, in the kernel's ticks.
pub(super) fn started(pid: u32) -> Option<u64> {
    field(&stat(pid)?, 19)
}

/// A process's threads and children; nothing where it is gone.
fn threads_and_children(pid: u32) -> (u64, Vec<u32>) {
    let (mut threads, mut children) = (0, Vec::new());
    for task in fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten()
    {
        threads += 1;
        let list = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        children.extend(
            list.split_ascii_whitespace()
                .filter_map(|pid| pid.parse::<u32>().ok()),
        );
    }
    (threads, children)
}

/// Whether the kernel keeps lists of children.
fn has_lists() -> bool {
    fs::exists("/proc/thread-self/children").unwrap_or(false)
}

/// Children by asking every process for its parent.
fn by_asking() -> HashMap<u32, Vec<u32>> {
    let mut found: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        if let Some((pid, parent)) = pid.and_then(|pid| Some((pid, field(&stat(pid)?, 1)?))) {
            found.entry(parent as u32).or_default().push(pid);
        }
    }
    found
}

/// What a pipe holds that nobody has made larger.
const PIPE: u64 = 64 * 1_024;

/// What a socket holds that nobody has made larger.
fn socket_holds() -> u64 {
    static HOLDS: OnceLock<u64> = OnceLock::new();
    *HOLDS.get_or_init(|| {
        let read = |name: &str| {
            let text = fs::read_to_string(format!("/proc/sys/net/core/{name}_default"));
            text.ok()?.trim().parse::<u64>().ok()
        };
        let most = ["wmem", "rmem"].into_iter().filter_map(read).max();
        most.unwrap_or(212_992)
    })
}

/// How the kernel's list names the kind of a socket for packets.
const PACKETS: &str = "0005";

/// What one part of a process's map takes.
const PART: u64 = 256;
/// What one file counts for that a process waits for by `epoll`: more than it takes, because the user has so many for all
/// programs together.
const WAITED_FOR: u64 = 8 * 1_024;
/// Nobody waits for more at once; who does has used up all memory there is.
const MOST_WAITED_FOR: u64 = 1 << 18;
/// What a set of Landlock's rules takes at most: one rule for each port.
const RULESET: u64 = 4 << 20;

/// Notes the sockets and pipes that a process has open, each once for all that share it, and gives what the kernel keeps
/// for others of its files.
fn note_open(pid: u32, open: &mut HashSet<PathBuf>) -> u64 {
    let entries = fs::read_dir(format!("/proc/{pid}/fd"));
    let mut books = 0;
    for entry in entries.into_iter().flatten().flatten() {
        let Ok(to) = fs::read_link(entry.path()) else {
            continue;
        };
        match to.as_os_str().as_encoded_bytes() {
            name if name.starts_with(b"socket:") || name.starts_with(b"pipe:") => {
                open.insert(to);
            }
            b"anon_inode:[eventpoll]" => {
                let path = format!("/proc/{pid}/fdinfo/{}", entry.file_name().display());
                books += match waited_for(&path) {
                    MOST_WAITED_FOR.. => u64::MAX / 4,
                    files => files * WAITED_FOR,
                };
            }
            b"anon_inode:[landlock-ruleset]" => books += RULESET,
            _ => {}
        }
        // It is over; who has this much open makes nobody read all of it.
        if books >= u64::MAX / 4 {
            break;
        }
    }
    books
}

/// How many files somebody waits for by this `epoll`, as far as that matters.
fn waited_for(path: &str) -> u64 {
    let Ok(list) = fs::File::open(path) else {
        return 0;
    };
    let lines = BufReader::new(list).split(b'\n').map_while(Result::ok);
    let files = lines.filter(|line| line.starts_with(b"tfd:"));
    files.take(MOST_WAITED_FOR as usize).count() as u64
}

/// How many sockets there are in a process's network, those on their way between processes too. One for packets counts
/// twice: it takes a whole packet more than it may hold.
fn sockets_of_network(pid: u32) -> u64 {
    let list = fs::read_to_string(format!("/proc/{pid}/net/unix")).unwrap_or_default();
    let kind = |line: &str| line.split_ascii_whitespace().nth(4).map(str::to_owned);
    let count = |line| 1 + u64::from(kind(line).is_some_and(|kind| kind == PACKETS));
    list.lines().skip(1).map(count).sum()
}

/// Measures what lies below a launcher. Its first `ours` generations are not the tool's; where it is `alone`, all
/// sockets of its network are.
pub(super) fn look(launcher: u32, ours: usize, alone: bool) -> Tree {
    let asked = (!has_lists()).then(by_asking);
    let tick = Duration::from_secs(1) / 100;
    let mut tree = Tree::default();
    let mut shared = HashMap::new();
    let mut open = HashSet::new();
    let mut seen = HashSet::new();
    let mut next = vec![(launcher, 0)];
    while let Some((pid, depth)) = next.pop() {
        if !seen.insert(pid) {
            continue;
        }
        let (threads, mut children) = threads_and_children(pid);
        if let Some(lists) = &asked {
            children.extend(lists.get(&pid).into_iter().flatten());
        }
        next.extend(children.into_iter().map(|child| (child, depth + 1)));
        let Some(stat) = stat(pid) else {
            continue;
        };
        let ticks: u64 = (11..=14).filter_map(|index| field(&stat, index)).sum();
        tree.used += tick * u32::try_from(ticks).unwrap_or(u32::MAX);
        if depth < ours {
            continue;
        }
        tree.threads += threads;
        let status = status(pid);
        tree.memory += resident(&status);
        tree.books = tree.books.saturating_add(page_tables(&status));
        let kept = note_shared(pid, &mut shared) * PART + note_open(pid, &mut open);
        tree.books = tree.books.saturating_add(kept);
        tree.running += u32::from(is_running(&stat));
        tree.pids.push(pid);
    }
    tree.shared = shared.values().sum();
    let all = open.len() as u64;
    let is_pipe = |path: &&PathBuf| path.as_os_str().as_encoded_bytes().starts_with(b"pipe:");
    let pipes = open.iter().filter(is_pipe).count() as u64;
    let first = tree.pids.first().filter(|_| alone);
    let open = all - pipes;
    // Nothing else tells of which kind one is.
    let sockets = first.map_or(2 * open, |pid| sockets_of_network(*pid).max(open));
    tree.buffers = sockets * socket_holds() + pipes * PIPE;
    let beside = tree.shared + tree.buffers;
    tree.memory = tree
        .memory
        .saturating_add(beside)
        .saturating_add(tree.books);
    tree
}

/// Is the process at work? Its state is the first letter after its name.
fn is_running(stat: &str) -> bool {
    let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
    state.is_some_and(|state| state.starts_with('R'))
}

/// A figure in one of the kernel's lists.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

fn status(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default()
}

/// A process's own pages and those of files, in bytes.
fn resident(status: &str) -> u64 {
    let parts = ["RssAnon:", "RssFile:"].map(|name| kilobytes(status, name).unwrap_or(0));
    parts.iter().sum::<u64>() * 1_024
}

/// What the kernel needs to know where its pages are, in bytes. Who only looks at much that is empty has large ones.
fn page_tables(status: &str) -> u64 {
    kilobytes(status, "VmPTE:").unwrap_or(0) * 1_024
}

/// Notes how far shared memory without a file reaches, once for all that share it. Gives the number of parts of the map.
fn note_shared(pid: u32, shared: &mut HashMap<String, u64>) -> u64 {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let nameless = |line: &&str| line.ends_with("/dev/zero (deleted)");
    for (inode, reach) in maps.lines().filter(nameless).filter_map(shared_part) {
        let known = shared.entry(inode.to_owned()).or_default();
        *known = reach.max(*known);
    }
    maps.lines().count() as u64
}

/// One line of the map: `from-to rights offset device inode name`. Gives the inode, and where the part ends in it.
fn shared_part(line: &str) -> Option<(&str, u64)> {
    let mut words = line.split_ascii_whitespace();
    let (from, to) = words.next()?.split_once('-')?;
    let offset = words.nth(1)?;
    let inode = words.nth(1)?;
    let [from, to, offset] = [from, to, offset].map(|text| u64::from_str_radix(text, 16).ok());
    Some((inode, offset?.checked_add(to?.checked_sub(from?)?)?))
}

impl Tree {
    /// The same with what several processes share divided between them. Slow, so asked for only when it matters.
    pub(super) fn proportional(&self) -> u64 {
        let own = |pid: &u32| {
            let path = format!("/proc/{pid}/smaps_rollup");
            let text = fs::read_to_string(path).unwrap_or_default();
            let parts = ["Pss_Anon:", "Pss_File:"].map(|name| kilobytes(&text, name));
            match parts {
                [Some(anonymous), Some(files)] => (anonymous + files) * 1_024,
                _ => resident(&status(*pid)),
            }
        };
        let pages = self.pids.iter().map(own).sum::<u64>();
        let beside = self.shared + self.buffers;
        pages.saturating_add(beside).saturating_add(self.books)
    }

    fn signal(pid: u32, signal: libc::c_int) {
        // SAFETY: no memory is touched. The process was found below the launcher a moment ago.
        unsafe { libc::kill(pid as libc::pid_t, signal) };
    }

    pub(super) fn stop(&self, stopped: &mut HashSet<u32>) {
        for pid in &self.pids {
            Tree::signal(*pid, libc::SIGSTOP);
            stopped.insert(*pid);
        }
    }

    pub(super) fn go_on(&self, stopped: &mut HashSet<u32>) {
        for pid in self.pids.iter().filter(|pid| stopped.contains(pid)) {
            Tree::signal(*pid, libc::SIGCONT);
        }
        stopped.clear();
    }
}

/// Bytes of memory that the tree below a launcher has for itself. What several processes share, such as libraries, does
/// not count.
pub fn memory_of(launcher: u32) -> u64 {
    let (_, children) = threads_and_children(launcher);
    let below: u64 = children.into_iter().map(memory_of).sum();
    own_memory(launcher).unwrap_or(0) + below
}

fn own_memory(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_measured() {
        let own = std::process::id();
        assert!(started(own).is_some());
        assert!(resident(&status(own)) > 1 << 20);
        assert!(page_tables(&status(own)) > 0 && look(own, 0, false).books > 0);
        let line = "7f00-8f00 rw-s 00001000 00:01 4711     /dev/zero (deleted)";
        assert_eq!(shared_part(line), Some(("4711", 0x2000)));
        let (threads, _) = threads_and_children(own);
        assert!(threads >= 1);
        assert!(!look(own, 1, false).pids.contains(&own));
        let tree = look(own, 0, false);
        assert!(tree.pids.contains(&own));
        assert!(is_running("7 (a) b) R 1 2") && !is_running("7 (R) S 1 2"));
        let (reader, _writer) = std::io::pipe().unwrap();
        let _pair = std::os::unix::net::UnixStream::pair().unwrap();
        let more = look(own, 0, false).buffers;
        assert!(more >= PIPE + 2 * socket_holds(), "{more}");
        drop(reader);
        assert!(sockets_of_network(own) >= 2);
        let parent = field(&stat(own).unwrap(), 1).unwrap() as u32;
        assert!(
            by_asking()
                .get(&parent)
                .is_some_and(|children| children.contains(&own))
        );
    }
}
