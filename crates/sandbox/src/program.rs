//! Finds the file to execute, and says beforehand what exec would only call "not found".

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::StartError;

/// How much of a first line the kernel reads.
const LINE: u64 = 256;
/// Where programs are looked up when nothing says so.
const USUAL: &str = "/usr/local/bin:/usr/bin:/bin";

fn is_executable(file: &Path) -> bool {
    file.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Finds the file to execute: a name with a slash starts at `dir`, one without is looked up on `path`.
pub(crate) fn resolve(
    program: &OsStr,
    dir: &Path,
    path: Option<&OsStr>,
) -> Result<PathBuf, StartError> {
    let shown = || program.to_string_lossy().into_owned();
    if program.as_bytes().contains(&b'/') {
        let file = dir.join(program);
        return match (is_executable(&file), file.exists()) {
            (true, _) => Ok(file),
            (false, true) => Err(StartError::NotExecutable(shown())),
            (false, false) => Err(StartError::NotFound(shown())),
        };
    }
    std::env::split_paths(path.unwrap_or(OsStr::new(USUAL)))
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(program))
        .find(|file| is_executable(file))
        .ok_or_else(|| StartError::NotFound(shown()))
}

/// Checks that the interpreter which a script names in its first line is there, and for `env` the program that `env`
/// is to find on `path`. What can't be read or understood is left to exec.
pub(crate) fn check_interpreter(
    program: &Path,
    dir: &Path,
    path: Option<&OsStr>,
) -> Result<(), StartError> {
    let Some(line) = first_line(program) else {
        return Ok(());
    };
    let missing = |interpreter: &[u8]| StartError::Interpreter {
        program: program.display().to_string(),
        interpreter: interpreter.escape_ascii().to_string(),
    };
    let (interpreter, argument) = split(&line);
    if interpreter.is_empty() {
        return Ok(());
    }
    if is_missing(&dir.join(OsStr::from_bytes(interpreter))) {
        return Err(missing(interpreter));
    }
    let is_env = interpreter.rsplit(|byte| *byte == b'/').next() == Some(b"env");
    match name_for_env(argument).filter(|_| is_env) {
        Some(name) if !env_finds(OsStr::from_bytes(name), dir, path) => Err(missing(name)),
        _ => Ok(()),
    }
}

/// What stands behind `#!`, without the spaces around it.
fn first_line(program: &Path) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    let file = std::fs::File::open(program).ok()?;
    file.take(LINE).read_to_end(&mut head).ok()?;
    let line = head
        .strip_prefix(b"#!")?
        .split(|byte| *byte == b'\n')
        .next()?;
    Some(trim(line).to_vec())
}

fn is_space(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Without the spaces around it. A carriage return is none, here as in the kernel.
fn trim(mut text: &[u8]) -> &[u8] {
    while let Some((_, rest)) = text.split_first().filter(|(first, _)| is_space(first)) {
        text = rest;
    }
    while let Some((_, rest)) = text.split_last().filter(|(last, _)| is_space(last)) {
        text = rest;
    }
    text
}

/// The first word, and the rest of the line as the one argument that the kernel makes of it.
fn split(line: &[u8]) -> (&[u8], &[u8]) {
    let end = line.iter().position(is_space).unwrap_or(line.len());
    (&line[..end], trim(&line[end..]))
}

/// What `env` is to execute, where that is plain: no options but `-S`, no variables.
fn name_for_env(argument: &[u8]) -> Option<&[u8]> {
    let name = match argument.strip_prefix(b"-S") {
        Some(words) => split(trim(words)).0,
        None => argument,
    };
    let plain = !name.is_empty() && !name.starts_with(b"-");
    let special = |byte: &u8| matches!(byte, b'=' | b'\'' | b'"' | b'\\' | b'$');
    (plain && !name.iter().any(special)).then_some(name)
}

fn env_finds(name: &OsStr, dir: &Path, path: Option<&OsStr>) -> bool {
    if name.as_bytes().contains(&b'/') {
        return !is_missing(&dir.join(name));
    }
    std::env::split_paths(path.unwrap_or(OsStr::new(USUAL)))
        .any(|folder| is_executable(&dir.join(folder).join(name)))
}

fn is_missing(file: &Path) -> bool {
    file.metadata()
        .is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_on_path_or_beside() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("prog");
        std::fs::write(&file, "#!/bin/sh\n").unwrap();
        let path = dir.path().as_os_str();
        let find = |name: &str| resolve(OsStr::new(name), dir.path(), Some(path));
        assert!(matches!(find("prog"), Err(StartError::NotFound(_))));
        assert!(matches!(find("./prog"), Err(StartError::NotExecutable(_))));
        assert!(matches!(find("./none"), Err(StartError::NotFound(_))));
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find("prog").unwrap(), file);
        assert_eq!(find("./prog").unwrap(), dir.path().join("./prog"));
    }

    #[test]
    fn a_relative_path_entry_is_never_searched() {
        let dir = tempfile::tempdir().unwrap();
        assert!(resolve(OsStr::new("prog"), dir.path(), Some(OsStr::new(".:"))).is_err());
    }

    #[test]
    fn missing_interpreters_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("script");
        let missing = |text: &str| {
            std::fs::write(&file, text).unwrap();
            match check_interpreter(&file, dir.path(), Some(OsStr::new("/usr/bin:/bin"))) {
                Ok(()) => None,
                Err(StartError::Interpreter { interpreter, .. }) => Some(interpreter),
                Err(other) => panic!("{other}"),
            }
        };
        for (text, interpreter) in [
            ("#!/no/such/python -u\n", "/no/such/python"),
            ("#! /no/such/python", "/no/such/python"),
            ("#!/bin/sh\r\necho", "/bin/sh\\r"),
            ("#!/usr/bin/env no-such-python\n", "no-such-python"),
            ("#!/usr/bin/env sh -u\n", "sh -u"),
            ("#!/usr/bin/env -S no-such-node --flag\n", "no-such-node"),
        ] {
            assert_eq!(missing(text).as_deref(), Some(interpreter), "{text:?}");
        }
        for text in [
            "",
            "#!",
            "#!\n",
            "echo",
            "\u{7f}ELF",
            "#!/bin/sh\n",
            "#!/usr/bin/env sh\n",
            "#!/usr/bin/env -S sh -u\n",
            "#!/usr/bin/env -S A=b no-such\n",
            "#!/usr/bin/env -i no-such\n",
        ] {
            assert_eq!(missing(text), None, "{text:?}");
        }
    }
}
