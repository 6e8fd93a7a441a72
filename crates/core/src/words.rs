//! Text of others (a tool, a project, a package, a client) in sentences and commands that people and agents read, copy
//! and run. Whoever puts such text into a sentence takes [`inline`] or [`line`]; into a command, a [`CommandLine`].

use std::fmt;

/// The longest sentence of others, in characters.
const MAX_LINE: usize = 500;

/// `1 tool`, `2 tools`: a number with its noun.
pub fn counted(count: impl TryInto<u64>, noun: &str) -> String {
    match count.try_into() {
        Ok(1) => format!("1 {noun}"),
        Ok(count) => format!("{count} {noun}s"),
        Err(_) => format!("many {noun}s"),
    }
}

/// Characters that do something instead of being seen: they steer terminals, turn writing around, or hide words.
pub fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{AD}' | '\u{61C}' | '\u{180E}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}'
            | '\u{E0000}'..='\u{E01EF}')
}

/// A text as any shell takes it for one word on one line, because hints are copied.
///
/// A word that begins with a dash is still an option to the program that gets it; [`CommandLine`] knows that.
pub fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@:,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    // Hints stand between backticks, so one of the text's own would end the command early.
    let odd = |c: char| is_unseen(c) || c == '`';
    if !text.contains(odd) {
        return format!("'{}'", text.replace('\'', r"'\''"));
    }
    // A shell that does not know this form reads a harmless word: nothing in it ends the quotes.
    let mut word = String::from("$'");
    for c in text.chars() {
        match c {
            '\\' => word.push_str(r"\\"),
            c if odd(c) || c == '\'' => {
                let bytes = c.to_string().into_bytes();
                word.extend(bytes.iter().map(|byte| format!("\\{byte:03o}")));
            }
            c => word.push(c),
        }
    }
    word.push('\'');
    word
}

/// A text of others as a word of a sentence of ours: between backticks, on one line. It is not cut, because people say
/// yes to what they read here.
pub fn inline(text: &str) -> String {
    format!("`{}`", tame(text, usize::MAX).replace('`', "'"))
}

/// A sentence of others: on one line, without what steers terminals, not too long.
pub fn line(text: &str) -> String {
    tame(text.trim(), MAX_LINE)
}

fn tame(text: &str, most: usize) -> String {
    let each = |c: char| match c {
        '\n' | '\t' => ' ',
        c if is_unseen(c) => '\u{FFFD}',
        c => c,
    };
    let mut kept: String = text.chars().take(most).map(each).collect();
    if text.chars().nth(most).is_some() {
        kept.push('…');
    }
    kept
}

/// A flag with its value, as one may type it.
pub fn flag(name: &'static str, value: &str) -> String {
    match value.starts_with('-') {
        true => format!("{name}={}", quoted(value)),
        false => format!("{name} {}", quoted(value)),
    }
}

/// A command for a person to type. What is not written in our own code gets in quoted, and never as an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    head: &'static str,
    operands: Vec<String>,
    options: Vec<String>,
}

impl CommandLine {
    /// The command and its subcommand.
    pub fn new(head: &'static str) -> CommandLine {
        CommandLine {
            head,
            operands: Vec::new(),
            options: Vec::new(),
        }
    }

    /// What the command is about: a name or a path.
    #[must_use]
    pub fn operand(mut self, text: impl fmt::Display) -> CommandLine {
        self.operands.push(text.to_string());
        self
    }

    /// A switch without a value.
    #[must_use]
    pub fn switch(mut self, name: &'static str) -> CommandLine {
        self.options.push(name.to_owned());
        self
    }

    #[must_use]
    pub fn flag(mut self, name: &'static str, value: &str) -> CommandLine {
        self.options.push(flag(name, value));
        self
    }
}

impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operands = self.operands.iter().map(|text| quoted(text));
        let options = self.options.iter().cloned();
        let dashed = self.operands.iter().any(|text| text.starts_with('-'));
        let words: Vec<String> = match dashed {
            true => options.chain(["--".to_owned()]).chain(operands).collect(),
            false => operands.chain(options).collect(),
        };
        f.write_str(self.head)?;
        words.iter().try_for_each(|word| write!(f, " {word}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_is_one_harmless_command() {
        assert_eq!(quoted("/srv/a-b_c.d"), "/srv/a-b_c.d");
        assert_eq!(quoted("/a; touch x"), "'/a; touch x'");
        assert_eq!(quoted("/it's"), r"'/it'\''s'");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("/grün"), "'/grün'");
    }

    #[test]
    fn what_can_not_be_seen_is_spelled_out_and_nothing_ends_the_quotes() {
        assert_eq!(quoted("a\nb"), r"$'a\012b'");
        assert_eq!(quoted("a`b"), r"$'a\140b'");
        assert_eq!(quoted("\u{1b}[2J'\\"), r"$'\033[2J\047\\'");
        assert_eq!(quoted("\u{202e}x"), r"$'\342\200\256x'");
        for text in ["\n'; touch x; '", "`touch x`'\u{0}", "\\'\r\u{e0041}'"] {
            let word = quoted(text);
            assert!(word.starts_with("$'") && word.ends_with('\''), "{word}");
            assert!(!word[2..word.len() - 1].contains('\''), "{word}");
            assert!(!word.contains(|c| is_unseen(c) || c == '`'), "{word}");
        }
    }

    #[test]
    fn text_of_others_is_never_taken_for_an_option() {
        let grant = CommandLine::new("toolcrib grant").operand("mine");
        assert_eq!(grant.clone().to_string(), "toolcrib grant mine");
        let read = grant.flag("--read", "--exec").switch("--follow");
        assert_eq!(
            read.to_string(),
            "toolcrib grant mine --read=--exec --follow"
        );
        let dashed = CommandLine::new("toolcrib grant")
            .operand("--revoke")
            .switch("--all");
        assert_eq!(dashed.to_string(), "toolcrib grant --all -- --revoke");
        assert_eq!(flag("--net", "a; b"), "--net 'a; b'");
    }

    #[test]
    fn text_of_others_stays_within_its_place_in_a_sentence() {
        assert_eq!(
            inline("a`, run `b`\n\u{1b}[1m"),
            "`a', run 'b' \u{FFFD}[1m`"
        );
        assert_eq!(line(" mend\r\n\u{202e}it "), "mend\u{FFFD} \u{FFFD}it");
        assert_eq!(line(&"x".repeat(900)).chars().count(), MAX_LINE + 1);
    }
}
