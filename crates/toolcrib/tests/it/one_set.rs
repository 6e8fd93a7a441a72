//! However many agents there are, a project has one set of workers.

use futures_util::future::join_all;
use serde_json::json;

use crate::support::mcp::{Piped, call};
use crate::support::processes::{all_gone, marked};
use crate::support::tool::{marker, workers, write_program};
use crate::support::{World, descendants};

const POOL: usize = 2;
const AGENTS: u64 = 5;
const EACH: u64 = 10;

#[tokio::test]
async fn five_agents_and_a_server_have_one_set_of_workers() {
    let world = World::trusted();
    let marker = marker();
    write_program(&world, "echo", &marker, &[], json!({"poolSize": POOL}));
    let crib = world.serve();
    let mut agents: Vec<Piped> = (0..AGENTS)
        .map(|_| Piped::greeted(world.command(&["mcp"])))
        .collect();
    // All at once: 50 calls of agents and 10 over REST want two workers.
    for id in 1..=EACH {
        for (n, agent) in agents.iter_mut().enumerate() {
            let said = format!("{n}-{id}");
            agent.send(&call(id, "echo", json!({"say": said, "sleep": 0.02})));
        }
    }
    let direct = (0..EACH).map(|_| crib.call("echo", json!({"say": "rest", "sleep": 0.02})));
    for (status, outcome) in join_all(direct).await {
        assert_eq!(
            (status, &outcome["output"]),
            (200, &json!("said rest")),
            "{outcome}"
        );
    }
    for (n, agent) in agents.iter_mut().enumerate() {
        for id in 1..=EACH {
            let answer = agent.answer(id);
            let text = &answer["result"]["content"][0]["text"];
            assert_eq!(*text, format!("said {n}-{id}"), "{answer}");
        }
    }
    let found = workers(&marker);
    assert_eq!(found.len(), POOL, "{found:#?}");
    let below = descendants(crib.pid());
    for process in marked(&marker) {
        assert!(below.contains(&process.pid), "{process:?}");
    }
    for agent in &agents {
        assert!(descendants(agent.pid()).is_empty());
    }
    // They stay when the agents go, and go with the crib.
    for agent in agents {
        assert_eq!(agent.hang_up().0, Some(0));
    }
    assert_eq!(workers(&marker), found);
    crib.kill();
    all_gone(&marker).await;
}
