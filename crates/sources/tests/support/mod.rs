//! A small world for tests: a temporary project, a crib with the built-in tools, and plain git.

mod lent;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use tokio::io::AsyncReadExt;
use toolcrib_core::{CallResult, Caller, Context, Crib, Outputs};
use toolcrib_sandbox::{Command, Consent, Environment};
use toolcrib_sources::{Place, builtin};

use lent::{Memory, launcher};

pub struct World {
    /// Holds the project, a home, and whatever a test puts beside them.
    pub root: PathBuf,
    pub project: PathBuf,
    pub crib: Crib,
    environment: Environment,
    _dir: tempfile::TempDir,
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
        let crib = lent::crib(outputs);
        crib.apply(vec![builtin::load(&place, None)]);
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
        #[expect(clippy::disallowed_methods, reason = "plain git, as a person runs it")]
        let consent = Consent::from_user_settings();
        let command = Command::new(program, &self.project, consent).args(args.iter().copied());
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
        lent::call(&self.crib, caller, Context::noop(), tool, arguments).await
    }
}
