//! What the tests of the store share: a place on either database, a throw-away Postgres, and the writer that is killed.

use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use sqlx::{Connection, PgConnection};
use tempfile::TempDir;
use toolcrib_store::{Store, StoreUrl};

use crate::server::Postgres;

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
    example("writer")
}

pub fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let built = test.parent().and_then(|deps| deps.parent()).unwrap();
    let built = built.join("examples").join(name);
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

static SERVER: LazyLock<Postgres> = LazyLock::new(Postgres::start);

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
