//! What these tests share: a project whose tool asks, the crib that serves it, and an agent with a shell.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::support::plugin::{file, shell};
use crate::support::tool::{python, unconfined};
use crate::support::{TestCrib, World, answer, eventually};

/// The secret of Standard Webhooks' own example.
pub const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A project whose tool `wipe` asks a person, and notes each run.
pub fn world(rules: &str) -> World {
    let world = World::trusted();
    let folder = world.home().join(".config/toolcrib");
    std::fs::create_dir_all(&folder).unwrap();
    let config = format!(
        "[agents.default]\nmiddleware = [{{ name = \"human_in_the_loop\", approve_tools = [\"wipe\"], {rules} }}]\n\
         [agents.other]\nmiddleware = [{{ name = \"human_in_the_loop\", approve_tools = [\"wipe\"], {rules} }}]\n\
         [approvals.webhook]\nurl = \"http://127.0.0.1:9/hook\"\nsecret = \"{SECRET}\"\n"
    );
    std::fs::write(folder.join("config.toml"), config).unwrap();
    unconfined(&world);
    world.write("wipe.sh", "echo \"$1\" >> ran; echo \"wiped $1\"");
    write_tool(&world, "sh wipe.sh {{what}}");
    world
}

pub fn write_tool(world: &World, command: &str) {
    let what = json!({"what": {"type": "string"}, "how": {"type": "string", "default": "slowly"}});
    let tool = file(&[shell("wipe", command, what)]);
    world.write_tool("wipe.json", tool);
}

/// With what the tool ran so far.
pub fn ran(world: &World) -> Vec<String> {
    let text = std::fs::read_to_string(world.project().join("ran")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

pub fn socket(world: &World) -> PathBuf {
    let folder = world.home().join(".local/share/toolcrib");
    let mut all = vec![folder];
    while let Some(folder) = all.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|end| end == "sock") {
                return path;
            }
            if path.is_dir() {
                all.push(path);
            }
        }
    }
    panic!("no socket below {}", world.home().display());
}

/// Calls the tool with a token; gives status and answer.
pub async fn call(crib: &TestCrib, token: &str, arguments: &Value) -> (u16, Value) {
    let url = format!("{}/api/tools/wipe/call", crib.url);
    let asked = crib.client.post(url).bearer_auth(token);
    answer(
        asked
            .json(&json!({"arguments": arguments}))
            .send()
            .await
            .unwrap(),
    )
    .await
}

/// Asks for a call, and gives the id of its approval.
pub async fn asked(crib: &TestCrib, token: &str, what: &str) -> String {
    let (status, answer) = call(crib, token, &json!({"what": what})).await;
    assert_eq!(status, 202, "{answer}");
    assert_eq!(answer["error"]["code"], "approval_pending");
    answer["error"]["data"]["approvalId"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// Changes a tool, and waits until the crib has taken that up.
pub async fn changes(crib: &TestCrib, token: &str, change: impl FnOnce()) {
    let version = async || {
        let asked = crib.client.get(format!("{}/api/health", crib.url));
        let (_, health) = answer(asked.bearer_auth(token).send().await.unwrap()).await;
        health["catalogVersion"].as_u64().unwrap()
    };
    let before = version().await;
    change();
    eventually("the tool is another one", || async {
        version().await > before
    })
    .await;
}

/// An agent that is connected, and tries in its shell what it is told.
pub struct Agent {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Agent {
    pub fn start(world: &World) -> Agent {
        let socket = socket(world);
        let script = include_str!("agent.py");
        let wrapper = [python(), "-c", script];
        let mut command = world.wrapped(&wrapper, &world.binary, &[socket.to_str().unwrap()]);
        // As a shell starts what a person types.
        command.process_group(0);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut agent = Agent {
            child,
            stdin,
            stdout,
        };
        assert_eq!(agent.line().trim(), "ready");
        agent
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line
    }

    /// Gives the exit code and what was printed.
    pub fn tries(&mut self, how: &str, argv: &[&str]) -> (i64, String) {
        let told = json!({"how": how, "argv": argv});
        writeln!(self.stdin, "{told}").unwrap();
        let said: Value = serde_json::from_str(&self.line()).unwrap();
        let text = said["text"].as_str().unwrap().to_owned();
        (said["code"].as_i64().unwrap(), text)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
