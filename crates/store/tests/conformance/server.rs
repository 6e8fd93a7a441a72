//! A Postgres that lives as long as whoever holds it, however that ends, and does what it is told: stop, freeze, be empty.
//!
//! The tests of the binary use this file, too.

#![allow(
    dead_code,
    clippy::allow_attributes,
    reason = "each of the two test programs uses a part"
)]

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A shell holds the server and does as it is told, until the end of a pipe whose other end is ours.
const HOLD: &str = r#"
make() {
    "$1/initdb" -D "$2/data" -U toolcrib -A trust -E UTF8 --locale=C.UTF-8 -N >"$2/log" 2>&1 || { cat "$2/log" >&2; exit 1; }
}
start() {
    "$1/postgres" -D "$2/data" -k "$2" -c listen_addresses= -c fsync=off -c max_connections=200 >>"$2/log" 2>&1 &
    server=$!
}
all() { echo $server $(cat /proc/$server/task/$server/children); }
stop() {
    [ -n "$server" ] || return 0
    # A connection may end between the list and the signal.
    kill -CONT $(all) 2>/dev/null
    kill -QUIT $server
    wait $server
    server=
}
make "$1" "$2"
start "$1" "$2"
while read -r word; do
    case "$word" in
        stop) stop ;;
        start) start "$1" "$2" ;;
        freeze) kill -STOP $(all) ;;
        thaw) kill -CONT $(all) ;;
        cut) psql -h "$2" -U toolcrib -d postgres -qAt -c "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE pid <> pg_backend_pid() AND backend_type = 'client backend' ORDER BY random() LIMIT 1" >>"$2/log" 2>&1 ;;
        empty) stop; rm -rf "$2/data"; make "$1" "$2"; start "$1" "$2" ;;
    esac
    echo done
done
stop
rm -rf "$2"
"#;

/// What the server can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Stop,
    Start,
    Freeze,
    Thaw,
    /// Another server in its place, which holds nothing.
    Empty,
    /// One connection is cut, whoever's it is.
    Cut,
}

pub struct Postgres {
    sockets: PathBuf,
    pipes: Mutex<(ChildStdin, BufReader<ChildStdout>)>,
    _shell: Child,
}

impl Postgres {
    pub fn start() -> Postgres {
        let programs = programs();
        // Sockets have short names only, so not below a long TMPDIR.
        let folder = tempfile::Builder::new()
            .prefix("toolcrib-pg-")
            .tempdir_in("/tmp")
            .unwrap()
            .keep();
        // Postgres refuses to run as root; its package makes a user for it.
        let mut command = if rustix::process::geteuid().is_root() {
            let owned = Command::new("chown").arg("postgres").arg(&folder).status();
            assert!(
                owned.is_ok_and(|status| status.success()),
                "there is no user `postgres`: run scripts/setup-tests"
            );
            let mut command = Command::new("setpriv");
            command.args([
                "--reuid=postgres",
                "--regid=postgres",
                "--clear-groups",
                "sh",
            ]);
            command
        } else {
            Command::new("sh")
        };
        let mut shell = command
            .args(["-c", HOLD, "sh"])
            .arg(&programs)
            .arg(&folder)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let pipes = (
            shell.stdin.take().unwrap(),
            BufReader::new(shell.stdout.take().unwrap()),
        );
        let server = Postgres {
            sockets: folder,
            pipes: Mutex::new(pipes),
            _shell: shell,
        };
        server.wait();
        server
    }

    /// Comes back when it is done; one that starts takes connections then.
    pub fn tell(&self, order: Order) {
        let word = format!("{order:?}").to_lowercase();
        let mut pipes = self.pipes.lock().unwrap();
        writeln!(pipes.0, "{word}").unwrap();
        let mut done = String::new();
        pipes.1.read_line(&mut done).unwrap();
        assert_eq!(done, "done\n");
        if matches!(order, Order::Start | Order::Empty) {
            self.wait();
        }
    }

    fn wait(&self) {
        let deadline = Instant::now() + Duration::from_secs(60);
        let ready = || {
            let pid = std::fs::read_to_string(self.sockets.join("data/postmaster.pid"));
            pid.is_ok_and(|text| text.contains("ready"))
        };
        while !ready() {
            let log = self.sockets.join("log");
            assert!(
                Instant::now() < deadline,
                "Postgres does not start: {}",
                std::fs::read_to_string(log).unwrap_or_default()
            );
            // sleeps: how often it is looked at; nothing depends on it
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn url(&self, database: &str) -> String {
        let host = self.sockets.display().to_string().replace('/', "%2F");
        format!("postgres://toolcrib@{host}/{database}")
    }
}

/// Where Postgres keeps what starts it. Without it these tests fail: half of what they promise would be untested.
fn programs() -> PathBuf {
    let packaged = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let packaged = packaged.map(|version| version.path().join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = packaged.chain(std::env::split_paths(&path)).collect();
    folders.sort_by_key(|folder| !folder.starts_with("/usr/lib/postgresql"));
    let found = folders
        .into_iter()
        .find(|folder| folder.join("initdb").exists() && folder.join("postgres").exists());
    found.expect("Postgres is not installed: run scripts/setup-tests")
}
