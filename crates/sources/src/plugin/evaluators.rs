//! Programs that read an argument as a script again, and which of their arguments that is.

/// Such a program.
struct Evaluator {
    /// Its names, without the version at the end (`python3.11` is `python`).
    names: &'static [&'static str],
    /// Letters of short options that a script follows.
    script: &'static str,
    /// Long options that a script follows.
    long: &'static [&'static str],
    /// Letters of short options that something else follows.
    value: &'static str,
    /// Where no option gave it, the first word that is no option is the script.
    first_word: bool,
    /// What follows the script is the script's own.
    ends: bool,
}

const EVALUATORS: [Evaluator; 9] = [
    Evaluator::options(
        &[
            "sh", "bash", "rbash", "dash", "zsh", "ksh", "mksh", "ash", "fish",
        ],
        "c",
        &["command"],
        "oO",
    )
    .ending(),
    Evaluator::options(&["python", "pypy"], "c", &[], "WXQ").ending(),
    Evaluator::options(&["perl"], "eE", &[], "I"),
    Evaluator::options(&["ruby"], "e", &[], "IrCEFKx"),
    Evaluator::options(
        &["node", "nodejs", "bun", "tsx"],
        "ep",
        &["eval", "print"],
        "rC",
    ),
    Evaluator::options(&["php"], "rRBE", &["run", "process-code"], "cdz"),
    Evaluator::options(
        &["lua", "luajit", "Rscript", "osascript", "julia", "elixir"],
        "eE",
        &["eval", "print"],
        "l",
    ),
    Evaluator {
        first_word: true,
        ..Evaluator::options(&["awk", "gawk", "mawk", "nawk"], "e", &["source"], "fFvi")
    },
    Evaluator {
        first_word: true,
        ..Evaluator::options(&["sed", "gsed"], "e", &["expression"], "fl")
    },
];

impl Evaluator {
    const fn options(
        names: &'static [&'static str],
        script: &'static str,
        long: &'static [&'static str],
        value: &'static str,
    ) -> Evaluator {
        Evaluator {
            names,
            script,
            long,
            value,
            first_word: false,
            ends: false,
        }
    }

    const fn ending(self) -> Evaluator {
        Evaluator { ends: true, ..self }
    }

    fn named(word: &str) -> Option<&'static Evaluator> {
        let name = word.rsplit('/').next().unwrap_or_default();
        let bare = name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
        EVALUATORS
            .iter()
            .find(|known| known.names.contains(&bare) && !bare.is_empty())
    }
}

/// A word of a command line.
pub struct Word {
    /// What it begins with, up to its first placeholder.
    pub start: String,
    /// Nothing else is in it.
    pub whole: bool,
}

/// The programs that read a script among their arguments, each with the place of that word.
pub fn scripts(words: &[Word]) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate().filter(|(_, word)| word.whole) {
        let Some(evaluator) = Evaluator::named(&word.start) else {
            continue;
        };
        // So asked, sed runs no program and writes no file.
        if words[at + 1..].iter().any(|word| word.start == "--sandbox") {
            continue;
        }
        let name = word.start.rsplit('/').next().unwrap_or_default();
        for script in read_by(evaluator, &words[at + 1..]) {
            found.push((name.to_owned(), at + 1 + script));
        }
    }
    found
}

/// Where this program's scripts are in the words after it.
fn read_by(evaluator: &Evaluator, words: &[Word]) -> Vec<usize> {
    let mut scripts = Vec::new();
    let mut at = 0;
    let mut from_file = false;
    while let Some(word) = words.get(at) {
        let Some(option) = word.start.strip_prefix(['-', '+']) else {
            if evaluator.first_word && scripts.is_empty() && !from_file {
                scripts.push(at);
            }
            // `sh -c -- SCRIPT` has its script here; a program's file ends its own options.
            break;
        };
        match (next(evaluator, option, word.whole), words.get(at + 1)) {
            (Next::Here, _) => scripts.push(at),
            (Next::Script, _) => {
                at += 1;
                // A shell takes further options, and `--`, before its script.
                while evaluator.ends
                    && words
                        .get(at)
                        .is_some_and(|word| word.whole && word.start.starts_with(['-', '+']))
                {
                    at += 1;
                }
                if at < words.len() {
                    scripts.push(at);
                }
            }
            (Next::Value { file }, _) => {
                from_file |= file;
                at += 1;
            }
            (Next::Option, _) => {}
        }
        if evaluator.ends && !scripts.is_empty() {
            break;
        }
        at += 1;
    }
    scripts
}

/// What an option says about the words after it.
enum Next {
    /// Nothing.
    Option,
    /// The next word belongs to it, and is the file of a script or not.
    Value { file: bool },
    /// The next word is a script.
    Script,
    /// The script is in the same word.
    Here,
}

fn next(evaluator: &Evaluator, option: &str, whole: bool) -> Next {
    if let Some(long) = option.strip_prefix('-') {
        let (name, value) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (long, None),
        };
        return match (evaluator.long.contains(&name), value) {
            (true, None) if whole => Next::Script,
            (true, _) => Next::Here,
            (false, None) if ["file", "require", "import", "loader"].contains(&name) => {
                Next::Value {
                    file: name == "file",
                }
            }
            (false, _) => Next::Option,
        };
    }
    for (place, letter) in option.char_indices() {
        let last = whole && place + letter.len_utf8() == option.len();
        if evaluator.script.contains(letter) {
            return match last || evaluator.ends {
                // `sh -cx SCRIPT` has its script after the word; Python takes the rest of the word.
                true if last || evaluator.long.contains(&"command") => Next::Script,
                _ => Next::Here,
            };
        }
        if evaluator.value.contains(letter) {
            return match last {
                true => Next::Value {
                    file: letter == 'f',
                },
                false => Next::Option,
            };
        }
    }
    // The letter may come from the value itself: `-{{flags}}`.
    Next::Option
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(command: &str) -> Vec<usize> {
        let words = command.split(' ').map(|word| Word {
            start: word.split("{{").next().unwrap_or_default().to_owned(),
            whole: !word.contains("{{"),
        });
        let words: Vec<Word> = words.collect();
        scripts(&words).into_iter().map(|(_, at)| at).collect()
    }

    #[test]
    fn scripts_are_found_where_each_program_takes_them() {
        for (command, places) in [
            ("sh -c x", vec![2]),
            ("/bin/bash -xc x", vec![2]),
            ("bash -cx x y", vec![2]),
            ("zsh -o extendedglob -c -- x", vec![5]),
            ("env A=b sh -c x", vec![4]),
            ("python3.11 -W ignore -c x -c y", vec![4]),
            ("python3 -c{{x}}", vec![1]),
            ("python3 -Ic{{x}}", vec![1]),
            ("python3 run.py -c x", vec![]),
            ("perl -MJSON -ne x -e y file", vec![3, 5]),
            ("ruby -rjson -e x", vec![3]),
            ("node --eval={{x}}", vec![1]),
            ("node -r mod -p x", vec![4]),
            ("node run.js -e x", vec![]),
            ("php -r x", vec![2]),
            ("awk -F : -v a={{x}} {{x}} file", vec![5]),
            ("awk -f file {{x}}", vec![]),
            ("sed -n {{x}}p file", vec![2]),
            ("sed -e x -e {{y}} file", vec![2, 4]),
            ("sed --sandbox -n {{x}}p file", vec![]),
            ("grep -e {{x}} file", vec![]),
            ("git log -c {{x}}", vec![]),
        ] {
            assert_eq!(at(command), places, "{command}");
        }
    }
}
