//! A world for one test: a fresh HOME, a project, the real binary, and a crib that serves on a port of its own.

pub mod files;
pub mod mcp;
pub mod ordinary;
pub mod person;
pub mod plugin;
#[path = "../../../../store/tests/conformance/server.rs"]
#[expect(clippy::disallowed_methods, reason = "tests start a database by hand")]
pub mod postgres;
pub mod processes;
pub mod program;
pub mod registered;
pub mod save;
pub mod server;
pub mod snapshot;
pub mod tool;

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use reqwest::header::{AUTHORIZATION, HeaderMap};
use serde_json::{Value, json};

pub use plugin::shell_tool;
pub use processes::{count_descriptors, count_processes, descendants, descriptors, signal, soak};

/// How long a test waits for something that must happen.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A fresh HOME and a project folder, both gone with the test.
pub struct World {
    dir: tempfile::TempDir,
    /// The product itself, or a copy that another user may execute.
    pub binary: PathBuf,
    /// Who runs it, where that is not who runs the tests.
    pub user: Option<u32>,
    /// Variables on top of HOME and PATH.
    pub vars: Vec<(&'static str, String)>,
}

/// What a command gave.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Fails the test unless the command ended so.
    #[track_caller]
    pub fn exits(self, code: i32) -> Ran {
        assert_eq!(self.code, code, "{self:?}");
        self
    }
}

impl World {
    /// An empty project that nobody trusted.
    pub fn new() -> World {
        let world = World {
            dir: tempfile::tempdir().unwrap(),
            binary: env!("CARGO_BIN_EXE_toolcrib").into(),
            user: None,
            vars: Vec::new(),
        };
        for folder in [world.home(), world.tools_folder()] {
            std::fs::create_dir_all(folder).unwrap();
        }
        world
    }

    /// An empty project that is trusted.
    pub fn trusted() -> World {
        let world = World::new();
        world.run(&["trust"]).exits(0);
        world
    }

    /// The same, with tools that are not confined: they may leave marks and start what they like, which is then counted.
    pub fn loose() -> World {
        let world = World::trusted();
        tool::unconfined(&world);
        world
    }

    pub fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    pub fn project(&self) -> PathBuf {
        self.root().join("project")
    }

    /// The folder that everything of this test lies in, without links in its path.
    pub fn root(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap()
    }

    pub fn tools_folder(&self) -> PathBuf {
        self.project().join(".toolcrib/tools")
    }

    pub fn global_folder(&self) -> PathBuf {
        self.home().join(".config/toolcrib/tools")
    }

    pub fn write(&self, path: impl AsRef<Path>, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.project().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Writes the user's own settings.
    pub fn settings(&self, text: &str) {
        self.write(self.home().join(".config/toolcrib/config.toml"), text);
    }

    /// Writes a file into the project's tools folder in one step, as editors do.
    pub fn write_tool(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.tools_folder().join(name);
        let draft = self.tools_folder().join(format!(".{name}.draft"));
        std::fs::write(&draft, text).unwrap();
        std::fs::rename(&draft, &path).unwrap();
        path
    }

    /// The binary, in this world's project and with nothing of the real environment but PATH.
    #[expect(
        clippy::disallowed_methods,
        reason = "tests start the product itself, by hand"
    )]
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(args);
        self.at_home(&mut command);
        command
    }

    /// The binary as another program starts it, which gets it and its arguments after its own.
    #[expect(
        clippy::disallowed_methods,
        reason = "tests start the product itself, by hand"
    )]
    pub fn wrapped(&self, wrapper: &[&str], binary: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(wrapper[0]);
        command.args(&wrapper[1..]).arg(binary).args(args);
        self.at_home(&mut command);
        command
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the binary gets nothing of the real environment but PATH"
    )]
    fn at_home(&self, command: &mut Command) {
        command
            .current_dir(self.project())
            .env_clear()
            .env("HOME", self.home())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            // Tests do not depend on how fast tools are loaded.
            .env("TOOLCRIB_LIST_WAIT", "25000")
            .envs(self.vars.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        self.finish(self.command(args))
    }

    pub fn finish(&self, mut command: Command) -> Ran {
        let output = command.output().unwrap();
        Ran {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Starts `serve` on a free port and waits until it is ready.
    pub fn serve(&self) -> TestCrib {
        self.serve_with(&[])
    }

    /// Without tokens, which `auth.rs` is about: the others write requests by hand, and say what they are about only.
    pub fn serve_with(&self, args: &[&str]) -> TestCrib {
        self.serve_as(&[args, &["--no-auth"]].concat())
    }

    /// Starts `serve` as people do: who asks must show a token or log in.
    pub fn serve_closed(&self) -> TestCrib {
        self.serve_as(&[])
    }

    pub fn serve_as(&self, args: &[&str]) -> TestCrib {
        let mut all = vec!["serve", "--json", "--port", "0"];
        all.extend(args);
        self.serve_by(self.command(&all))
    }

    /// Starts a `serve --json --port 0` that was put together by hand.
    pub fn serve_by(&self, mut command: Command) -> TestCrib {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        let Ok(banner) = serde_json::from_str::<Value>(&line) else {
            let mut stderr = String::new();
            child
                .stderr
                .take()
                .unwrap()
                .read_to_string(&mut stderr)
                .unwrap();
            panic!("serve did not start: {line:?} {stderr}");
        };
        let log = Arc::new(Mutex::new(String::new()));
        let (stderr, said) = (BufReader::new(child.stderr.take().unwrap()), log.clone());
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                let mut said = said.lock().unwrap();
                said.push_str(&line);
                said.push('\n');
            }
        });
        let url = banner["url"].as_str().unwrap().to_owned();
        let login = banner["login"].as_str().map(str::to_owned);
        let _ = rustls::crypto::ring::default_provider().install_default();
        TestCrib {
            child,
            url,
            log,
            login,
            client: reqwest::Client::builder().no_proxy().build().unwrap(),
        }
    }
}

/// A crib that serves. Killed when it is dropped, so that no test leaves one behind.
pub struct TestCrib {
    child: Child,
    pub url: String,
    log: Arc<Mutex<String>>,
    /// What a browser opens to log in.
    pub login: Option<String>,
    pub client: reqwest::Client,
}

impl TestCrib {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn port(&self) -> u16 {
        self.url.rsplit(':').next().unwrap().parse().unwrap()
    }

    /// What it said on stderr so far.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// What `/readyz` says: its status, and its reasons as one text.
    pub async fn ready(&self) -> (String, String) {
        let asked = self.client.get(format!("{}/readyz", self.url)).send();
        let (_, said) = answer(asked.await.unwrap()).await;
        let reasons = said["reasons"].as_array().unwrap().iter();
        let reasons: Vec<&str> = reasons.map(|reason| reason.as_str().unwrap()).collect();
        (
            said["status"].as_str().unwrap().to_owned(),
            reasons.join("\n"),
        )
    }

    /// Waits until `/readyz` says this.
    pub async fn becomes(&self, status: &str) {
        eventually(status, async || self.ready().await.0 == status).await;
    }

    /// Shows this token with every request from now on, or none.
    pub fn show(&mut self, token: Option<&str>) {
        let mut headers = HeaderMap::new();
        if let Some(token) = token {
            headers.insert(AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
        }
        let client = reqwest::Client::builder()
            .no_proxy()
            .default_headers(headers);
        self.client = client.build().unwrap();
    }

    /// Status and JSON of a GET below `/api`.
    pub async fn get(&self, path: &str) -> (u16, Value) {
        answer(
            self.client
                .get(format!("{}/api{path}", self.url))
                .send()
                .await
                .unwrap(),
        )
        .await
    }

    /// Status and JSON of a POST below `/api`.
    pub async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        answer(
            self.client
                .post(format!("{}/api{path}", self.url))
                .json(&body)
                .send()
                .await
                .unwrap(),
        )
        .await
    }

    pub async fn call(&self, tool: &str, arguments: Value) -> (u16, Value) {
        self.post(
            &format!("/tools/{tool}/call"),
            json!({"arguments": arguments}),
        )
        .await
    }

    /// The names of all tools, sorted.
    pub async fn names(&self) -> Vec<String> {
        let (_, list) = self.get("/tools").await;
        let tools = list["tools"].as_array().unwrap();
        tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    }

    pub async fn status_of(&self, tool: &str) -> Option<String> {
        let (status, view) = self.get(&format!("/tools/{tool}")).await;
        (status == 200).then(|| view["status"].as_str().unwrap().to_owned())
    }

    /// The catalog's version: it rises whenever a reader could tell the difference.
    pub async fn catalog_version(&self) -> u64 {
        let (_, health) = self.get("/health").await;
        health["catalogVersion"].as_u64().unwrap()
    }

    /// What the tool printed, where the call went well.
    #[track_caller]
    pub fn output_of(&self, tool: &str) -> impl Future<Output = String> {
        let (call, tool) = (self.call(tool, json!({})), tool.to_owned());
        async move {
            let (status, outcome) = call.await;
            assert_eq!(status, 200, "{tool}: {outcome}");
            outcome["output"].as_str().unwrap().trim_end().to_owned()
        }
    }

    /// Listens to the crib's events from now on.
    pub async fn events(&self) -> Events {
        let response = self
            .client
            .get(format!("{}/api/events", self.url))
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), 200);
        Events::of(response)
    }

    /// Asks it to stop, as Ctrl-C and service managers do, and gives its exit code.
    pub fn stop(mut self) -> Option<i32> {
        signal(self.pid(), libc::SIGTERM);
        self.child.wait().unwrap().code()
    }

    /// Waits for its end without asking for it, and gives its exit code.
    pub fn wait(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    /// Kills it without a word.
    pub fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for TestCrib {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub async fn answer(response: reqwest::Response) -> (u16, Value) {
    let status = response.status().as_u16();
    let body = response.bytes().await.unwrap();
    (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
}

/// The crib's events, one by one.
pub struct Events {
    response: reqwest::Response,
    buffer: String,
}

impl Events {
    /// Those that an answer streams.
    pub fn of(response: reqwest::Response) -> Events {
        Events {
            response,
            buffer: String::new(),
        }
    }

    /// Waits for the next event of this name.
    pub async fn next(&mut self, name: &str) -> Value {
        tokio::time::timeout(PATIENCE, async {
            loop {
                while let Some(end) = self.buffer.find("\n\n") {
                    let block: String = self.buffer.drain(..end + 2).collect();
                    let field = |key: &str| {
                        block
                            .lines()
                            .find_map(|line| line.strip_prefix(key))
                            .map(str::trim)
                    };
                    if field("event:") == Some(name) {
                        return serde_json::from_str(field("data:").unwrap_or("null")).unwrap();
                    }
                }
                let chunk = self
                    .response
                    .chunk()
                    .await
                    .unwrap()
                    .expect("the stream goes on");
                self.buffer.push_str(std::str::from_utf8(&chunk).unwrap());
            }
        })
        .await
        .unwrap_or_else(|_| panic!("no event `{name}` came"))
    }
}

/// Waits until something holds; polls, because the thing waited for is another process's.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let deadline = Instant::now() + PATIENCE;
    while !holds().await {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        // sleeps: how often it is looked at; nothing depends on it
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A seed's text, where the seeds lie beside the project or are named by `TOOLCRIB_SEEDS`.
pub fn seed(prefix: &str) -> Option<String> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/seeds");
    #[expect(
        clippy::disallowed_methods,
        reason = "tests have a variable of their own"
    )]
    let folder = std::env::var_os("TOOLCRIB_SEEDS").map_or(beside, PathBuf::from);
    let entries = std::fs::read_dir(folder).ok()?.flatten();
    let found = entries.map(|entry| entry.path()).find(|path| {
        path.file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| name.starts_with(prefix))
    })?;
    std::fs::read_to_string(found).ok()
}
