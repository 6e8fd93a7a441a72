//! What in a tools folder is an executable tool, and what trust has to do with it.

use std::path::Path;

use serde_json::json;
use toolcrib_core::{Access, ErrorCode, ErrorType, SourceKind};
use toolcrib_sources::Configuration;

use crate::program::python;
use crate::world::World;

#[tokio::test]
async fn files_and_folders_become_tools() {
    let world = World::new();
    world.python("plain", "");
    world.write("with-suffix.sh", python("suffixed", ""));
    world.write("folder-a/tool.anything", python("in-folder", ""));
    world.folder("folder-b", json!({"name": "by-manifest"}), "");
    // An ELF binary: the interpreter itself, which is told by a folder's arguments what to do.
    let binary = std::fs::read("/bin/sh").unwrap();
    assert!(binary.starts_with(b"\x7fELF"));
    world.write("folder-c/program.bin", binary);
    world.write("folder-c/work.py", python("from-elf", ""));
    let through = json!({"name": "from-elf", "command": "./program.bin", "args": ["-c", "exec python3 ./work.py"]});
    world.manifest("folder-c", through);
    for passed_over in [
        "_hidden",
        ".dot",
        "node_modules/tool",
        "__pycache__/tool",
        "notes/readme",
    ] {
        world.write(passed_over, python("never", "mark('never')"));
    }
    world.write("text-with-run-bit", "no program");
    world.open().await;
    assert_eq!(world.crib.owners_view().problems(), []);
    assert_eq!(
        world.names(),
        ["by-manifest", "from-elf", "in-folder", "plain", "suffixed"]
    );
    for name in world.names() {
        assert_eq!(
            world.crib.owners_view().get(&name).unwrap().source,
            SourceKind::Executable
        );
        assert_eq!(world.output(&name, json!({})).await, "done", "{name}");
    }
    assert!(!world.sign("never").exists());
}

/// An ELF file with the run bit is asked like any other; one that answers nothing is a problem of its own.
#[tokio::test]
async fn a_binary_that_knows_no_protocol_is_a_problem() {
    let world = World::new();
    world.write("binary", std::fs::read("/bin/true").unwrap());
    world.open().await;
    let problem = world.problem();
    assert_eq!(problem.error_type, ErrorType::Io);
    assert!(problem.message.contains("exit code 0"), "{problem:?}");
}

#[tokio::test]
async fn a_folder_with_two_programs_and_no_manifest_is_passed_over() {
    let world = World::new();
    world.write("two/tool.a", python("a", "mark('started')"));
    world.write("two/tool.b", python("b", "mark('started')"));
    world.open().await;
    assert_eq!(world.crib.owners_view().problems(), []);
    assert!(world.names().is_empty());
    assert!(!world.sign("started").exists());
    // With one of them gone it is a tool.
    std::fs::remove_file(world.tools().join("two/tool.b")).unwrap();
    world.reload().await;
    assert_eq!(world.names(), ["a"]);
}

/// What is not looked at would be part of the tool all the same, and could change without anybody's yes.
#[tokio::test]
async fn a_folder_that_holds_too_much_is_a_problem_and_no_tool() {
    let sparse = |path: &Path, megabytes: u64| {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let file = std::fs::File::create(path).unwrap();
        file.set_len(megabytes << 20).unwrap();
    };
    type Fill<'a> = &'a dyn Fn(&Path);
    let cases: [(&str, Fill); 3] = [
        ("64 MB in small files", &|folder| {
            (0..9).for_each(|index| sparse(&folder.join(format!("data/{index}")), 8));
        }),
        ("2000 files", &|folder| {
            (0..2_001).for_each(|index| sparse(&folder.join(format!("data/{index}")), 0));
        }),
        ("16 folders in each other", &|folder| {
            sparse(&folder.join("a/".repeat(17)).join("file"), 0);
        }),
    ];
    for (what, fill) in cases {
        let world = World::new();
        world.folder("large", json!({}), "mark('started')");
        world.folder("neighbour", json!({}), "");
        // One large file is known by its size and times, however large it is.
        sparse(&world.tools().join("neighbour/model.bin"), 500);
        fill(&world.tools().join("large"));
        world.open().await;
        let problem = world.problem();
        assert!(problem.message.contains(what), "{what}: {problem:?}");
        assert!(
            problem.hint.to_string().contains("keep in the folder"),
            "{problem:?}"
        );
        assert_eq!(world.names(), ["neighbour"], "{what}");
        assert!(!world.sign("started").exists(), "{what}");
        // With less in it, it is a tool.
        for below in ["data", "a"] {
            let _ = std::fs::remove_dir_all(world.tools().join("large").join(below));
        }
        world.reload().await;
        assert_eq!(world.output("large", json!({})).await, "done", "{what}");
        world.end().await;
    }
}

/// What was missing may have come meanwhile: a reload asks again, although the file is the same.
#[tokio::test]
async fn a_program_that_could_not_be_asked_is_asked_again() {
    let world = World::new();
    world.python("late", "if not marked('ready'): sys.exit('not yet')");
    world.python("fine", "mark('asked')");
    world.open().await;
    assert!(world.problem().message.contains("not yet"));
    world.reload().await;
    assert!(world.problem().message.contains("not yet"));
    world.give("ready");
    world.reload().await;
    assert_eq!(world.crib.owners_view().problems(), []);
    assert_eq!(world.output("late", json!({})).await, "done");
    assert_eq!(
        world.signs("asked").len(),
        1,
        "who has answered is not asked again"
    );
}

#[tokio::test]
async fn what_the_manifest_leaves_out_the_program_fills_in() {
    let world = World::new();
    let said = "HELLO.update(description='what the program says', tags=['a'], annotations={'readOnlyHint': True})";
    let fields =
        json!({"name": null, "description": "what the manifest says", "inputSchema": null});
    world.folder("tool", fields, said);
    world.open().await;
    let view = world.crib.owners_view();
    let tool = view.get("tool").unwrap();
    assert_eq!(tool.spec.description, "what the manifest says");
    assert_eq!(tool.spec.tags, ["a"]);
    assert!(tool.spec.annotations.repeatable());
}

#[tokio::test]
async fn a_broken_manifest_keeps_its_last_good_version() {
    for fields in [json!({}), json!({"inputSchema": null})] {
        let world = World::new();
        world.folder("tool", fields.clone(), "");
        world.open().await;
        assert_eq!(world.output("tool", json!({})).await, "done");
        for broken in [
            "{\"name\": \"tool\",",
            "[]",
            "{\"name\": \"tool\", \"command\": \"\"}",
        ] {
            world.write("tool/tool.json", broken);
            world.reload().await;
            assert_eq!(world.names(), ["tool"], "{fields} {broken}");
            let problems = world.problems();
            let stale = world.crib.owners_view().get("tool").unwrap().stale;
            assert!(stale, "{fields} {broken} {problems:?}");
            assert_eq!(problems.len(), 1, "{fields} {broken} {problems:?}");
            assert_eq!(world.output("tool", json!({})).await, "done", "{broken}");
        }
        world.manifest("tool", fields.clone());
        world.reload().await;
        assert_eq!(world.crib.owners_view().problems(), []);
        assert!(!world.crib.owners_view().get("tool").unwrap().stale);
        std::fs::remove_dir_all(world.tools().join("tool")).unwrap();
        world.reload().await;
        assert!(world.names().is_empty());
        world.nothing_runs().await;
    }
}

#[tokio::test]
async fn nothing_of_an_untrusted_project_is_started() {
    let world = World::new();
    let canary = "mark('canary')";
    world.python("file", canary);
    world.write("bare/tool", python("bare", canary));
    world.folder("told", json!({"description": "What its text says"}), canary);
    let project = world.root.join("project");
    world.open_as(Access::untrusted(project), &[]).await;
    assert_eq!(world.names(), ["bare", "file", "told"]);
    let view = world.crib.owners_view();
    assert_eq!(
        view.get("told").unwrap().spec.description,
        "What its text says"
    );
    for tool in ["bare", "file", "told"] {
        assert!(matches!(
            view.get(tool).unwrap().access,
            Access::Untrusted { .. }
        ));
        assert!(
            view.get(tool).unwrap().run.check().is_none(),
            "nobody is asked"
        );
        assert_eq!(world.refused(tool, json!({})).await.code, ErrorCode::Denied);
    }
    world.python("later", canary);
    world.reload().await;
    assert!(world.processes().is_empty() && !world.sign("canary").exists());
    assert!(
        world
            .events()
            .iter()
            .all(|event| !event.starts_with("worker."))
    );
}

#[tokio::test]
async fn one_trusted_entry_runs_and_its_neighbours_do_not() {
    let world = World::new();
    world.python("mine", "");
    world.folder("mine-too", json!({}), "");
    world.python("theirs", "mark('canary')");
    let project = world.root.join("project");
    let access = Access::untrusted(project);
    world.open_as(access.clone(), &["mine", "mine-too"]).await;
    assert_eq!(world.output("mine", json!({})).await, "done");
    assert_eq!(world.output("mine-too", json!({})).await, "done");
    assert_eq!(
        world.refused("theirs", json!({})).await.code,
        ErrorCode::Denied
    );
    // Trust follows edits, and ends when it is withdrawn: then the workers go too.
    world.python("mine", "def execute(id, params): answer(id, 'edited')");
    world.reload().await;
    assert_eq!(world.output("mine", json!({})).await, "edited");
    let withdrawn = Configuration {
        folders: vec![world.shelf(access, &[])],
        ..Configuration::default()
    };
    world.sources().configure(withdrawn).await;
    assert_eq!(
        world.refused("mine", json!({})).await.code,
        ErrorCode::Denied
    );
    world.nothing_runs().await;
    assert!(!world.sign("canary").exists());
}
