//! What the crib prepares for a confined process, and keeps while it runs.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::io::Interest;
use tokio::net::{TcpListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::connect_filter::ConnectFilter;
use crate::groups::Group;
use crate::host::HostRule;
use crate::machine::{CannotConfine, Machine};
use crate::plan::{Enforced, Mount, Plan, Road};
use crate::policy::{Network, Policy};
use crate::program::Unfolded;
use crate::proxy::{Addresses, Denial, Guests, Proxy};
use crate::resolved_paths::ResolvedPaths;
use crate::scratch::Scratch;
use crate::watch::{Breach, BreachCell, Watched, watch};
use crate::{Launcher, Rung, StartError, launcher};

/// What a confined process is promised, and what is lost on its rung.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    pub rung: Rung,
    pub enforced: Enforced,
    pub lost: Vec<String>,
}

/// Everything that a confined process needs before it is started.
pub(crate) struct Enclosure {
    pub plan: Plan,
    group: Group,
    scratch: Option<Scratch>,
    /// The proxy's, where it listens on the machine's loopback.
    listener: Option<TcpListener>,
    rules: Arc<[HostRule]>,
    addresses: Addresses,
    denied: Option<mpsc::Sender<Denial>>,
}

/// What lives as long as the process, and is cleared away after it.
#[derive(Default)]
pub(crate) struct Keep {
    tasks: Vec<AbortHandle>,
    watched: Option<Watched>,
    group: Group,
    scratch: Option<Scratch>,
    breach_cell: BreachCell,
}

/// Where the process is to run, and for whom.
pub(crate) struct Setting<'a> {
    pub dir: &'a Path,
    pub home: Option<&'a Path>,
    /// Where private folders are made on the rung that can't mount them.
    pub tmp: &'a Path,
}

/// What is asked when a process is to be confined: may it, and how. Owned, so that another thread can look into it.
#[derive(Clone)]
struct Question {
    policy: Policy,
    program: Unfolded,
    dir: PathBuf,
    home: Option<PathBuf>,
    tmp: PathBuf,
    machine: Machine,
    rung: Rung,
}

impl Question {
    async fn new(
        launcher: &Launcher,
        policy: &Policy,
        program: &Unfolded,
        setting: &Setting<'_>,
    ) -> Result<Question, StartError> {
        let (machine, rung) = launcher.walls().await?;
        Ok(Question {
            policy: policy.clone(),
            program: program.clone(),
            dir: setting.dir.to_path_buf(),
            home: setting.home.map(Path::to_path_buf),
            tmp: setting.tmp.to_path_buf(),
            machine: machine.clone(),
            rung: rung.clone()?,
        })
    }

    /// Looks at the disk as it is, whole trees of it, and makes nothing.
    fn resolve(&self) -> Result<ResolvedPaths, StartError> {
        let ground = ResolvedPaths::of(&self.policy, &self.program, self.home.as_deref())?;
        let dir = self.dir.canonicalize()?;
        let open = ground.read.iter().chain(&ground.write);
        // The root is always there, and being in it shows nothing that is not to be read.
        let root = dir == Path::new("/");
        if !root && !open.into_iter().any(|spot| dir.starts_with(&spot.path)) {
            return Err(StartError::Refused(CannotConfine::new(
                format!(
                    "its working directory `{}` is not readable for it",
                    dir.display()
                ),
                "start it elsewhere, or grant that folder",
            )));
        }
        Ok(ground)
    }

    /// What is to be enforced with these paths. Makes nothing either.
    fn plan(&self, ground: &ResolvedPaths, scratch: &Path) -> Result<Plan, StartError> {
        let plan = Plan::new(&self.policy, ground, &self.machine, self.rung, scratch)?;
        Ok(plan)
    }

    /// Decides, then makes what the process needs: folders that it may write, its own where none can be mounted, and
    /// what keeps others from making what is protected. What is refused has nothing made for it.
    fn prepare(mut self) -> Result<(Plan, Option<Scratch>), StartError> {
        let mut ground = self.resolve()?;
        let mut changed = !ground.unmade.is_empty();
        if changed {
            self.plan(&ground, &self.tmp)?;
        }
        for path in &ground.unmade {
            if let Err(error) = launcher::make_exactly(path) {
                tracing::warn!(%error, path = %path.display(), "what a tool may write can't be made");
            }
        }
        let scratch = match self.rung {
            Rung::Group => Some(Scratch::new(&self.tmp)?),
            _ => None,
        };
        if let Some(scratch) = scratch.as_ref().filter(|_| !self.policy.write.is_empty()) {
            self.policy.keep.extend(scratch.all_beside());
            changed = true;
        }
        if changed {
            ground = self.resolve()?;
        }
        let folder = scratch.as_ref().map_or(&*self.tmp, Scratch::path);
        let mut plan = self.plan(&ground, folder)?;
        for path in std::mem::take(&mut plan.placeholders) {
            // It may have come to be meanwhile, which is as good. Where this user can't make it, neither can the tool,
            // and there is nothing to protect.
            if launcher::make_folder(&path).is_err() && !path.exists() {
                let led_there = |mount: &Mount| path.starts_with(&mount.path);
                plan.mounts
                    .retain(|mount| !led_there(mount) || mount.path.exists());
            }
        }
        Ok((plan, scratch))
    }
}

/// Trees can be large and disks slow: looked at where no call waits for the thread.
async fn off_the_runtime<T: Send + 'static>(
    look: impl FnOnce() -> Result<T, StartError> + Send + 'static,
) -> Result<T, StartError> {
    let looked = tokio::task::spawn_blocking(look).await;
    looked.map_err(io::Error::other)?
}

/// What would hold for a program under a policy on this machine. Makes no file.
pub(crate) async fn account(
    launcher: &Launcher,
    policy: &Policy,
    program: &Unfolded,
    setting: &Setting<'_>,
) -> Result<Account, StartError> {
    let question = Question::new(launcher, policy, program, setting).await?;
    let look = move || question.plan(&question.resolve()?, &question.tmp);
    let plan = off_the_runtime(look).await?;
    Ok(Account {
        rung: plan.rung,
        enforced: plan.enforced,
        lost: plan.lost,
    })
}

impl Enclosure {
    pub(crate) async fn new(
        launcher: &Launcher,
        policy: &Policy,
        program: &Unfolded,
        setting: &Setting<'_>,
        denied: Option<mpsc::Sender<Denial>>,
    ) -> Result<Enclosure, StartError> {
        let question = Question::new(launcher, policy, program, setting).await?;
        let (mut plan, scratch) = off_the_runtime(move || question.prepare()).await?;
        let mut listener = None;
        if let Road::Asked { port } = &mut plan.road {
            let own = TcpListener::bind("127.0.0.1:0").await?;
            *port = own.local_addr()?.port();
            listener = Some(own);
        }
        let group = Group::new(policy)?;
        plan.groups = group.doors();
        let rules = policy.network.hosts().into();
        Ok(Enclosure {
            plan,
            group,
            scratch,
            listener,
            rules,
            addresses: match &policy.network {
                Network::Index(_) => Addresses::All,
                _ => Addresses::Granted,
            },
            denied,
        })
    }

    /// Takes what the launcher hands over, and begins to serve and to watch.
    pub(crate) async fn hand_over(
        self,
        door: std::os::unix::net::UnixStream,
        launcher: Option<u32>,
        control: OwnedFd,
    ) -> io::Result<(Keep, Account)> {
        let account = Account {
            rung: self.plan.rung,
            enforced: self.plan.enforced,
            lost: self.plan.lost,
        };
        let mut keep = Keep::default();
        keep.group = self.group;
        keep.scratch = self.scratch;
        let mut proxy = Proxy {
            rules: self.rules,
            addresses: self.addresses,
            denied: self.denied,
            guests: None,
        };
        if matches!(self.plan.road, Road::Listener | Road::Asked { .. })
            && let Some(handed) = take(door).await?
        {
            match self.listener {
                None => {
                    let listener = std::net::TcpListener::from(handed);
                    listener.set_nonblocking(true)?;
                    keep.serve(proxy.serve(TcpListener::from_std(listener)?));
                }
                Some(listener) => {
                    let guests = Guests::default();
                    let asked = ConnectFilter {
                        proxy: SocketAddr::from(([127, 0, 0, 1], listener.local_addr()?.port())),
                        guests: guests.clone(),
                        denied: proxy.denied.clone(),
                    };
                    proxy.guests = Some(guests);
                    keep.serve(proxy.serve(listener));
                    keep.serve(async move {
                        if let Err(error) = asked.attend(handed).await {
                            tracing::warn!(%error, "a tool's connections can't be answered any more");
                        }
                    });
                }
            }
        }
        keep.watched =
            launcher.and_then(|id| watch(id, control, self.plan.watch, keep.breach_cell.clone()));
        Ok((keep, account))
    }
}

/// The one descriptor that the launcher hands over; nothing if it failed before.
async fn take(door: std::os::unix::net::UnixStream) -> io::Result<Option<OwnedFd>> {
    door.set_nonblocking(true)?;
    let door = UnixStream::from_std(door)?;
    let receive = || launcher::receive_handed(door.as_fd());
    door.async_io(Interest::READABLE, receive).await
}

impl Keep {
    fn serve(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.push(tokio::spawn(task).abort_handle());
    }

    /// Which limit the process was killed for, if it was.
    pub(crate) fn breach_cell(&self) -> BreachCell {
        self.breach_cell.clone()
    }

    /// Notes what can be seen only once the process has ended.
    pub(crate) fn note_the_end(&self) {
        if self.group.ran_out_of_memory() {
            // What the watcher saw before stays.
            let _ = self.breach_cell.set(Breach::Memory);
        }
    }
}

impl Drop for Keep {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
        self.watched = None;
        // Many files take a while; nobody waits for it.
        if let (Some(scratch), Ok(runtime)) =
            (self.scratch.take(), tokio::runtime::Handle::try_current())
        {
            runtime.spawn_blocking(move || drop(scratch));
        }
    }
}

impl std::fmt::Debug for Keep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keep")
            .field("told", &self.breach_cell)
            .finish_non_exhaustive()
    }
}
