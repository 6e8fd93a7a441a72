//! Attempts to read, write, signal, execute and connect, under several policies.

use toolcrib_sandbox::{Exec, Network, Rung};

use crate::arena::*;

const NODE: &str = include_str!("attack.mjs");
const WRITE: &str = include_str!("attack_write.py");
const EXEC: &str = include_str!("attack_exec.py");
const OPEN: &str = include_str!("attack_open.py");
const PAIRS: &str = include_str!("attack_pairs.py");

/// What a rung does not promise, and `doctor` lists as lost.
fn is_lost(rung: Rung, name: &str) -> bool {
    rung == Rung::Group && name == "see_that_a_secret_exists"
}

pub fn expect_nothing_out(rung: Rung, mut lines: Vec<Line>, at_least: usize) {
    assert!(
        lines.len() >= at_least,
        "{rung:?}: only {} attempts",
        lines.len()
    );
    lines.retain(|line| !is_lost(rung, &line.name));
    assert_eq!(out(&lines), [] as [String; 0], "{rung:?}");
}

#[tokio::test]
async fn nothing_gets_out_from_python() {
    for (rung, launcher) in launchers().await {
        let arena = Arena::new();
        let text = format!("{GUARD}{ATTACK}run(ATTEMPTS)\n");
        let lines = arena
            .attack(&launcher, rung, Language::Python, &text, arena.policy())
            .await;
        let data = std::fs::read_to_string(arena.at("project/data.txt")).unwrap();
        assert_eq!(data, "data", "{rung:?}");
        expect_nothing_out(rung, lines, 103);
    }
}

#[tokio::test]
async fn nothing_gets_out_from_node() {
    for (rung, launcher) in launchers().await {
        let arena = Arena::new();
        let lines = arena
            .attack(&launcher, rung, Language::Node, NODE, arena.policy())
            .await;
        let data = std::fs::read_to_string(arena.at("project/data.txt")).unwrap();
        assert_eq!(data, "data", "{rung:?}");
        expect_nothing_out(rung, lines, 35);
    }
}

#[tokio::test]
async fn a_writer_plants_nothing_that_is_executed_later() {
    for (rung, launcher) in launchers().await {
        let arena = Arena::new();
        let text = format!("{GUARD}{ATTACK}{WRITE}");
        let mut policy = arena.policy();
        policy.write.push(arena.at("project"));
        let lines = arena
            .attack(&launcher, rung, Language::Python, &text, policy)
            .await;
        expect_nothing_out(rung, lines, 20);
        assert_eq!(
            std::fs::read_to_string(arena.at("project/src/made")).unwrap(),
            "by the tool"
        );
        assert!(!arena.at("project/.toolcrib/evil.py").exists());
        let planted = std::fs::read_dir(arena.at("project/.toolcrib")).map_or(0, Iterator::count);
        assert_eq!(planted, 0, "{rung:?}");
    }
}

#[tokio::test]
async fn programs_that_may_be_executed_stay_inside() {
    for (rung, launcher) in launchers().await {
        let arena = Arena::new();
        let text = format!("{GUARD}{ATTACK}{EXEC}");
        let policy = toolcrib_sandbox::Policy {
            exec: Exec::Allowed,
            ..arena.policy()
        };
        let lines = arena
            .attack(&launcher, rung, Language::Python, &text, policy)
            .await;
        expect_nothing_out(rung, lines, 12);
    }
}

#[tokio::test]
async fn the_machines_network_opens_nothing_else() {
    for (rung, launcher) in launchers().await {
        let arena = Arena::new();
        let text = format!("{GUARD}{ATTACK}{OPEN}");
        let policy = toolcrib_sandbox::Policy {
            network: Network::Open,
            ..arena.policy()
        };
        let command = arena.command(Language::Python, &text, rung, policy);
        let child = command
            .spawn(&launcher, &arena.environment())
            .await
            .unwrap();
        let (exit, said, err) = finish(child).await;
        assert_eq!(
            exit,
            toolcrib_sandbox::Exit::Code(0),
            "{rung:?} {said}{err}"
        );
        expect_nothing_out(rung, read(&said), 11);
    }
}

#[tokio::test]
async fn pairs_of_sockets_reach_each_other_alone_whatever_network_there_is() {
    for (rung, launcher) in launchers().await {
        let hosts = Network::Hosts(vec!["example.com".parse().unwrap()]);
        for network in [Network::None, hosts, Network::Open] {
            let arena = Arena::new();
            let text = format!("{GUARD}{ATTACK}{PAIRS}");
            let policy = toolcrib_sandbox::Policy {
                network,
                ..arena.policy()
            };
            let lines = arena
                .attack(&launcher, rung, Language::Python, &text, policy)
                .await;
            expect_nothing_out(rung, lines, 10);
        }
    }
}
