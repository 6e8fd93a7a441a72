//! Policies in, plans out.

use super::*;
use crate::host::HostRule;
use crate::machine::Controllers;
use crate::machine::tests::{full, no_namespaces};

fn spot(path: &str) -> Spot {
    Spot {
        path: path.into(),
        folder: true,
    }
}

fn ground() -> ResolvedPaths {
    ResolvedPaths {
        links: [("/bin".into(), "usr/bin".into())].into(),
        read: vec![spot("/p"), spot("/usr")],
        program: "/usr/bin/python3.11".into(),
        loader: Some("/usr/lib/ld.so".into()),
        ..ResolvedPaths::default()
    }
}

fn written() -> ResolvedPaths {
    ResolvedPaths {
        read: vec![spot("/usr")],
        write: vec![spot("/p")],
        protect: vec![spot("/p/.git")],
        missing: vec!["/p/.toolcrib".into()],
        entries: vec![spot("/p/src")],
        ..ground()
    }
}

fn plan(
    policy: &Policy,
    ground: &ResolvedPaths,
    machine: &Machine,
    rung: Rung,
) -> Result<Plan, CannotConfine> {
    Plan::new(policy, ground, machine, rung, Path::new("/var/scratch"))
}

fn hosts() -> Network {
    Network::Hosts(vec!["example.com".parse::<HostRule>().unwrap()])
}

fn kind<'a>(plan: &'a Plan, path: &str) -> Option<&'a Kind> {
    plan.mounts
        .iter()
        .find(|mount| mount.path == Path::new(path))
        .map(|mount| &mount.kind)
}

fn access(plan: &Plan, path: &str) -> Option<Access> {
    let rules = &plan.landlock.as_ref()?.rules;
    rules
        .iter()
        .rev()
        .find(|rule| rule.path == Path::new(path))
        .map(|rule| rule.access)
}

#[test]
fn the_default_on_every_rung() {
    let policy = Policy::default();
    for (rung, machine, enforced) in [
        (
            Rung::Namespaces,
            full(),
            "read=mount+landlock write=mount+landlock exec=seccomp net=namespace+seccomp hosts=none mem=rlimit+watch cpu=watch pids=rlimit",
        ),
        (
            Rung::NamespacesOnly,
            full(),
            "read=mount write=mount exec=seccomp net=namespace+seccomp hosts=none mem=rlimit+watch cpu=watch pids=rlimit",
        ),
        (
            Rung::Group,
            no_namespaces(),
            "read=landlock write=landlock+seccomp exec=seccomp net=seccomp hosts=none mem=rlimit+watch cpu=watch pids=watch",
        ),
    ] {
        let plan = plan(&policy, &ground(), &machine, rung).unwrap();
        assert_eq!(plan.enforced.to_string(), enforced);
        assert_eq!(plan.landlock.is_some(), rung != Rung::NamespacesOnly);
        assert_eq!(plan.mounts.is_empty(), rung == Rung::Group);
        assert_eq!(plan.road, Road::Nowhere);
        assert_eq!(plan.calls.sockets, Sockets::None);
        assert_eq!(plan.calls.keep_modes, rung == Rung::Group);
        assert!(!plan.lost.is_empty());
    }
}

#[test]
fn a_tool_reads_and_does_not_write() {
    let plan_a = plan(&Policy::default(), &ground(), &full(), Rung::Namespaces).unwrap();
    let read_only = Kind::Bind {
        folder: true,
        writable: false,
    };
    assert_eq!(kind(&plan_a, "/p"), Some(&read_only));
    assert_eq!(kind(&plan_a, "/usr"), Some(&read_only));
    assert_eq!(
        kind(&plan_a, "/bin"),
        Some(&Kind::Link {
            to: "usr/bin".into()
        })
    );
    assert_eq!(kind(&plan_a, "/tmp"), Some(&Kind::Tmp { mb: 64 }));
    assert_eq!(kind(&plan_a, "/home"), None);
    assert_eq!(access(&plan_a, "/p"), Some(Access::Read));
    assert_eq!(access(&plan_a, "/usr/bin/python3.11"), Some(Access::Run));
    assert_eq!(plan_a.vars[0], ("TMPDIR", "/tmp".into()));

    let plan_b = plan(&Policy::default(), &ground(), &full(), Rung::Group).unwrap();
    assert_eq!(access(&plan_b, "/var/scratch"), Some(Access::Write));
    assert_eq!(access(&plan_b, "/proc/self"), Some(Access::Read));
    assert_eq!(access(&plan_b, "/proc"), None);
    assert_eq!(access(&plan_b, "/tmp"), None);
    assert_eq!(plan_b.vars[1], ("HOME", "/var/scratch/home".into()));
}

#[test]
fn parents_are_mounted_before_what_lies_in_them() {
    let ground = ResolvedPaths {
        read: vec![spot("/tmp/x/tool"), spot("/usr")],
        write: vec![spot("/tmp/x/project"), spot("/tmp/x/project/.git/hooks")],
        protect: vec![spot("/tmp/x/project/.git")],
        hide: vec![spot("/tmp/x/project/secret")],
        ..ground()
    };
    let plan = plan(&Policy::default(), &ground, &full(), Rung::Namespaces).unwrap();
    let paths: Vec<_> = plan
        .mounts
        .iter()
        .map(|mount| mount.path.to_str().unwrap())
        .collect();
    let of_tmp: Vec<_> = paths
        .iter()
        .filter(|path| path.starts_with("/tmp"))
        .copied()
        .collect();
    assert_eq!(
        of_tmp,
        [
            "/tmp",
            "/tmp/home",
            "/tmp/x/project",
            "/tmp/x/project/.git",
            "/tmp/x/project/.git/hooks",
            "/tmp/x/project/secret",
            "/tmp/x/tool",
        ]
    );
    let bound = |path: &str, writable| {
        kind(&plan, path)
            == Some(&Kind::Bind {
                folder: true,
                writable,
            })
    };
    assert!(bound("/tmp/x/project", true) && bound("/tmp/x/project/.git", false));
    assert!(bound("/tmp/x/project/.git/hooks", true));
    assert_eq!(
        kind(&plan, "/tmp/x/project/secret"),
        Some(&Kind::Hidden { folder: true })
    );
}

#[test]
fn what_is_executed_later_is_not_written() {
    let plan_a = plan(&Policy::default(), &written(), &full(), Rung::Namespaces).unwrap();
    let read_only = Kind::Bind {
        folder: true,
        writable: false,
    };
    assert_eq!(kind(&plan_a, "/p/.git"), Some(&read_only));
    assert_eq!(kind(&plan_a, "/p/.toolcrib"), Some(&read_only));
    assert_eq!(plan_a.placeholders, [Path::new("/p/.toolcrib")]);
    let deep = ResolvedPaths {
        protect: vec![spot("/p/a/b/.git")],
        between: vec!["/p/a".into(), "/p/a/b".into()],
        ..written()
    };
    let plan_a = plan(&Policy::default(), &deep, &full(), Rung::Namespaces).unwrap();
    let writable = Kind::Bind {
        folder: true,
        writable: true,
    };
    // What something is mounted on can't be renamed.
    assert_eq!(kind(&plan_a, "/p/a"), Some(&writable));
    assert_eq!(kind(&plan_a, "/p/a/b"), Some(&writable));
    assert_eq!(kind(&plan_a, "/p/a/b/.git"), Some(&read_only));

    let plan_b = plan(&Policy::default(), &written(), &full(), Rung::Group).unwrap();
    assert!(plan_b.placeholders.is_empty());
    assert_eq!(access(&plan_b, "/p"), Some(Access::Read));
    assert_eq!(access(&plan_b, "/p/src"), Some(Access::Write));
    assert_eq!(access(&plan_b, "/p/.git"), None);
    assert!(
        plan_b
            .lost
            .iter()
            .any(|lost| lost.contains("new entries are refused"))
    );
}

#[test]
fn roads_lead_where_the_policy_says() {
    let policy = |network| Policy {
        network,
        ..Policy::default()
    };
    let road = |network, machine: &Machine, rung| {
        plan(&policy(network), &ground(), machine, rung)
            .map(|plan| (plan.road, plan.enforced.hosts))
    };
    assert_eq!(
        road(hosts(), &full(), Rung::Namespaces).unwrap(),
        (Road::Listener, "proxy")
    );
    assert_eq!(
        road(hosts(), &full(), Rung::NamespacesOnly).unwrap(),
        (Road::Listener, "proxy")
    );
    assert_eq!(
        road(hosts(), &full(), Rung::Group).unwrap(),
        (Road::Asked { port: 0 }, "proxy+notify")
    );
    assert_eq!(
        road(Network::Open, &full(), Rung::Group).unwrap(),
        (Road::Open, "allowed")
    );
    assert_eq!(
        road(Network::Hosts(vec![]), &full(), Rung::Group).unwrap(),
        (Road::Nowhere, "none")
    );
    let deaf = Machine {
        notify: false,
        ..full()
    };
    let told = road(hosts(), &deaf, Rung::Group).unwrap_err();
    assert!(told.reason.contains("single hosts") && !told.remedy.is_empty());
    let open = plan(&policy(Network::Open), &ground(), &full(), Rung::Namespaces).unwrap();
    assert!(open.landlock.is_some_and(|landlock| !landlock.net));
}

#[test]
fn what_is_hidden_is_covered_or_not_opened() {
    let hidden = ResolvedPaths {
        hide: vec![spot("/p/.crib")],
        listed: vec![spot("/p")],
        reading: vec![spot("/p/src"), spot("/usr")],
        ..ground()
    };
    let covered = plan(&Policy::default(), &hidden, &full(), Rung::Namespaces).unwrap();
    assert_eq!(
        kind(&covered, "/p/.crib"),
        Some(&Kind::Hidden { folder: true })
    );
    assert_eq!(access(&covered, "/p"), Some(Access::Read));
    let opened = plan(&Policy::default(), &hidden, &full(), Rung::Group).unwrap();
    assert_eq!(access(&opened, "/p"), Some(Access::List));
    assert_eq!(access(&opened, "/p/src"), Some(Access::Read));
    assert_eq!(access(&opened, "/p/.crib"), None);
}

#[test]
fn what_a_rung_can_not_do_is_refused() {
    let linked = ResolvedPaths {
        linked: vec!["/p/.git".into()],
        ..written()
    };
    assert!(plan(&Policy::default(), &linked, &full(), Rung::NamespacesOnly).is_err());
    assert!(plan(&Policy::default(), &linked, &full(), Rung::Group).is_ok());
    let plan = plan(&Policy::default(), &linked, &full(), Rung::Namespaces).unwrap();
    // Landlock keeps the folder in which the link lies.
    assert_eq!(access(&plan, "/p"), Some(Access::Read));
    assert_eq!(access(&plan, "/p/src"), Some(Access::Write));
}

#[test]
fn limits_are_the_kernels_where_it_keeps_them() {
    let policy = Policy {
        processes: 10,
        memory_mb: 100,
        ..Policy::default()
    };
    let all = Controllers {
        memory: true,
        cpu: true,
        processes: true,
    };
    let grouped = plan(
        &policy,
        &ground(),
        &Machine {
            groups: all,
            ..full()
        },
        Rung::Group,
    )
    .unwrap();
    assert!(!grouped.watch.is_needed());
    assert_eq!(
        (grouped.limits.data, grouped.limits.processes),
        (None, None)
    );
    assert!(
        grouped
            .enforced
            .to_string()
            .ends_with("mem=cgroup cpu=cgroup pids=cgroup")
    );

    let bare = plan(&policy, &ground(), &full(), Rung::Namespaces).unwrap();
    assert_eq!(
        (bare.limits.data, bare.limits.processes),
        (Some(100 << 20), Some(12))
    );
    assert_eq!(bare.watch.processes, None);
    // Root and old kernels count by user, or not at all.
    for machine in [
        Machine {
            root: true,
            ..full()
        },
        Machine {
            kernel: (5, 10),
            ..full()
        },
    ] {
        let plan = plan(&policy, &ground(), &machine, Rung::Namespaces).unwrap();
        assert_eq!(
            (plan.limits.processes, plan.watch.processes),
            (None, Some(10))
        );
        assert_eq!(plan.enforced.pids, "watch");
    }
}

#[test]
fn exec_opens_what_is_read() {
    let policy = Policy {
        exec: Exec::Allowed,
        ..Policy::default()
    };
    let plan = plan(&policy, &ground(), &full(), Rung::Namespaces).unwrap();
    assert_eq!(access(&plan, "/usr"), Some(Access::Run));
    assert_eq!(plan.enforced.exec, "allowed");
}

#[test]
fn plans_travel() {
    let plan = plan(&Policy::default(), &written(), &full(), Rung::Namespaces).unwrap();
    let text = serde_json::to_string(&plan).unwrap();
    let back: Plan = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (back.mounts, back.landlock, back.calls),
        (plan.mounts, plan.landlock, plan.calls)
    );
}
