//! Whether a shell script starts other programs, by its text: a script that does needs a grant before it is of any use.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::iter::Peekable;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::str::Chars;

/// Where programs lie that every tool may read.
pub const PROGRAMS: [&str; 6] = [
    "/usr/local/bin",
    "/usr/bin",
    "/bin",
    "/usr/local/sbin",
    "/usr/sbin",
    "/sbin",
];
/// How much of a script is looked at.
const MOST: u64 = 64 * 1_024;
const SHELLS: [&str; 7] = ["sh", "bash", "dash", "ash", "zsh", "ksh", "mksh"];
/// After these a command follows.
const BEFORE_COMMAND: [&str; 11] = [
    "if", "then", "else", "elif", "while", "until", "do", "!", "{", "time", "exec",
];
/// After these anything follows, up to the end of the line.
const BEFORE_WORDS: [&str; 4] = ["for", "case", "select", "function"];
/// What shells do by themselves, though there may be a program of that name.
const BUILTINS: [&str; 36] = [
    ".", ":", "[", "[[", "alias", "bg", "break", "builtin", "cd", "command", "continue", "declare",
    "done", "echo", "esac", "eval", "exit", "export", "false", "fi", "jobs", "kill", "local",
    "printf", "pwd", "read", "readonly", "return", "set", "shift", "source", "test", "trap",
    "true", "type", "wait",
];

/// The first program that a command would start from its script, if the command is a shell script.
pub fn starts_other(program: &OsStr, args: &[OsString], dir: &Path) -> Option<String> {
    let text = script(program, args, dir)?;
    other_program(&text)
}

/// Can this be run by the shell, by its path or as a name on the usual PATH?
pub fn is_program(name: &str) -> bool {
    let runs = |path: PathBuf| {
        let meta = path.metadata();
        meta.is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    match name.starts_with('/') {
        true => runs(name.into()),
        false => PROGRAMS
            .iter()
            .any(|folder| runs(Path::new(folder).join(name))),
    }
}

/// The text of the script that this runs; nothing where it is none of a shell's.
fn script(program: &OsStr, args: &[OsString], dir: &Path) -> Option<String> {
    let is_shell = |name: &Path| {
        SHELLS
            .iter()
            .any(|shell| name.file_name() == Some(shell.as_ref()))
    };
    let path = Path::new(program);
    if is_shell(path) {
        let mut words = args.iter().filter_map(|arg| arg.to_str());
        let first = words.find(|word| !word.starts_with('-') || *word == "-c")?;
        return match first {
            "-c" => words.next().map(str::to_owned),
            file => head(&dir.join(file)),
        };
    }
    let text = head(path).filter(|_| path.is_absolute())?;
    let line = text.lines().next()?.strip_prefix("#!")?;
    let mut words = line
        .split_whitespace()
        .filter(|word| !word.starts_with('-'));
    let named = words.find(|word| !word.ends_with("/env"))?;
    is_shell(Path::new(named)).then_some(text)
}

fn head(path: &Path) -> Option<String> {
    let file = std::fs::File::open(path).ok()?;
    let meta = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let mut bytes = Vec::with_capacity(meta.len().min(MOST) as usize);
    file.take(MOST).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The first word where a command stands that is a program, and neither a function of the script nor the shell's own.
fn other_program(text: &str) -> Option<String> {
    let mut found = Commands::default();
    found.read(&without_here_documents(text));
    let own =
        |word: &&String| !found.functions.contains(*word) && !BUILTINS.contains(&word.as_str());
    let mut words = found.words.iter().filter(own);
    words.find(|word| is_program(word)).cloned()
}

/// The script without the texts that stand in it for other programs to read.
fn without_here_documents(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut until: Option<String> = None;
    for line in text.lines() {
        if let Some(end) = &until {
            if line.trim_start_matches('\t') == end {
                until = None;
            }
            continue;
        }
        kept.push_str(line);
        kept.push('\n');
        let marked = line.split_once("<<").map(|(_, rest)| rest);
        let marked = marked.filter(|rest| !rest.starts_with('<'));
        until = marked.map(|rest| {
            let word = rest.trim_start_matches(['-', ' ']);
            let word = word.split([' ', ';', '|', ')', '>']).next().unwrap_or("");
            word.trim_matches(['\'', '"', '\\']).to_owned()
        });
        until = until.filter(|word| !word.is_empty());
    }
    kept
}

/// What stands where commands stand.
#[derive(Default)]
struct Commands {
    words: Vec<String>,
    functions: BTreeSet<String>,
}

impl Commands {
    fn read(&mut self, text: &str) {
        let mut chars = text.chars().peekable();
        // What is open: a quote, or a parenthesis inside of one.
        let mut open: Vec<char> = Vec::new();
        let mut expected = true;
        while let Some(c) = chars.next() {
            if open.last() == Some(&'"') {
                match c {
                    '"' => _ = open.pop(),
                    '\\' => _ = chars.next(),
                    '$' if chars.next_if_eq(&'(').is_some() => {
                        open.push('(');
                        expected = true;
                    }
                    _ => {}
                }
                continue;
            }
            match c {
                '\n' | ';' | '|' | '&' | '`' => expected = true,
                '(' => {
                    open.push('(');
                    expected = true;
                }
                ')' => {
                    if open.last() == Some(&'(') {
                        open.pop();
                    }
                    expected = open.last() != Some(&'"');
                }
                '"' => {
                    open.push('"');
                    expected = false;
                }
                '\'' => {
                    skip_to(&mut chars, '\'');
                    expected = false;
                }
                '#' if expected => skip_to(&mut chars, '\n'),
                '\\' => _ = chars.next(),
                '$' if chars.peek() == Some(&'(') => {}
                c if c.is_whitespace() => {}
                c => {
                    let inside = open.last() == Some(&'(');
                    expected = self.word(c, &mut chars, expected, inside);
                }
            }
        }
    }

    /// Takes in a word. Gives whether a command may follow it.
    fn word(
        &mut self,
        first: char,
        chars: &mut Peekable<Chars>,
        expected: bool,
        inside: bool,
    ) -> bool {
        let mut word = String::from(first);
        while let Some(c) = chars.next_if(|c| !c.is_whitespace() && !"\"'`;|&()$<>#".contains(*c)) {
            word.push(c);
        }
        if chars.peek() == Some(&'(') && !word.contains('=') && expected {
            self.functions.insert(word);
            return true;
        }
        if !expected || word.contains('=') {
            return expected;
        }
        if BEFORE_WORDS.contains(&word.as_str()) {
            let rest: String =
                std::iter::from_fn(|| chars.next_if(|c| *c != '\n' && *c != ';')).collect();
            if word == "function" {
                let name = rest
                    .trim()
                    .split([' ', '(', '{'])
                    .next()
                    .unwrap_or_default();
                self.functions.insert(name.to_owned());
            }
            return false;
        }
        if BEFORE_COMMAND.contains(&word.as_str()) {
            return true;
        }
        // A case's pattern looks like a command, and ends with a parenthesis.
        if inside || chars.peek() != Some(&')') {
            self.words.push(word);
        }
        false
    }
}

fn skip_to(chars: &mut Peekable<Chars>, end: char) {
    for c in chars.by_ref() {
        if c == end {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_where_commands_stand() {
        for (text, found) in [
            ("echo hi", None),
            ("cat x", Some("cat")),
            ("/bin/cat <<END\nsed x\nEND\n", Some("/bin/cat")),
            ("# cat\necho 'cat' \"cat\"", None),
            ("x=$(cat y)", Some("cat")),
            ("local a=$(echo \"$p\" | sed s/a/b/)", Some("sed")),
            ("echo \"$(cat x)\"", Some("cat")),
            ("if grep -q x y; then echo; fi", Some("grep")),
            ("cat() { echo; }\ncat x", None),
            ("function cat {\n echo\n}\ncat", None),
            ("case $x in\ncat) echo;;\nesac", None),
            ("for f in cat sed; do echo $f; done", None),
            (
                "while IFS= read -r line; do\n  m=$(sed p <<<\"$line\")\ndone",
                Some("sed"),
            ),
            ("read line <<END\ncat\nEND\necho", None),
            ("exec sed x", Some("sed")),
            ("eval \"$command\"", None),
            ("words=$(uname)", Some("uname")),
            ("A=1 cat", Some("cat")),
            ("no-such-program-here x", None),
        ] {
            assert_eq!(other_program(text).as_deref(), found, "{text}");
        }
    }

    #[test]
    fn only_scripts_of_shells_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.into_os_string()
        };
        let bash = at("a", "#!/usr/bin/env bash\nsed x\n");
        let python = at("b", "#!/usr/bin/env python3\nsed\n");
        let plain = at("c", "sed x\n");
        let starts = |program: &OsStr, args: &[OsString]| starts_other(program, args, dir.path());
        assert_eq!(starts(&bash, &[]).as_deref(), Some("sed"));
        assert_eq!(starts(&python, &[]), None);
        assert_eq!(starts(&plain, &[]), None);
        assert_eq!(
            starts("bash".as_ref(), std::slice::from_ref(&plain)).as_deref(),
            Some("sed")
        );
        let inline = ["-c", "cat x"].map(OsString::from);
        assert_eq!(starts("/bin/sh".as_ref(), &inline).as_deref(), Some("cat"));
        assert_eq!(starts("bash".as_ref(), &["missing".into()]), None);
    }
}
