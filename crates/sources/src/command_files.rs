//! Which words of a command name files that are run, and not data: scripts, what an interpreter loads first, programs that
//! another one starts. A yes to a command is a yes to them as they are, and no other tool writes them.

use std::path::{Path, PathBuf};

use crate::plugin::evaluators::{may_take_a_value, runs_files};

/// What files end with that programs run.
const SCRIPTS: [&str; 60] = [
    "awk", "bash", "bats", "bc", "cjs", "clj", "coffee", "cts", "dll", "dylib", "el", "ex", "exs",
    "fish", "gawk", "gradle", "groovy", "hs", "jar", "java", "jl", "jq", "js", "jsx", "ksh", "kts",
    "lua", "luac", "m4", "mak", "mjs", "mk", "ml", "mts", "nix", "nu", "php", "phar", "pl", "pm",
    "ps1", "psm1", "py", "pyc", "pyz", "r", "raku", "rb", "rkt", "scala", "scm", "sed", "sh", "so",
    "tcl", "ts", "tsx", "vim", "wasm", "zsh",
];
/// Options whose value an interpreter runs, instead of a script or before it.
const FILES: [&str; 6] = ["-f", "--file", "--from-file", "-jar", "-init", "-x"];
const FIRST: [&str; 15] = [
    "-r",
    "-l",
    "-i",
    "-e",
    "-S",
    "--require",
    "--import",
    "--include",
    "--load",
    "--loader",
    "--experimental-loader",
    "--preload",
    "--rcfile",
    "--init-file",
    "--settings",
];

/// The files that the words behind this program name and that are run, from the folder on in which it starts. Also scripts
/// that are not there yet.
pub fn named(program: &str, args: &[String], start: &Path) -> Vec<PathBuf> {
    let place = |word: &str| -> PathBuf { start.join(word).components().collect() };
    let mut found = Vec::new();
    // Which interpreter reads these words, and is its script known?
    let mut reader = runs_files(program).then_some(program);
    let mut knows = false;
    let mut before = "";
    for word in args.iter().filter(|word| !word.contains('\0')) {
        if word.starts_with('-') {
            let path = value_of(word).map(place).filter(|path| is_script(path));
            knows |= path.is_some() && word.starts_with("-f");
            found.extend(path);
        } else if !word.is_empty() {
            let path = place(word);
            let (is_script, is_file) = (is_script(&path), path.is_file());
            let (by_file, first) = (FILES.contains(&before), FIRST.contains(&before));
            if let Some(program) = reader.filter(|_| is_file) {
                let is_value = before.starts_with('-') && may_take_a_value(program, before);
                if is_script || by_file || first || !knows {
                    found.push(path);
                }
                knows |= !first && (is_script || by_file || !is_value);
            } else if is_script {
                // It may come to be later.
                knows |= !first;
                found.push(path);
            } else if runs_files(word) {
                (reader, knows) = (Some(word.as_str()), false);
            }
        }
        before = word.as_str();
    }
    found
}

/// What stands in an option itself: `--require=./hook.js`, `-fscript.awk`.
fn value_of(option: &str) -> Option<&str> {
    match option.split_once('=') {
        Some((_, value)) => Some(value),
        None if option.starts_with("--") => None,
        None => option.get(2..),
    }
    .filter(|value| !value.is_empty())
}

fn is_script(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let suffix = path.extension().and_then(|suffix| suffix.to_str());
    let suffix = suffix.map(str::to_ascii_lowercase);
    if suffix.is_some_and(|suffix| SCRIPTS.contains(&suffix.as_str())) {
        return true;
    }
    path.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_run_is_told_from_data() {
        let folder = tempfile::tempdir().unwrap();
        for file in ["noext", "data", "other", "notes.md"] {
            std::fs::write(folder.path().join(file), "").unwrap();
        }
        let found = |command: &str| -> Vec<String> {
            let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
            let paths = named(&words[0], &words[1..], folder.path());
            let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
            paths.iter().map(name).collect()
        };
        for (command, files) in [
            ("python3 -W ignore x.py data", &["x.py"][..]),
            ("python3 -u x.py data", &["x.py"]),
            ("/usr/bin/python3 -W ignore noext data", &["noext"]),
            ("sh noext data", &["noext"]),
            ("uv run python3 noext data", &["noext"]),
            ("env A=b sh noext", &["noext"]),
            ("awk -f noext data", &["noext"]),
            ("awk -fx.awk data", &["x.awk"]),
            ("jq -r -f x.jq notes.md", &["x.jq"]),
            ("node --require=./hook.cjs x.js data", &["hook.cjs", "x.js"]),
            ("node -r ./hook.cjs noext data", &["hook.cjs", "noext"]),
            ("make -f noext all", &["noext"]),
            ("cat data notes.md", &[]),
            ("grep -f data notes.md", &[]),
            ("git log data", &[]),
            ("tar cf x.tar data", &[]),
        ] {
            assert_eq!(found(command), files, "{command}");
        }
    }
}
