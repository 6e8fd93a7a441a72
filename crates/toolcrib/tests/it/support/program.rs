//! A worker program under test, driven by hand over its pipes, without a crib in between.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use super::{PATIENCE, Ran, World};

/// `toolcrib new`, with the compiler that builds these tests: a fresh HOME has none of its own.
#[expect(
    clippy::disallowed_methods,
    reason = "tests hand on which compiler is meant"
)]
pub fn new_tool(world: &World, args: &[&str]) -> Ran {
    let mut command = world.command(args);
    name_compiler(&mut command);
    if let Some(toolchain) = std::env::var_os("RUSTUP_TOOLCHAIN") {
        command.env("RUSTUP_TOOLCHAIN", toolchain);
    }
    world.finish(command)
}

/// Says where rustup keeps its compilers, and leaves the choice to it.
#[expect(
    clippy::disallowed_methods,
    reason = "tests hand on where the compilers lie"
)]
pub fn name_compiler(command: &mut Command) {
    let home = std::env::home_dir().unwrap_or_default();
    for (name, below) in [("RUSTUP_HOME", ".rustup"), ("CARGO_HOME", ".cargo")] {
        let value = std::env::var_os(name).unwrap_or_else(|| home.join(below).into());
        command.env(name, value);
    }
}

/// A running program. Killed when it is dropped.
pub struct Program {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Program {
    /// Starts what the folder's `tool.json` names, as the crib does: in the folder, a relative command from there.
    #[expect(
        clippy::disallowed_methods,
        reason = "the program is driven without the product"
    )]
    pub fn start(folder: &Path, vars: &[(&str, &Path)]) -> Program {
        let spec = std::fs::read(folder.join("tool.json")).unwrap();
        let spec: Value = serde_json::from_slice(&spec).unwrap();
        let program = spec["command"].as_str().unwrap();
        let mut command = match program.contains('/') {
            true => Command::new(folder.join(program)),
            false => Command::new(program),
        };
        let args = spec["args"].as_array().into_iter().flatten();
        command
            .args(args.map(|arg| arg.as_str().unwrap()))
            .current_dir(folder)
            .env("LC_ALL", "C")
            .envs(vars.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            while stdout.read_line(&mut line).is_ok_and(|read| read > 0) {
                if tell.send(std::mem::take(&mut line)).is_err() {
                    return;
                }
            }
        });
        Program {
            stdin: child.stdin.take(),
            child,
            lines,
        }
    }

    pub fn send(&mut self, line: impl AsRef<[u8]>) {
        self.write(line);
        self.write("\n");
    }

    fn write(&mut self, bytes: impl AsRef<[u8]>) {
        let stdin = self.stdin.as_mut().unwrap();
        // A program that went away says so by not answering.
        let _ = stdin.write_all(bytes.as_ref());
        let _ = stdin.flush();
    }

    /// Sends a last line that nothing ends, and closes stdin.
    pub fn send_last(&mut self, line: &str) {
        self.write(line);
        self.stdin = None;
    }

    /// The next line, which must be a JSON-RPC message.
    #[track_caller]
    pub fn answer(&mut self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("an answer");
        assert!(line.ends_with('\n'), "{line:?}");
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"));
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        message
    }

    #[track_caller]
    pub fn ask(&mut self, id: Value, method: &str, params: Value) -> Value {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(request.to_string());
        let answer = self.answer();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// What `execute` gives for these arguments, with the context that the crib sends along.
    #[track_caller]
    pub fn execute(&mut self, input: Value) -> Value {
        let context = json!({
            "runId": "r", "executionId": "e", "workingDir": "/", "timeout": 30_000,
            "callId": "e", "sessionId": "r", "agent": "test", "profile": "default", "directory": "/",
        });
        self.ask(
            json!("7"),
            "execute",
            json!({"input": input, "context": context}),
        )
    }

    /// Closes its stdin and gives its exit code and what it logged.
    #[track_caller]
    pub fn end(mut self) -> (Option<i32>, String) {
        self.stdin = None;
        let left = self.lines.recv_timeout(PATIENCE);
        assert!(left.is_err(), "it says more than it was asked: {left:?}");
        let mut log = String::new();
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_string(&mut log).unwrap();
        (self.child.wait().unwrap().code(), log)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
