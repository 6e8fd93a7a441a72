//! `read-file`: numbered lines, attachments, what is near, and everything it must not read.

use std::os::unix::fs::symlink;

use serde_json::json;
use toolcrib_core::{AttachmentKind, ErrorCode};

use crate::support::World;

#[tokio::test]
async fn lines_come_with_their_numbers() {
    let world = World::new();
    world.write("src/a.txt", "one\ntwo\r\nthree\nfour");
    for (arguments, output) in [
        (
            json!({}),
            "     1\tone\n     2\ttwo\n     3\tthree\n     4\tfour\n",
        ),
        (json!({"offset": 3}), "     3\tthree\n     4\tfour\n"),
        (
            json!({"offset": 2, "limit": 1}),
            "     2\ttwo\n[the file goes on: read on with offset 3]\n",
        ),
        (json!({"offset": 4, "limit": 10}), "     4\tfour\n"),
        (json!({"offset": 9}), "[`src/a.txt` ends at line 4]"),
    ] {
        let mut arguments = arguments;
        arguments["path"] = json!("src/a.txt");
        let outcome = world.call("read-file", arguments.clone()).await.unwrap();
        assert_eq!(outcome.output, output, "{arguments}");
        assert_eq!(outcome.metadata["path"], json!("src/a.txt"));
    }
    world.write("empty", "");
    let empty = world
        .call("read-file", json!({"path": "empty"}))
        .await
        .unwrap();
    assert_eq!(
        (empty.output.as_str(), &empty.metadata["totalLines"]),
        ("", &json!(0))
    );
    for bad in [
        json!({}),
        json!({"path": ""}),
        json!({"path": "src/a.txt", "offset": 0}),
        json!({"path": "src/a.txt", "limit": 10_001}),
        json!({"path": "a\0"}),
    ] {
        let error = world.call("read-file", bad.clone()).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArguments, "{bad}: {error}");
    }
}

#[tokio::test]
async fn what_is_no_text_is_attached() {
    let world = World::new();
    world.write("a.png", b"\x89PNG\r\n\x1a\n\x00");
    world.write("no-image.png", b"\x00plain");
    world.write("latin1.txt", b"caf\xe9\ncaf\xe9\n");
    for (path, kind, mime) in [
        ("a.png", AttachmentKind::Image, "image/png"),
        (
            "latin1.txt",
            AttachmentKind::File,
            "application/octet-stream",
        ),
    ] {
        let outcome = world
            .call("read-file", json!({"path": path}))
            .await
            .unwrap();
        let attached = &outcome.attachments[0];
        assert_eq!(
            (attached.kind, attached.mime_type.as_str()),
            (kind, mime),
            "{path}"
        );
        let error = world
            .call("read-file", json!({"path": path, "offset": 2}))
            .await
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArguments, "{path}");
    }
    let outcome = world
        .call("read-file", json!({"path": "no-image.png"}))
        .await
        .unwrap();
    assert_eq!(outcome.attachments.len(), 1);
    world.write("big.bin", vec![0; 5_000_001]);
    let error = world
        .call("read-file", json!({"path": "big.bin"}))
        .await
        .unwrap_err();
    assert!(error.message.contains("larger"), "{error}");
}

#[tokio::test]
async fn a_gigabyte_costs_no_memory_and_no_time() {
    let world = World::new();
    let sparse = std::fs::File::create(world.project.join("sparse")).unwrap();
    sparse.set_len(1 << 30).unwrap();
    let error = world
        .call("read-file", json!({"path": "sparse"}))
        .await
        .unwrap_err();
    assert!(error.message.contains("larger"), "{error}");
    // A text that goes on in zeros: its first lines are read, and no more than those.
    world.write("long", "line\n".repeat(3_000));
    let long = std::fs::File::options()
        .append(true)
        .open(world.project.join("long"))
        .unwrap();
    long.set_len(1 << 30).unwrap();
    let outcome = world
        .call("read-file", json!({"path": "long", "limit": 2}))
        .await
        .unwrap();
    assert!(
        outcome.output.starts_with("     1\tline\n     2\tline\n"),
        "{}",
        outcome.output
    );
    assert_eq!(outcome.metadata["bytes"], json!(1 << 30));
}

#[tokio::test]
async fn who_misses_a_file_is_told_what_is_near() {
    let world = World::new();
    world.write("src/main.rs", "");
    world.write("src/other.rs", "");
    for (path, near) in [
        ("src/mian.rs", "did you mean `src/main.rs`"),
        ("src/zzzzz", "`src` holds main.rs, other.rs"),
        ("src", "`src` holds main.rs, other.rs"),
        ("gone/deeper/x", "the project holds src/"),
        (".", "the project holds src/"),
    ] {
        let error = world
            .call("read-file", json!({"path": path}))
            .await
            .unwrap_err();
        let hint = error.hint.unwrap().to_string();
        assert!(
            error.code == ErrorCode::InvalidArguments && hint.contains(near),
            "{path}: {hint}"
        );
    }
}

#[tokio::test]
async fn nothing_outside_is_read_or_told() {
    let world = World::new();
    std::fs::write(world.root.join("secret"), "SECRET").unwrap();
    std::fs::create_dir(world.root.join("own")).unwrap();
    symlink("../secret", world.project.join("file-link")).unwrap();
    symlink("..", world.project.join("up")).unwrap();
    symlink("/proc/self/environ", world.project.join("environ")).unwrap();
    symlink("/dev/zero", world.project.join("zero")).unwrap();
    for path in [
        "../secret",
        "file-link",
        "up/secret",
        "/etc/passwd",
        "environ",
        "zero",
        "up/none",
        "../none",
        "..",
    ] {
        let error = world
            .call("read-file", json!({"path": path}))
            .await
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::Denied, "{path}: {error}");
        let hint = error.hint.map(|hint| hint.to_string()).unwrap_or_default();
        assert!(
            !hint.contains("secret") && !hint.contains("own"),
            "{path}: {hint}"
        );
    }
    world.run("mkfifo", &["pipe"]).await;
    let error = world
        .call("read-file", json!({"path": "pipe"}))
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidArguments);
}
