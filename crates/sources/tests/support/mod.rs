//! A small world for tests: a temporary project, a crib with the built-in tools, and plain git.

mod lent;
pub mod web;

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use tokio::io::AsyncReadExt;
use toolcrib_core::grant::BUILTIN;
use toolcrib_core::{Binding, CallResult, Caller, Context, Crib, Grant, Grants, Outputs, Permit};
use toolcrib_sandbox::{Command, Consent, Environment};
use toolcrib_sources::remotes::Remotes;
use toolcrib_sources::{Code, Configuration, Place, SecretSource, builtin};

use lent::{Memory, launcher};

pub struct World {
    /// Holds the project, a home, and whatever a test puts beside them.
    pub root: PathBuf,
    pub project: PathBuf,
    pub crib: Crib,
    environment: Environment,
    place: Arc<Place>,
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
        let place = Place::new(
            choose(project.clone()).map(Into::into),
            launcher(),
            environment.clone(),
            outputs.clone(),
        );
        let own = vec![root.join("own")];
        let place = Arc::new(Place {
            code: Arc::new(Code::new(own, Vec::new())),
            ..place
        });
        let crib = lent::crib(outputs);
        crib.apply(vec![builtin::load(&place, &Configuration::default())]);
        World {
            root,
            project,
            crib,
            environment,
            place,
            _dir: dir,
        }
    }

    /// Grants a built-in tool these, as it is in every project.
    pub fn grant(&self, tool: &str, permit: Permit) {
        let grant = Grant {
            id: "one".to_owned(),
            tool: tool.to_owned(),
            origin: BUILTIN.to_owned(),
            binding: Binding::Content(format!("builtin:{tool}")),
            permit,
            created_ms: 0,
        };
        self.place
            .grants
            .send_replace(Arc::new(Grants::new([grant])));
        self.configure(Remotes::default());
    }

    /// Names servers elsewhere for built-in tools, and where their secrets are.
    pub fn configure(&self, remotes: Remotes) {
        let configuration = Configuration {
            remotes,
            ..Configuration::default()
        };
        self.crib
            .apply(vec![builtin::load(&self.place, &configuration)]);
    }

    /// Keeps a secret in a file that nobody else reads.
    pub fn secret(&self, name: &str, value: &str) {
        let file = self.root.join(format!("secret-{name}"));
        std::fs::write(&file, value).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let sources = [(name.to_owned(), SecretSource::File(file))];
        self.place.safe.set(sources.into());
    }

    /// Grants `write-file` these paths of the project.
    pub fn writable(&self, paths: &[&str]) {
        let write = paths.iter().map(|path| self.project.join(path));
        let write = write.map(|path| path.display().to_string());
        let permit = Permit {
            write: write.collect(),
            ..Permit::default()
        };
        self.grant("write-file", permit.tidy());
    }

    /// Says that a tool is made of these files of the project.
    pub fn note(&self, files: &[&str]) {
        self.place
            .code
            .note_real(files.iter().map(|file| self.project.join(file)));
    }

    /// Says that a tool would take code from this folder of the project.
    pub fn hold(&self, folder: &str) {
        self.place.code.hold(self.project.join(folder));
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.project.join(name)).unwrap()
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

/// What Standard Webhooks have as the signature of a text, reckoned apart from the tool.
pub fn hmac(secret: &str, text: &str) -> String {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use sha2::{Digest, Sha256};
    let key = STANDARD
        .decode(secret.strip_prefix("whsec_").unwrap())
        .unwrap();
    let padded = |with: u8| -> Vec<u8> {
        let mut block = [0; 64];
        block[..key.len()].copy_from_slice(&key);
        block.iter().map(|byte| byte ^ with).collect()
    };
    let inner = Sha256::digest([padded(0x36), text.as_bytes().to_vec()].concat());
    let outer = Sha256::digest([padded(0x5c), inner.to_vec()].concat());
    format!("v1,{}", STANDARD.encode(outer))
}
