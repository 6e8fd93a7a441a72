//! What to do about an error or a problem: a sentence, and as data the command that it tells people to run.

use std::fmt;

use crate::words::CommandLine;

/// Written out, a sentence with its command between backticks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hint {
    /// The whole sentence, or the part before the command.
    text: String,
    run: Option<Box<Run>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Run {
    command: CommandLine,
    /// The part of the sentence behind the command.
    rest: String,
}

impl Hint {
    /// Run this command.
    pub fn run(command: CommandLine) -> Hint {
        let rest = String::new();
        Hint {
            text: String::new(),
            run: Some(Box::new(Run { command, rest })),
        }
    }

    /// Puts this before the rest, spaces included: when, or after what, to do it.
    #[must_use]
    pub fn before(mut self, text: impl AsRef<str>) -> Hint {
        self.text.insert_str(0, text.as_ref());
        self
    }

    /// Puts this after the rest, spaces included: what it is good for, or what else to do.
    #[must_use]
    pub fn after(mut self, text: impl AsRef<str>) -> Hint {
        let end = self
            .run
            .as_mut()
            .map_or(&mut self.text, |run| &mut run.rest);
        end.push_str(text.as_ref());
        self
    }

    /// The command that it tells people to run.
    pub fn command(&self) -> Option<&CommandLine> {
        self.run.as_ref().map(|run| &run.command)
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.run.is_none()
    }

    /// Changes it as written out. Where that changes anything it is a mere sentence from then on, because a command with a
    /// part cut or covered is not the one to run.
    pub fn edit(&mut self, change: impl FnOnce(&mut String)) {
        let was = self.to_string();
        let mut text = was.clone();
        change(&mut text);
        if text != was {
            *self = Hint::from(text);
        }
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        match &self.run {
            Some(run) => write!(f, "`{}`{}", run.command, run.rest),
            None => Ok(()),
        }
    }
}

impl From<String> for Hint {
    fn from(text: String) -> Hint {
        Hint { text, run: None }
    }
}

impl From<&str> for Hint {
    fn from(text: &str) -> Hint {
        Hint::from(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_reads_as_a_sentence_and_knows_its_command() {
        let grant = CommandLine::new("toolcrib grant").operand("mine");
        let hint = Hint::run(grant.clone());
        assert_eq!(hint.to_string(), "`toolcrib grant mine`");
        let hint = hint.before("look, then ").after(", and call again");
        let text = "look, then `toolcrib grant mine`, and call again";
        assert_eq!(hint.to_string(), text);
        assert_eq!(hint.command(), Some(&grant));
        let mere = Hint::from(text);
        assert_eq!((mere.to_string().as_str(), mere.command()), (text, None));
        assert_eq!(mere.after("!").to_string(), format!("{text}!"));
        assert!(Hint::default().is_empty() && !hint.is_empty());
    }

    #[test]
    fn an_edited_command_is_none_to_run() {
        let mut hint = Hint::run(CommandLine::new("toolcrib trust").operand("/srv/secret"));
        hint.edit(|_| {});
        assert!(hint.command().is_some(), "nothing was changed");
        hint.edit(|text| *text = text.replace("secret", "***"));
        assert_eq!(hint.to_string(), "`toolcrib trust /srv/***`");
        assert_eq!(hint.command(), None);
    }
}
