//! What the tests of the store share: a place on either database, a throw-away Postgres, and the writer that is killed.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use sqlx::{Connection, PgConnection};
use tempfile::TempDir;
use toolcrib_store::{Store, StoreUrl};

/// Longer than anything takes that works.
pub const SOON: Duration = Duration::from_secs(20);

/// Long runs only when asked for.
pub fn soak() -> bool {
    std::env::var_os("TOOLCRIB_SOAK").is_some()
}

/// A store of a test's own.
pub struct Site {
    pub url: String,
    /// Gone with the test.
    pub folder: TempDir,
}

impl Site {
    pub fn sqlite() -> Site {
        let folder = tempfile::tempdir().unwrap();
        let url = format!(
            "sqlite:{}",
            folder.path().join("data/toolcrib.db").display()
        );
        Site { url, folder }
    }

    pub async fn postgres() -> Site {
        let name = format!("t{}", uuid::Uuid::now_v7().simple());
        let server = &*SERVER;
        let mut admin = PgConnection::connect(&server.url("postgres"))
            .await
            .unwrap();
        let sql = sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}"));
        sqlx::query(sql).execute(&mut admin).await.unwrap();
        admin.close().await.unwrap();
        Site {
            url: server.url(&name),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub fn store_url(&self) -> StoreUrl {
        self.url.parse().unwrap()
    }

    pub async fn open(&self) -> Store {
        Store::open(&self.store_url()).await.unwrap()
    }

    pub fn is_sqlite(&self) -> bool {
        self.url.starts_with("sqlite:")
    }

    pub fn file(&self) -> PathBuf {
        self.folder.path().join("data/toolcrib.db")
    }
}

/// The program that writes and is killed; cargo builds examples before it runs tests.
pub fn writer() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let built = test.parent().and_then(|deps| deps.parent()).unwrap();
    let built = built.join("examples/writer");
    assert!(
        built.exists(),
        "{} is built by `cargo test`",
        built.display()
    );
    built
}

pub fn run_writer(arguments: &[&str]) -> Command {
    let mut command = Command::new(writer());
    command.args(arguments);
    command
}

/// Are we the machine's owner? Then tests about rights start their programs as somebody else.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Waits until something holds that others bring about.
pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + SOON;
    while !holds().await {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        // sleeps: how often it is looked at; nothing depends on it
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

static SERVER: LazyLock<Server> = LazyLock::new(Server::start);

/// A Postgres that lives as long as this test process, however that ends: a shell holds it and waits for the end of a
/// pipe whose other end is ours.
struct Server {
    sockets: PathBuf,
    _shell: Child,
}

const HOLD: &str = r#"
"$1/initdb" -D "$2/data" -U toolcrib -A trust -E UTF8 --locale=C.UTF-8 -N >"$2/log" 2>&1 || { cat "$2/log" >&2; exit 1; }
"$1/postgres" -D "$2/data" -k "$2" -c listen_addresses= -c fsync=off -c max_connections=200 >>"$2/log" 2>&1 &
server=$!
read -r _
kill -QUIT $server
wait $server
rm -rf "$2"
"#;

impl Server {
    fn start() -> Server {
        let programs = programs();
        // Sockets have short names only, so not below a long TMPDIR.
        let folder = tempfile::Builder::new()
            .prefix("toolcrib-pg-")
            .tempdir_in("/tmp")
            .unwrap()
            .keep();
        // Postgres refuses to run as root; its package makes a user for it.
        let mut command = if is_root() {
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
        let shell = command
            .args(["-c", HOLD, "sh"])
            .arg(&programs)
            .arg(&folder)
            .current_dir("/")
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let server = Server {
            sockets: folder,
            _shell: shell,
        };
        server.wait();
        server
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

    fn url(&self, database: &str) -> String {
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

/// Chance, seeded by the clock.
pub struct Dice(u64);

impl Dice {
    pub fn new() -> Dice {
        let seed = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
        eprintln!("dice: {seed}");
        Dice(seed | 1)
    }

    /// xorshift64.
    pub fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.roll() % limit as u64) as usize
    }
}
