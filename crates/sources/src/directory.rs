//! What a program takes from the folder that it starts in, though that is not its own.
//!
//! A tool that is the user's own starts in the project, for that is what it is asked about. An interpreter that is given a
//! module or a line of code, and no script, looks there first for all that it imports: a clone's `json.py` would run in the
//! tool's place, with its keys. Python is told not to.

use std::ffi::OsStr;
use std::path::Path;

/// The variable that keeps Python from importing what lies in the folder that it starts in. Python 3.11 and later know it.
pub const SAFE_PATH: (&str, &str) = ("PYTHONSAFEPATH", "1");

/// Options of Python that take a value, which may be the next argument.
const WITH_VALUE: [char; 3] = ['W', 'X', 'Q'];

/// Would this command import what lies in the folder that it starts in? A script imports from beside itself instead.
pub fn imports_from_start<A: AsRef<OsStr>>(program: &OsStr, args: &[A]) -> bool {
    let name = Path::new(program).file_name().unwrap_or_default();
    let name = name.to_string_lossy();
    let is_python = ["python", "pypy"]
        .iter()
        .any(|begin| name.starts_with(begin));
    is_python && !runs_script(args)
}

/// Is a file named that is to be run, as Python reads its arguments?
fn runs_script<A: AsRef<OsStr>>(args: &[A]) -> bool {
    let mut args = args.iter().map(|arg| arg.as_ref().to_string_lossy());
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
            imports_from_start(OsStr::new(words[0]), &words[1..])
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
        ] {
            assert!(imports(line), "{line}");
        }
        for line in [
            "python3 tool.py",
            "python3 -u tool.py -m x",
            "python3 -W ignore tool.py",
            "python3 -X m tool.py -c x",
            "node -e code",
            "./tool -m x",
        ] {
            assert!(!imports(line), "{line}");
        }
    }
}
