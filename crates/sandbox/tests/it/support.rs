//! Launchers of both rungs, scripts to run with them, and the census of what is left.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::ChildStdout;
use toolcrib_sandbox::{Child, Command, Consent, Environment, Launcher, Rung};

/// The variable that all processes of one test carry.
pub const MARK: &str = "TOOLCRIB_TEST_MARK";

/// Cargo builds examples before it runs tests; they lie beside the test binary's folder.
pub fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let deps = test.parent().unwrap();
    let built = deps.parent().unwrap().join("examples").join(name);
    assert!(built.exists(), "{} is built by cargo test", built.display());
    built
}

/// One launcher that does what the machine lets it, and one that is held back.
pub fn launchers() -> [Launcher; 2] {
    let launcher = Launcher::at(example("launcher"));
    [launcher.clone(), launcher.at_most(Rung::Group)]
}

pub fn environment() -> Environment {
    Environment::from_vars([
        ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
        ("SECRET".into(), "x".into()),
    ])
}

/// What is compared with walls, or needs none: processes of the tests' own.
pub fn free() -> Consent {
    #[expect(clippy::disallowed_methods, reason = "a test's own processes")]
    Consent::from_user_settings()
}

/// A launcher that makes namespaces, which these tests are about.
pub async fn namespaced() -> Launcher {
    let [launcher, _] = launchers();
    let found = rung(&launcher).await;
    let missing = "who runs this test may make no namespaces on this machine";
    assert_eq!(found, Rung::Namespaces, "{missing}");
    launcher
}

/// The rung that this launcher has, by starting something.
pub async fn rung(launcher: &Launcher) -> Rung {
    run(launcher, "true", "rung").await.wait().await.unwrap();
    launcher.rung().unwrap()
}

/// A shell that carries the mark, with a stdin.
pub async fn run(launcher: &Launcher, script: &str, mark: &str) -> Child {
    let command = Command::new("sh", "/", free()).arg("-c").arg(script);
    command
        .var(MARK, mark)
        .piped_stdin()
        .spawn(launcher, &environment())
        .await
        .unwrap()
}

pub async fn sh(launcher: &Launcher, script: &str) -> Child {
    let command = Command::new("sh", "/", free()).arg("-c").arg(script);
    command.spawn(launcher, &environment()).await.unwrap()
}

/// Everything the child says, until the last process that could say something is gone.
pub async fn output(child: &mut Child) -> String {
    let mut text = String::new();
    let mut stdout = child.stdout.take().unwrap();
    let read = stdout.read_to_string(&mut text);
    tokio::time::timeout(Duration::from_secs(20), read)
        .await
        .expect("the stream ends")
        .unwrap();
    text
}

/// The next line; what follows stays readable.
pub async fn line(stdout: &mut BufReader<ChildStdout>) -> String {
    let mut text = String::new();
    let read = stdout.read_line(&mut text);
    tokio::time::timeout(Duration::from_secs(20), read)
        .await
        .expect("a line comes")
        .unwrap();
    text.trim_end().to_owned()
}

pub fn mark(name: &str) -> String {
    format!("{name}-{}", std::process::id())
}

/// The folders in /proc of living processes that carry the mark.
fn marked(mark: &str) -> Vec<PathBuf> {
    let mark = format!("{MARK}={mark}\0");
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .map(|process| process.path())
        .filter(|process| {
            std::fs::read(process.join("environ")).is_ok_and(|environ| {
                environ
                    .windows(mark.len())
                    .any(|part| part == mark.as_bytes())
            })
        })
        .collect()
}

/// How many processes carry the mark, the launcher's included.
pub fn count(mark: &str) -> usize {
    marked(mark).len()
}

/// How many of them are `sleep 600`.
pub fn sleeping(mark: &str) -> usize {
    let is_sleep = |process: &PathBuf| {
        std::fs::read(process.join("cmdline")).is_ok_and(|line| line == b"sleep\x00600\x00")
    };
    marked(mark).iter().filter(|path| is_sleep(path)).count()
}

pub async fn wait_until(what: &str, condition: impl Fn() -> bool) {
    within(Duration::from_secs(20), what, condition).await;
}

/// Nothing that carries the mark may live for more than five seconds from now.
pub async fn all_gone(mark: &str) {
    within(Duration::from_secs(5), "all are gone", || count(mark) == 0).await;
}

async fn within(limit: Duration, what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + limit;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        // sleeps: how often it is looked at; nothing depends on it
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[expect(unsafe_code, reason = "a signal to a process of this test's own")]
pub fn kill(pid: u32, signal: i32) {
    assert!(pid > 1);
    // SAFETY: no memory is touched; the process belongs to this test and was not waited for yet.
    unsafe { libc::kill(pid as libc::pid_t, signal) };
}

#[expect(unsafe_code, reason = "std has no way to ask for it")]
pub fn is_root() -> bool {
    // SAFETY: no memory is touched.
    unsafe { libc::geteuid() == 0 }
}

/// Whether a process that nobody has waited for is dead.
pub fn has_ended(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "))
}

/// The only child of a process.
pub fn child_of(pid: u32) -> Option<u32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    std::fs::read_to_string(Path::new(&path))
        .ok()?
        .trim()
        .parse()
        .ok()
}
