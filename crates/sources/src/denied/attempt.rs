//! What a process tried and was refused, from what its host tells of a failed system call, or from the words that programs
//! print of one.

use serde_json::Value;

/// Lines of a text that are looked at, from its end.
const LINES: usize = 100;
/// The longest line that is looked at.
const MAX_LINE: usize = 4_000;

/// How the system's messages say it, and what the error is called.
const PHRASES: [(&str, &str); 4] = [
    ("operation not permitted", "EPERM"),
    ("permission denied", "EACCES"),
    ("read-only file system", "EROFS"),
    ("no such file or directory", "ENOENT"),
];
/// Words of messages, and what was tried where they stand; the first that fits counts.
const VERBS: [(&str, Tried); 22] = [
    ("create directory", Tried::MakeFolder),
    ("mkdir", Tried::MakeFolder),
    ("cannot exec", Tried::Run),
    ("fork/exec", Tried::Run),
    ("execve", Tried::Run),
    ("could not execute", Tried::Run),
    ("failed to execute", Tried::Run),
    ("failed to run", Tried::Run),
    ("failed to spawn", Tried::Run),
    ("unable to start", Tried::Run),
    ("spawn ", Tried::Run),
    ("spawnsync ", Tried::Run),
    ("cannot create", Tried::Write),
    ("can't create", Tried::Write),
    ("cannot touch", Tried::Write),
    ("for writing", Tried::Write),
    ("failed to create", Tried::Write),
    ("failed to write", Tried::Write),
    ("unable to create", Tried::Write),
    ("cannot remove", Tried::Remove),
    ("cannot move", Tried::Remove),
    ("connect", Tried::Connect),
];
/// Words of failures that are about a network.
const NETWORK: [&str; 6] = [
    "urlopen",
    "socket",
    "connect",
    "getaddrinfo",
    "name resolution",
    "fetch failed",
];
/// What a program prints that has none; it prints much else.
const NO_NETWORK: [&str; 6] = [
    "could not resolve",
    "couldn't resolve",
    "name resolution",
    "network is unreachable",
    "eai_again",
    "no such host",
];
/// What stands before a host that was wanted.
const BEFORE_HOST: [&str; 2] = ["could not resolve host: ", "getaddrinfo eai_again "];

/// What was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tried {
    Read,
    /// To write a file, or make one.
    Write,
    MakeFolder,
    /// To remove a file, or give it another name or place.
    Remove,
    Run,
    Connect,
}

/// One refused attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Attempt {
    /// None where nobody said.
    pub tried: Option<Tried>,
    /// What the system calls the error.
    pub errno: &'static str,
    pub path: Option<String>,
}

impl Attempt {
    /// What the host of a tool file reported about its exception.
    pub(super) fn told(data: &Value) -> Option<Attempt> {
        let text = |key: &str| data.get(key)?.as_str();
        let errno = text("errno")?;
        let (_, errno) = PHRASES.iter().find(|(_, known)| *known == errno)?;
        Some(Attempt {
            tried: text("tried").and_then(|tried| match tried {
                "read" => Some(Tried::Read),
                "write" => Some(Tried::Write),
                "mkdir" => Some(Tried::MakeFolder),
                "remove" => Some(Tried::Remove),
                "run" => Some(Tried::Run),
                "connect" => Some(Tried::Connect),
                _ => None,
            }),
            errno,
            path: text("path").map(str::to_owned),
        })
    }

    /// What the lines of a text say, the last line first.
    pub(super) fn all_said(text: &str) -> impl Iterator<Item = Attempt> {
        text.lines()
            .rev()
            .take(LINES)
            .filter_map(|line| Attempt::said(line, text))
    }

    /// `cat: /srv/x: Permission denied`, `mkdir: cannot create directory 'out': Read-only file system`,
    /// `[Errno 13] Permission denied: '/srv/x'`, `Error: EACCES: permission denied, open '/srv/x'`.
    fn said(line: &str, text: &str) -> Option<Attempt> {
        if line.len() > MAX_LINE {
            return None;
        }
        let lower = line.to_ascii_lowercase();
        let found = |(phrase, errno): &(&'static str, &'static str)| {
            Some((lower.find(phrase)?, *phrase, *errno))
        };
        let (at, phrase, errno) = PHRASES.iter().find_map(found)?;
        let (before, after) = (&line[..at], &line[at + phrase.len()..]);
        let verb = |words: &str| {
            let words = words.to_ascii_lowercase();
            VERBS.iter().find(|(verb, _)| words.contains(verb))
        };
        let path = quoted(after)
            .or_else(|| quoted(before))
            .or_else(|| last_part(before))
            .or_else(|| path_before(line, text));
        // Some say what they tried in the line before.
        let tried = verb(line).or_else(|| verb(text).filter(|_| path.is_none()));
        Some(Attempt {
            tried: tried.map(|(_, tried)| *tried),
            errno,
            path,
        })
    }
}

/// The last text between quotes.
fn quoted(text: &str) -> Option<String> {
    let pairs = [
        ('\'', '\''),
        ('"', '"'),
        ('‘', '’'),
        ('`', '`'),
        ('`', '\''),
    ];
    let inside = |(open, close): &(char, char)| {
        let end = text.rfind(*close)?;
        let start = text[..end].rfind(*open)?;
        let inside = &text[start + open.len_utf8()..end];
        (!inside.is_empty()).then(|| inside.to_owned())
    };
    pairs.iter().find_map(inside)
}

/// What stands between the last two colons.
fn last_part(text: &str) -> Option<String> {
    let text = text.trim_end().strip_suffix(':')?;
    let part = text.rsplit(": ").next().unwrap_or(text).trim();
    (!part.is_empty() && !part.contains("rror")).then(|| part.to_owned())
}

/// The path that stands in the lines before: some say the reason apart from what it is about.
fn path_before(line: &str, text: &str) -> Option<String> {
    let at = (line.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
    let lines = text.get(..at)?.lines().rev();
    let mut lines = lines.filter(|line| !line.trim().is_empty()).take(3);
    lines.find_map(|line| {
        let mut words = line.split_whitespace().rev();
        let path = words.find(|word| word.starts_with('/'))?;
        Some(path.trim_end_matches([':', ',', '.']).to_owned())
    })
}

/// The host that a program said it could not find.
pub(super) fn host_wanted(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    BEFORE_HOST.iter().find_map(|before| {
        let at = lower.rfind(before)? + before.len();
        let host = text.get(at..)?.split_whitespace().next()?;
        Some(host.trim_end_matches(['.', ',', ';', ')']).to_owned())
    })
}

/// Does a failure's message, or what was printed beside it, tell of a network that is not there?
pub(super) fn is_about_network(message: &str, printed: &str) -> bool {
    let has = |text: &str, words: &[&str]| {
        let lower = text.to_ascii_lowercase();
        words.iter().any(|word| lower.contains(word))
    };
    has(message, &NETWORK) || has(message, &NO_NETWORK) || has(printed, &NO_NETWORK)
}
