//! A yes that somebody has, and uses for something else.

use serde_json::{Value, json};

use crate::approvals::scene::{asked, call, changes, ran, world, write_tool};

/// A yes is for one run of exactly what was asked, by whoever asked.
#[tokio::test]
async fn a_yes_can_t_be_stretched() {
    let world = world("wait = 0");
    let crib = world.serve_closed();
    let token = world.token("agent", "read,call");
    let other = world.token("second", "read,call");
    let made = [
        "token",
        "create",
        "third",
        "--scope",
        "read,call",
        "--agent",
        "other",
    ];
    let third = world.run(&made).exits(0).stdout.trim().to_owned();
    let approve = |id: &str| {
        world
            .person(&["approvals", "approve", id, "--yes"])
            .exits(0);
    };
    let pending = async |token: &str, arguments: Value, what: &str| {
        let (status, answer) = call(&crib, token, &arguments).await;
        assert_eq!(status, 202, "{what}: {answer}");
    };
    let id = asked(&crib, &token, "all").await;
    approve(&id);
    pending(&token, json!({"what": "all of it"}), "other arguments").await;
    pending(
        &token,
        json!({"what": "all", "how": "fast"}),
        "another default",
    )
    .await;
    pending(
        &token,
        json!({"what": "all\u{200b}"}),
        "a character that nobody sees",
    )
    .await;
    pending(&other, json!({"what": "all"}), "another token").await;
    pending(&third, json!({"what": "all"}), "another agent").await;
    let command = world.run(&["call", "wipe", "what=all"]).exits(3);
    assert!(command.stderr.contains("waits for a person"), "{command:?}");
    assert!(ran(&world).is_empty());
    assert_eq!(
        call(&crib, &token, &json!({"how": "slowly", "what": "all"}))
            .await
            .0,
        200
    );
    pending(&token, json!({"what": "all"}), "a second use").await;
    assert_eq!(ran(&world), ["all"]);
    // An edit is for what it says.
    let id = asked(&crib, &token, "much").await;
    let edit = [
        "approvals",
        "edit",
        &id,
        "--arguments",
        "{\"what\": \"little\"}",
        "--yes",
    ];
    world.person(&edit).exits(0);
    pending(&token, json!({"what": "little"}), "what it was changed to").await;
    assert_eq!(call(&crib, &token, &json!({"what": "much"})).await.0, 200);
    assert_eq!(ran(&world), ["all", "little"]);
    pending(
        &token,
        json!({"what": "much"}),
        "the original after an edit",
    )
    .await;
    assert_eq!(ran(&world), ["all", "little"]);
    // A yes to another text of the tool is none.
    let id = asked(&crib, &token, "last").await;
    approve(&id);
    changes(&crib, &token, || {
        write_tool(&world, "sh wipe.sh {{what}} more")
    })
    .await;
    assert_ne!(asked(&crib, &token, "last").await, id);
    assert_eq!(ran(&world), ["all", "little"]);
}
