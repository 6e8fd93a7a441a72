//! A small world for tests: a temporary project, a crib with the built-in tools, and plain git.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::AsyncReadExt;
use toolcrib_core::{
    BoxFuture, CallResult, Caller, Context, Crib, OutputId, Outputs, Page, Request, Spool, Whole,
};
use toolcrib_sandbox::{Command, Environment, Launcher};
use toolcrib_sources::{Place, builtin};

pub struct World {
    /// Holds the project, a home, and whatever a test puts beside them.
    pub root: PathBuf,
    pub project: PathBuf,
    pub crib: Crib,
    environment: Environment,
    _dir: tempfile::TempDir,
}

/// Cargo builds examples before it runs tests; they lie beside the test binary's folder.
fn launcher() -> Launcher {
    let test = std::env::current_exe().unwrap();
    let built = test
        .parent()
        .and_then(|deps| deps.parent())
        .unwrap()
        .join("examples/sources_launcher");
    assert!(
        built.exists(),
        "{} is built by `cargo test`",
        built.display()
    );
    Launcher::at(built)
}

impl World {
    /// A world with an empty project.
    pub fn new() -> World {
        World::with(Some, "/usr/local/bin:/usr/bin:/bin")
    }

    pub fn with(choose: impl Fn(PathBuf) -> Option<PathBuf>, path: &str) -> World {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (project, home) = (root.join("project"), root.join("home"));
        std::fs::create_dir(&project).unwrap();
        std::fs::create_dir(&home).unwrap();
        let vars = [
            ("PATH".into(), OsString::from(path)),
            ("HOME".into(), home.into()),
        ];
        let environment = Environment::from_vars(vars);
        let outputs: Arc<dyn Outputs> = Arc::new(Memory::default());
        let place = Arc::new(Place::new(
            choose(project.clone()).map(Into::into),
            launcher(),
            environment.clone(),
            outputs.clone(),
        ));
        let crib = Crib::new(outputs, || 0, Duration::from_secs(60));
        crib.apply(vec![builtin::load(&place)]);
        World {
            root,
            project,
            crib,
            environment,
            _dir: dir,
        }
    }

    /// A world whose project is a repository with `a.txt` and `b.txt` committed on `main`.
    pub async fn repository() -> World {
        let world = World::new();
        world.git(&["init", "--quiet", "-b", "main"]).await;
        world.write("a.txt", "one\n");
        world.write("b.txt", "one\n");
        world.git(&["add", "."]).await;
        world.commit().await;
        world
    }

    pub async fn commit(&self) {
        self.git(&[
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.org",
            "commit",
            "--quiet",
            "-m",
            "x",
        ])
        .await;
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let file = self.project.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content).unwrap();
    }

    /// Runs plain git, with no care taken, and gives what it printed; failures are the caller's to see.
    pub async fn git(&self, args: &[&str]) -> String {
        self.run("git", args).await
    }

    pub async fn run(&self, program: &str, args: &[&str]) -> String {
        let command = Command::new(program, &self.project).args(args.iter().copied());
        let mut child = command.spawn(&launcher(), &self.environment).await.unwrap();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let (mut stdout, mut stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let (read_out, read_err) =
            tokio::join!(stdout.read_to_end(&mut out), stderr.read_to_end(&mut err));
        read_out.and(read_err).unwrap();
        child.wait().await.unwrap();
        String::from_utf8_lossy(&out).into_owned()
    }

    /// Calls a tool through the whole chain.
    pub async fn call(&self, tool: &str, arguments: Value) -> CallResult {
        self.call_as("default", tool, arguments).await
    }

    pub async fn call_as(&self, agent: &str, tool: &str, arguments: Value) -> CallResult {
        let mut caller = Caller::new("test");
        caller.agent = agent.into();
        let arguments = arguments.as_object().unwrap().clone();
        self.crib
            .call(Request {
                tool: tool.into(),
                arguments,
                caller,
                context: Context::noop(),
            })
            .await
    }
}

type Kept = Arc<Mutex<HashMap<(String, String), Vec<u8>>>>;

/// Keeps outputs in memory.
#[derive(Default)]
struct Memory(Kept);

struct MemorySpool {
    kept: Kept,
    owner: String,
    bytes: Vec<u8>,
}

fn keep(kept: &Kept, owner: &str, bytes: Vec<u8>) -> Whole {
    let mut kept = kept.lock().unwrap();
    let id = format!("{:08x}", kept.len());
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
    let whole = Whole {
        id: OutputId::parse(&id).unwrap(),
        bytes: bytes.len() as u64,
        lines,
        cut: false,
    };
    kept.insert((owner.to_owned(), id), bytes);
    whole
}

impl Outputs for Memory {
    fn keep<'a>(&'a self, owner: &'a str, text: &'a [u8]) -> BoxFuture<'a, io::Result<Whole>> {
        Box::pin(async move { Ok(keep(&self.0, owner, text.to_vec())) })
    }

    fn spool<'a>(&'a self, owner: &'a str) -> BoxFuture<'a, io::Result<Box<dyn Spool>>> {
        let spool = MemorySpool {
            kept: self.0.clone(),
            owner: owner.to_owned(),
            bytes: Vec::new(),
        };
        Box::pin(async move { Ok(Box::new(spool) as Box<dyn Spool>) })
    }

    fn read<'a>(
        &'a self,
        owner: &'a str,
        id: &'a OutputId,
        offset: u64,
        max: usize,
    ) -> BoxFuture<'a, io::Result<Page>> {
        Box::pin(async move {
            let kept = self.0.lock().unwrap();
            let whole = kept
                .get(&(owner.to_owned(), id.to_string()))
                .ok_or(io::ErrorKind::NotFound)?;
            let from = (offset as usize).min(whole.len());
            let to = from.saturating_add(max).min(whole.len());
            Ok(Page {
                offset,
                bytes: whole[from..to].to_vec(),
                total: whole.len() as u64,
            })
        })
    }
}

impl Spool for MemorySpool {
    fn write<'a>(&'a mut self, bytes: &'a [u8]) -> BoxFuture<'a, io::Result<()>> {
        self.bytes.extend_from_slice(bytes);
        Box::pin(std::future::ready(Ok(())))
    }

    fn finish(self: Box<Self>) -> BoxFuture<'static, io::Result<Whole>> {
        Box::pin(async move { Ok(keep(&self.kept, &self.owner, self.bytes)) })
    }
}
