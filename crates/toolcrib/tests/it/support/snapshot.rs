//! Holds what people read as text files, so that a changed sentence is a visible diff; `make snapshots` writes them anew.

use super::{Ran, World, tool::python};
use crate::tidy::root;

/// What several commands said, one after the other.
#[derive(Default)]
pub struct Snapshot(String);

impl Snapshot {
    /// Runs a command and takes down what it said.
    pub fn run(&mut self, world: &World, args: &[&str]) -> Ran {
        let ran = world.run(args);
        let mut said = format!("exit code {}\n", ran.code);
        for (stream, text) in [("stdout", &ran.stdout), ("stderr", &ran.stderr)] {
            if !text.is_empty() {
                said.push_str(&format!("--- {stream}\n{text}"));
            }
        }
        self.say(world, &format!("$ toolcrib {}", args.join(" ")), &said);
        ran
    }

    /// Takes down a text of this world under a title.
    pub fn say(&mut self, world: &World, title: &str, said: &str) {
        let text = format!("{title}\n{}\n\n", said.trim_end())
            .replace(&world.project().display().to_string(), "<project>")
            .replace(&world.home().display().to_string(), "<home>")
            .replace(python(), "python3");
        self.0.push_str(&steady(&text));
    }

    /// Fails where the text is not the one that `tests/snapshots` holds under this name.
    #[expect(
        clippy::disallowed_methods,
        reason = "`make snapshots` asks by a variable, for a test takes no flags"
    )]
    pub fn holds(self, name: &str) {
        let folder = root().join("crates/toolcrib/tests/snapshots");
        let file = folder.join(name).with_extension("txt");
        let text = self.0.trim_end().to_owned() + "\n";
        if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
            std::fs::write(&file, &text).unwrap();
        }
        let kept = std::fs::read_to_string(&file).unwrap_or_default();
        let same = kept.lines().zip(text.lines()).take_while(|(a, b)| a == b);
        let same = same.count();
        let [held, said] = [&kept, &text].map(|text| text.lines().nth(same).unwrap_or("(its end)"));
        assert!(
            kept == text,
            "{name}.txt differs in line {}; if it should, run `make snapshots`.\nIt holds: {held}\nThis was said: {said}\n{text}",
            same + 1
        );
    }
}

/// The text without what differs from run to run. Columns of a table with ids stand two spaces apart, whatever their width.
pub fn steady(text: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-:._".contains(c);
    let mut steady = String::new();
    for word in text.split_inclusive(|c| !is_part(c)) {
        let bare = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        steady.push_str(stand_in(bare).unwrap_or(bare));
        steady.push_str(&word[bare.len()..]);
    }
    while steady.contains("<id>") && steady.contains("   ") {
        steady = steady.replace("   ", "  ");
    }
    steady
}

fn stand_in(word: &str) -> Option<&'static str> {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let is_hex = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    match (word.len(), word.bytes().all(is_hex)) {
        _ if word == toolcrib::VERSION => Some("<version>"),
        _ if word.starts_with("tcrib_") => Some("<secret>"),
        (20 | 24, _) if digits >= 14 && word.ends_with('Z') => Some("<time>"),
        (36, true) => Some("<id>"),
        (8.., true) if digits > 0 => Some("<hash>"),
        (length, _) if word.contains('.') && digits + 1 == length => Some("<number>"),
        _ => None,
    }
}
