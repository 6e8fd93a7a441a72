//! What a program takes from the folder that it starts in, though that is not its own.
//!
//! A tool that is the user's own starts in the project, for that is what it is asked about. An interpreter that is given a
//! module or a line of code, and no script, looks there first for all that it imports: a clone's `json.py`, or its
//! `node_modules`, would run in the tool's place, with its keys. Python is told not to, and Node does not see them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The variable that keeps Python from importing what lies in the folder that it starts in. Python 3.11 and later know it.
const SAFE_PATH: (&str, &str) = ("PYTHONSAFEPATH", "1");
/// Where Node looks for packages, from the folder that it starts in.
const PACKAGES: &str = "node_modules";

/// Options of Python that take a value, which may be the next argument.
const WITH_VALUE: [char; 3] = ['W', 'X', 'Q'];
/// Options of Node that take code, or name a package to be loaded first.
const LOADS: [&str; 9] = [
    "-e",
    "-p",
    "-pe",
    "-r",
    "--eval",
    "--print",
    "--require",
    "--import",
    "--experimental-loader",
];

/// Options of Node that take the next argument as their value.
const NEXT: [&str; 5] = [
    "-C",
    "--conditions",
    "--env-file",
    "--input-type",
    "--title",
];

/// Programs that run what follows them.
const WRAPPERS: [&str; 10] = [
    "chrt", "ionice", "nice", "nohup", "setsid", "stdbuf", "taskset", "time", "timeout", "xargs",
];

/// What keeps a command from taking code from the folder that it starts in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Apart {
    pub var: Option<(&'static str, &'static str)>,
    /// What it does not see.
    pub hidden: Vec<PathBuf>,
}

impl Apart {
    /// What is needed for this command, which starts in a folder that nobody named.
    pub fn of<A: AsRef<OsStr>>(program: &OsStr, args: &[A], folder: &Path) -> Apart {
        let text = |arg: &A| arg.as_ref().to_string_lossy().into_owned();
        let words = args.iter().map(text).collect::<Vec<_>>();
        let program = Path::new(program).file_name().unwrap_or_default();
        let mut words = words.as_slice();
        let mut name = program.to_string_lossy().into_owned();
        // What `env` starts is meant.
        if name == "env" {
            words = behind_env(words);
            let started = words.first().map(String::as_str).unwrap_or_default();
            name = started.rsplit('/').next().unwrap_or_default().to_owned();
            words = words.get(1..).unwrap_or_default();
        }
        let begins = |name: &str, names: &[&str]| names.iter().any(|begin| name.starts_with(begin));
        // Wherever it stands, for others run what they are told to (`timeout 5 python3 -m tool`): the variable harms nobody.
        let all = std::iter::once((name.as_str(), words));
        let behind = words.iter().enumerate().map(|(at, word)| {
            let name = word.rsplit('/').next().unwrap_or_default();
            (name, &words[at + 1..])
        });
        let wrapped = WRAPPERS.contains(&name.as_str());
        let mut all: Vec<(&str, &[String])> = all.chain(behind).collect();
        let python = all
            .iter()
            .any(|(name, words)| begins(name, &["python", "pypy"]) && !runs_script(words));
        // What node does not see it can't be given: only where it is what is run.
        all.truncate(if wrapped { all.len() } else { 1 });
        let node = all.iter().any(|(name, words)| {
            begins(name, &["node", "bun", "tsx", "ts-node"]) && loads_packages(words)
        });
        Apart {
            var: python.then_some(SAFE_PATH),
            hidden: Vec::from_iter(node.then(|| folder.join(PACKAGES))),
        }
    }
}

/// What `env` starts, with its arguments: what follows its options and variables.
fn behind_env(mut words: &[String]) -> &[String] {
    while let Some((word, rest)) = words.split_first() {
        words = match word.as_str() {
            "-u" | "-C" | "--unset" | "--chdir" => rest.get(1..).unwrap_or_default(),
            word if word.starts_with('-') || word.contains('=') => rest,
            _ => return words,
        };
    }
    words
}

/// Does Node look for packages from where it starts? A script finds them from beside itself, but for what is loaded first.
fn loads_packages(args: &[String]) -> bool {
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let option = arg.split('=').next().unwrap_or(arg);
        match option {
            "-" => return true,
            option if LOADS.contains(&option) => return true,
            option if !option.starts_with('-') => return false,
            _ if NEXT.contains(&arg.as_str()) => drop(args.next()),
            _ => {}
        }
    }
    true
}

/// Is a file named that is to be run, as Python reads its arguments?
fn runs_script(args: &[String]) -> bool {
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let Some(options) = arg.strip_prefix('-').filter(|rest| !rest.is_empty()) else {
            // A dash alone is code from stdin.
            return arg != "-";
        };
        if options.starts_with('-') {
            continue;
        }
        for (at, option) in options.char_indices() {
            if ['c', 'm'].contains(&option) {
                return false;
            }
            if WITH_VALUE.contains(&option) {
                if at + 1 == options.len() {
                    args.next();
                }
                break;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_and_lines_of_code_are_told_from_scripts() {
        let imports = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            let apart = Apart::of(OsStr::new(words[0]), &words[1..], Path::new("/p"));
            assert!(apart.var.is_none() || apart.hidden.is_empty(), "{line}");
            apart != Apart::default()
        };
        for line in [
            "python3 -m tool",
            "/opt/venv/bin/python -u -m tool",
            "python3.12 -c code",
            "python3 -uc code",
            "python3 -W ignore -m tool",
            "python3 -Wignore -Xutf8 -m tool",
            "python3 -X utf8",
            "pypy3 -mtool",
            "python3 -",
            "env python3 -m tool",
            "timeout 5 python3 -m tool",
            "uv run /usr/bin/python3 -c code",
            "timeout 5 node -e code",
            "/usr/bin/env -u X A=b /usr/bin/python3 -c code",
            "node -e code",
            "bun -p code",
            "node -C development --eval code",
            "node --no-warnings -r dep script.js",
            "/usr/bin/node --import=dep script.js",
            "node -",
            "node",
        ] {
            assert!(imports(line), "{line}");
        }
        for line in [
            "python3 tool.py",
            "python3 -u tool.py -m x",
            "python3 -W ignore tool.py",
            "python3 -X m tool.py -c x",
            "node script.js -e code",
            "env node --no-warnings script.js",
            "env",
            "./tool -m x",
            "cat node",
        ] {
            assert!(!imports(line), "{line}");
        }
    }
}
