//! `search-code`: what it finds, what it leaves out, and files that are made to hurt.

use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use toolcrib_core::ErrorCode;

use crate::support::World;

async fn project() -> World {
    let world = World::new();
    world.git(&["init", "--quiet"]).await;
    world.write(".gitignore", "ignored/\n*.log\n");
    world.write("src/a.rs", "fn Needle() {}\nlet x = needle;\n");
    world.write("src/b.py", "# a.needle\n");
    world.write("ignored/c.rs", "needle\n");
    world.write("d.log", "needle\n");
    world.write(".hidden", "needle\n");
    world
}

#[tokio::test]
async fn lines_are_found_in_the_order_of_their_files() {
    let world = project().await;
    let (a, b) = (
        "src/a.rs:1: fn Needle() {}\nsrc/a.rs:2: let x = needle;",
        "src/b.py:1: # a.needle",
    );
    for (arguments, output) in [
        (json!({"query": "needle"}), format!("{a}\n{b}")),
        (
            json!({"query": "needle", "caseSensitive": true}),
            format!("src/a.rs:2: let x = needle;\n{b}"),
        ),
        (json!({"query": "needle", "glob": "*.py"}), b.to_owned()),
        (json!({"query": "needle", "glob": "!*.py"}), a.to_owned()),
        (
            json!({"query": "needle", "path": "src"}),
            format!("{a}\n{b}"),
        ),
        (json!({"query": "needle", "path": "src/b.py"}), b.to_owned()),
        (json!({"query": "a.needle"}), b.to_owned()),
        (
            json!({"query": r"n\w+e\(", "regex": true}),
            "src/a.rs:1: fn Needle() {}".to_owned(),
        ),
        (
            json!({"query": "needle", "limit": 1}),
            "src/a.rs:1: fn Needle() {}\n\n... and 2 more matches".to_owned(),
        ),
        (
            json!({"query": "haystack"}),
            "No line holds \"haystack\"".to_owned(),
        ),
        (
            json!({"query": "n\\w"}),
            "No line holds \"n\\w\"".to_owned(),
        ),
    ] {
        let outcome = world.call("search-code", arguments.clone()).await.unwrap();
        assert_eq!(outcome.output, output, "{arguments}");
    }
    let outcome = world
        .call("search-code", json!({"query": "needle", "limit": 2}))
        .await
        .unwrap();
    assert_eq!(
        (
            &outcome.metadata["totalMatches"],
            &outcome.metadata["shown"]
        ),
        (&json!(3), &json!(2))
    );
    for bad in [
        json!({"query": ""}),
        json!({"query": "(", "regex": true}),
        json!({"query": r"(\w{1000}){1000}", "regex": true}),
        json!({"query": "a\nb"}),
        json!({"query": "a", "glob": "{a"}),
        json!({"query": "a", "limit": 101}),
        json!({"query": "a", "path": "none"}),
    ] {
        let error = world.call("search-code", bad.clone()).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArguments, "{bad}: {error}");
    }
}

#[tokio::test]
async fn many_matches_begin_with_their_number() {
    let world = World::new();
    for n in 0..30 {
        world.write(&format!("f{n:02}"), "hit\nmiss\nhit\n");
    }
    let outcome = world
        .call("search-code", json!({"query": "hit"}))
        .await
        .unwrap();
    assert!(
        outcome
            .output
            .starts_with("Found 60 matches for \"hit\". The first 10:\n\nf00:1: hit\nf00:3: hit\n"),
        "{}",
        outcome.output
    );
    assert!(
        outcome
            .output
            .ends_with("f04:3: hit\n\n... and 50 more matches"),
        "{}",
        outcome.output
    );
    let all = world
        .call("search-code", json!({"query": "hit", "limit": 100}))
        .await
        .unwrap();
    assert_eq!(all.metadata["shown"], json!(60));
}

#[tokio::test]
async fn nothing_outside_is_found() {
    let world = project().await;
    let outside = world.root.join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("a"), "SECRET\n").unwrap();
    symlink(&outside, world.project.join("out")).unwrap();
    symlink(outside.join("a"), world.project.join("file")).unwrap();
    let outcome = world
        .call("search-code", json!({"query": "SECRET"}))
        .await
        .unwrap();
    assert_eq!(outcome.metadata["totalMatches"], json!(0));
    for path in [
        "out",
        "file",
        "..",
        "../outside",
        "/etc",
        "out/none",
        "../none",
    ] {
        let error = world
            .call("search-code", json!({"query": "SECRET", "path": path}))
            .await
            .unwrap_err();
        assert!(
            [ErrorCode::Denied, ErrorCode::InvalidArguments].contains(&error.code),
            "{path}"
        );
        assert!(
            !format!("{error} {:?}", error.hint).contains("SECRET"),
            "{path}: {error}"
        );
    }
    // The crib's own folders are not read, wherever they are.
    let own = World::with(|project| project.parent().map(Into::into), "/usr/bin:/bin");
    std::fs::create_dir(own.root.join("own")).unwrap();
    std::fs::write(own.root.join("own/tokens"), "SECRET\n").unwrap();
    for arguments in [
        json!({"query": "SECRET"}),
        json!({"query": "SECRET", "path": "own/tokens"}),
    ] {
        let outcome = own.call("search-code", arguments.clone()).await;
        assert!(
            outcome.is_err() || outcome.unwrap().metadata["totalMatches"] == json!(0),
            "{arguments}"
        );
    }
}

#[tokio::test]
async fn a_folder_that_is_swapped_leads_nowhere() {
    let world = World::new();
    let outside = world.root.join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("data"), "needle SECRET\n").unwrap();
    world.write("inside/data", "needle fine\n");
    let done = Arc::new(AtomicBool::new(false));
    let swapper = {
        let (done, project, outside) = (done.clone(), world.project.clone(), outside.clone());
        std::thread::spawn(move || {
            let (dir, was) = (project.join("inside"), project.join("was"));
            while !done.load(Ordering::Relaxed) {
                std::fs::rename(&dir, &was).unwrap();
                symlink(&outside, &dir).unwrap();
                std::fs::remove_file(&dir).unwrap();
                std::fs::rename(&was, &dir).unwrap();
            }
        })
    };
    for _ in 0..200 {
        if let Ok(outcome) = world.call("search-code", json!({"query": "needle"})).await {
            assert!(!outcome.output.contains("SECRET"), "{}", outcome.output);
        }
    }
    done.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
}

#[tokio::test]
async fn hostile_files_hold_up_nothing() {
    let world = World::new();
    world.write("good", "needle\n");
    world.write("binary", b"needle\x00needle\n");
    world.write("latin1", b"needle \xe9\x1b[31m\n");
    world.write(
        "wide",
        format!("{}needle{}\n", "x".repeat(5_000), "y".repeat(5_000)),
    );
    let sparse = std::fs::File::create(world.project.join("sparse")).unwrap();
    sparse.set_len(1 << 30).unwrap();
    world.run("mkfifo", &["pipe"]).await;
    std::fs::create_dir(world.project.join("waits")).unwrap();
    world.run("mkfifo", &["waits/.gitignore"]).await;
    world.write("waits/inside", "needle\n");
    let outcome = world
        .call("search-code", json!({"query": "needle"}))
        .await
        .unwrap();
    let lines: Vec<&str> = outcome.output.lines().collect();
    assert_eq!(lines[0], "good:1: needle");
    assert_eq!(lines[1], "latin1:1: needle \u{fffd}\u{fffd}[31m");
    assert!(
        lines[2].starts_with("wide:1: …x") && lines[2].contains("needle") && lines[2].len() < 300,
        "{}",
        lines[2]
    );
    assert_eq!(
        outcome.metadata["totalMatches"],
        json!(3),
        "{}",
        outcome.output
    );
    let error = world
        .call("search-code", json!({"query": "needle", "path": "waits"}))
        .await
        .unwrap();
    assert!(
        error.output.contains("could not be read"),
        "{}",
        error.output
    );
}
