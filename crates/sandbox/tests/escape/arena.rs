//! Where attacks take place: secrets and victims outside, a tool and a project inside, and a report of what came of it.

use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use toolcrib_sandbox::{Child, Command, Environment, Exit, Launcher, Policy, Rung};

pub const GUARD: &str = include_str!("guard.py");
/// Every attempt as a function, and how they are run.
pub const ATTACK: &str = concat!(
    include_str!("attack.py"),
    "\n",
    include_str!("attack_beyond.py")
);

/// Set where this program was started again as root with everything of its own.
pub const AS_ROOT: &str = "TOOLCRIB_TEST_AS_ROOT";
/// A small file system for what tools write on the rung that can't mount one.
pub const SMALL: &str = "TOOLCRIB_TEST_SMALL";

pub fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let deps = test.parent().unwrap();
    let built = deps.parent().unwrap().join("examples").join(name);
    assert!(built.exists(), "{} is built by cargo test", built.display());
    built
}

#[expect(unsafe_code, reason = "std has no way to ask for it")]
pub fn is_root() -> bool {
    // SAFETY: no memory is touched.
    unsafe { libc::geteuid() == 0 }
}

#[expect(unsafe_code, reason = "std has no way to do it")]
fn set_attribute(path: &Path, name: &std::ffi::CStr, value: &[u8]) -> std::io::Result<()> {
    let path = std::ffi::CString::new(path.as_os_str().as_encoded_bytes())?;
    // SAFETY: names end with a zero, and the value is as long as is said.
    let done = unsafe {
        let value = (value.as_ptr().cast(), value.len());
        libc::setxattr(path.as_ptr(), name.as_ptr(), value.0, value.1, 0)
    };
    match done {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this program tells itself what it is"
)]
pub fn var(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Whether attacks may run in this process.
pub fn may_attack() -> bool {
    !is_root() || var(AS_ROOT).is_some()
}

/// Launchers of the rungs that this machine has, each held to its own; none where attacks may not run.
pub async fn launchers() -> Vec<(Rung, Launcher)> {
    let mut found = Vec::new();
    if !may_attack() {
        return found;
    }
    for letter in ["A", "C", "B"] {
        let rung = Rung::from_letter(letter).unwrap();
        let launcher = Launcher::at(example("launcher")).at_most(rung);
        if launcher.survey().await.unwrap().rung == Some(rung) {
            found.push((rung, launcher));
        }
    }
    assert!(!found.is_empty(), "this machine can confine nothing");
    found
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Language {
    Python,
    Node,
}

/// One line of an attack's report.
#[derive(Debug)]
pub struct Line {
    pub name: String,
    pub held: bool,
    pub shown: String,
}

pub struct Arena {
    root: tempfile::TempDir,
    tcp: TcpListener,
    udp: UdpSocket,
    _crib: UnixListener,
    abstract_name: String,
    _abstract: UnixListener,
    victim: std::process::Child,
    shared: PathBuf,
    /// More that attacks are told.
    pub more: Value,
}

impl Arena {
    pub fn new() -> Arena {
        // Not in /tmp, where a tool's private one lies.
        let root = tempfile::tempdir_in("/var/tmp").unwrap();
        std::fs::set_permissions(root.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let at = |path: &str| root.path().join(path);
        for folder in [
            "home/.ssh",
            "secret",
            "crib",
            "other/toolcrib-other",
            "tools",
            "scratch",
            "project/.git/hooks",
            "project/src",
        ] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        for (file, text) in [
            ("home/.ssh/id", "secret"),
            ("secret/hidden", "secret"),
            ("secret/marker", "seen"),
            ("crib/store.db", "secret"),
            ("other/toolcrib-other/notes", "secret"),
            ("project/data.txt", "data"),
            ("project/.git/config", "[core]"),
            ("project/src/main.c", ""),
        ] {
            std::fs::write(at(file), text).unwrap();
        }
        // Not every file system has them.
        let _ = set_attribute(&at("secret/hidden"), c"user.toolcrib", b"secret");
        symlink("../secret/hidden", at("project/outward")).unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        tcp.set_nonblocking(true).unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        udp.set_nonblocking(true).unwrap();
        let abstract_name = format!(
            "toolcrib-test-{}",
            root.path().file_name().unwrap().display()
        );
        let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        let shared = Path::new("/dev/shm").join(&abstract_name);
        // Not every machine has it.
        let _ = std::fs::write(&shared, "secret");
        #[expect(clippy::disallowed_methods, reason = "a victim, not a tool")]
        let victim = std::process::Command::new("sleep")
            .arg("600")
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        Arena {
            _crib: UnixListener::bind(at("crib/crib.sock")).unwrap(),
            _abstract: UnixListener::bind_addr(&address).unwrap(),
            root,
            tcp,
            udp,
            abstract_name,
            victim,
            shared,
            more: json!({}),
        }
    }

    /// A path without links, as tools will see it.
    pub fn at(&self, path: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(path)
    }

    pub fn policy(&self) -> Policy {
        Policy::default_for(&self.at("tools"), Some(&self.at("project")))
    }

    /// What every tool of the arena starts with.
    pub fn environment(&self) -> Environment {
        let small = var(SMALL).map(PathBuf::from);
        let scratch = small.unwrap_or_else(|| self.at("scratch"));
        Environment::from_vars([
            ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
            ("HOME".into(), self.at("home").into()),
            ("LANG".into(), "C.UTF-8".into()),
            ("TMPDIR".into(), scratch.into()),
            ("A_SECRET".into(), "x".into()),
        ])
    }

    fn places(&self, rung: Rung) -> String {
        let mut places = json!({
            "apart": rung != Rung::Group,
            "home": self.at("home"),
            "secret": self.at("secret/hidden"),
            "project": self.at("project"),
            "crib": self.at("crib"),
            "other_tmp": self.at("other/toolcrib-other"),
            "crib_pid": std::process::id(),
            "victim": self.victim.id(),
            "tcp": self.tcp.local_addr().unwrap().port(),
            "udp": self.udp.local_addr().unwrap().port(),
            "abstract": self.abstract_name,
            "shared": self.abstract_name,
        });
        let more = self.more.as_object().unwrap().clone();
        places.as_object_mut().unwrap().extend(more);
        places.to_string()
    }

    /// Writes a program into the tools folder, and gives the command that runs it behind walls.
    pub fn command(&self, language: Language, text: &str, rung: Rung, policy: Policy) -> Command {
        let (program, name) = match language {
            Language::Python => ("python3", "program.py"),
            Language::Node => ("node", "program.mjs"),
        };
        let file = self.at("tools").join(name);
        std::fs::write(&file, text).unwrap();
        Command::new(program, self.at("project"), policy)
            .arg(file)
            .var("TOOLCRIB_TEST_CANARY", "behind walls")
            .var("TOOLCRIB_TEST_MARKER", self.at("secret/marker"))
            .var("TOOLCRIB_TEST_PLACES", self.places(rung))
    }

    /// Runs an attack and checks that it ran behind walls, to its end, and that everything outside is as it was.
    pub async fn attack(
        &self,
        launcher: &Launcher,
        rung: Rung,
        language: Language,
        text: &str,
        policy: Policy,
    ) -> Vec<Line> {
        let command = self.command(language, text, rung, policy);
        let child = command.spawn(launcher, &self.environment()).await.unwrap();
        assert_eq!(child.account().unwrap().rung, rung);
        let (exit, out, err) = finish(child).await;
        assert_ne!(exit, Exit::Code(99), "{rung:?}: no walls stood: {err}");
        let lines = read(&out);
        let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
        assert_eq!(
            (names.first(), names.last()),
            (Some(&"canary"), Some(&"end")),
            "{rung:?} {exit:?} {out}{err}"
        );
        self.check(rung);
        lines
    }

    /// Everything outside is as it was.
    fn check(&self, rung: Rung) {
        let reached = self.tcp.accept().map(|_| ());
        assert!(reached.is_err(), "{rung:?}: somebody connected");
        let mut datagram = [0; 8];
        assert!(
            self.udp.recv(&mut datagram).is_err(),
            "{rung:?}: a datagram came"
        );
        for (file, text) in [
            ("secret/hidden", "secret"),
            ("project/.git/config", "[core]"),
            ("crib/store.db", "secret"),
        ] {
            assert_eq!(
                std::fs::read_to_string(self.at(file)).unwrap(),
                text,
                "{rung:?} {file}"
            );
        }
        assert!(
            !self.at("home/planted").exists() && !self.at("planted").exists(),
            "{rung:?}"
        );
        let hooks = std::fs::read_dir(self.at("project/.git/hooks")).unwrap();
        assert_eq!(hooks.count(), 0, "{rung:?}");
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.victim.id())).unwrap();
        assert!(!stat.contains(") Z "), "{rung:?}: the victim is dead");
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // All of it is this test's own.
        let _ = self.victim.kill();
        let _ = self.victim.wait();
        let _ = std::fs::remove_file(&self.shared);
    }
}

/// How a process ended and what it said, within a minute.
pub async fn finish(mut child: Child) -> (Exit, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let (mut stdout, mut stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let both = async { tokio::join!(stdout.read_to_end(&mut out), stderr.read_to_end(&mut err)) };
    let done = tokio::time::timeout(Duration::from_secs(90), both).await;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    assert!(done.is_ok(), "it does not end: {} {}", text(out), text(err));
    let exit = child.wait().await.unwrap();
    (exit, text(out), text(err))
}

pub fn read(out: &str) -> Vec<Line> {
    out.lines()
        .filter_map(|line| {
            let mut parts = line.splitn(3, '\t');
            let (name, word) = (parts.next()?, parts.next()?);
            Some(Line {
                name: name.to_owned(),
                held: word == "held",
                shown: parts.next().unwrap_or_default().to_owned(),
            })
        })
        .collect()
}

/// The names of what was not held, with what was shown.
pub fn out(lines: &[Line]) -> Vec<String> {
    let out = lines.iter().filter(|line| !line.held);
    out.map(|line| format!("{} ({})", line.name, line.shown))
        .collect()
}
