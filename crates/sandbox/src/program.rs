//! Finds the file to execute, and says beforehand what exec would only call "not found".

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::machine::CannotConfine;
use crate::shim::{behind, is_stand_in};
use crate::system;
use crate::{Environment, StartError};

/// How much of a first line the kernel reads.
const LINE: u64 = 256;
/// Where programs are looked up when nothing says so.
const USUAL: &str = "/usr/local/bin:/usr/bin:/bin";

fn is_the_kernels(file: &Path) -> bool {
    system::KERNELS.iter().any(|root| file.starts_with(root))
}

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

/// Why there is no such program to execute, if so.
pub fn missing(program: &OsStr, dir: &Path, environment: &Environment) -> Option<StartError> {
    resolve(program, dir, environment.get("PATH")).err()
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
    let file = open_regular(program)?;
    file.take(LINE).read_to_end(&mut head).ok()?;
    let line = head
        .strip_prefix(b"#!")?
        .split(|byte| *byte == b'\n')
        .next()?;
    Some(trim(line).to_vec())
}

/// Opens a regular file and nothing else: who names a pipe, a device or a descriptor of the crib's own as interpreter
/// makes nobody wait and takes nothing away.
fn open_regular(program: &Path) -> Option<std::fs::File> {
    let real = program.canonicalize().ok()?;
    let plain = std::fs::symlink_metadata(&real).is_ok_and(|meta| meta.is_file());
    if !plain || is_the_kernels(program) || is_the_kernels(&real) {
        return None;
    }
    let file = std::fs::File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(&real)
        .ok()?;
    file.metadata()
        .is_ok_and(|meta| meta.is_file())
        .then_some(file)
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
    env_lookup(name, path).is_some()
}

/// A relative entry would be looked up from wherever the process starts; nobody said yes to what lies there.
fn env_lookup(name: &OsStr, path: Option<&OsStr>) -> Option<PathBuf> {
    std::env::split_paths(path.unwrap_or(OsStr::new(USUAL)))
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|file| is_executable(file))
}

/// How often an interpreter may itself be a script, as in the kernel.
const DEPTH: usize = 5;

/// What is really executed once every `#!` line is followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unfolded {
    pub file: PathBuf,
    pub argv: Vec<OsString>,
    /// The scripts on the way, which their interpreters read.
    pub scripts: Vec<PathBuf>,
}

/// Follows `#!` lines as the kernel and `env` would, for a process that may execute one file only. `project` is the one
/// whose files may choose versions for it.
pub(crate) fn unfold(
    program: &Path,
    argv: Vec<OsString>,
    dir: &Path,
    project: Option<&Path>,
    path: Option<&OsStr>,
) -> Result<Unfolded, CannotConfine> {
    let mut unfolded = Unfolded {
        file: program.to_path_buf(),
        argv,
        scripts: Vec::new(),
    };
    for _ in 0..DEPTH {
        if is_stand_in(&unfolded.file) {
            let usual = path.unwrap_or(OsStr::new(USUAL));
            if let Some(behind) = behind(&unfolded.file, dir, project, usual) {
                // By its path: interpreters look for their libraries from where they think they lie.
                if let Some(first) = unfolded.argv.first_mut() {
                    *first = behind.clone().into();
                }
                unfolded.file = behind;
                continue;
            }
            return Err(CannotConfine::new(
                format!(
                    "`{}` only looks up another program and executes it",
                    unfolded.file.display()
                ),
                "name that program itself, such as `pyenv which python3` prints it, or grant exec",
            ));
        }
        let line = first_line(&unfolded.file).filter(|line| !line.is_empty());
        let Some(line) = line else {
            return Ok(unfolded);
        };
        let (file, mut argv) = interpreter_of(&unfolded.file, &line, dir, path)?;
        // Before it is looked into: a script names what it likes, secrets and pipes too.
        if is_the_kernels(&file) || !is_executable(&file) {
            return Err(CannotConfine::new(
                format!(
                    "`{}` names `{}` in its first line, which is not a program that can be executed",
                    unfolded.file.display(),
                    file.display()
                ),
                "name a program in its first line, such as `#!/usr/bin/env python3`",
            ));
        }
        argv.push(unfolded.file.clone().into());
        argv.extend(unfolded.argv.into_iter().skip(1));
        unfolded.scripts.push(unfolded.file);
        (unfolded.file, unfolded.argv) = (file, argv);
    }
    let shown = program.display();
    Err(CannotConfine::new(
        format!("the interpreters that `{shown}` leads to are scripts without end"),
        "name a program in its first line",
    ))
}

fn interpreter_of(
    script: &Path,
    line: &[u8],
    dir: &Path,
    path: Option<&OsStr>,
) -> Result<(PathBuf, Vec<OsString>), CannotConfine> {
    let word = |bytes: &[u8]| OsStr::from_bytes(bytes).to_os_string();
    let (interpreter, argument) = split(line);
    let is_env = interpreter.rsplit(|byte| *byte == b'/').next() == Some(b"env");
    if !is_env {
        let mut argv = vec![word(interpreter)];
        argv.extend((!argument.is_empty()).then(|| word(argument)));
        return Ok((dir.join(OsStr::from_bytes(interpreter)), argv));
    }
    let unclear = || {
        CannotConfine::new(
            format!(
                "the first line of `{}` asks `env` for more than a program",
                script.display()
            ),
            "write `#!/usr/bin/env PROGRAM` or the program's path, or grant exec",
        )
    };
    let name = name_for_env(argument).ok_or_else(unclear)?;
    let words: Vec<&[u8]> = match argument.strip_prefix(b"-S") {
        Some(words) => words
            .split(is_space)
            .filter(|word| !word.is_empty())
            .collect(),
        None => vec![argument],
    };
    let special = |byte: &u8| matches!(byte, b'\'' | b'"' | b'\\' | b'$' | b'#');
    if words.iter().any(|word| word.iter().any(special)) {
        return Err(unclear());
    }
    let file = if name.contains(&b'/') {
        dir.join(OsStr::from_bytes(name))
    } else {
        env_lookup(OsStr::from_bytes(name), path).ok_or_else(unclear)?
    };
    Ok((file, words.into_iter().map(word).collect()))
}

/// The loader that a program names in its header, where it names one.
pub(crate) fn loader(program: &Path) -> Option<PathBuf> {
    const PT_INTERP: u32 = 3;
    let file = open_regular(program)?;
    let bytes = |at: u64, size: usize| {
        let mut bytes = vec![0; size];
        file.read_exact_at(&mut bytes, at).ok().map(|()| bytes)
    };
    let header = bytes(0, 64)?;
    // 64 bits, lowest byte first: every architecture that walls are built on.
    if !header.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let short = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
    let long = |bytes: &[u8]| bytes.try_into().ok().map(u64::from_le_bytes);
    let (start, size, count) = (long(&header[32..40])?, short(54), short(56));
    for index in 0..u64::from(count) {
        let entry = bytes(start.checked_add(index * u64::from(size))?, 56)?;
        if entry[..4] == PT_INTERP.to_le_bytes() {
            let length = usize::try_from(long(&entry[32..40])?).ok()?;
            let mut name = bytes(long(&entry[8..16])?, length.min(4_096))?;
            name.pop();
            return Some(PathBuf::from(OsString::from_vec(name)));
        }
    }
    None
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

    #[test]
    fn scripts_unfold_to_what_is_executed() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("script");
        let unfolded = |text: &str| {
            std::fs::write(&script, text).unwrap();
            let argv = vec!["script".into(), "x".into()];
            let path = OsStr::new("/usr/bin:/bin");
            unfold(&script, argv, dir.path(), None, Some(path)).map(|unfolded| {
                let words = unfolded.argv.iter().map(|word| word.to_string_lossy());
                let words = words.collect::<Vec<_>>().join(" ");
                let shown = script.display().to_string();
                (unfolded.file, words.replace(&shown, "SCRIPT"))
            })
        };
        for (text, file, words) in [
            ("#!/bin/sh\n", "/bin/sh", "/bin/sh SCRIPT x"),
            ("#!/bin/sh -e -u\n", "/bin/sh", "/bin/sh -e -u SCRIPT x"),
            ("#!/usr/bin/env sh\n", "/usr/bin/sh", "sh SCRIPT x"),
            ("#!/usr/bin/env -S sh -e\n", "/usr/bin/sh", "sh -e SCRIPT x"),
        ] {
            let told = unfolded(text).unwrap();
            assert_eq!(
                (told.0.as_path(), told.1.as_str()),
                (Path::new(file), words),
                "{text}"
            );
        }
        assert_eq!(
            unfolded("text").unwrap(),
            (script.clone(), "script x".to_owned())
        );
        for text in [
            "#!/usr/bin/env -i sh\n",
            "#!/usr/bin/env A=b sh\n",
            "#!/usr/bin/env -S sh '-e'\n",
        ] {
            assert!(unfolded(text).is_err(), "{text}");
        }
        let own = format!("#!{}\n", script.display());
        let told = unfolded(&own).unwrap_err();
        assert!(told.reason.contains("not a program"), "{told}");
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(unfolded(&own).unwrap_err().reason.contains("without end"));
        for named in ["/proc/self/exe", "/dev/null", "/usr"] {
            let told = unfolded(&format!("#!{named}\n")).unwrap_err();
            assert!(told.reason.contains("not a program"), "{named}: {told}");
        }
    }

    #[test]
    fn a_loader_is_found_in_the_header() {
        let own = std::env::current_exe().unwrap();
        let found = loader(&own).unwrap();
        assert!(found.is_absolute() && found.exists(), "{found:?}");
        assert_eq!(loader(Path::new("/etc/passwd")), None);
    }
}
