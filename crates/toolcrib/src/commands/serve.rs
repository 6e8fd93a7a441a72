//! `toolcrib serve`: the tools over HTTP, following every change of files, trust and settings.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use clap::Args;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use toolcrib_core::words::counted;
use toolcrib_core::{ErrorCode, Loading, Severity};
use toolcrib_sandbox::off_limits;
use toolcrib_sources::{Follow, Sources};

use super::{Done, Scene};
use crate::config::{Flags, file};
use crate::failure::Failure;
use crate::open::Opened;
use crate::printer::{BOLD, DIM, YELLOW};
use crate::serve::auth::{Approves, Auth};
use crate::serve::socket::Socket;
use crate::serve::{Readiness, Served, http, reload};
use crate::store_handle::Trust;

/// Descriptors that `serve` asks for, where the system lets it.
const MANY_FILES: u64 = 16_384;
/// How often calls that were on record long enough are let go.
const TIDY_EVERY: Duration = Duration::from_secs(3_600);

/// Serve the tools over HTTP, and follow every change
#[derive(Debug, Args)]
#[command(
    after_help = "Programs show a token, which `toolcrib token create NAME` makes; browsers open the login URL that \
    is printed. Commands and agents on this machine use the project's socket and need neither. Stop with Ctrl-C: \
    calls in flight get five seconds."
)]
pub struct Serve {
    /// The address to listen on [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS")]
    pub host: Option<String>,
    /// The port to listen on, 0 for any free one [default: 7717]
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
    /// Ask for no token (loopback only): every local process is then the owner
    #[arg(long)]
    pub no_auth: bool,
}

impl Serve {
    pub async fn run(self, scene: &Scene) -> Done {
        let flags = Flags {
            host: self.host,
            port: self.port,
        };
        let project = scene.globals.project.as_deref();
        let opened = Arc::new(Opened::wire(scene.env.clone(), flags, project).await?);
        raise_file_limit();
        if self.no_auth && !opened.settings.host.is_loopback() {
            return Err(open_to_all(opened.settings.host));
        }
        let wanted = SocketAddr::new(opened.settings.host, opened.settings.port);
        let listener = TcpListener::bind(wanted)
            .await
            .map_err(|error| cannot_listen(wanted, error))?;
        let own = listener
            .local_addr()
            .map_err(|error| cannot_listen(wanted, error))?;
        let _ = opened.place.own_address.set(own);
        let _notices = notices(&opened, own);
        let page = opened.settings.approvals.url.clone();
        opened.desk.serve_at(page.unwrap_or_else(|| base(own)));
        opened.desk.follow();

        let (ready, told) = watch::channel(Readiness::default());
        let sources: Arc<OnceLock<Sources>> = Arc::default();
        let served = Arc::new(
            Served::of(&opened, &sources)
                .with_readiness(told)
                .with_config_schema(file::json_schema())
                .with_reload(reload(sources.clone())),
        );
        // The port answers from here on; it says "not ready" until the first catalog stands.
        let auth = match self.no_auth {
            true => Auth::off(),
            false => Auth::on(opened.store.clone(), own.port()),
        };
        let router = http::router(served.clone(), own, auth.clone());
        let server = tokio::spawn(http::serve(listener, router, served.clone()));
        let sources = {
            let loaded = opened.start(Follow::Changes).await;
            sources.get_or_init(|| loaded)
        };
        let own_auth = auth.clone();
        let login = Arc::new(move |approves| login_url(&own_auth, own, approves).ok().flatten());
        let socket =
            open_socket(&opened).map(|socket| tokio::spawn(socket.serve(served.clone(), login)));
        let mut wrong = opened.trouble().await;
        if let Trust::Unknown(reason) = &opened.trust
            && !wrong.contains(reason)
        {
            wrong.push(reason.clone());
        }
        let reasons = Reasons::new(ready, wrong);
        // What is known at once is served already; a moment later the number of tools is right in most cases.
        if opened.settled().await {
            reasons.loaded();
        }
        banner(scene, &opened, own, login_url(&auth, own, Approves::No)?);
        self_check(scene, &opened);
        who_may(scene, &auth, own);

        tokio::select! {
            () = opened.follow(sources, |found| reasons.settings(found)) => {}
            () = tell_trouble(sources, &reasons) => {}
            () = let_go(&opened) => {}
            () = tell_loaded(&opened, &reasons) => {}
            () = asked_to_stop() => {}
        }
        let ended = async {
            let _ = server.await;
            if let Some(socket) = socket {
                let _ = socket.await;
            }
        };
        stop(scene, &opened, &served, ended).await;
        Ok(0)
    }
}

/// Tells what the sources are in trouble with, for as long as the crib serves.
async fn tell_trouble(sources: &Sources, reasons: &Reasons) {
    let mut trouble = sources.trouble();
    while trouble.changed().await.is_ok() {
        let told = trouble.borrow_and_update().clone();
        reasons.sources(told.into_iter().flatten().collect());
    }
    std::future::pending().await
}

/// Tells when the first full catalog stands, and how far long work is.
async fn tell_loaded(opened: &Opened, reasons: &Reasons) {
    opened
        .with_progress(opened.crib.loaded(Loading::Done))
        .await;
    reasons.loaded();
    opened.tell_progress().await
}

/// Stops in good order; `ended` comes back when nobody is connected any more.
async fn stop(scene: &Scene, opened: &Opened, served: &Served, ended: impl Future<Output = ()>) {
    served.shutdown.cancel();
    if !scene.printer.is_json() {
        scene.printer.remark(format!(
            "{DIM}stopping; a call still running gets five seconds{DIM:#}"
        ));
    }
    let mut ended = std::pin::pin!(ended);
    let in_time = tokio::select! {
        () = ended.as_mut() => true,
        () = tokio::time::sleep(http::GRACE) => false,
        // Asked twice, it does not wait.
        () = asked_to_stop() => false,
    };
    // What still runs has had its grace. Its callers are told, and its end is on record before the book is closed.
    // A worker that is given up now is asked to end before it is killed.
    opened.place.workers.closing();
    served.given_up.cancel();
    let _ = tokio::time::timeout(http::LAST_WORDS, served.calls_ended()).await;
    if !in_time {
        tokio::select! {
            () = ended => {}
            () = asked_to_stop() => {}
        }
    }
    tokio::select! {
        () = opened.close() => {}
        () = asked_to_stop() => {}
    }
}

/// Lets go of calls that were on record long enough, for as long as the crib serves.
async fn let_go(opened: &Opened) {
    loop {
        let gone = match opened.store.ready() {
            Ok(store) => store.calls().forget(opened.settings.retention).await,
            Err(error) => Err(error),
        };
        match gone {
            Ok(0) => {}
            Ok(calls) => tracing::info!(calls, "old calls are no longer on record"),
            Err(error) => tracing::warn!(%error, "old calls could not be taken off the record"),
        }
        tokio::time::sleep(TIDY_EVERY).await;
    }
}

/// The project's socket, unless another crib already answers there.
fn open_socket(opened: &Opened) -> Option<Socket> {
    let path = opened.socket()?;
    match Socket::claim(&path) {
        Ok(Some(socket)) => Some(socket),
        Ok(None) => {
            tracing::warn!("another crib serves this project; agents and commands use that one");
            None
        }
        Err(error) => {
            tracing::warn!(%error, path = %path.display(), "no socket; agents and commands run alone");
            None
        }
    }
}

/// Tells other cribs of this user where this one listens, so that no tool of theirs calls it.
fn notices(opened: &Opened, own: SocketAddr) -> Vec<off_limits::Notice> {
    let each = |folder: &PathBuf| match off_limits::announce(folder, own) {
        Ok(notice) => Some(notice),
        Err(error) => {
            let folder = folder.display();
            tracing::warn!(%error, %folder, "other cribs do not learn where this one listens; their tools may call it");
            None
        }
    };
    let folders = opened.env.notice_folders();
    folders.iter().filter_map(each).collect()
}

/// A call takes some four descriptors while it runs; the usual soft limit would be reached by 250 of them.
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let now = getrlimit(Resource::Nofile);
    let wanted = now.maximum.unwrap_or(MANY_FILES).min(MANY_FILES);
    if now.current.is_some_and(|current| current < wanted) {
        let raised = Rlimit {
            current: Some(wanted),
            maximum: now.maximum,
        };
        let _ = setrlimit(Resource::Nofile, raised);
    }
}

/// Comes back when this process is asked to end.
pub(super) async fn asked_to_stop() {
    let (Ok(mut interrupt), Ok(mut terminate)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

fn cannot_listen(wanted: SocketAddr, error: io::Error) -> Failure {
    let failure = Failure::new(ErrorCode::Unavailable, format!("can't listen on {wanted}"));
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            let other = wanted.port().checked_add(1).unwrap_or(7718);
            failure.cause(format!("port {} is taken, perhaps by another `toolcrib serve`", wanted.port())).hint(format!(
                "stop what listens there, or take another port: `toolcrib serve --port {other}` (0 picks a free one)"
            ))
        }
        io::ErrorKind::PermissionDenied => failure
            .cause(error)
            .hint("ports below 1024 are not for ordinary users: `toolcrib serve --port 7717`"),
        _ => failure
            .cause(error)
            .hint("use 127.0.0.1 or ::1, whichever this machine has"),
    }
}

fn open_to_all(host: IpAddr) -> Failure {
    let message =
        format!("`--no-auth` does not go with the address {host}, which is not a loopback address");
    Failure::new(ErrorCode::BadRequest, message)
        .cause("everybody who reaches the port would be the owner of this crib")
        .hint("leave `--no-auth` out and use tokens, or listen on 127.0.0.1")
}

/// What a browser opens to be let in, once.
fn login_url(auth: &Auth, own: SocketAddr, approves: Approves) -> Result<Option<String>, Failure> {
    let code = auth.login_code(approves).transpose().map_err(|error| {
        Failure::new(ErrorCode::Internal, "no login code could be made").cause(error)
    })?;
    Ok(code.map(|code| format!("{}/login?code={code}", base(own))))
}

/// The crib's address as one of this machine's programs reaches it.
fn base(own: SocketAddr) -> String {
    let ip = match own.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    format!("http://{}", SocketAddr::new(ip, own.port()))
}

fn banner(scene: &Scene, opened: &Opened, own: SocketAddr, login: Option<String>) {
    let printer = scene.printer;
    let view = opened.crib.owners_view();
    let base = base(own);
    if printer.is_json() {
        let project = opened.project.as_ref().map(|project| &project.root);
        printer.json_line(
            &json!({"url": base, "mcp": format!("{base}/mcp"), "project": project, "trusted": opened.trust.is_trusted(),
                                  "toolCount": view.count(), "login": login}),
        );
        return;
    }
    printer.line(format!(
        "{BOLD}toolcrib {}{BOLD:#} serves {}",
        crate::VERSION,
        opened.project_line()
    ));
    printer.line(format!("  mcp     {base}/mcp"));
    printer.line(format!("  tools   {base}/api/tools"));
    printer.line(format!("  events  {base}/api/events"));
    printer.line(format!("  docs    {base}/docs"));
    if let Some(login) = login {
        printer.line(format!("  login   {login}"));
    }
    let counts: Vec<String> = view
        .counts_by_source()
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(kind, count)| format!("{count} {}", kind.as_str()))
        .collect();
    let tools = counted(view.count(), "tool");
    printer.line(format!("  {tools} ({})", counts.join(", ")));
}

/// What a person should know before they walk away.
fn self_check(scene: &Scene, opened: &Opened) {
    if scene.printer.is_json() {
        return;
    }
    let view = opened.crib.owners_view();
    let errors = view
        .problems()
        .iter()
        .filter(|problem| problem.severity == Severity::Error)
        .count();
    if errors > 0 {
        let problems = counted(errors, "problem");
        scene.printer.remark(format!(
            "{YELLOW}{problems}{YELLOW:#}: `toolcrib errors` says what to do"
        ));
    }
}

/// Who gets in, and how.
fn who_may(scene: &Scene, auth: &Auth, own: SocketAddr) {
    let printer = scene.printer;
    if printer.is_json() {
        return;
    }
    if !auth.is_on() {
        printer.note(format!(
            "{YELLOW}no token is needed:{YELLOW:#} every process on this machine that reaches the port is the owner"
        ));
        return;
    }
    printer.note(format!(
        "{DIM}The login URL works once and expires in ten minutes; programs need a token: `toolcrib token create NAME`{DIM:#}"
    ));
    if !own.ip().is_loopback() {
        printer.note(format!(
            "{YELLOW}others can reach this port,{YELLOW:#} and HTTP does not hide tokens from anybody who listens on the network: \
             put TLS in front of it"
        ));
    }
}

/// What is wrong with the crib, from two sides, told as one list.
struct Reasons {
    ready: watch::Sender<Readiness>,
    found: Mutex<(Vec<String>, Vec<String>)>,
    /// Was everything there once?
    loaded: AtomicBool,
}

impl Reasons {
    fn new(ready: watch::Sender<Readiness>, wrong: Vec<String>) -> Reasons {
        Reasons {
            ready,
            found: Mutex::new((wrong, Vec::new())),
            loaded: AtomicBool::new(false),
        }
    }

    /// The first full catalog stands.
    fn loaded(&self) {
        self.loaded.store(true, Ordering::Relaxed);
        self.publish();
    }

    fn settings(&self, reasons: Vec<String>) {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).0 = reasons;
        self.publish();
    }

    fn sources(&self, reasons: Vec<String>) {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).1 = reasons;
        self.publish();
    }

    fn publish(&self) {
        let (mut reasons, sources) = self
            .found
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        reasons.extend(sources);
        self.ready.send_replace(Readiness {
            loaded: self.loaded.load(Ordering::Relaxed),
            reasons,
        });
    }
}
