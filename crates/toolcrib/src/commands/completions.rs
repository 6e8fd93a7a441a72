//! `toolcrib completions`: a completion script for a shell, which also knows the names of tools.

use clap::Args;
use clap_complete::Shell;

use super::{Done, Scene};

/// Print a completion script for your shell
#[derive(Debug, Args)]
#[command(
    after_help = "For bash: toolcrib completions bash > ~/.local/share/bash-completion/completions/toolcrib\n\
    bash, zsh and fish also complete the names of the tools there are."
)]
pub struct Completions {
    /// Which shell
    pub shell: Shell,
}

impl Completions {
    pub fn run(self, scene: &Scene) -> Done {
        let mut script = Vec::new();
        clap_complete::generate(
            self.shell,
            &mut super::command_line(),
            "toolcrib",
            &mut script,
        );
        let script = String::from_utf8_lossy(&script);
        scene.printer.text(&with_tools(self.shell, &script));
        Ok(0)
    }
}

/// The commands whose first argument is a tool's name.
fn take_tools() -> Vec<String> {
    let takes_tool = |command: &&clap::Command| {
        let first = command.get_positionals().next();
        let help = first.and_then(clap::Arg::get_help).map(ToString::to_string);
        help.is_some_and(|help| help.starts_with("The tool"))
    };
    let line = super::command_line();
    let commands = line.get_subcommands().filter(takes_tool);
    commands
        .map(|command| command.get_name().to_owned())
        .collect()
}

/// The script with what asks the crib for its tools.
fn with_tools(shell: Shell, script: &str) -> String {
    const ASK: &str = "toolcrib list --names 2>/dev/null";
    let commands = take_tools();
    match shell {
        Shell::Bash => format!(
            "{script}\n\
            _toolcrib_with_tools() {{\n    \
                if [[ $COMP_CWORD -eq 2 && $2 != -* && ${{COMP_WORDS[1]}} =~ ^({})$ ]]; then\n        \
                    COMPREPLY=($(compgen -W \"$({ASK})\" -- \"$2\"))\n    \
                else\n        \
                    _toolcrib \"$@\"\n    \
                fi\n\
            }}\n\
            complete -F _toolcrib_with_tools -o bashdefault -o default toolcrib\n",
            commands.join("|")
        ),
        Shell::Zsh => {
            let line = |line: &str| {
                let tool = ["':name -- The tool", "'::name -- The tool"];
                match tool.iter().any(|start| line.starts_with(start)) {
                    true => line.replacen(":_default'", ":_toolcrib_tools'", 1),
                    false => line.to_owned(),
                }
            };
            let lines: Vec<String> = script.lines().map(line).collect();
            let ask = format!(
                "_toolcrib_tools() {{\n    \
                    local -a tools\n    \
                    tools=(${{(f)\"$({ASK})\"}})\n    \
                    compadd -a tools\n\
                }}\n\n\
                _toolcrib() {{"
            );
            lines.join("\n").replacen("_toolcrib() {", &ask, 1) + "\n"
        }
        Shell::Fish => {
            let line = |command: &String| {
                format!(
                    "complete -c toolcrib -n \"__fish_toolcrib_using_subcommand {command}\" -f -a \"({ASK})\"\n"
                )
            };
            let lines: String = commands.iter().map(line).collect();
            format!("{script}{lines}")
        }
        _ => script.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_take_a_tool_are_known() {
        let commands = take_tools();
        for command in ["show", "call", "test", "logs", "health", "grant"] {
            assert!(commands.iter().any(|known| known == command), "{command}");
        }
        assert!(!commands.iter().any(|known| known == "new"), "{commands:?}");
    }

    #[test]
    fn every_shell_that_can_asks_for_the_tools() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let mut script = Vec::new();
            clap_complete::generate(
                shell,
                &mut super::super::command_line(),
                "toolcrib",
                &mut script,
            );
            let script = with_tools(shell, &String::from_utf8(script).unwrap());
            assert!(script.contains("toolcrib list --names"), "{shell}");
            let used = script.matches("_toolcrib_tools").count();
            assert!(shell != Shell::Zsh || used > 6, "{used}: {script}");
        }
    }
}
