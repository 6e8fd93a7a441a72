//! The only wiring: from environment and flags to a crib with its store, place and sources.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::watch;
use toolcrib_core::store::LastGood;
use toolcrib_core::{Access, Books, Crib, ErrorCode, Loading, Scope};
use toolcrib_sandbox::{Environment, Launcher, Rung, off_limits};
use toolcrib_sources::script::{ScriptSettings, Scripts};
use toolcrib_sources::worker::{Limits, Workers};
use toolcrib_sources::{
    Code, Configuration, Folder, Follow, Forgiven, Needs, Place, Safe, Sources,
};
use toolcrib_store::{
    DescriptionFiles, LastGoodFiles, LogFiles, OutputFiles, Ownership, counter_path,
};

use crate::approver::desk::{Book as ApprovalDesk, Desk};
use crate::audit::{Book, LAST_WORDS};
use crate::config::{
    Flags, Project, Settings, private, profiles, project, project_config, say_why, store_url,
    trust_entries,
};
use crate::counters::StoreCounters;
use crate::env::{self, Env};
use crate::failure::Failure;
use crate::printer::{Progress, plain};
use crate::registrar;
use crate::store_handle::{StoreHandle, Trust};

mod follow;

/// A crib that is wired up, and what it was wired from.
pub struct Opened {
    pub crib: Arc<Crib>,
    pub place: Arc<Place>,
    pub project: Option<Project>,
    pub trust: Trust,
    pub settings: Settings,
    pub store: Arc<StoreHandle>,
    /// Where calls are written down.
    pub book: Arc<Book>,
    /// Where calls wait for people.
    pub desk: Arc<Desk>,
    pub env: Env,
    flags: Flags,
    /// What the tools' workers said.
    pub logs: Arc<LogFiles>,
    last_good: Arc<LastGoodFiles>,
    outputs: Arc<OutputFiles>,
    /// What settings were read from, as it stood just before.
    stamp: Stamp,
}

/// Changes whenever settings may have changed on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    user: Option<(SystemTime, u64)>,
    own: Option<(SystemTime, u64)>,
    /// Who can change the project: trust ends when that changes.
    ownership: Option<Ownership>,
}

impl Stamp {
    /// `further` are tools folders of the project that settings name.
    fn of(env: &Env, project: Option<&Project>, further: &[PathBuf]) -> Stamp {
        let modified = |path: &Path| {
            let meta = path.metadata().ok()?;
            Some((meta.modified().ok()?, meta.len()))
        };
        let user = env.config_folder();
        Stamp {
            user: user.and_then(|folder| modified(&folder.join("config.toml"))),
            own: project.and_then(|project| modified(&project_config(project))),
            ownership: project.and_then(|project| Ownership::of(&project.root, further).ok()),
        }
    }
}

/// The user's data folder, without which nothing can be remembered.
pub fn data_folder(env: &Env) -> Result<PathBuf, Failure> {
    env.data_folder().ok_or_else(|| {
        Failure::new(
            ErrorCode::BadRequest,
            "there is no home directory to keep data in",
        )
        .hint("set HOME or XDG_DATA_HOME")
    })
}

/// The project that is meant, if nothing in it poses as the user's own.
pub fn served_project(env: &Env, flag: Option<&Path>) -> Result<Option<Project>, Failure> {
    let project = project::find(flag, env)?;
    if let Some(project) = &project {
        private::outside(env, &project.root)?;
    }
    Ok(project)
}

/// The binary itself starts tools, with as much isolation as the machine and the user allow.
fn launcher(env: &Env) -> Result<Launcher, Failure> {
    let Some(letter) = env.text(env::MAX_RUNG) else {
        return Ok(Launcher::current());
    };
    match Rung::from_letter(letter) {
        Some(rung) => Ok(Launcher::current().at_most(rung)),
        None => Err(Failure::new(
            ErrorCode::BadRequest,
            format!("variable {} is `{letter}`", env::MAX_RUNG),
        )
        .hint("use `A`, `B` or `C`, or unset it")),
    }
}

/// The files that trust, grants and counters are kept in, where they lie elsewhere than in the crib's own folders, which are kept
/// unwritten as a whole.
fn records(env: &Env, data: &Path) -> Result<Vec<PathBuf>, Failure> {
    let url = store_url(env, data)?;
    let own = own_folders(env);
    let elsewhere = |path: &&Path| !own.iter().any(|folder| path.starts_with(folder));
    let file = url.path().filter(elsewhere);
    let files = file.map(|path: &Path| [path.to_owned(), counter_path(path)]);
    let files = files.into_iter().flatten();
    Ok(files.map(|path| env.directory.join(path)).collect())
}

/// What no tool writes, to which the crib's own program belongs, wherever it lies.
fn code(env: &Env, data: &Path) -> Result<Code, Failure> {
    let code = Code::new(own_folders(env), records(env, data)?);
    code.note_real(std::env::current_exe());
    Ok(code)
}

/// What decides about tools: no tool may write there, whatever it was granted.
fn own_folders(env: &Env) -> Vec<PathBuf> {
    let folders = [
        env.config_folder(),
        env.data_folder(),
        env.cache_folder(),
        env.runtime_folder(),
    ];
    folders.into_iter().flatten().collect()
}

/// The user's cache folder, where what can be made again is kept.
fn cache_folder(env: &Env) -> Result<PathBuf, Failure> {
    match env.cache_folder() {
        Some(cache) => Ok(cache),
        None => Ok(data_folder(env)?.join("cache")),
    }
}

/// The crib's own variables, as far as they are text.
fn variables(env: &Env) -> BTreeMap<String, String> {
    let text = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    env.vars().filter_map(text).collect()
}

/// What tool files are run with.
fn scripts(env: &Env, settings: &Settings, cache: PathBuf) -> Scripts {
    let mut installing = variables(env);
    installing.retain(|name, _| is_for_installers(name));
    Scripts::new(ScriptSettings {
        cache,
        python: settings.python.clone(),
        javascript: settings.javascript.clone(),
        virtual_env: env.get("VIRTUAL_ENV").map(PathBuf::from),
        scan: settings.scan,
        installing: installing.into_iter().collect(),
    })
}

/// Variables that say where packages come from: they reach installers alone.
fn is_for_installers(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let starts = ["PIP_", "UV_", "NPM_CONFIG_", "BUN_CONFIG_"];
    starts.iter().any(|start| upper.starts_with(start))
        || upper.ends_with("_PROXY")
        || [
            "SSL_CERT_FILE",
            "SSL_CERT_DIR",
            "REQUESTS_CA_BUNDLE",
            "NODE_EXTRA_CA_CERTS",
        ]
        .contains(&upper.as_str())
}

/// What settings say to the sources of tools.
fn configuration(settings: &Settings) -> Configuration {
    Configuration {
        folders: settings.folders.clone(),
        registered: settings.custom_tools_enabled,
        builtins: settings.builtins.clone(),
        remotes: settings.remotes.clone(),
    }
}

/// The crib itself, without tools yet, and where its calls wait for people.
fn crib(
    settings: &Settings,
    store: &Arc<StoreHandle>,
    book: &Arc<Book>,
    outputs: &Arc<OutputFiles>,
) -> (Arc<Crib>, Arc<Desk>) {
    let desk = Arc::new(Desk::new(store.clone()));
    let books = Books {
        calls: Some(book.clone()),
        counters: Some(Arc::new(StoreCounters::new(store.clone()))),
        approvals: Some(Arc::new(ApprovalDesk(desk.clone()))),
    };
    let profiles = profiles(settings);
    let crib = Crib::with_books(outputs.clone(), crate::now_ms, profiles, books);
    desk.tell(crib.events().clone());
    if let Some(webhook) = &settings.approvals.webhook {
        desk.send_to(webhook.clone());
    }
    (Arc::new(crib), desk)
}

/// The socket at which a crib that serves this project is found.
pub fn socket(env: &Env, project: Option<&Project>) -> Option<PathBuf> {
    let root = project.map(|project| project.root.as_path());
    let name = root.unwrap_or(Path::new("")).as_os_str().as_encoded_bytes();
    let name = toolcrib_store::short_hash(name);
    Some(env.runtime_folder()?.join(format!("{name}.sock")))
}

/// Where last good versions are kept.
pub fn last_good_files(env: &Env) -> Result<LastGoodFiles, Failure> {
    Ok(LastGoodFiles::in_folder(&cache_folder(env)?))
}

impl Opened {
    /// Wires a crib without loading anything into it yet.
    pub async fn wire(
        env: Env,
        flags: Flags,
        project_flag: Option<&Path>,
    ) -> Result<Opened, Failure> {
        let project = served_project(&env, project_flag)?;
        let data = data_folder(&env)?;
        let store = Arc::new(StoreHandle::open(&env, &data).await?);
        // What settings name is not known yet; whoever follows them looks at that from the first time on.
        let stamp = Stamp::of(&env, project.as_ref(), &[]);
        let trust = store.trust_of(&env, project.as_ref()).await;
        let mut settings = Settings::load(&env, &flags, project.as_ref(), trust.is_trusted())?;
        let entries = store.entries_of(project.as_ref()).await;
        trust_entries(&mut settings.folders, &entries);
        say_why(&mut settings.folders, &trust);
        let outputs = Arc::new(OutputFiles::in_folder(&data, settings.outputs));
        let book = Arc::new(Book::new(store.clone()));
        let (crib, desk) = crib(&settings, &store, &book, &outputs);
        // Nobody has looked for tools yet, and nobody is to be told that there are none.
        crib.set_loading(Loading::Opening);
        let root = project.as_ref().map(|project| project.root.as_path());
        let launcher = launcher(&env)?;
        off_limits::look_in(env.notice_folders());
        let environment = Environment::from_vars(env.vars());
        let environment = match &project {
            Some(project) => environment.outside(&project.root),
            None => environment,
        };
        let logs = Arc::new(LogFiles::in_folder(&data, root));
        let workers = Workers::new(
            launcher.clone(),
            environment.clone(),
            logs.clone(),
            crib.events().clone(),
            Limits {
                pool_size: settings.max_pool_size,
                budget: settings.budget,
                idle: settings.worker_idle,
                health_every: settings.health_check_interval,
                ..Limits::default()
            },
        );
        let cache = cache_folder(&env)?;
        let variables = Arc::new(variables(&env));
        let safe = Safe::new(variables.clone(), launcher.clone(), environment.clone());
        safe.set(settings.secrets.clone());
        let place = Arc::new(Place {
            workers,
            safe: Arc::new(safe),
            descriptions: Arc::new(DescriptionFiles::in_folder(&cache)),
            todos: store.clone(),
            forgiven: Forgiven::in_folder(&cache),
            scripts: scripts(&env, &settings, cache.clone()),
            variables,
            walls: settings.walls.clone(),
            gate: Arc::new(settings.gate.into()),
            code: Arc::new(code(&env, &data)?),
            grants: watch::Sender::new(Arc::new(store.grants().await)),
            ..Place::new(root.map(Arc::from), launcher, environment, outputs.clone())
        });
        let last_good = Arc::new(last_good_files(&env)?);
        Ok(Opened {
            crib,
            place,
            project,
            trust,
            settings,
            store,
            book,
            desk,
            outputs,
            env,
            flags,
            logs,
            last_good,
            stamp,
        })
    }

    /// Brings what is known at once of every source's tools into the crib; the rest comes while it goes on.
    pub async fn start(&self, follow: Follow) -> Sources {
        let sources = toolcrib_sources::all(Needs {
            crib: self.crib.clone(),
            place: self.place.clone(),
            last_good: self.last_good.clone(),
            registrations: self.store.clone(),
            registered: registrar::changes(&self.store),
        });
        let configuration = configuration(&self.settings);
        let (crib, place) = (self.crib.clone(), self.place.clone());
        toolcrib_sources::open(crib, place, sources, configuration, follow).await
    }

    /// The same for a command that ends with its answer: nobody goes on after it, so it waits a moment for tools that are
    /// being loaded. What takes longer is put off, so that the next command does not wait for it again.
    pub async fn load(&self) -> Sources {
        let sources = self.start(Follow::Nothing).await;
        if !self.settled().await {
            sources.put_off().await;
        }
        sources
    }

    /// The same for a command that is about all tools: waits until each has said what it is. It never waits for packages.
    pub async fn load_all(&self) -> Sources {
        let sources = self.start(Follow::Nothing).await;
        self.with_progress(self.crib.loaded(Loading::Done)).await;
        sources
    }

    /// Waits for tools that are being loaded, as long as a list does, and says whether all are there.
    pub async fn settled(&self) -> bool {
        let whole = self.crib.loaded(Loading::Done);
        let waited = tokio::time::timeout(self.settings.list_wait, whole);
        self.with_progress(waited).await.is_ok()
    }

    /// Tells how far long work is, for as long as it is asked to.
    pub async fn tell_progress(&self) {
        self.with_progress(std::future::pending()).await
    }

    /// Does what may take long, and tells how far it is.
    pub async fn with_progress<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        let mut working = self.place.scripts.working.subscribe();
        let mut progress = Progress::default();
        loop {
            tokio::select! {
                done = &mut work => return done,
                Ok(()) = working.changed() => progress.tell(working.borrow_and_update().as_deref()),
            }
        }
    }

    /// Ends the workers that were started here, and writes down what was called.
    pub async fn close(&self) {
        self.place.workers.shutdown(Duration::ZERO).await;
        if let Err(error) = self.book.flush(LAST_WORDS).await {
            tracing::warn!(%error, "the last calls could not be recorded");
        }
    }

    /// What does not work now, in words; the crib serves on without it.
    pub async fn trouble(&self) -> Vec<String> {
        let store = self.store.trouble().await.map(|error| error.to_string());
        let outputs = self.outputs.clone();
        let outputs = tokio::task::spawn_blocking(move || outputs.trouble()).await;
        let outputs = outputs.ok().flatten();
        // What the store can't be used with keeps calls from being recorded too; once is enough.
        let book = self.book.trouble().filter(|_| store.is_none());
        let kept = outputs.map(|why| format!("large outputs can't be kept: {why}"));
        store.into_iter().chain(book).chain(kept).collect()
    }

    /// The socket at which a crib that serves this project is found.
    pub fn socket(&self) -> Option<PathBuf> {
        socket(&self.env, self.project.as_ref())
    }

    /// Takes up the folders that the project's own config names, still without trust in them: what a person who says
    /// yes is about to say yes to.
    pub fn foresee_trust(&mut self) -> Result<(), Failure> {
        if !self.trust.is_trusted() {
            let settings = Settings::load(&self.env, &self.flags, self.project.as_ref(), true)?;
            self.settings.folders = self.without_trust(settings.folders);
        }
        Ok(())
    }

    /// The project and its trust, in words for a person.
    pub fn project_line(&self) -> String {
        self.line_of(&self.trust)
    }

    /// The same, with the trust that it has by now.
    pub async fn project_line_now(&self) -> String {
        let trust = self.store.trust_of(&self.env, self.project.as_ref());
        self.line_of(&trust.await)
    }

    fn line_of(&self, trust: &Trust) -> String {
        let line = plain(&self.raw_project_line(trust)).into_owned();
        match self.settings.walls.none {
            None => line,
            Some(_) => format!("{line}; THE SANDBOX IS OFF: every tool may do what you may"),
        }
    }

    fn raw_project_line(&self, trust: &Trust) -> String {
        match (&self.project, trust) {
            (None, _) => "no project: global tools only".to_owned(),
            (Some(project), Trust::Trusted { .. }) => {
                format!("project {} (trusted)", project.root.display())
            }
            (Some(project), Trust::Untrusted) => {
                let root = project.root.display();
                let waits = self
                    .settings
                    .folders
                    .iter()
                    .any(|f| f.scope == Scope::Local && f.path.is_dir());
                let hint = if waits {
                    "; its tools wait for `toolcrib trust`"
                } else {
                    ""
                };
                format!("project {root} (not trusted{hint})")
            }
            (Some(project), Trust::Lapsed(reason)) => {
                let root = project.root.display();
                format!(
                    "project {root} (no longer trusted: {reason}; look at it, then run `toolcrib trust`)"
                )
            }
            (Some(project), Trust::Unknown(reason)) => {
                format!("project {} (not trusted: {reason})", project.root.display())
            }
        }
    }

    /// Trust was withdrawn: what stood in for the project's broken files ends with it.
    pub fn forget_last_good(&self) {
        for folder in self.settings.folders.iter() {
            if folder.scope == Scope::Local {
                self.last_good.retain(&folder.path, &[]);
            }
        }
    }

    fn without_trust(&self, mut folders: Vec<Folder>) -> Vec<Folder> {
        if let Some(project) = &self.project {
            for folder in folders
                .iter_mut()
                .filter(|folder| folder.scope == Scope::Local)
            {
                folder.access = Access::untrusted(project.root.clone());
                folder.trusted.clear();
            }
        }
        folders
    }
}
