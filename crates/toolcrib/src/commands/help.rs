//! `toolcrib help`: a command's options, or one of the guides, which are in the binary.

use clap::Args;
use toolcrib_core::ErrorCode;

use super::{Done, Scene};
use crate::failure::Failure;

/// Explain a command, or a topic such as `grants` or `first-tool`
#[derive(Debug, Args)]
pub struct Help {
    /// A command, or a topic; `toolcrib help` alone lists both
    #[arg(value_name = "TOPIC")]
    pub topic: Vec<String>,
}

macro_rules! guide {
    ($name:literal) => {
        (
            $name,
            include_str!(concat!("../../../../docs/guides/", $name, ".md")),
        )
    };
}
/// The guides, by the name of their file, and the protocol that programs speak.
pub const GUIDES: [(&str, &str); 24] = [
    guide!("first-tool"),
    guide!("python-tool"),
    guide!("typescript-tool"),
    guide!("program-tool"),
    guide!("registered-tools"),
    guide!("json-plugins"),
    guide!("trust"),
    guide!("grants"),
    guide!("build-tools"),
    guide!("sandbox"),
    guide!("scan"),
    guide!("built-in-tools"),
    guide!("secrets"),
    guide!("agents"),
    guide!("profiles"),
    guide!("middleware"),
    guide!("approvals"),
    guide!("tool-search"),
    guide!("serve-and-rest"),
    guide!("tokens"),
    guide!("audit-and-logs"),
    guide!("settings"),
    guide!("glossary"),
    (
        "worker-protocol",
        include_str!("../../../../docs/reference/worker-protocol.md"),
    ),
];

impl Help {
    pub fn run(self, scene: &Scene) -> Done {
        let words: Vec<&str> = self.topic.iter().map(String::as_str).collect();
        let text = match (words.as_slice(), command(&words)) {
            ([], Some(help)) => format!("{help}\n{}", topics()),
            (_, Some(help)) => help,
            ([topic], None) => guide(topic).ok_or_else(|| unknown(topic))?,
            (_, None) => return Err(unknown(&self.topic.join(" "))),
        };
        scene.printer.text(&text);
        Ok(0)
    }
}

/// What clap says of a command, of one below it, or of all.
fn command(words: &[&str]) -> Option<String> {
    let mut line = super::command_line();
    line.build();
    let mut found = &mut line;
    for word in words {
        found = found.find_subcommand_mut(word)?;
    }
    Some(found.render_long_help().to_string())
}

/// What there are guides about.
fn topics() -> String {
    let mut text = "Topics (`toolcrib help TOPIC`):\n".to_owned();
    for (name, guide) in GUIDES {
        let title = guide.lines().next().unwrap_or_default();
        text.push_str(&format!(
            "  {name:<17} {}\n",
            title.trim_start_matches("# ")
        ));
    }
    text
}

/// A guide as somebody reads it in a terminal: without comments, and with links to what is in the binary.
fn guide(topic: &str) -> Option<String> {
    let name = topic.trim_end_matches(".md");
    let (_, text) = GUIDES.iter().find(|(known, _)| *known == name)?;
    let mut shown = String::new();
    let mut rest = *text;
    while let Some((before, behind)) = rest.split_once("<!--") {
        shown.push_str(before);
        rest = behind.split_once("-->\n").map_or("", |(_, after)| after);
    }
    shown.push_str(rest);
    shown = shown
        .replace("](../reference/", "](")
        .replace("](../guides/", "](");
    for (known, _) in GUIDES {
        shown = shown.replace(
            &format!("]({known}.md)"),
            &format!("](toolcrib help {known})"),
        );
        let part = format!("]({known}.md#");
        while let Some((before, behind)) = shown.split_once(&part) {
            let behind = behind.split_once(')').map_or("", |(_, after)| after);
            shown = format!("{before}](toolcrib help {known}){behind}");
        }
    }
    Some(shown)
}

fn unknown(topic: &str) -> Failure {
    let command = super::command_line();
    let commands = command.get_subcommands().map(clap::Command::get_name);
    let known = commands.chain(GUIDES.iter().map(|(name, _)| *name));
    let closest = known
        .map(|name| (strsim::jaro_winkler(name, topic), name))
        .filter(|(likeness, _)| *likeness > 0.7)
        .max_by(|one, other| one.0.total_cmp(&other.0));
    let failure = Failure::new(
        ErrorCode::BadRequest,
        format!("there is no command and no topic `{topic}`"),
    );
    match closest {
        Some((_, name)) => failure.hint(format!("did you mean `toolcrib help {name}`?")),
        None => failure.hint("`toolcrib help` lists the commands and the topics"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_guide_is_in_the_binary() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides");
        for entry in std::fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let text = guide(&name).unwrap_or_else(|| panic!("{name} is not in GUIDES"));
            assert!(text.starts_with("# "), "{name}");
            assert!(
                !text.contains("<!--") && !text.contains("](grants.md"),
                "{name}"
            );
        }
    }

    #[test]
    fn commands_and_those_below_them_are_explained() {
        assert!(command(&["list"]).is_some_and(|help| help.contains("Usage: toolcrib list")));
        assert!(command(&["token", "create"]).is_some_and(|help| help.contains("--scope")));
        assert_eq!(command(&["grants"]), None);
        assert!(topics().contains("first-tool        Your first tool"));
    }
}
