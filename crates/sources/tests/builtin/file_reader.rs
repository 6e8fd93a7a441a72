//! `file-reader`: what it reads, and everything it must not read.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use toolcrib_core::ErrorCode;

use crate::support::World;

#[tokio::test]
async fn files_and_ranges_are_read() {
    let world = World::new();
    world.write("src/a.txt", "one\ntwo\nthree\nfour");
    let whole = world
        .call("file-reader", json!({"path": "src/a.txt"}))
        .await
        .unwrap();
    assert_eq!(whole.output, "one\ntwo\nthree\nfour");
    let absolute = world.project.join("src/a.txt").display().to_string();
    assert_eq!(
        world
            .call("file-reader", json!({"path": absolute}))
            .await
            .unwrap()
            .output,
        whole.output
    );
    for (key, value) in [
        ("path", json!("src/a.txt")),
        ("bytes", json!(18)),
        ("startLine", json!(1)),
        ("endLine", json!(4)),
    ] {
        assert_eq!(whole.metadata[key], value, "{key}");
    }
    for (range, output) in [
        (json!({"startLine": 2, "endLine": 3}), "two\nthree\n"),
        (json!({"startLine": 3.0}), "three\nfour"),
        (json!({"endLine": 1}), "one\n"),
        (json!({"startLine": 4, "endLine": 400}), "four"),
    ] {
        let mut arguments = range.clone();
        arguments["path"] = json!("src/a.txt");
        assert_eq!(
            world.call("file-reader", arguments).await.unwrap().output,
            output,
            "{range}"
        );
    }
    let beyond = world
        .call("file-reader", json!({"path": "src/a.txt", "startLine": 9}))
        .await
        .unwrap();
    assert_eq!(
        (beyond.output.as_str(), &beyond.metadata["totalLines"]),
        ("", &json!(4))
    );
    for bad in [
        json!({"path": "src/a.txt", "startLine": 3, "endLine": 2}),
        json!({"path": "src/a.txt", "startLine": 0}),
        json!({"path": "src/a.txt", "line": 1}),
        json!({"path": "src/none.txt"}),
        json!({"path": "src"}),
        json!({"path": "src/a\0.txt"}),
        json!({}),
    ] {
        let error = world.call("file-reader", bad.clone()).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArguments, "{bad}: {error}");
    }
}

#[tokio::test]
async fn what_is_not_text_is_attached() {
    let world = World::new();
    world.write("pic.bin", b"\xff\xfe\x00");
    let outcome = world
        .call("file-reader", json!({"path": "pic.bin"}))
        .await
        .unwrap();
    assert_eq!(outcome.attachments[0].data.as_deref(), Some("//4A"));
    assert_eq!(outcome.attachments[0].name.as_deref(), Some("pic.bin"));
    let error = world
        .call("file-reader", json!({"path": "pic.bin", "startLine": 1}))
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidArguments);
    world.write("big.bin", vec![0xff; 5_000_001]);
    let error = world
        .call("file-reader", json!({"path": "big.bin"}))
        .await
        .unwrap_err();
    assert!(error.message.contains("larger"), "{error}");
}

#[tokio::test]
async fn large_files_are_read_in_ranges_and_kept_whole() {
    let world = World::new();
    let line = format!("{}ä\n", "x".repeat(997));
    world.write("large.txt", line.repeat(11_000));
    let whole = world
        .call("file-reader", json!({"path": "large.txt"}))
        .await
        .unwrap();
    assert!(whole.metadata["truncated"] == json!(true) && whole.output.len() <= 50_000);
    let end = whole.metadata["endLine"].as_u64().unwrap();
    let id = whole.metadata["outputId"].as_str().unwrap();
    let offset = end * 1_000;
    let last = world
        .call("read-output", json!({"id": id, "offset": offset}))
        .await
        .unwrap();
    assert!(
        last.output
            .contains(&format!("read on with startLine {}", end + 1)),
        "{}",
        last.output
    );
    let tail = world
        .call(
            "file-reader",
            json!({"path": "large.txt", "startLine": 11_000}),
        )
        .await
        .unwrap();
    assert_eq!(tail.output, line);
}

#[tokio::test]
async fn nothing_outside_is_read() {
    let world = World::new();
    let secret = world.root.join("secret");
    std::fs::write(&secret, "SECRET").unwrap();
    world.write("sub/in.txt", "inside");
    symlink(&secret, world.project.join("file-link")).unwrap();
    symlink("..", world.project.join("up")).unwrap();
    symlink("/proc/self/root", world.project.join("root")).unwrap();
    symlink("/dev/zero", world.project.join("zero")).unwrap();
    symlink("sub", world.project.join("fine")).unwrap();
    let absolute = secret.display().to_string();
    let through = format!("root{absolute}");
    let dressed_up = world.project.join("../secret").display().to_string();
    for path in [
        "../secret",
        "sub/../../secret",
        "up/secret",
        "file-link",
        "/etc/passwd",
        "root/etc/passwd",
        "zero",
        "..",
        "up/project/sub/in.txt",
        &absolute,
        &through,
        &dressed_up,
        "/proc/self/environ",
    ] {
        let error = world
            .call("file-reader", json!({"path": path}))
            .await
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::Denied, "{path}: {error}");
    }
    let inside = world
        .call("file-reader", json!({"path": "fine/in.txt"}))
        .await
        .unwrap();
    assert_eq!(inside.output, "inside");
}

#[tokio::test]
async fn a_pipe_and_a_socket_do_not_hang() {
    let world = World::new();
    world.run("mkfifo", &["pipe"]).await;
    let _socket = std::os::unix::net::UnixListener::bind(world.project.join("socket")).unwrap();
    for path in ["pipe", "socket"] {
        let error = world
            .call("file-reader", json!({"path": path}))
            .await
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArguments, "{path}: {error}");
    }
}

#[tokio::test]
async fn a_swapped_link_never_leads_out() {
    let world = World::new();
    std::fs::create_dir(world.root.join("outside")).unwrap();
    std::fs::write(world.root.join("outside/data"), "SECRET").unwrap();
    world.write("inside/data", "inside");
    symlink("inside", world.project.join("link")).unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let swapper = {
        let (done, project, outside) = (
            done.clone(),
            world.project.clone(),
            world.root.join("outside"),
        );
        std::thread::spawn(move || {
            while !done.load(Ordering::Relaxed) {
                for target in [outside.as_path(), Path::new("inside")] {
                    symlink(target, project.join("next")).unwrap();
                    std::fs::rename(project.join("next"), project.join("link")).unwrap();
                }
            }
        })
    };
    let mut refused = 0;
    for _ in 0..300 {
        match world
            .call("file-reader", json!({"path": "link/data"}))
            .await
        {
            Ok(outcome) => assert_eq!(outcome.output, "inside"),
            Err(error) => {
                assert!(!error.message.contains("SECRET"));
                refused += 1;
            }
        }
    }
    done.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
    // The thread leaves the link inside: what was refused was the race, not the link.
    let settled = world
        .call("file-reader", json!({"path": "link/data"}))
        .await
        .unwrap();
    assert_eq!(settled.output, "inside", "after {refused} refusals");
}
