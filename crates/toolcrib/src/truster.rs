//! Trust as people give and take it: looked at, kept, and with it what a project's tools declare.
//!
//! REST and the command line both come here, so a yes is the same thing wherever it is said.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use tokio::sync::Mutex;
use toolcrib_core::store::LastGood;
use toolcrib_core::words::CommandLine;
use toolcrib_core::{CallError, ErrorCode, Hint, Scope, Tool};
use toolcrib_sources::Sources;
use toolcrib_store::{Ownership, Store, TrustKind, TrustedPath};

use crate::config::project::FoundBy;
use crate::config::{Flags, Project, local_folders};
use crate::env::Env;
use crate::failure::Failure;
use crate::grantor::Grantor;
use crate::open::{Opened, last_good_files};
use crate::printer::plain;
use crate::store_handle::{StoreHandle, refused, user};
use crate::wire::{
    ErrorView, GrantView, ProblemView, TrustCreate, TrustGiven, TrustList, TrustTaken, TrustedView,
};

pub struct Truster {
    env: Env,
    store: Arc<StoreHandle>,
    project: Option<Project>,
    /// One project is looked at at a time.
    turn: Mutex<()>,
}

/// Whose trust is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaches {
    /// All that this user trusts: for the owner, at the command line.
    Everything,
    /// The project that is served, and nothing else: for whoever came to the port.
    ThisProject,
}

impl Truster {
    pub fn new(env: Env, store: Arc<StoreHandle>, project: Option<Project>) -> Truster {
        Truster {
            env,
            store,
            project,
            turn: Mutex::new(()),
        }
    }

    fn store(&self) -> Result<Store, CallError> {
        self.store.ready().map_err(refused)
    }

    /// The project, which is the only one that trust is ever given to here.
    fn project(&self) -> Result<&Project, CallError> {
        self.project.as_ref().ok_or_else(|| {
            CallError::new(ErrorCode::BadRequest, "there is no project here")
                .hint("serve a project, or name its folder: `toolcrib trust DIR`")
        })
    }

    /// Says yes to the project, and grants what its tools declare, as they are now.
    pub async fn give(
        &self,
        wanted: &TrustCreate,
        reaches: Reaches,
    ) -> Result<TrustGiven, CallError> {
        let _turn = self.turn.lock().await;
        let book = self.store()?.trusted();
        let project = self.project()?;
        if wanted.look {
            let known = book.get(&project.root).await.map_err(refused)?;
            let trusted = known.is_some_and(|known| self.lapsed(&known).is_none());
            let found = self.look(project, false).await?;
            return Ok(TrustGiven { trusted, ..found });
        }
        if wanted.shared && reaches != Reaches::Everything {
            return Err(CallError::denied(
                "a project that others can change is trusted by its owner alone",
            )
            .hint("run `toolcrib trust --shared` on this machine"));
        }
        let further = local_folders(&self.env, project);
        if !wanted.shared {
            refuse_shared(&project.root, &further)?;
        }
        let kept = book.trust(&project.root, TrustKind::Project, &further);
        let new = kept.await.map_err(refused)?;
        let found = self.look(project, !wanted.no_grants).await?;
        Ok(TrustGiven { new, ..found })
    }

    /// Loads the project's own tools: what a program declares is known only once it may run. Grants what they declare.
    async fn look(&self, project: &Project, grant: bool) -> Result<TrustGiven, CallError> {
        let mut found = TrustGiven {
            project: shown(&project.root),
            trusted: true,
            new: false,
            tools: Vec::new(),
            problems: Vec::new(),
            grants: Vec::new(),
            trouble: None,
        };
        let root = Some(project.root.as_path());
        let opened = match Opened::wire(self.env.clone(), Flags::default(), root).await {
            Ok(opened) => opened,
            // Every later command says what is wrong with its config, too.
            Err(failure) => {
                found.trouble = Some(ErrorView::from(&CallError::from(failure)).error);
                return Ok(found);
            }
        };
        let sources: Arc<OnceLock<Sources>> = Arc::default();
        let loaded = opened.load_all().await;
        sources.get_or_init(|| loaded);
        if grant {
            let grantor = Grantor::new(&opened, sources.clone());
            let given = grantor
                .give_declared(own_tools(&opened).iter(), false)
                .await;
            found.grants = given?.into_iter().map(GrantView::from).collect();
        }
        let tools = own_tools(&opened);
        found.tools = tools.iter().map(|tool| tool.as_ref().into()).collect();
        let view = opened.crib.owners_view();
        let own = view.problems().iter().filter(|problem| {
            let file = problem.file.as_deref();
            file.is_some_and(|file| file.starts_with(&project.root))
        });
        found.problems = own.map(ProblemView::from).collect();
        opened.close().await;
        Ok(found)
    }

    /// Takes trust back: from the project, or from what has this path.
    pub async fn take(
        &self,
        path: Option<&Path>,
        reaches: Reaches,
    ) -> Result<TrustTaken, CallError> {
        let _turn = self.turn.lock().await;
        let store = self.store()?;
        if let Some(path) = path {
            self.in_reach(path, reaches)?;
            let found = store.trusted().get(path).await.map_err(refused)?;
            if found.is_some_and(|found| found.kind == TrustKind::Entry) {
                return self.take_entry(&store, path).await;
            }
        }
        let root = match path {
            Some(path) => path,
            None => self.project()?.root.as_path(),
        };
        // While it is trusted its config can be read, and that names its folders.
        let opened = Opened::wire(self.env.clone(), Flags::default(), Some(root)).await;
        let was = store.trusted().revoke_project(root).await;
        let was = was.map_err(refused)?;
        let granted = store.grants().revoke_below(root).await;
        granted.map_err(refused)?;
        // A link may lead to another project, which keeps what it has.
        let is_it = |opened: &Opened| opened.project.as_ref().is_some_and(|one| one.root == root);
        if let Some(opened) = opened.ok().filter(is_it) {
            opened.forget_last_good();
        }
        Ok(TrustTaken {
            project: Some(shown(root)),
            entry: None,
            trusted: false,
            new: was,
        })
    }

    async fn take_entry(&self, store: &Store, entry: &Path) -> Result<TrustTaken, CallError> {
        let was = store.trusted().revoke(entry).await.map_err(refused)?;
        let granted = store.grants().revoke_below(entry).await;
        granted.map_err(refused)?;
        // What stood in for it while it was broken ends with its trust.
        if let (Some(folder), Some(name)) = (entry.parent(), entry.file_name()) {
            let name = name.to_string_lossy().into_owned();
            last_good_files(&self.env)?.forget(folder, &[name]);
        }
        Ok(TrustTaken {
            project: None,
            entry: Some(shown(entry)),
            trusted: false,
            new: was,
        })
    }

    /// Who came to the port decides about what lies in the project that is served, and learns of nothing else.
    fn in_reach(&self, path: &Path, reaches: Reaches) -> Result<(), CallError> {
        let inside = |root: &Path| path.starts_with(root) && is_plain(path);
        let own = self.project.as_ref().map(|project| project.root.as_path());
        match reaches == Reaches::Everything || own.is_some_and(inside) {
            true => Ok(()),
            false => Err(CallError::denied(
                "over HTTP, trust can be taken back only from the project that is served and what is in it",
            )
            .hint("for another project run `toolcrib trust --revoke DIR` on its machine")),
        }
    }

    /// What is trusted: all of it, or what lies in the project that is served.
    pub async fn list(&self, reaches: Reaches) -> Result<TrustList, CallError> {
        let mut all = self.store()?.trusted().list().await.map_err(refused)?;
        all.retain(|one| self.in_reach(Path::new(&one.path), reaches).is_ok());
        let (projects, entries): (Vec<_>, Vec<_>) = all
            .into_iter()
            .partition(|one| one.kind == TrustKind::Project);
        let views = |all: Vec<TrustedPath>| all.iter().map(|one| self.view(one)).collect();
        Ok(TrustList {
            projects: views(projects),
            entries: views(entries),
        })
    }

    fn view(&self, one: &TrustedPath) -> TrustedView {
        TrustedView {
            path: one.path.clone(),
            trusted_at_ms: one.since_ms,
            lapsed: self.lapsed(one),
        }
    }

    /// Why the yes no longer counts, if so. One to what is gone waits for its return.
    fn lapsed(&self, one: &TrustedPath) -> Option<String> {
        let root = PathBuf::from(&one.path);
        let there = root.exists();
        let further = match one.kind {
            TrustKind::Project => {
                let found_by = FoundBy::Flag;
                local_folders(&self.env, &Project { root, found_by })
            }
            TrustKind::Entry => Vec::new(),
        };
        one.lapsed(user(), &further).filter(|_| there)
    }
}

/// The tools of the project itself.
fn own_tools(opened: &Opened) -> Vec<Arc<Tool>> {
    let view = opened.crib.owners_view();
    let own = view.tools().filter(|tool| tool.scope == Some(Scope::Local));
    own.cloned().collect()
}

/// A path that leads nowhere but down.
fn is_plain(path: &Path) -> bool {
    use std::path::Component;
    path.components()
        .all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
}

/// Asks for one word more where others than this user can change what would run.
fn refuse_shared(root: &Path, further: &[PathBuf]) -> Result<(), Failure> {
    let doubt = match Ownership::of(root, further) {
        Ok(ownership) => ownership.doubt(user()),
        Err(error) => Some(format!("its owner can't be determined: {error}")),
    };
    let Some(doubt) = doubt else {
        return Ok(());
    };
    let shown = root.display();
    let trust = CommandLine::new("toolcrib trust").operand(shown.to_string());
    let failure = Failure::new(
        ErrorCode::Denied,
        format!("`{}` was not trusted: {doubt}", plain(&shown.to_string())),
    );
    Err(failure
        .cause("whoever can change its tools decides what runs as you, now and later")
        .hint(
            Hint::run(trust.switch("--shared"))
                .before("make it yours alone, or say that you mean it: "),
        ))
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
