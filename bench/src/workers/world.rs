//! A project with the Python echo as two tools: one that is kept warm, and one with a process per call.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;

use crate::calls::{Limit, PATIENCE, Running, command};
use crate::mcp::interpreter;

const PROGRAM: &str = include_str!("../../peers/echo.py");
/// The tool whose workers stay, the one whose workers do not, and the one that is a function in a file.
pub const WARM: &str = "echo";
pub const ONCE: &str = "echo-once";
pub const FILE: &str = "echo_file";
pub const POOL: usize = 2;

const SCRIPT: &str = r#"from toolcrib import tool


@tool
def echo_file(text: str) -> str:
    """Gives back the text."""
    return text
"#;

pub struct World {
    dir: tempfile::TempDir,
    pub binary: PathBuf,
    python: PathBuf,
}

impl World {
    pub fn new() -> Option<World> {
        let world = World {
            dir: tempfile::tempdir().ok()?,
            binary: std::env::current_exe().ok()?.with_file_name("toolcrib"),
            python: python(),
        };
        for (name, keep) in [(WARM, true), (ONCE, false)] {
            let folder = world.tool(name);
            std::fs::create_dir_all(&folder).ok()?;
            std::fs::write(folder.join("tool.py"), PROGRAM).ok()?;
            std::fs::write(folder.join("tool.json"), world.manifest(name, keep)).ok()?;
        }
        std::fs::write(world.tool("echo_file.py"), SCRIPT).ok()?;
        let mut trust = world.toolcrib(&["trust"]);
        let mut trust = trust.stdout(Stdio::null()).spawn().ok()?;
        let _limit = Limit::of(&trust, PATIENCE);
        trust.wait().ok()?.success().then_some(world)
    }

    fn project(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    fn tool(&self, name: &str) -> PathBuf {
        self.project().join(".toolcrib/tools").join(name)
    }

    fn bare(&self, program: &Path, dir: &Path) -> Command {
        let mut command = command(program);
        command
            .env_clear()
            .env("HOME", self.dir.path())
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .current_dir(dir)
            .stderr(Stdio::null());
        command
    }

    fn toolcrib(&self, args: &[&str]) -> Command {
        let mut command = self.bare(&self.binary, &self.project());
        command.args(args);
        command
    }

    /// The product's server over HTTP.
    pub fn serve(&self) -> Option<Running> {
        Running::of(self.toolcrib(&["serve", "--no-auth", "--json", "--port", "0"]))
    }

    /// The product for one agent, on stdin and stdout, with workers of its own.
    pub fn mcp(&self) -> Command {
        self.toolcrib(&["mcp", "--standalone"])
    }

    /// The very program that the crib runs, without the crib.
    pub fn program(&self) -> Command {
        let mut command = self.bare(&self.python, &self.tool(WARM));
        command.arg("tool.py");
        command
    }

    fn manifest(&self, name: &str, keep: bool) -> String {
        json!({
            "name": name,
            "description": "Gives back the text",
            "version": "1.0.0",
            "command": self.python,
            "args": ["tool.py"],
            "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
            "poolSize": POOL,
            "keepAlive": keep,
        })
        .to_string()
    }
}

/// The same as the peers', by its path: what stands for `python3` on PATH may be a script that looks for it.
fn python() -> PathBuf {
    let peers = interpreter();
    match peers.exists() {
        true => peers,
        false => PathBuf::from("/usr/bin/python3"),
    }
}
