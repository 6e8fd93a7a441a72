//! Disks that are full or shut and files that are damaged, under a crib that serves: it says so, and serves on.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::support::{TestCrib, World, eventually, shell_tool};

/// A global tool needs no trust, so it runs whatever became of the store.
fn world() -> World {
    let world = World::new();
    let global = world.global_folder();
    std::fs::create_dir_all(&global).unwrap();
    std::fs::write(
        global.join("say.json"),
        shell_tool("say", "echo hi", json!({})),
    )
    .unwrap();
    std::fs::write(
        global.join("much.json"),
        shell_tool("much", "seq 30000", json!({})),
    )
    .unwrap();
    world
}

fn data(world: &World) -> PathBuf {
    let data = world.home().join(".local/share/toolcrib");
    std::fs::create_dir_all(&data).unwrap();
    data
}

const SERVE: [&str; 5] = ["serve", "--json", "--no-auth", "--port", "0"];

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_toolcrib"))
}

/// The catalog is served and calls are answered, whatever else is wrong.
async fn serves_on(crib: &TestCrib) {
    assert!(crib.names().await.contains(&"say".to_owned()));
    assert_eq!(crib.output_of("say").await, "hi");
}

/// Who asks what is wrong is told.
async fn doctor_says(crib: &TestCrib, what: &str) {
    let (status, said) = crib.get("/doctor").await;
    assert_eq!(status, 200, "{said}");
    assert!(said["degraded"].to_string().contains(what), "{said}");
}

async fn records(crib: &TestCrib) -> usize {
    let (_, list) = crib.get("/calls?limit=1000").await;
    list["calls"].as_array().map_or(0, Vec::len)
}

#[tokio::test]
async fn a_full_disk_costs_records_and_large_outputs_and_no_call() {
    let world = world();
    let disk = data(&world);
    let mount = format!(
        "mount -t tmpfs -o size=4m tmpfs {} && exec \"$@\"",
        disk.display()
    );
    let mut wrapper = vec!["unshare", "--mount"];
    if !rustix::process::geteuid().is_root() {
        wrapper.extend(["--user", "--map-root-user"]);
    }
    wrapper.extend(["sh", "-c", &mount, "sh"]);
    let crib = world.serve_by(world.wrapped(&wrapper, binary(), &SERVE));
    serves_on(&crib).await;
    eventually("the call is on record", async || records(&crib).await == 1).await;
    assert_eq!(crib.ready().await.0, "ready");

    // The disk as the crib sees it.
    let seen =
        PathBuf::from(format!("/proc/{}/root", crib.pid())).join(disk.strip_prefix("/").unwrap());
    let filler = seen.join("filler");
    let fill = || {
        use std::io::Write;
        let mut file = std::fs::File::options()
            .create(true)
            .append(true)
            .open(&filler)
            .unwrap();
        let mut size = 64 * 1_024;
        while size > 0 {
            if file.write_all(&vec![b'x'; size]).is_err() {
                size /= 2;
            }
        }
    };
    fill();
    for _ in 0..300 {
        serves_on(&crib).await;
    }
    fill();
    crib.becomes("degraded").await;
    let (_, reasons) = crib.ready().await;
    assert!(reasons.contains("no room left"), "{reasons}");

    doctor_says(&crib, "no room left").await;
    let (status, cut) = crib.call("much", json!({})).await;
    let output = cut["output"].as_str().unwrap();
    assert_eq!((status, &cut["isError"]), (200, &json!(false)), "{cut}");
    // What was cut is told above the text, too.
    assert!(output.contains("1\n2\n") && output.len() <= 51_000);
    let end = &output[output.len() - 120..];
    assert!(end.contains("The rest could not be kept on disk"), "{end}");
    assert!(
        cut["metadata"].get("outputId").is_none(),
        "{}",
        cut["metadata"]
    );
    eventually("that is a reason too", async || {
        crib.ready().await.1.contains("large outputs can't be kept")
    })
    .await;
    serves_on(&crib).await;

    std::fs::remove_file(&filler).unwrap();
    crib.becomes("ready").await;
    let before = records(&crib).await;
    assert!(before > 1, "what waited was written: {before}");
    serves_on(&crib).await;
    eventually("calls are on record again", async || {
        records(&crib).await > 300
    })
    .await;
    let (_, kept) = crib.call("much", json!({})).await;
    assert!(
        kept["metadata"]["outputId"].is_string(),
        "{}",
        kept["metadata"]
    );
}

fn mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Somebody without rights, who may enter all of the world: how a program is started as them, and the binary for it.
fn stranger(world: &World) -> (&'static [&'static str], PathBuf) {
    let binary = world.root().join("toolcrib");
    std::fs::copy(self::binary(), &binary).unwrap();
    mode(&world.root(), 0o755);
    for open in [world.home(), world.project()] {
        mode(&open, 0o777);
    }
    let wrapper: &[&str] = match rustix::process::geteuid().is_root() {
        true => &[
            "setpriv",
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
        ],
        false => &["env"],
    };
    (wrapper, binary)
}

#[tokio::test]
async fn a_store_that_can_only_be_read_is_read() {
    let world = world();
    let folder = data(&world);
    let store = folder.join("toolcrib.db");
    let (wrapper, binary) = stranger(&world);
    mode(&folder, 0o777);
    let run = |args: &[&str]| world.finish(world.wrapped(wrapper, &binary, args)).exits(0);
    let token = run(&["token", "create", "ci", "--scope", "read,call,manage"]);
    mode(&store, 0o444);
    mode(&folder, 0o555);
    let serve = &["serve", "--json", "--port", "0"];
    let mut crib = world.serve_by(world.wrapped(wrapper, &binary, serve));
    crib.show(Some(token.stdout.trim()));
    let (status, reasons) = crib.ready().await;
    assert_eq!(status, "degraded");
    assert!(reasons.contains("can't be written"), "{reasons}");
    // Its tokens count, its records are read, and nothing new is kept.
    serves_on(&crib).await;
    assert_eq!(crib.get("/custom-tools").await.0, 200);
    assert_eq!(crib.get("/calls").await.0, 200);
    let (status, said) = crib
        .post("/tokens", json!({"name": "x", "scopes": ["read"]}))
        .await;
    assert_eq!(
        (status, &said["error"]["code"]),
        (503, &json!("unavailable")),
        "{said}"
    );

    mode(&folder, 0o777);
    mode(&store, 0o600);
    crib.becomes("ready").await;
    serves_on(&crib).await;
    eventually("calls are on record", async || records(&crib).await >= 1).await;
}

#[tokio::test]
async fn a_data_folder_that_takes_nothing_is_said_and_mended() {
    let world = world();
    let shut = data(&world);
    let (wrapper, binary) = stranger(&world);
    mode(&shut, 0o555);
    let crib = world.serve_by(world.wrapped(wrapper, &binary, &SERVE));
    let (status, reasons) = crib.ready().await;
    assert_eq!(status, "degraded");
    assert!(reasons.contains("can't be written"), "{reasons}");
    serves_on(&crib).await;
    let (status, said) = crib.get("/calls").await;
    assert_eq!(
        (status, &said["error"]["code"]),
        (503, &json!("unavailable"))
    );
    assert!(
        said["error"]["hint"]
            .as_str()
            .unwrap()
            .contains("permissions"),
        "{said}"
    );
    let list = world.finish(world.wrapped(wrapper, &binary, &["list", "--standalone"]));
    assert!(list.stdout.contains("say") && list.code == 0, "{list:?}");
    assert!(list.stderr.contains("degraded: the store"), "{list:?}");
    let call = world.finish(world.wrapped(wrapper, &binary, &["call", "--standalone", "say"]));
    assert_eq!((call.code, call.stdout.as_str()), (0, "hi\n"), "{call:?}");

    mode(&shut, 0o777);
    crib.becomes("ready").await;
    serves_on(&crib).await;
    eventually("calls are on record", async || records(&crib).await == 1).await;
}

#[tokio::test]
async fn a_store_that_is_damaged_while_it_serves_is_said_and_mended() {
    let world = world();
    let store = data(&world).join("toolcrib.db");
    let crib = world.serve();
    serves_on(&crib).await;
    eventually("the call is on record", async || records(&crib).await == 1).await;

    // Its journal goes with it: with that alone SQLite would make the whole file anew.
    let aside = world.root().join("aside");
    std::fs::create_dir(&aside).unwrap();
    let parts = ["toolcrib.db", "toolcrib.db-wal", "toolcrib.db-shm"];
    for part in parts {
        std::fs::rename(store.with_file_name(part), aside.join(part)).unwrap();
    }
    let damage = "nonsense".repeat(2_000);
    std::fs::write(&store, &damage).unwrap();
    crib.becomes("degraded").await;
    let (_, reasons) = crib.ready().await;
    assert!(reasons.contains("toolcrib.db"), "{reasons}");
    serves_on(&crib).await;
    assert_eq!(
        std::fs::read_to_string(&store).unwrap(),
        damage,
        "it is left as it is"
    );

    // Without it there is none, and none is made: what was in it is not to be forgotten in silence.
    std::fs::remove_file(&store).unwrap();
    eventually("it is said to be gone", async || {
        crib.ready().await.1.contains("put it back")
    })
    .await;
    assert!(!store.exists());
    serves_on(&crib).await;
    for part in parts {
        std::fs::rename(aside.join(part), store.with_file_name(part)).unwrap();
    }
    crib.becomes("ready").await;
    serves_on(&crib).await;
    eventually("calls are on record again", async || {
        records(&crib).await >= 2
    })
    .await;
}

#[tokio::test]
async fn a_store_that_is_damaged_takes_nothing_and_is_news_when_it_is_mended() {
    let world = world();
    let store = data(&world).join("toolcrib.db");
    let crib = world.serve();
    serves_on(&crib).await;
    eventually("the call is on record", async || records(&crib).await == 1).await;
    eventually("all is in the file", async || {
        let journal = store.with_file_name("toolcrib.db-wal");
        journal.metadata().is_ok_and(|meta| meta.len() == 0)
    })
    .await;
    // In place, as a disk does it.
    let good = std::fs::read(&store).unwrap();
    let overwrite = |bytes: &[u8]| {
        use std::io::Write;
        let mut file = std::fs::File::options().write(true).open(&store).unwrap();
        file.write_all(bytes).unwrap();
    };
    overwrite(&vec![0xA5; good.len()]);
    crib.becomes("degraded").await;
    let (status, said) = crib
        .post(
            "/custom-tools",
            json!({"name": "new", "command": "/bin/true", "validate": false}),
        )
        .await;
    assert_eq!(
        (status, &said["error"]["code"]),
        (503, &json!("unavailable")),
        "{said}"
    );
    serves_on(&crib).await;
    overwrite(&good);
    crib.becomes("ready").await;
    let (status, said) = crib.get("/custom-tools").await;
    assert_eq!((status, &said["total"]), (200, &json!(0)), "{said}");
}

/// A copy of the file alone is the whole store once the crib has ended, and a good copy is taken up as it is.
#[tokio::test]
async fn a_copy_of_the_file_is_whole_when_the_crib_has_ended() {
    let world = world();
    let store = data(&world).join("toolcrib.db");
    let crib = world.serve();
    serves_on(&crib).await;
    eventually("the call is on record", async || records(&crib).await == 1).await;
    assert_eq!(crib.stop(), Some(0));
    let beside = |ending: &str| store.with_file_name(format!("toolcrib.db{ending}"));
    assert!(!beside("-wal").exists() && !beside("-shm").exists());
    let copy = world.root().join("copy.db");
    std::fs::copy(&store, &copy).unwrap();
    // A command leaves no journal, either.
    world.run(&["call", "--standalone", "say"]).exits(0);
    assert!(!beside("-wal").exists());
    // One that is killed does; the copy that is then put in place is not covered by it.
    let crib = world.serve();
    serves_on(&crib).await;
    eventually("the call is on record", async || records(&crib).await == 3).await;
    crib.kill();
    assert!(beside("-wal").metadata().unwrap().len() > 0);
    std::fs::copy(&copy, &store).unwrap();
    let crib = world.serve();
    assert_eq!(crib.ready().await.0, "ready");
    assert_eq!(records(&crib).await, 1);
}

#[tokio::test]
async fn required_records_refuse_calls_while_the_store_is_shut() {
    let world = world();
    let store = data(&world).join("toolcrib.db");
    std::fs::write(&store, "nonsense".repeat(1_000)).unwrap();
    let mut command = world.command(&SERVE);
    let crib = world.serve_by({
        command.env("TOOLCRIB_AUDIT", "required");
        command
    });
    assert!(
        crib.names().await.contains(&"say".to_owned()),
        "the catalog is served"
    );
    for tool in ["say", "nobody"] {
        let (status, said) = crib.call(tool, json!({})).await;
        assert_eq!(
            (status, &said["error"]["code"]),
            (503, &json!("unavailable")),
            "{said}"
        );
        let message = said["error"]["message"].as_str().unwrap();
        assert!(
            message.contains("damaged") && message.contains("audit"),
            "{message}"
        );
    }
    std::fs::remove_file(&store).unwrap();
    eventually("calls run again", async || {
        crib.call("say", json!({})).await.0 == 200
    })
    .await;
}
