//! `toolcrib man`: a manual page per command, made from what the command line knows.

use std::fmt::Write;
use std::path::PathBuf;

use clap::{Arg, Args, Command};
use toolcrib_core::ErrorCode;

use super::{Done, Scene};
use crate::failure::Failure;
use crate::whole_file;

/// Print the manual page of a command, or write all of them into a folder
#[derive(Debug, Args)]
#[command(
    after_help = "`make install` writes them where `man` finds them: `man toolcrib`, `man toolcrib-call`."
)]
pub struct Man {
    /// The command; without one, the page of toolcrib itself
    #[arg(value_name = "COMMAND")]
    pub command: Vec<String>,
    /// Write the pages of all commands into this folder instead
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    pub dir: Option<PathBuf>,
}

impl Man {
    pub fn run(self, scene: &Scene) -> Done {
        let pages = pages();
        let Some(dir) = self.dir else {
            let name = named(&self.command);
            let page = pages.iter().find(|(known, _)| *known == name);
            let (_, text) = page.ok_or_else(|| unknown(&name))?;
            scene.printer.text(text);
            return Ok(0);
        };
        let dir = scene.env.directory.join(dir);
        for (name, text) in &pages {
            let file = dir.join(format!("{name}.1"));
            whole_file::write(&file, text.as_bytes()).map_err(|error| {
                let message = format!("can't write `{}`", file.display());
                let failure = Failure::new(ErrorCode::Unavailable, message).cause(error);
                failure.hint("name a folder that you may write")
            })?;
        }
        let count = pages.len();
        scene
            .printer
            .note(format!("wrote {count} pages into {}", dir.display()));
        Ok(0)
    }
}

fn named(words: &[String]) -> String {
    let words = words.iter().map(String::as_str);
    ["toolcrib"]
        .into_iter()
        .chain(words)
        .collect::<Vec<_>>()
        .join("-")
}

fn unknown(name: &str) -> Failure {
    Failure::new(ErrorCode::BadRequest, format!("there is no page `{name}`"))
        .hint("`toolcrib help` lists the commands")
}

/// Every page: its name, and its text as `man` reads it.
fn pages() -> Vec<(String, String)> {
    let mut line = super::command_line();
    line.build();
    let mut pages = vec![(named(&[]), page("toolcrib", &mut line.clone()))];
    for verb in line.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        let name = format!("toolcrib-{}", verb.get_name());
        pages.push((name.clone(), page(&name, &mut verb.clone())));
        for inner in verb
            .get_subcommands()
            .filter(|one| one.get_name() != "help")
        {
            let name = format!("{name}-{}", inner.get_name());
            pages.push((name.clone(), page(&name, &mut inner.clone())));
        }
    }
    pages
}

fn page(name: &str, command: &mut Command) -> String {
    let about = text_of(command.get_about().map(ToString::to_string));
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let mut page = format!(
        ".TH {} 1 \"\" \"toolcrib {}\" \"Toolcrib\"\n.SH NAME\n{} \\- {about}\n.SH SYNOPSIS\n.nf\n{}\n.fi\n",
        name.to_uppercase(),
        crate::VERSION,
        plain(name),
        plain(usage)
    );
    section(&mut page, "ARGUMENTS", command.get_positionals());
    let options = command.get_arguments().filter(|arg| !arg.is_positional());
    section(&mut page, "OPTIONS", options);
    if let Some(after) = command.get_after_help() {
        let after = plain(&after.to_string());
        let _ = write!(page, ".SH NOTES\n.nf\n{after}\n.fi\n");
    }
    page.push_str(
        ".SH SEE ALSO\n\\fBtoolcrib\\fR(1); \\fBtoolcrib help\\fR lists guides on every topic\n",
    );
    page
}

fn section<'a>(page: &mut String, title: &str, args: impl Iterator<Item = &'a Arg>) {
    let mut first = true;
    for arg in args.filter(|arg| !arg.is_hide_set()) {
        if std::mem::take(&mut first) {
            let _ = writeln!(page, ".SH {title}");
        }
        let help = arg.get_long_help().or(arg.get_help());
        let help = text_of(help.map(ToString::to_string));
        let _ = write!(page, ".TP\n\\fB{}\\fR\n{help}\n", plain(&arg.to_string()));
    }
}

fn text_of(text: Option<String>) -> String {
    plain(&text.unwrap_or_default())
}

/// Text that the page's language does not take for its own: no escapes, no line that begins as an order.
fn plain(text: &str) -> String {
    let line = |line: &str| {
        let line = line.replace('\\', "\\e").replace('-', "\\-");
        match line.starts_with(['.', '\'']) {
            true => format!("\\&{line}"),
            false => line,
        }
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_with_its_options() {
        let pages = pages();
        let line = super::super::command_line();
        for verb in line.get_subcommands() {
            let name = format!("toolcrib-{}", verb.get_name());
            let page = pages.iter().find(|(known, _)| *known == name);
            let (_, text) = page.unwrap_or_else(|| panic!("{name} has no page"));
            assert!(
                text.starts_with(".TH ") && text.contains(".SH SYNOPSIS"),
                "{text}"
            );
        }
        let (_, create) = pages
            .iter()
            .find(|(name, _)| name == "toolcrib-token-create")
            .unwrap();
        assert!(create.contains("\\fB\\-\\-scope"), "{create}");
    }

    #[test]
    fn text_is_no_order() {
        assert_eq!(plain(".TH x\\y\n'a --b"), "\\&.TH x\\ey\n\\&'a \\-\\-b");
    }
}
