//! Tests of permits: what is declared, what gives what, and what is missing.

use serde_json::{Value, json};

use super::*;

fn declared(permissions: Value, sandbox: Value) -> Permit {
    let permissions = serde_json::from_value(permissions).unwrap();
    let sandbox = serde_json::from_value(sandbox).unwrap();
    Permit::declared(&permissions, &sandbox)
}

fn permit(value: Value) -> Permit {
    serde_json::from_value(value).unwrap()
}

#[test]
fn the_two_blocks_become_one() {
    let table = [
        (json!({}), json!({}), json!({})),
        (json!({"canReadFiles": true}), json!({}), json!({})),
        (
            json!({}),
            json!({"allowedPaths": ["/data/./x/", "/data"]}),
            json!({"read": ["/data"]}),
        ),
        (
            json!({"canReadFiles": true}),
            json!({"allowedPaths": ["src/../src"]}),
            json!({"read": ["src"]}),
        ),
        (
            json!({"canWriteFiles": true}),
            json!({}),
            json!({"write": ["."]}),
        ),
        (
            json!({"canWriteFiles": true}),
            json!({"allowedPaths": ["out", "/tmp/x"]}),
            json!({"write": ["/tmp/x", "out"]}),
        ),
        (
            json!({"canNetwork": true}),
            json!({}),
            json!({"network": "open"}),
        ),
        (
            json!({"canNetwork": true}),
            json!({"allowNetwork": true, "allowedHosts": ["B.test", "a.test."]}),
            json!({"network": {"hosts": ["a.test", "b.test"]}}),
        ),
        (
            json!({"canNetwork": true}),
            json!({"allowNetwork": false, "allowedHosts": ["a.test"]}),
            json!({}),
        ),
        // The lesser of the two: walls alone ask for no network.
        (
            json!({}),
            json!({"allowNetwork": true, "allowedHosts": ["a.test"]}),
            json!({}),
        ),
        (
            json!({"required": ["exec", "write", "network", "read"], "allowedEnvironmentVars": ["B", "A", "B"]}),
            json!({}),
            json!({"write": ["."], "network": "open", "exec": true, "env": ["A", "B"]}),
        ),
    ];
    for (permissions, sandbox, wanted) in table {
        let said = format!("{permissions} {sandbox}");
        assert_eq!(declared(permissions, sandbox), permit(wanted), "{said}");
    }
}

#[test]
fn paths_give_what_lies_in_them() {
    let table = [
        ("/a", "/a", true, true),
        ("/a", "/a/b/c", true, true),
        ("/a/", "/a/./b", true, true),
        ("/a", "/ab", false, false),
        ("/a", "/a/../b", false, false),
        ("/a/b", "/a", false, false),
        ("/", "/etc", true, true),
        (".", "src", true, true),
        (".", ".", true, true),
        (".", "../x", false, false),
        (".", "/a", false, false),
        ("src", "src/a", true, true),
        ("..", "../x", true, true),
        ("..", "../../x", false, false),
        ("/a", "a", false, false),
        // What is guarded is read with the rest, and written only by its own name.
        ("/a", "/a/.git", true, false),
        ("/a", "/a/.git/hooks/x", true, false),
        ("/a", "/a/deep/.toolcrib/tools", true, false),
        (".", ".toolcrib", true, false),
        ("/a/.git", "/a/.git", true, true),
        ("/a/.git", "/a/.git/hooks", true, true),
        ("/a/.git", "/a/.git/x/.toolcrib", true, false),
        ("/a", "/a/.github", true, true),
        ("/a", "/a/.mcp.json", true, false),
        ("/a", "/a/b/.vscode/tasks.json", true, false),
        ("/a/.claude", "/a/.claude/settings.json", true, true),
    ];
    for (place, path, read, write) in table {
        assert_eq!(paths::may_read(place, path), read, "{place} reads {path}");
        assert_eq!(
            paths::may_write(place, path),
            write,
            "{place} writes {path}"
        );
    }
}

#[test]
fn relative_paths_start_at_the_project() {
    let asked = permit(json!({"read": ["../x", "/y"], "write": [".", "out"]}));
    let there = permit(json!({"read": ["/p/x", "/y"], "write": ["/p/a"]}));
    assert_eq!(asked.at(Some(Path::new("/p/a"))), there);
    // Without a project they lead nowhere.
    assert_eq!(asked.at(None), permit(json!({"read": ["/y"]})));
}

#[test]
fn hosts_give_hosts() {
    let table = [
        ("a.test", "A.test.", true),
        ("a.test", "b.a.test", false),
        ("a.test", "a.test:80", true),
        ("a.test:80", "a.test:80", true),
        ("a.test:80", "a.test", false),
        ("a.test:80", "a.test:81", false),
        ("*.test", "a.test", true),
        ("*.test", "a.b.test:1", true),
        ("*.test", "*.b.test", true),
        ("*.test", "*.test", true),
        ("*.test", "test", false),
        ("*.b.test", "*.test", false),
        ("test", "*.test", false),
        ("*.test", "atest", false),
        ("[::1]", "[::1]:80", true),
        ("[::1]:80", "[::1]", false),
        ("127.0.0.1:1", "127.0.0.1:1", true),
    ];
    for (given, wanted, gives) in table {
        assert_eq!(hosts::gives(given, wanted), gives, "{given} {wanted}");
    }
    let list = ["B.test", "*.test:80", "a.test:80", "a.test.", "b.test"].map(str::to_owned);
    assert_eq!(hosts::tidy(&list), ["*.test:80", "a.test", "b.test"]);
}

#[test]
fn what_is_missing_is_told_with_the_flag_that_helps() {
    let asked = permit(json!({
        "read": ["/r", "/w/r"], "write": ["/it's", "/w", "/w/.git"],
        "network": {"hosts": ["a.test", "b.test:80"]}, "exec": true, "env": ["A", "B"],
    }));
    assert_eq!(asked.covers(&asked), Ok(()));
    assert_eq!(asked.covers(&Permit::default()), Ok(()));
    let given = permit(json!({
        "write": ["/w"], "network": {"hosts": ["*.test:80"]}, "env": ["B"],
    }));
    let Missing(missing) = given.covers(&asked).unwrap_err();
    let flags = [
        "--read /r",
        r"--write '/it'\''s'",
        "--write /w/.git",
        "--net a.test",
        "--exec",
        "--env A",
    ];
    assert_eq!(missing.flags(), flags);
    let needs = given.covers(&asked).unwrap_err().needs();
    assert_eq!(needs[0], "to read `/r` (`--read /r`)");
    assert_eq!(needs[4], "to run further programs (`--exec`)");
    assert_eq!(given.join(&missing).covers(&asked), Ok(()));
    let open = permit(json!({"network": "open"}));
    assert!(given.covers(&open).is_err());
    assert_eq!(
        open.covers(&permit(json!({"network": {"hosts": ["x"]}}))),
        Ok(())
    );
    assert_eq!(
        permit(json!({"write": ["."]})).words(),
        ["to write the project"]
    );
}

#[test]
fn the_lesser_of_two_is_what_both_give() {
    let a = permit(json!({
        "read": ["/r"], "write": ["/w", "/x/y"], "network": {"hosts": ["*.test", "b.org"]}, "exec": true,
        "env": ["A", "B"],
    }));
    let b = permit(json!({
        "read": ["/r/deep", "/w/in"], "write": ["/x", "/r/other"], "network": {"hosts": ["a.test:1", "org"]},
        "env": ["B"],
    }));
    let lesser = permit(json!({
        "read": ["/r/deep", "/r/other", "/w/in"], "write": ["/x/y"],
        "network": {"hosts": ["a.test:1"]}, "env": ["B"],
    }));
    assert_eq!(a.within(&b), lesser);
    assert_eq!(b.within(&a), lesser);
    assert_eq!(a.within(&a), a);
    assert!(a.within(&Permit::default()).is_empty());
    let open = permit(json!({"network": "open"}));
    assert_eq!(a.within(&open).network, a.network);
}

#[test]
fn joined_permits_give_all_that_each_gave() {
    let a = permit(json!({"read": ["/r/x"], "write": ["/w"], "network": {"hosts": ["b.test"]}}));
    let b = permit(
        json!({"read": ["/r", "/w/z", "/w/.git"], "network": {"hosts": ["a.test"]}, "exec": true}),
    );
    let both = permit(json!({
        "read": ["/r", "/w/.git"], "write": ["/w"], "network": {"hosts": ["a.test", "b.test"]}, "exec": true,
    }));
    assert_eq!(a.join(&b), both);
    assert_eq!(b.join(&a), both);
    for one in [&a, &b] {
        assert_eq!(both.covers(one), Ok(()));
    }
    let open = permit(json!({"network": "open"}));
    assert_eq!(a.join(&open).network, Network::Open);
    assert_eq!(a.join(&Permit::default()), a);
}

#[test]
fn secrets_are_granted_by_reference() {
    let asked = Permit {
        env: vec!["secret://api.key".to_owned(), "LANG_X".to_owned()],
        ..Permit::default()
    };
    let missing = Permit::default().covers(&asked).unwrap_err();
    let told = missing.needs().join("; ");
    assert!(
        told.contains("to be given the secret `api.key` (`--env secret://api.key`)"),
        "{told}"
    );
    assert!(told.contains("variable `LANG_X`"), "{told}");
    assert_eq!(super::secret_name("secret://a-b_c.9"), Some("a-b_c.9"));
    for none in [
        "secret://",
        "secret://a b",
        "secret://a/b",
        "API",
        "x secret://a",
    ] {
        assert_eq!(super::secret_name(none), None, "{none}");
    }
}

#[test]
fn memory_and_processors_are_asked_for_above_the_default() {
    let asks = |sandbox: Value| declared(json!({}), sandbox);
    for lower in [
        json!({"maxMemoryMB": 512, "maxCpuPercent": 100}),
        json!({"maxMemoryMB": 16, "maxCpuPercent": 10}),
    ] {
        assert!(asks(lower.clone()).is_empty(), "{lower}");
    }
    let asked = asks(json!({"maxMemoryMB": 2048, "maxCpuPercent": 200}));
    assert_eq!(asked, permit(json!({"memoryMb": 2048, "cpuPercent": 200})));
    let needs = Permit::default().covers(&asked).unwrap_err().needs();
    assert_eq!(
        needs,
        [
            "to use 2048 MB of memory (`--memory 2048`)",
            "to use 2 processors (200 %) (`--cpu 200`)",
        ]
    );
    // Less than is asked for is not enough, and what is missing is all of it.
    let less = permit(json!({"memoryMb": 1024, "cpuPercent": 150}));
    assert_eq!(*less.covers(&asked).unwrap_err().0, asked);
    assert_eq!(asked.covers(&less), Ok(()));
    assert_eq!(less.join(&asked), asked);
    assert_eq!(less.within(&asked), less);
    assert!(asked.within(&Permit::default()).is_empty());
    assert!(
        permit(json!({"memoryMb": 512, "cpuPercent": 1}))
            .tidy()
            .is_empty()
    );
    assert_eq!(limits::processors(150), "1.5 processors (150 %)");
    assert_eq!(limits::processors(101), "1.01 processors (101 %)");
}

#[test]
fn installing_is_a_permission_of_its_own() {
    let install = permit(json!({"install": true}));
    let other = permit(json!({"exec": true, "network": "open"}));
    let missing = other.covers(&install).unwrap_err();
    assert_eq!(missing.needs(), ["to install packages (`--install`)"]);
    assert_eq!(other.join(&install).covers(&install), Ok(()));
    assert!(other.within(&install).is_empty());
    assert_eq!(install.clone().tidy(), install);
    assert!(!install.is_empty());
}

#[test]
fn a_tool_has_the_lesser_of_what_it_declares_and_what_it_was_granted() {
    let granted = permit(json!({"memoryMb": 2048, "cpuPercent": 400}));
    let table = [
        (Permit::default(), json!({}), 512, 100),
        (granted.clone(), json!({}), 2048, 400),
        (
            granted.clone(),
            json!({"maxMemoryMB": 100, "maxCpuPercent": 50}),
            100,
            50,
        ),
        (
            granted,
            json!({"maxMemoryMB": 4096, "maxCpuPercent": 800}),
            2048,
            400,
        ),
        (
            Permit::default(),
            json!({"maxMemoryMB": 4096, "maxCpuPercent": 800}),
            512,
            100,
        ),
    ];
    for (permit, sandbox, memory_mb, cpu_percent) in table {
        let declared = serde_json::from_value(sandbox.clone()).unwrap();
        let has = permit.limits(&declared);
        let wanted = Limits {
            memory_mb,
            cpu_percent,
        };
        assert_eq!(has, wanted, "{permit:?} {sandbox}");
    }
}

#[test]
fn permits_that_were_kept_before_read_as_before_and_unset_fields_are_not_written() {
    let old = json!({"read": ["/r"], "network": {"hosts": ["a.test"]}, "exec": true, "env": ["A"]});
    let kept = permit(old.clone());
    assert_eq!(
        (kept.install, kept.memory_mb, kept.cpu_percent),
        (false, None, None)
    );
    assert_eq!(serde_json::to_value(&kept).unwrap(), old);
}

#[test]
fn what_a_tool_reads_of_the_project_is_the_lesser_of_its_blocks() {
    let only = |list: &[&str]| Reads::Only(list.iter().map(|&path| path.to_owned()).collect());
    let table = [
        (json!({}), json!({}), Reads::Project),
        (json!({"canReadFiles": true}), json!({}), Reads::Project),
        (json!({"required": ["read"]}), json!({}), Reads::Project),
        (json!({"canReadFiles": false}), json!({}), Reads::Itself),
        (
            json!({}),
            json!({"allowedPaths": ["docs"]}),
            only(&["docs"]),
        ),
        (
            json!({"canReadFiles": true}),
            json!({"allowedPaths": ["docs"]}),
            only(&["docs"]),
        ),
        (
            json!({"canWriteFiles": true}),
            json!({"allowedPaths": ["out"]}),
            only(&["out"]),
        ),
        (
            json!({"canReadFiles": false}),
            json!({"allowedPaths": ["docs"]}),
            Reads::Itself,
        ),
        (
            json!({}),
            json!({"allowedPaths": ["a/../docs", "docs/deep"]}),
            only(&["docs"]),
        ),
        (
            json!({}),
            json!({"allowedPaths": ["docs", "."]}),
            Reads::Project,
        ),
        // What lies elsewhere is asked for, and is no part of the project.
        (
            json!({}),
            json!({"allowedPaths": ["/data", "../x"]}),
            Reads::Itself,
        ),
    ];
    for (permissions, sandbox, wanted) in table {
        let said = format!("{permissions} {sandbox}");
        let permissions = serde_json::from_value(permissions).unwrap();
        let sandbox = serde_json::from_value(sandbox).unwrap();
        let reads = Reads::declared(&permissions, &sandbox);
        let reads = reads.with_paths(|path| Some(paths::clean(path)));
        assert_eq!(reads, wanted, "{said}");
    }
    // Who reads nothing asks for nothing to be read.
    let sandbox = json!({"allowedPaths": ["/data"]});
    assert!(declared(json!({"canReadFiles": false}), sandbox).is_empty());
    let docs = only(&["docs"]);
    assert!(docs.gives("docs/a") && !docs.gives("src") && !docs.gives(".") && !docs.gives("/docs"));
    assert!(docs.touches(".") && docs.touches("docs/a") && !docs.touches("src"));
    assert!(
        !Reads::Itself.touches(".") && Reads::Project.gives("src") && !Reads::Project.gives("/")
    );
    assert_eq!(Reads::words(&[]), "itself, nothing of the project");
}
