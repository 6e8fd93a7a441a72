//! What the launcher executes in the end: program, arguments, variables, directory, and the walls around it.
//!
//! All of it reaches the launcher as one file in memory. The launcher's own arguments, variables and directory are
//! always the same: what a tool chooses takes effect at the last exec, behind the walls, and never before.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::plan::Plan;

/// What the launcher executes.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Start {
    program: Word,
    argv: Vec<Word>,
    vars: Vec<(Word, Word)>,
    /// Without links.
    dir: Word,
    /// None only by the user's own word.
    pub walls: Option<Plan>,
}

/// Any bytes but null, written as text where they are some.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum Word {
    Text(String),
    Bytes(Vec<u8>),
}

impl Word {
    /// None where there is a null byte in it, which no exec takes.
    fn new(word: &OsStr) -> Option<Word> {
        if word.as_bytes().contains(&0) {
            return None;
        }
        Some(match word.to_str() {
            Some(text) => Word::Text(text.to_owned()),
            None => Word::Bytes(word.as_bytes().to_vec()),
        })
    }

    fn into_bytes(self) -> Vec<u8> {
        match self {
            Word::Text(text) => text.into_bytes(),
            Word::Bytes(bytes) => bytes,
        }
    }

    fn into_path(self) -> PathBuf {
        OsString::from_vec(self.into_bytes()).into()
    }
}

impl Start {
    /// None where a word contains a null byte, or a variable has no name.
    pub(crate) fn new(
        program: &Path,
        argv: &[OsString],
        vars: &BTreeMap<OsString, OsString>,
        dir: &Path,
        walls: Option<Plan>,
    ) -> Option<Start> {
        let variable = |(name, value): (&OsString, &OsString)| {
            let named = !name.is_empty() && !name.as_bytes().contains(&b'=');
            named.then_some((Word::new(name)?, Word::new(value)?))
        };
        Some(Start {
            program: Word::new(program.as_os_str())?,
            argv: argv
                .iter()
                .map(|word| Word::new(word))
                .collect::<Option<_>>()?,
            vars: vars.iter().map(variable).collect::<Option<_>>()?,
            dir: Word::new(dir.as_os_str())?,
            walls,
        })
    }

    pub(crate) fn dir(&self) -> PathBuf {
        self.dir.clone().into_path()
    }

    /// Program, arguments and variables as exec takes them. `more` takes the place of variables of the same name.
    pub(crate) fn words(&self, more: &[(&str, String)]) -> io::Result<Words> {
        let word = |word: &Word| c_string(word.clone().into_bytes());
        let replaced = |name: &Word| {
            let name = match name {
                Word::Text(text) => text.as_bytes(),
                Word::Bytes(bytes) => bytes,
            };
            more.iter().any(|(other, _)| other.as_bytes() == name)
        };
        let kept = self.vars.iter().filter(|(name, _)| !replaced(name));
        let kept = kept.map(|(name, value)| {
            let mut line = name.clone().into_bytes();
            line.push(b'=');
            line.extend(value.clone().into_bytes());
            line
        });
        let more = more
            .iter()
            .map(|(name, value)| format!("{name}={value}").into_bytes());
        Ok(Words {
            program: word(&self.program)?,
            argv: self.argv.iter().map(word).collect::<Result<_, _>>()?,
            vars: kept.chain(more).map(c_string).collect::<Result<_, _>>()?,
        })
    }
}

/// What exec takes.
pub(crate) struct Words {
    pub program: CString,
    pub argv: Vec<CString>,
    pub vars: Vec<CString>,
}

fn c_string(bytes: Vec<u8>) -> io::Result<CString> {
    CString::new(bytes).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(vars: &[(&str, &[u8])]) -> Option<Start> {
        let vars = vars
            .iter()
            .map(|(name, value)| (OsString::from(name), OsString::from_vec(value.to_vec())));
        let argv = ["x".into(), OsString::from_vec(vec![0xff, b'a'])];
        Start::new(
            Path::new("/bin/x"),
            &argv,
            &vars.collect(),
            Path::new("/"),
            None,
        )
    }

    #[test]
    fn it_reads_back_whatever_the_bytes() {
        let text = serde_json::to_vec(&start(&[("A", &[0xfe]), ("HTTP_PROXY", b"mine")]).unwrap());
        let start: Start = serde_json::from_slice(&text.unwrap()).unwrap();
        assert_eq!(start.dir(), Path::new("/"));
        let words = start.words(&[("HTTP_PROXY", "ours".to_owned())]).unwrap();
        assert_eq!(
            words.argv,
            [c"x".to_owned(), CString::new([0xff, b'a']).unwrap()]
        );
        let vars = [
            CString::new(b"A=\xfe".to_vec()).unwrap(),
            c"HTTP_PROXY=ours".to_owned(),
        ];
        assert_eq!(words.vars, vars, "each name once");
    }

    #[test]
    fn what_no_exec_takes_is_refused() {
        assert!(start(&[("A", b"a\0b")]).is_none());
        assert!(start(&[("", b"a")]).is_none());
        assert!(start(&[("A=B", b"a")]).is_none());
    }
}
