//! Reading files beneath a folder: whatever a path or a link says, nothing outside is ever returned, and nothing hangs.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::plugin::{file, make_fifo, tool};
use crate::support::{TestCrib, World};
use serde_json::{Value, json};

const SECRET: &str = "what lies outside";

/// A secret outside the project, one file that may be read, and a tool that reads below `docs`.
fn world() -> World {
    let world = World::trusted();
    std::fs::write(world.root().join("secret"), SECRET).unwrap();
    world.write("docs/a.txt", "fine");
    world.write("private.txt", SECRET);
    world.write_tool(
        "read.json",
        file(&[reader("read-doc", json!({"basePath": "docs"}))]),
    );
    world
}

fn reader(name: &str, mut handler: Value) -> Value {
    handler["type"] = json!("file-read");
    tool(name, json!({"path": {"type": "string"}}), handler)
}

/// The two tools that read files, and the path of `docs/…` as each of them takes it.
fn both(path: &str) -> [(&'static str, String); 2] {
    [
        ("read-doc", path.to_owned()),
        ("file-reader", format!("docs/{path}")),
    ]
}

/// A call that must be refused so, soon, and without a word of the secret.
async fn refused(crib: &TestCrib, tool: &str, path: &str, status: u16, code: &str) -> String {
    let call = crib.refused(tool, json!({"path": path}), status, code);
    let said = tokio::time::timeout(Duration::from_secs(4), call)
        .await
        .unwrap_or_else(|_| panic!("{tool} hangs on {path}"));
    assert!(!said.contains(SECRET), "{said}");
    said
}

#[tokio::test]
async fn paths_that_lead_out_are_denied() {
    let world = world();
    let crib = world.serve();
    for (tool, path) in both("a.txt") {
        assert_eq!(crib.output(tool, json!({"path": path})).await, "fine");
    }
    let secret = world.root().join("secret");
    let absolute = secret.to_str().unwrap();
    let from_proc = format!("/proc/self/root{absolute}");
    let deep = format!("{}{absolute}", "../".repeat(40));
    let up = [
        "../secret",
        "docs/../../secret",
        "./../secret",
        "../project/../secret",
        "..//secret",
        "../secret/.",
        "..",
    ];
    for path in up.into_iter().chain([absolute, &from_proc, &deep]) {
        refused(&crib, "file-reader", path, 403, "denied").await;
    }
    for path in [
        "../private.txt",
        "../../secret",
        "./../private.txt",
        "..//private.txt",
        "../docs/a.txt",
    ] {
        refused(&crib, "read-doc", path, 403, "denied").await;
    }
    // An absolute path is no path of the folder, even where it leads into it.
    let inside = world.project().join("docs/a.txt");
    for path in [absolute, &from_proc, &deep, inside.to_str().unwrap()] {
        refused(&crib, "read-doc", path, 403, "denied").await;
    }
}

#[tokio::test]
async fn other_spellings_of_up_are_only_names() {
    let world = world();
    let crib = world.serve();
    for path in [
        "..%2fsecret",
        "%2e%2e/secret",
        "..\\secret",
        "..;/secret",
        ".../secret",
        "\u{ff0e}\u{ff0e}/secret",
        "~/secret",
    ] {
        for (tool, path) in both(path) {
            refused(&crib, tool, &path, 422, "invalid_arguments").await;
        }
    }
    for (tool, path) in both("a.txt\0.md") {
        let said = refused(&crib, tool, &path, 422, "invalid_arguments").await;
        assert!(said.contains("null byte"), "{said}");
    }
    refused(&crib, "read-doc", "", 422, "invalid_arguments").await;
    refused(&crib, "file-reader", "", 422, "invalid_arguments").await;
}

#[tokio::test]
async fn links_that_lead_out_are_denied_and_links_inside_are_followed() {
    let world = world();
    let root = world.root();
    let docs = world.project().join("docs");
    let link = |to: &Path, name: &str| symlink(to, docs.join(name)).unwrap();
    link(&root.join("secret"), "absolute");
    link(Path::new("../../secret"), "relative");
    link(&root, "folder");
    link(Path::new("relative"), "twice");
    link(
        &Path::new("/proc/self/root")
            .join(root.strip_prefix("/").unwrap())
            .join("secret"),
        "proc",
    );
    link(Path::new("/proc/self/root"), "proc-root");
    link(Path::new("/proc/self/cwd"), "proc-cwd");
    link(Path::new("/dev/zero"), "zero");
    link(Path::new("/dev/stdin"), "stdin");
    link(Path::new("a.txt"), "same");
    let crib = world.serve();
    let through_root = format!("proc-root{}/secret", root.display());
    let out = [
        "absolute",
        "relative",
        "folder/secret",
        "twice",
        "proc",
        &through_root,
        "proc-cwd/private.txt",
        "zero",
        "stdin",
        "folder/project/docs/a.txt",
    ];
    for path in out {
        for (tool, path) in both(path) {
            refused(&crib, tool, &path, 403, "denied").await;
        }
    }
    for (tool, path) in both("same") {
        assert_eq!(crib.output(tool, json!({"path": path})).await, "fine");
    }
}

#[tokio::test]
async fn a_link_swapped_under_the_call_never_gives_what_lies_outside() {
    let world = world();
    let docs = world.project().join("docs");
    std::fs::create_dir_all(docs.join("real")).unwrap();
    std::fs::write(docs.join("real/secret"), "fine").unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let (done, root) = (stop.clone(), world.root());
    let swapping = std::thread::spawn(move || {
        let draft = docs.join(".draft");
        let put = |name: &str| std::fs::rename(&draft, docs.join(name)).unwrap();
        while !done.load(Ordering::Relaxed) {
            std::fs::write(&draft, "fine").unwrap();
            put("file");
            symlink("real", &draft).unwrap();
            put("folder");
            symlink(root.join("secret"), &draft).unwrap();
            put("file");
            symlink(&root, &draft).unwrap();
            put("folder");
        }
    });
    let crib = world.serve();
    for round in 0..200 {
        let path = if round % 2 == 0 {
            "file"
        } else {
            "folder/secret"
        };
        for (tool, path) in both(path) {
            let (_, body) = crib.call(tool, json!({"path": path})).await;
            let text = body.to_string();
            assert!(!text.contains(SECRET), "{text}");
            let known = body["output"] == "fine"
                || body["error"]["code"] == "denied"
                || body["error"]["code"] == "invalid_arguments";
            assert!(known, "{text}");
        }
    }
    stop.store(true, Ordering::Relaxed);
    swapping.join().unwrap();
}

#[tokio::test]
async fn only_regular_files_are_read_and_nothing_waits() {
    let world = world();
    let docs = world.project().join("docs");
    make_fifo(&docs.join("pipe"));
    std::fs::create_dir(docs.join("folder")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(docs.join("socket")).unwrap();
    symlink("pipe", docs.join("to-pipe")).unwrap();
    symlink("loop", docs.join("loop")).unwrap();
    symlink("nowhere", docs.join("dangling")).unwrap();
    let crib = world.serve();
    let table = [
        ("pipe", "not a regular file"),
        ("to-pipe", "not a regular file"),
        ("folder", "is a folder"),
        ("socket", "can't be opened"),
        ("loop", "can't be opened"),
        ("dangling", "there is no file"),
        ("a.txt/b", "can't be opened"),
        ("none", "there is no file"),
    ];
    for (path, words) in table {
        for (tool, path) in both(path) {
            let said = refused(&crib, tool, &path, 422, "invalid_arguments").await;
            assert!(said.contains(words), "{tool} {path}: {said}");
        }
    }
}

#[tokio::test]
async fn a_file_over_the_limit_is_refused_not_cut() {
    let world = world();
    world.write("docs/ten", "0123456789");
    world.write("docs/eleven", "0123456789a");
    world.write("docs/megabyte", vec![b'x'; 1_024 * 1_024 + 1]);
    // A hole: large by its size, small on disk.
    std::fs::File::create(world.project().join("docs/hole"))
        .and_then(|hole| hole.set_len(1 << 40))
        .unwrap();
    world.write_tool(
        "small.json",
        file(&[reader("small", json!({"basePath": "docs", "maxSize": 10}))]),
    );
    let crib = world.serve();
    assert_eq!(
        crib.output("small", json!({"path": "ten"})).await,
        "0123456789"
    );
    for (tool, path, size) in [
        ("small", "eleven", "10 bytes"),
        ("small", "hole", "10 bytes"),
        ("read-doc", "megabyte", "1048576 bytes"),
        ("read-doc", "hole", "1048576 bytes"),
    ] {
        let said = refused(&crib, tool, path, 422, "invalid_arguments").await;
        assert!(
            said.contains("is larger than") && said.contains(size),
            "{said}"
        );
    }
}

#[tokio::test]
async fn what_is_not_text_is_attached() {
    let world = world();
    world.write("docs/b.png", [0x89, b'P', 0xFF]);
    let crib = world.serve();
    for (tool, path) in both("b.png") {
        let (status, outcome) = crib.call(tool, json!({"path": path})).await;
        assert_eq!(
            (status, &outcome["isError"]),
            (200, &json!(false)),
            "{outcome}"
        );
        let attachments = outcome["attachments"].as_array().unwrap();
        assert_eq!(attachments.len(), 1);
        assert_eq!(attachments[0]["data"], "iVD/", "{tool}");
        assert_eq!(attachments[0]["name"], "b.png");
        assert!(outcome["output"].as_str().unwrap().contains("3 bytes"));
    }
}

#[tokio::test]
async fn a_base_outside_the_project_waits_for_a_grant() {
    let world = world();
    symlink(world.root(), world.project().join("out")).unwrap();
    let root = world.root();
    let bases = [
        "..",
        "/",
        root.to_str().unwrap(),
        "out",
        "docs/../..",
        "/proc/self/root",
        "out/missing",
    ];
    let tools: Vec<Value> = bases
        .iter()
        .enumerate()
        .map(|(index, base)| reader(&format!("out{index}"), json!({"basePath": base})))
        .collect();
    world.write_tool("out.json", file(&tools));
    let crib = world.serve();
    for (index, base) in bases.iter().enumerate() {
        let name = format!("out{index}");
        assert_eq!(
            crib.status_of(&name).await.as_deref(),
            Some("denied"),
            "{base}"
        );
        let (_, shown) = crib.get(&format!("/tools/{name}")).await;
        let need = shown["needs"][0].as_str().unwrap();
        assert!(need.contains("(`--read /"), "{base}: {need}");
        refused(&crib, &name, "secret", 403, "denied").await;
    }
}

#[tokio::test]
async fn a_base_that_becomes_a_link_after_loading_is_denied() {
    let world = world();
    let crib = world.serve();
    assert_eq!(
        crib.output("read-doc", json!({"path": "a.txt"})).await,
        "fine"
    );
    let docs = world.project().join("docs");
    std::fs::rename(&docs, world.project().join("moved")).unwrap();
    symlink(world.root(), &docs).unwrap();
    for (tool, path) in both("secret") {
        refused(&crib, tool, &path, 403, "denied").await;
    }
}
