//! A world for one test: a tools folder, the sources that follow it, and a crib to call through.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio::task::JoinHandle;
use toolcrib_core::call::DEFAULT_AGENT;
use toolcrib_core::store::{Forgetful, LastGood};
use toolcrib_core::{
    Access, CallError, CallResult, Caller, Context, Crib, Event, Loading, Outputs, Problem, Scope,
    Standing,
};
use toolcrib_sandbox::{Consent, Environment};
use toolcrib_sources::builtin::BuiltinSource;
use toolcrib_sources::script::{ScriptSettings, Scripts};
use toolcrib_sources::worker::{Limits, Workers};
use toolcrib_sources::{Configuration, Folder, FolderSource, Follow, Place, Sources, Walls};

use crate::lent::{self, Memory, launcher};
use crate::memory::{Described, LastGoodInMemory, Said};
use crate::program::python;
use crate::traces;
use crate::waiting::poll;
pub use crate::waiting::{PATIENCE, eventually};

/// Within which nothing may be left of a tool that is gone.
const SOON: Duration = Duration::from_secs(5);

/// Tests that count descriptors have the house for themselves.
static HOUSE: RwLock<()> = RwLock::new(());

enum Stay {
    Shared {
        _guard: RwLockReadGuard<'static, ()>,
    },
    Alone {
        _guard: RwLockWriteGuard<'static, ()>,
        before: BTreeSet<String>,
    },
}

pub struct World {
    pub root: PathBuf,
    pub crib: Arc<Crib>,
    pub place: Arc<Place>,
    pub said: Arc<Said>,
    sources: OnceLock<Sources>,
    heard: Mutex<broadcast::Receiver<Event>>,
    last_good: Arc<LastGoodInMemory>,
    stay: Stay,
    dir: tempfile::TempDir,
}

/// Bounds that are short where a test has to sit them out, and long where it must not.
pub fn limits() -> Limits {
    Limits {
        handshake: Duration::from_secs(20),
        health: Duration::from_secs(10),
        health_every: Duration::from_secs(3_600),
        cancel_grace: Duration::from_millis(300),
        end_grace: Duration::from_millis(500),
        ..Limits::default()
    }
}

impl World {
    pub fn new() -> World {
        World::with(limits())
    }

    pub fn with(limits: Limits) -> World {
        let guard = HOUSE.read().unwrap_or_else(PoisonError::into_inner);
        World::build(limits, Stay::Shared { _guard: guard })
    }

    /// A world whose descriptors can be counted, because no other test runs beside it.
    pub fn alone(limits: Limits) -> World {
        let guard = HOUSE.write().unwrap_or_else(PoisonError::into_inner);
        let before = traces::descriptors();
        let stay = Stay::Alone {
            _guard: guard,
            before,
        };
        World::build(limits, stay)
    }

    /// A world in which programs are asked once and remembered, and scripts are run so.
    pub fn scripts(settings: impl FnOnce(&mut ScriptSettings)) -> World {
        let guard = HOUSE.read().unwrap_or_else(PoisonError::into_inner);
        let limits = Limits {
            handshake: Duration::from_secs(20),
            ..limits()
        };
        let mut world = World::build(limits, Stay::Shared { _guard: guard });
        let place = Arc::get_mut(&mut world.place).unwrap();
        place.descriptions = Arc::new(Described::default());
        let mut given = place.scripts.settings.clone();
        settings(&mut given);
        place.scripts = Scripts::new(given);
        world
    }

    /// The same world after a restart of the crib: files, memories and caches are as they were.
    pub async fn restarted(&self) -> World {
        let guard = HOUSE.read().unwrap_or_else(PoisonError::into_inner);
        let mut world = World::build(*self.place.workers.limits(), Stay::Shared { _guard: guard });
        world.root = self.root.clone();
        world.last_good = self.last_good.clone();
        let fresh = World::place_in(
            &self.root,
            *self.place.workers.limits(),
            &world.crib,
            &world.said,
        );
        world.place = Arc::new(Place {
            descriptions: self.place.descriptions.clone(),
            scripts: Scripts::new(self.place.scripts.settings.clone()),
            ..fresh
        });
        world.open().await;
        world
    }

    fn build(limits: Limits, stay: Stay) -> World {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for folder in ["project/tools", "home/signs"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        let crib = Arc::new(lent::crib(Arc::new(Memory::default())));
        let said = Arc::new(Said::default());
        let place = Arc::new(World::place_in(&root, limits, &crib, &said));
        World {
            heard: Mutex::new(crib.changes()),
            sources: OnceLock::new(),
            last_good: Arc::default(),
            root,
            crib,
            place,
            said,
            stay,
            dir,
        }
    }

    fn place_in(root: &Path, limits: Limits, crib: &Crib, said: &Arc<Said>) -> Place {
        let path = OsString::from("/usr/local/bin:/usr/bin:/bin");
        let vars = [
            ("PATH".into(), path),
            ("HOME".into(), root.join("home").into()),
        ];
        let environment = Environment::from_vars(vars);
        let workers = Workers::new(
            launcher(),
            environment.clone(),
            said.clone(),
            crib.events().clone(),
            limits,
        );
        let project = Some(Arc::from(root.join("project")));
        let outputs: Arc<dyn Outputs> = Arc::new(Memory::default());
        let cache = root.join("cache");
        Place {
            workers,
            descriptions: Arc::new(Forgetful),
            // These tests are about processes that behave in every way; what walls do has tests of its own.
            walls: Walls {
                none: Some(consent()),
                ..Walls::default()
            },
            scripts: Scripts::new(ScriptSettings {
                cache,
                ..ScriptSettings::default()
            }),
            ..Place::new(project, launcher(), environment, outputs)
        }
    }

    pub fn tools(&self) -> PathBuf {
        self.root.join("project/tools")
    }

    /// Writes an entry of the tools folder in one step, as editors do, with the run bit.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.tools().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let draft = self.root.join("draft");
        std::fs::write(&draft, text).unwrap();
        std::fs::set_permissions(&draft, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::rename(&draft, &path).unwrap();
        path
    }

    /// A run-bit file `name`: the tests' Python worker with this body.
    pub fn python(&self, name: &str, body: &str) -> PathBuf {
        self.write(name, python(name, body))
    }

    /// A folder `name` with a `tool.json` that says all, these fields too, and the tests' worker with this body.
    pub fn folder(&self, name: &str, fields: Value, body: &str) -> PathBuf {
        self.write(&format!("{name}/program.py"), python(name, body));
        self.manifest(name, fields)
    }

    pub fn manifest(&self, name: &str, fields: Value) -> PathBuf {
        let mut manifest = json!({
            "name": name,
            "description": "A tool of a test",
            "version": "1.0.0",
            "command": "./program.py",
            "inputSchema": {"type": "object"},
        });
        let known = manifest.as_object_mut().unwrap();
        known.extend(fields.as_object().unwrap().clone());
        known.retain(|_, value| !value.is_null());
        self.write(&format!("{name}/tool.json"), manifest.to_string())
    }

    /// Opens the sources on the tools folder, which is trusted.
    pub async fn open(&self) {
        self.open_as(Access::Open, &[]).await;
    }

    pub async fn open_as(&self, access: Access, trusted: &[&str]) {
        let folder = self.shelf(access, trusted);
        let folders = FolderSource::new(self.place.clone(), self.last_good.clone());
        let configuration = Configuration {
            folders: vec![folder],
            ..Configuration::default()
        };
        let sources = toolcrib_sources::open(
            self.crib.clone(),
            self.place.clone(),
            vec![
                Box::new(BuiltinSource::new(self.place.clone())),
                Box::new(folders),
            ],
            configuration,
            Follow::Changes,
        );
        let sources = sources.await;
        assert!(self.sources.set(sources).is_ok());
        self.crib.loaded(Loading::Done).await;
    }

    /// The world's one folder, with this access.
    pub fn shelf(&self, access: Access, trusted: &[&str]) -> Folder {
        Folder {
            path: self.tools(),
            scope: Scope::Local,
            rank: 0,
            access,
            trusted: trusted.iter().map(|name| (*name).to_owned()).collect(),
            programs: true,
        }
    }

    pub fn sources(&self) -> &Sources {
        self.sources.get().unwrap()
    }

    /// Everything is read again.
    pub async fn reload(&self) {
        self.sources().reload().await;
    }

    /// The last good version of an entry, as it is kept.
    pub fn kept(&self, name: &str) -> Option<Vec<u8>> {
        self.last_good.read(&self.tools(), name)
    }

    pub fn names(&self) -> Vec<String> {
        let view = self.crib.owners_view();
        let tools = view.tools().filter(|tool| tool.file.is_some());
        let mut names: Vec<String> = tools.map(|tool| tool.name().to_owned()).collect();
        names.sort();
        names
    }

    /// The one problem there is.
    #[track_caller]
    pub fn problem(&self) -> Problem {
        let view = self.crib.owners_view();
        let problems = view.problems();
        assert_eq!(problems.len(), 1, "{problems:?}");
        problems[0].clone()
    }

    /// All problems, each as `severity errorType file:line message`.
    pub fn problems(&self) -> Vec<String> {
        let view = self.crib.owners_view();
        let told = view.problems().iter().map(|problem| {
            let file = problem.file.as_deref().and_then(Path::file_name);
            let file = file.unwrap_or_default().to_string_lossy();
            let line = problem
                .line
                .map_or_else(String::new, |line| format!(":{line}"));
            let (severity, kind) = (problem.severity.as_str(), problem.error_type.as_str());
            format!("{severity} {kind} {file}{line} {}", problem.message)
        });
        told.collect()
    }

    pub fn standing(&self, tool: &str) -> Standing {
        self.crib.owners_view().get(tool).unwrap().run.standing()
    }

    /// Asks the tool for its health now.
    pub async fn check(&self, tool: &str) -> Standing {
        let tool = self.crib.owners_view().get(tool).unwrap().clone();
        tool.run.check().unwrap().await
    }

    /// A call of the tool, to be awaited, polled or dropped.
    pub fn call(&self, tool: &str, arguments: Value) -> impl Future<Output = CallResult> + 'static {
        self.call_in(Context::noop(), tool, arguments)
    }

    pub fn call_in(
        &self,
        context: Context,
        tool: &str,
        arguments: Value,
    ) -> impl Future<Output = CallResult> + 'static {
        through(self.crib.clone(), context, tool, arguments)
    }

    /// The same in a task of its own. Aborting the task cancels the call.
    pub fn begin(&self, tool: &str, arguments: Value) -> JoinHandle<CallResult> {
        tokio::spawn(self.call(tool, arguments))
    }

    /// What the tool gave, where the call went well.
    pub async fn output(&self, tool: &str, arguments: Value) -> String {
        self.crib.described(DEFAULT_AGENT, tool).await;
        let outcome = self.call(tool, arguments).await.unwrap();
        assert!(!outcome.is_error, "{outcome:?}");
        outcome.output
    }

    /// Calls until the tool gives this.
    pub async fn until(&self, tool: &str, arguments: Value, wanted: &str) {
        poll(PATIENCE, async || {
            let outcome = self.call(tool, arguments.clone()).await.unwrap();
            let wrong = || format!("{outcome:?} {:?}", self.problems());
            (outcome.output == wanted).then_some(()).ok_or_else(wrong)
        })
        .await;
    }

    pub async fn refused(&self, tool: &str, arguments: Value) -> CallError {
        match self.call(tool, arguments).await {
            Err(error) => error,
            Ok(outcome) => panic!("`{tool}` gave {outcome:?}"),
        }
    }

    /// A file by which tests and programs tell each other that something has happened.
    pub fn sign(&self, name: &str) -> PathBuf {
        self.root.join("home/signs").join(name)
    }

    pub fn give(&self, name: &str) {
        std::fs::write(self.sign(name), "").unwrap();
    }

    /// Waits until a program gave this sign.
    pub async fn seen(&self, name: &str) {
        eventually(&format!("the program says `{name}`"), || {
            self.sign(name).exists()
        })
        .await;
    }

    /// The lines that programs wrote into a sign.
    pub fn signs(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.sign(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub fn processes(&self) -> Vec<u32> {
        traces::processes(&self.root)
    }

    /// Waits until no process of this world is left.
    pub async fn nothing_runs(&self) {
        poll(SOON, async || {
            let left: Vec<_> = self
                .processes()
                .into_iter()
                .map(traces::described)
                .collect();
            let wrong = || format!("left behind: {left:?}");
            left.is_empty().then_some(()).ok_or_else(wrong)
        })
        .await;
    }

    /// Ends the processes of a world that others go on in.
    pub async fn end_workers(&self) {
        self.place.workers.shutdown(Duration::ZERO).await;
    }

    /// Ends the world; nothing of it may be left: no process, no descriptor.
    pub async fn end(self) {
        self.place.workers.shutdown(Duration::ZERO).await;
        self.nothing_runs().await;
        let World { stay, dir, .. } = self;
        let Stay::Alone { before, .. } = &stay else {
            return;
        };
        drop(dir);
        poll(SOON, async || {
            let now = traces::descriptors();
            let left: Vec<&String> = now.difference(before).collect();
            let wrong = || format!("left open: {left:?}");
            left.is_empty().then_some(()).ok_or_else(wrong)
        })
        .await;
    }

    /// The events since this was last asked, as short texts.
    pub fn events(&self) -> Vec<String> {
        let mut heard = self.heard.lock().unwrap();
        std::iter::from_fn(|| heard.try_recv().ok())
            .filter_map(|event| told(&event))
            .collect()
    }

    /// Waits until an event came whose text begins so; gives all since the last time.
    pub async fn event(&self, begins: &str) -> Vec<String> {
        let mut all = Vec::new();
        eventually(&format!("event `{begins}` comes"), || {
            all.extend(self.events());
            all.iter().any(|event| event.starts_with(begins))
        })
        .await;
        all
    }
}

/// A call through this crib.
pub fn through(
    crib: Arc<Crib>,
    context: Context,
    tool: &str,
    arguments: Value,
) -> impl Future<Output = CallResult> + 'static {
    let tool = tool.to_owned();
    async move { lent::call(&crib, Caller::new("test"), context, &tool, arguments).await }
}

fn told(event: &Event) -> Option<String> {
    let name = event.name();
    Some(match event {
        Event::ToolStart { tool, .. } | Event::ToolComplete { tool, .. } => {
            format!("{name} {tool}")
        }
        Event::ToolFailed { tool, failure, .. } => format!("{name} {tool} {}", failure.as_str()),
        Event::WorkerSpawn { tool, .. } => format!("{name} {tool}"),
        Event::WorkerExit { tool, reason, .. } => format!("{name} {tool} {reason}"),
        Event::StatusChanged { tool, status, .. } => format!("{name} {tool} {}", status.as_str()),
        Event::HealthChanged { tool, health, .. } => format!("{name} {tool} {}", health.as_str()),
        Event::ToolsChanged(_)
        | Event::ToolError(_)
        | Event::ToolProgress { .. }
        | Event::ApprovalRequested { .. }
        | Event::ApprovalDecided { .. } => return None,
    })
}

#[expect(clippy::disallowed_methods, reason = "as the settings make it")]
fn consent() -> Consent {
    Consent::from_user_settings()
}
