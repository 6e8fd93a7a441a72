//! A shell of somebody who follows a page: their home, their folder, their terminal.

use std::io::Write;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use super::page::Block;
use super::promise::Promise;
use crate::support::PATIENCE;

/// The home of somebody who reads one page after the other, and the folder that their projects lie in.
pub struct Home(tempfile::TempDir);

/// `curl` that fails where a server says no, as the people who paste a line would see.
const CURL: &str = "#!/bin/sh\nPATH=${PATH#*:} exec curl --fail-with-body \"$@\"\n";
/// Takes down every command that fails, with its code; a block ends well, so that only its commands are told.
const SETTING: &str = "trap 'echo \"$? $BASH_COMMAND\" >>\"$failed\"' ERR\n";

impl Home {
    pub fn new() -> Home {
        let home = Home(tempfile::tempdir().unwrap());
        for folder in ["home", "bin", "srv/toolcrib", "said"] {
            std::fs::create_dir_all(home.path(folder)).unwrap();
        }
        symlink(env!("CARGO_BIN_EXE_toolcrib"), home.path("bin/toolcrib")).unwrap();
        std::fs::write(home.path("bin/curl"), CURL).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(home.path("bin/curl"), mode).unwrap();
        home
    }

    fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }
}

pub struct Session<'a> {
    home: &'a Home,
    shell: Child,
    count: usize,
    /// What was started and left running: its block, where its words go, and what it was promised to say.
    running: Vec<(&'a Block, PathBuf)>,
    /// The port of the crib that serves, once one does.
    port: Option<String>,
    /// Did a command not end? What comes after it can't be tried then.
    pub hangs: bool,
}

impl<'a> Session<'a> {
    /// A new terminal, in a clone of the repository or where projects lie.
    #[expect(
        clippy::disallowed_methods,
        reason = "tests start a shell by hand; it gets nothing of the real environment but PATH"
    )]
    pub fn start(home: &'a Home, in_clone: bool) -> Session<'a> {
        let folder = if in_clone { "srv/toolcrib" } else { "srv" };
        let bin = home.path("bin");
        let path = std::env::var("PATH").unwrap();
        let shell = Command::new("bash")
            .args(["--norc", "--noprofile"])
            .current_dir(home.path(folder))
            .env_clear()
            .env("HOME", home.path("home"))
            .env("PATH", format!("{}:{path}", bin.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        let mut session = Session {
            home,
            shell,
            count: 0,
            running: Vec::new(),
            port: None,
            hangs: false,
        };
        session.say(SETTING);
        session
    }

    /// Runs a block, and says what is not as promised.
    pub fn run(&mut self, block: &Block) -> Option<String> {
        let (script, said) = self.script(block);
        let (failed, done) = (said.with_extension("failed"), said.with_extension("done"));
        self.say(&format!(
            "failed={}\n. {} >{} 2>&1 </dev/null\n: >{}\n",
            failed.display(),
            script.display(),
            said.display(),
            done.display()
        ));
        let ended = wait_until(|| done.exists());
        let printed = self.printed(&said);
        if !ended {
            self.hangs = true;
            return Some(format!("{}: it does not end\n{printed}", block.line));
        }
        let failed = std::fs::read_to_string(failed).unwrap_or_default();
        let failed: Vec<&str> = failed.lines().collect();
        let codes = failed.iter().map(|line| line.split(' ').next().unwrap());
        if !codes.eq(block.exits.iter().map(String::as_str)) {
            let told = match failed.first().and_then(|line| line.split_once(' ')) {
                Some((code, command)) if block.exits.is_empty() => {
                    format!("`{command}` exits with {code}")
                }
                _ => format!("the exit codes are {failed:?}, not {:?}", block.exits),
            };
            return Some(format!("{}: {told}\n{printed}", block.line));
        }
        let broken = block.promise.broken_by(&printed)?;
        Some(format!("{}: {broken}", block.line))
    }

    /// Starts a block and leaves it running. A crib that serves gets a port of its own.
    pub fn run_on(&mut self, block: &'a Block) {
        let (script, said) = self.script(block);
        self.say(&format!(
            "said={said}\n(trap - ERR; TOOLCRIB_PORT=0 . {}) >$said 2>&1 </dev/null &\n",
            script.display(),
            said = said.display()
        ));
        if block.commands.contains("toolcrib serve") {
            let port = || {
                let text = std::fs::read_to_string(&said).unwrap_or_default();
                let port = text.split("http://127.0.0.1:").nth(1)?;
                Some(port.split('/').next()?.to_owned())
            };
            wait_until(|| port().is_some());
            self.port = port();
        }
        self.running.push((block, said));
    }

    pub fn write(&mut self, path: &str, text: &str) {
        let draft = self.home.path("said").join("draft");
        std::fs::write(&draft, text).unwrap();
        let block = Block {
            line: 0,
            commands: format!(
                "mkdir -p $(dirname {path})\ncp {} {path}\n",
                draft.display()
            ),
            exits: Vec::new(),
            promise: Promise::default(),
        };
        assert_eq!(self.run(&block), None, "{path} could not be written");
    }

    /// Closes the terminal, and says what was promised of what ran on and is not so.
    pub fn end(mut self) -> Vec<String> {
        let running = std::mem::take(&mut self.running);
        let broken = running.into_iter().filter_map(|(block, said)| {
            wait_until(|| block.promise.broken_by(&self.printed(&said)).is_none());
            let broken = block.promise.broken_by(&self.printed(&said))?;
            Some(format!("{}: {broken}", block.line))
        });
        broken.collect()
    }

    fn say(&mut self, line: &str) {
        let stdin = self.shell.stdin.as_mut().unwrap();
        stdin.write_all(line.as_bytes()).unwrap();
    }

    /// A block as a file, and the file for what it says.
    fn script(&mut self, block: &Block) -> (PathBuf, PathBuf) {
        self.count += 1;
        let id = self.shell.id();
        let script = self.home.path(format!("said/{id}-{}.sh", self.count));
        let mut commands = block.commands.clone();
        if let Some(port) = &self.port {
            commands = commands.replace("7717", port);
        }
        std::fs::write(&script, commands + "true\n").unwrap();
        let said = script.with_extension("said");
        (script, said)
    }

    /// What was printed, as somebody reads it whose projects lie in `/srv` and whose crib has the usual port.
    fn printed(&self, said: &Path) -> String {
        let bytes = std::fs::read(said).unwrap_or_default();
        let srv = self.home.path("srv").display().to_string();
        let text = String::from_utf8_lossy(&bytes).replace(&srv, "/srv");
        match &self.port {
            Some(port) => text.replace(port.as_str(), "7717"),
            None => text,
        }
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        let group = Pid::from_child(&self.shell);
        let _ = kill_process_group(group, Signal::TERM);
        self.shell.stdin.take();
        let _ = self.shell.wait();
        if !wait_until(|| test_kill_process_group(group).is_err()) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

fn wait_until(holds: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        if Instant::now() > deadline {
            return false;
        }
        // sleeps: how often it is looked at; nothing depends on it
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}
