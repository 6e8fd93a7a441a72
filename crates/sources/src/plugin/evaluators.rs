//! Programs that read an argument as a script again, and which of their arguments that is.
//!
//! Where it is not plain how such a program reads its words, what may be a script counts as one: a template that is refused
//! is written anew, a value that is run is not taken back.

mod known;

use known::{Evaluator, Rest};

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
    for (at, word) in words.iter().enumerate() {
        let Some(evaluator) = Evaluator::named(&word.start) else {
            continue;
        };
        // `make` is a word like others, unless it is what is run.
        if matches!(evaluator.plain, Rest::All | Rest::Each) && !is_run(&words[..at]) {
            continue;
        }
        // So asked, sed runs no program and writes no file.
        if words[at + 1..].iter().any(|word| word.start == "--sandbox") {
            continue;
        }
        let name = word.start.rsplit('/').next().unwrap_or_default();
        let mut reading = Reading {
            evaluator,
            words: &words[at + 1..],
            found: Vec::new(),
        };
        reading.read();
        for script in reading.found {
            found.push((name.to_owned(), at + 1 + script));
        }
    }
    found
}

/// Programs that run what follows them.
const WRAPPERS: [&str; 18] = [
    "bunx", "chroot", "doas", "env", "exec", "ionice", "nice", "nohup", "npx", "run", "setsid",
    "stdbuf", "sudo", "taskset", "time", "timeout", "unshare", "xargs",
];

/// Is the word behind these what is run?
fn is_run(before: &[Word]) -> bool {
    before.last().is_none_or(|word| {
        let name = word.start.rsplit('/').next().unwrap_or_default();
        let is_number = name.starts_with(|letter: char| letter.is_ascii_digit());
        is_number || name.contains('=') || word.start.starts_with('-') || WRAPPERS.contains(&name)
    })
}

/// Could this program be given the file of a script?
pub fn runs_files(program: &str) -> bool {
    Evaluator::named(program).is_some()
}

/// May the word behind this option of the program belong to it?
pub fn may_take_a_value(program: &str, option: &str) -> bool {
    let Some(evaluator) = Evaluator::named(program) else {
        return true;
    };
    let (words, found) = (&[][..], Vec::new());
    let reading = Reading {
        evaluator,
        words,
        found,
    };
    let word = Word {
        start: option.to_owned(),
        whole: true,
    };
    match reading.next(&word) {
        None | Some(Next::Option | Next::Here) => false,
        Some(Next::Value { words, .. }) => words > 0,
        Some(Next::Unclear | Next::Script) => true,
    }
}

/// How one program reads the words after it.
struct Reading<'a> {
    evaluator: &'static Evaluator,
    words: &'a [Word],
    /// Where its scripts are.
    found: Vec<usize>,
}

/// What an option says about the words after it.
enum Next {
    /// Nothing.
    Option,
    /// The next words belong to it, and are the file of a script or not.
    Value { words: usize, file: bool },
    /// Nobody knows whether the next word belongs to it.
    Unclear,
    /// The next word is a script.
    Script,
    /// The script is in the same word.
    Here,
}

impl Reading<'_> {
    fn read(&mut self) {
        let known = self.evaluator;
        let (mut at, mut plain) = (0, 0);
        let (mut from_file, mut unclear) = (false, false);
        while let Some(word) = self.words.get(at) {
            let is_value = std::mem::take(&mut unclear);
            match self.next(word) {
                Some(Next::Here) => self.found.push(at),
                Some(Next::Script) => at = self.script_after(at),
                Some(Next::Value { words, file }) => {
                    from_file |= file;
                    at += words;
                }
                Some(Next::Unclear) => unclear = true,
                Some(Next::Option) => {}
                None if is_value => {}
                None => {
                    let is_script = plain == known.before && !from_file && self.found.is_empty();
                    match known.plain {
                        Rest::Nothing if plain < known.before => {}
                        // A program's file ends its own options.
                        Rest::Nothing => return,
                        Rest::First if is_script => self.found.push(at),
                        Rest::First if plain < known.before => {}
                        Rest::First => return,
                        Rest::All if is_script => return self.found.extend(at..self.words.len()),
                        Rest::All => {}
                        Rest::Each => self.found.push(at),
                    }
                    plain += 1;
                }
            }
            if known.ends && !self.found.is_empty() {
                return;
            }
            at += 1;
        }
    }

    /// Notes the script that follows an option, and gives where it is.
    fn script_after(&mut self, option: usize) -> usize {
        let mut at = option + 1;
        let is_option = |word: &Word| word.whole && word.start.starts_with(['-', '+']);
        // A shell takes further options, and `--`, before its script.
        while self.evaluator.ends && self.words.get(at).is_some_and(is_option) {
            at += 1;
        }
        match self.evaluator.plain {
            Rest::All if self.evaluator.before == usize::MAX => {
                self.found.extend(at..self.words.len());
            }
            _ if at < self.words.len() => self.found.push(at),
            _ => {}
        }
        // Another option may be one all the same.
        match self.words.get(at).is_some_and(is_option) {
            true => option,
            false => at,
        }
    }

    /// What a word says that is an option; none of one that is none.
    fn next(&self, word: &Word) -> Option<Next> {
        let known = self.evaluator;
        let (name, value) = match word.start.split_once('=') {
            Some((name, _)) => (name, true),
            None => (word.start.as_str(), !word.whole),
        };
        if known.words.contains(&name) {
            return Some(if value { Next::Here } else { Next::Script });
        }
        if let Some((_, words)) = known.values.iter().find(|(option, _)| *option == name) {
            let file = ["--file", "--from-file", "-f"].contains(&name);
            let words = if value { words - 1 } else { *words };
            return Some(Next::Value { words, file });
        }
        let option = word.start.strip_prefix(['-', '+'])?;
        if option.is_empty() {
            return None;
        }
        if option.starts_with('-') {
            let is_closed = known.closed || option == "-" || value;
            return Some(if is_closed {
                Next::Option
            } else {
                Next::Unclear
            });
        }
        Some(self.short(option, word.whole))
    }

    /// The same of letters behind one dash.
    fn short(&self, option: &str, whole: bool) -> Next {
        let known = self.evaluator;
        for (place, letter) in option.char_indices() {
            let last = whole && place + letter.len_utf8() == option.len();
            if known.script.contains(letter) {
                // `sh -cx SCRIPT` and `node -pe SCRIPT` have their script after the word, `python3 -cSCRIPT` in it.
                return match last || !known.attaches && whole {
                    true => Next::Script,
                    false => Next::Here,
                };
            }
            if known.value.contains(letter) {
                let words = usize::from(last);
                let file = letter == 'f' && known.plain == Rest::First;
                return Next::Value { words, file };
            }
        }
        // The letter may come from the value itself: `-{{flags}}`.
        Next::Option
    }
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
            ("bash-5.2 --rcfile f -c x", vec![4]),
            ("zsh -o extendedglob -c -- x", vec![5]),
            ("fish -C x", vec![2]),
            ("env A=b sh -c x", vec![4]),
            ("env -S {{x}}", vec![2]),
            ("env -u HOME printf x{{x}}", vec![]),
            ("python3.11 -W ignore -c x -c y", vec![4]),
            ("python3 --check-hash-based-pycs always -c x", vec![4]),
            ("python3.11-dbg -c{{x}}", vec![1]),
            ("python3 -c{{x}}", vec![1]),
            ("python3 -Ic{{x}}", vec![1]),
            ("python3 run.py -c x", vec![]),
            ("python{{v}} -c x", vec![2]),
            ("perl -MJSON -ne x -e y file", vec![1, 3, 5]),
            ("perl -MStorable -e x", vec![1, 3]),
            ("perl -M{{x}} run.pl", vec![1]),
            ("ruby -rjson -e x", vec![3]),
            ("ruby --encoding utf-8 -e x", vec![4]),
            ("node --eval={{x}}", vec![1]),
            ("node -r mod -p x", vec![4]),
            ("node -pe x y", vec![2]),
            ("node --input-type module -e x", vec![4]),
            ("node --import=data:text/javascript,{{x}} run.js", vec![1]),
            ("node run.js -e x", vec![]),
            ("npx ts-node -e x", vec![3]),
            ("deno eval --ext=ts x", vec![3]),
            ("deno run x.ts {{x}}", vec![]),
            ("bun exec x", vec![2]),
            ("php -r x", vec![2]),
            ("pwsh -NoProfile -Command x y", vec![3, 4]),
            ("julia -t 4 -e x", vec![4]),
            ("Rscript -e x", vec![2]),
            ("erl -noshell -eval x", vec![2, 3]),
            ("awk -F : -v a={{x}} {{x}} file", vec![5]),
            ("awk -f file {{x}}", vec![]),
            ("gawk --field-separator : {{x}}", vec![3]),
            ("gawk -l ordchr {{x}}", vec![3]),
            ("gawk --posix {{x}}", vec![2]),
            ("sed -n {{x}}p file", vec![2]),
            ("sed --line-length 5 s/{{x}}/y/", vec![3]),
            ("sed -e x -e {{y}} file", vec![2, 4]),
            ("sed --sandbox -n {{x}}p file", vec![]),
            ("jq -r --arg a {{x}} .a=={{x}} file-{{x}}", vec![5]),
            ("jq --indent 2 .a=={{x}}", vec![3]),
            ("jq -f filter.jq file-{{x}}", vec![]),
            ("yq eval .a=={{x}} file", vec![2]),
            ("sqlite3 -json a.db x", vec![3]),
            ("sqlite3 -cmd x a.db", vec![2]),
            ("psql -h db -c x", vec![4]),
            ("psql -v a={{x}} -f file", vec![]),
            ("mysql --execute={{x}}", vec![1]),
            ("make -j 4 test-{{x}} A={{x}}", vec![2, 3, 4]),
            ("nice -n 5 make test-{{x}}", vec![4]),
            ("grep make file-{{x}}", vec![]),
            ("ssh-keygen -f key-{{x}}", vec![]),
            ("psql -e -c x", vec![3]),
            ("make -C dir --eval={{x}}", vec![3]),
            ("ssh -p 22 host cat {{x}}", vec![4, 5]),
            ("watch -n 5 ls {{x}}", vec![3, 4]),
            ("su me -c x", vec![3]),
            ("flock file -c x", vec![3]),
            ("vim -c x", vec![2]),
            ("gdb -batch -ex x", vec![1, 3]),
            ("timeout 5 guile -c x", vec![4]),
            ("grep -e {{x}} file", vec![]),
            ("git log -c {{x}}", vec![]),
            ("cat file-{{x}}", vec![]),
        ] {
            assert_eq!(at(command), places, "{command}");
        }
    }
}
