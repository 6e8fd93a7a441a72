//! Disks that are full or read-only, and files that are damaged: clear words, no panic, nothing overwritten.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use sqlx::{Connection, SqliteConnection};
use toolcrib_core::store::{CustomTool, StoreError};
use toolcrib_store::{Store, StoreUrl};

use crate::support::{self, Dice, Site};

async fn refused(site: &Site) -> StoreError {
    Store::open(&site.store_url()).await.err().unwrap()
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn the_file_is_for_the_user_alone() {
    let site = Site::sqlite();
    let store = site.open().await;
    store
        .custom_tools()
        .create(CustomTool::new("a", "x"))
        .await
        .unwrap();
    let folder = site.file().parent().unwrap().to_owned();
    assert_eq!(mode(&folder), 0o700);
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().flatten().collect();
    assert_eq!(files.len(), 4, "{files:?}");
    for file in files {
        assert_eq!(mode(&file.path()), 0o600, "{file:?}");
    }
    store.close().await;
    std::fs::set_permissions(site.file(), std::fs::Permissions::from_mode(0o644)).unwrap();
    site.open().await;
    assert_eq!(mode(&site.file()), 0o600);
}

#[tokio::test]
async fn what_is_no_store_is_left_as_it_is() {
    for text in [
        &b"this is a letter to my aunt, and no database at all, however long it goes on and on .."
            .repeat(99)[..],
        b"short",
        b"SQLite format 3\0 and then nothing that makes sense",
    ] {
        let site = Site::sqlite();
        std::fs::create_dir_all(site.file().parent().unwrap()).unwrap();
        std::fs::write(site.file(), text).unwrap();
        let error = refused(&site).await;
        assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
        let shown = error.to_string();
        assert!(
            shown.contains("toolcrib.db") && shown.contains("move it away"),
            "{shown}"
        );
        assert_eq!(std::fs::read(site.file()).unwrap(), text);
    }
    let site = Site::sqlite();
    std::fs::create_dir_all(site.file()).unwrap();
    let error = refused(&site).await;
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_anywhere_never_panics() {
    let site = Site::sqlite();
    let store = site.open().await;
    for n in 0..150 {
        let mut tool = CustomTool::new(&format!("t{n}"), "x");
        tool.description = "word ".repeat(100);
        store.custom_tools().create(tool).await.unwrap();
    }
    store.close().await;
    let good = std::fs::read(site.file()).unwrap();
    let mut dice = Dice::new();
    let mut noticed = 0;
    for round in 0..40 {
        let mut bad = good.clone();
        if round % 4 == 0 {
            bad.truncate(1 + dice.below(good.len() - 1));
        }
        for _ in 0..1 + dice.below(4) {
            let at = dice.below(bad.len());
            let end = bad.len().min(at + 200);
            bad[at..end].iter_mut().for_each(|byte| *byte ^= 0xA5);
        }
        let site = Site::sqlite();
        std::fs::create_dir_all(site.file().parent().unwrap()).unwrap();
        std::fs::write(site.file(), &bad).unwrap();
        let trouble = |error: &StoreError| assert!(error.is_trouble(), "{error:?}");
        let store = match Store::open(&site.store_url()).await {
            Ok(store) => store,
            Err(error) => {
                trouble(&error);
                noticed += 1;
                continue;
            }
        };
        let tools = store.custom_tools();
        noticed += u32::from(store.check().await.inspect_err(trouble).is_err());
        let _ = tools.list(None, 0, 500).await.inspect_err(trouble);
        let _ = tools
            .create(CustomTool::new("new", "x"))
            .await
            .inspect_err(trouble);
        let _ = tools.delete("t7").await.inspect_err(trouble);
    }
    assert!(noticed > 20, "only {noticed} of 40 were noticed");
}

#[tokio::test]
async fn a_row_that_says_nonsense_is_damage() {
    let site = Site::sqlite();
    let store = site.open().await;
    store
        .custom_tools()
        .create(CustomTool::new("a", "x"))
        .await
        .unwrap();
    let mut db = SqliteConnection::connect(&site.url).await.unwrap();
    sqlx::query("UPDATE custom_tools SET args = '{'")
        .execute(&mut db)
        .await
        .unwrap();
    let error = store.custom_tools().get("a").await.unwrap_err();
    assert!(
        matches!(&error, StoreError::Damaged { why, .. } if why.contains("args")),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_file_that_was_taken_away_takes_no_writes() {
    let site = Site::sqlite();
    let store = site.open().await;
    let tools = store.custom_tools();
    tools.create(CustomTool::new("a", "x")).await.unwrap();
    let away = site.folder.path().join("away.db");
    std::fs::rename(site.file(), &away).unwrap();
    let error = tools.create(CustomTool::new("b", "x")).await.unwrap_err();
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error:?}");
    std::fs::write(site.file(), "").unwrap();
    let error = tools.delete("a").await.unwrap_err();
    assert!(error.to_string().contains("replaced"), "{error}");
    // What is empty where a store was is no new one.
    let error = refused(&site).await;
    assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
    assert_eq!(site.file().metadata().unwrap().len(), 0);
    std::fs::rename(&away, site.file()).unwrap();
    tools.create(CustomTool::new("b", "x")).await.unwrap();
}

/// A folder that anybody may enter, with a copy of the writer that anybody may start.
fn open_folder() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let writer = folder.path().join("writer");
    std::fs::copy(support::writer(), &writer).unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    (folder, writer.display().to_string())
}

/// Runs the writer as somebody without rights, and gives what it says.
fn as_nobody(writer: &str, arguments: &[&str]) -> String {
    let mut command = if support::is_root() {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", writer]);
        command
    } else {
        Command::new(writer)
    };
    let output = command.args(arguments).current_dir("/").output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{shown} {output:?}");
    shown
}

#[tokio::test]
async fn a_folder_that_takes_no_files_is_read_only() {
    let (folder, writer) = open_folder();
    let shut = folder.path().join("shut");
    std::fs::create_dir(&shut).unwrap();
    let file = shut.join("toolcrib.db");
    let url = format!("sqlite:{}", file.display());
    let close = || std::fs::set_permissions(&shut, std::fs::Permissions::from_mode(0o555)).unwrap();
    close();
    let said = as_nobody(&writer, &["try", &url]);
    assert!(
        said.starts_with("ReadOnly ") && said.contains("Permission denied"),
        "{said}"
    );
    let said = as_nobody(
        &writer,
        &[
            "try",
            &format!("sqlite:{}/deeper/toolcrib.db", shut.display()),
        ],
    );
    assert!(said.starts_with("ReadOnly "), "{said}");

    // A store of one's own in such a folder: SQLite can't lay its journal beside it.
    std::fs::set_permissions(&shut, std::fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(as_nobody(&writer, &["try", &url]), "fine\n");
    close();
    let said = as_nobody(&writer, &["try", &url]);
    assert!(
        said.starts_with("ReadOnly ") && said.contains("shut"),
        "{said}"
    );

    // Somebody else's store.
    if support::is_root() {
        std::fs::set_permissions(&shut, std::fs::Permissions::from_mode(0o777)).unwrap();
        let store = Store::open(&StoreUrl::sqlite(shut.join("mine.db")))
            .await
            .unwrap();
        store.close().await;
        let said = as_nobody(
            &writer,
            &["try", &format!("sqlite:{}/mine.db", shut.display())],
        );
        assert!(said.starts_with("ReadOnly "), "{said}");
    }
}

/// Runs a script in a mount namespace of its own, so that no disk of ours is touched.
fn apart(script: &str, folder: &Path, writer: &str) -> String {
    let mut command = Command::new("unshare");
    if !support::is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    let output = command
        .args(["--mount", "sh", "-e", "-c", script, "sh"])
        .arg(folder)
        .arg(writer)
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{shown} {output:?}");
    shown
}

#[tokio::test]
async fn a_disk_that_is_mounted_read_only_is_said_to_be() {
    let (folder, writer) = open_folder();
    let script = r#"
        mount -t tmpfs -o size=8m tmpfs "$1"
        "$2" try "sqlite:$1/toolcrib.db"
        mount -o remount,ro "$1"
        "$2" try "sqlite:$1/toolcrib.db"
        "$2" try "sqlite:$1/new.db""#;
    let disk = folder.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let said = apart(script, &disk, &writer);
    let said: Vec<&str> = said.lines().collect();
    assert_eq!(said[0], "fine");
    assert!(
        said[1].starts_with("ReadOnly ") && said[2].starts_with("ReadOnly "),
        "{said:?}"
    );
}

#[tokio::test]
async fn a_full_disk_loses_nothing() {
    let (folder, writer) = open_folder();
    let disk = folder.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let script = r#"mount -t tmpfs -o size=2m tmpfs "$1"; "$2" fill "$1""#;
    assert_eq!(apart(script, &disk, &writer), "fine\n");
}
