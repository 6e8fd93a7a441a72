//! What the relay remembers, and what it says to a server that comes later.

use super::*;

fn call(id: u64, tool: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool}})
}

fn with_tools() -> RelayState {
    let mut memory = RelayState::default();
    memory.sent(&json!({"jsonrpc": "2.0", "id": 0, "method": "tools/list"}));
    assert!(
        memory.received(&json!({"jsonrpc": "2.0", "id": 0, "result": {"tools": [
            {"name": "look", "annotations": {"readOnlyHint": true}},
            {"name": "write", "annotations": {}},
        ]}}))
    );
    memory
}

#[test]
fn answered_requests_are_forgotten() {
    let mut memory = with_tools();
    memory.sent(&call(1, "look"));
    assert!(memory.received(&json!({"jsonrpc": "2.0", "id": 1, "result": {}})));
    assert_eq!(memory.start_over(), (Vec::new(), Vec::new()));
}

#[test]
fn only_what_may_be_repeated_is_asked_again() {
    let mut memory = with_tools();
    for (id, tool) in [(1, "look"), (2, "write"), (3, "unheard-of")] {
        memory.sent(&call(id, tool));
    }
    let (to_server, to_client) = memory.start_over();
    assert_eq!(to_server, [call(1, "look")]);
    let ids: Vec<&Value> = to_client.iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids, [&json!(2), &json!(3)]);
    assert_eq!(to_client[0]["result"]["isError"], true);
    // It is asked once more if that server goes too.
    assert_eq!(memory.start_over().0, [call(1, "look")]);
}

#[test]
fn a_new_server_hears_the_hello_and_its_answer_is_kept_back() {
    let mut memory = RelayState::default();
    let hello = json!({"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": {}});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    memory.sent(&hello);
    assert!(memory.received(&json!({"jsonrpc": "2.0", "id": 7, "result": {}})));
    memory.sent(&ready);
    let (to_server, _) = memory.start_over();
    assert_eq!(to_server.len(), 2);
    assert_eq!(
        (&to_server[0]["method"], &to_server[1]),
        (&json!("initialize"), &ready)
    );
    assert_ne!(to_server[0]["id"], 7);
    let answer = json!({"jsonrpc": "2.0", "id": to_server[0]["id"], "result": {}});
    assert!(
        !memory.received(&answer),
        "the client asked once and was answered once"
    );
}

#[test]
fn an_unanswered_hello_is_asked_again_as_it_was() {
    let mut memory = RelayState::default();
    let hello = json!({"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": {}});
    memory.sent(&hello);
    assert_eq!(memory.start_over().0, [hello]);
}

#[test]
fn a_cancelled_request_is_not_asked_again() {
    let mut memory = with_tools();
    memory.sent(&call(1, "look"));
    memory.sent(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}),
    );
    assert_eq!(memory.start_over(), (Vec::new(), Vec::new()));
}

#[tokio::test]
async fn of_a_line_that_is_too_long_only_the_id_is_read() {
    let message = r#"{"id":1,"word":""}"#;
    let word = "x".repeat(MAX_LINE - message.len() - 1);
    let longest = format!("{}{word}{}\n", &message[..16], &message[16..]);
    let text = format!("{longest} {longest}short\n");
    let mut stream = BufReader::new(text.as_bytes());
    let mut line = Line::default();
    let mut next = async || line.read(&mut stream).await.unwrap();
    assert!(matches!(next().await, Read::Line(line) if line.len() == MAX_LINE));
    assert!(matches!(next().await, Read::TooLong(Some(id)) if id == 1));
    assert!(matches!(next().await, Read::Line(line) if line == b"short\n"));
    assert!(matches!(next().await, Read::End));
}
