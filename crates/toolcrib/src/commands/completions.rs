//! `toolcrib completions`: a completion script for a shell.

use clap::Args;
use clap_complete::Shell;

use super::{Done, Scene};

/// Print a completion script for your shell
#[derive(Debug, Args)]
#[command(
    after_help = "For bash: toolcrib completions bash > ~/.local/share/bash-completion/completions/toolcrib"
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
        scene.printer.text(&String::from_utf8_lossy(&script));
        Ok(0)
    }
}
