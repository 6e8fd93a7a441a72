//! What the relay remembers, and what it says to a server that comes later.

use super::*;

fn call(id: u64, tool: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool}})
}

impl RelayState {
    fn sends(&mut self, message: &Value) {
        self.sent(format!("{message}\n").as_bytes());
    }

    fn receives(&mut self, message: &Value) -> bool {
        self.received(format!("{message}\n").as_bytes())
    }

    /// What a new server and the client are told.
    fn starts_over(&mut self) -> (Vec<Value>, Vec<Value>) {
        let read = |all: Vec<Vec<u8>>| {
            let all = all.into_iter();
            all.map(|one| serde_json::from_slice(&one).unwrap())
                .collect()
        };
        let (to_server, to_client) = self.start_over();
        (read(to_server), read(to_client))
    }
}

fn with_tools() -> RelayState {
    let mut state = RelayState::default();
    state.sends(&json!({"jsonrpc": "2.0", "id": 0, "method": "tools/list"}));
    assert!(
        state.receives(&json!({"jsonrpc": "2.0", "id": 0, "result": {"tools": [
            {"name": "look", "annotations": {"readOnlyHint": true}},
            {"name": "write", "annotations": {}},
        ]}}))
    );
    state
}

#[test]
fn answered_requests_are_forgotten() {
    let mut state = with_tools();
    state.sends(&call(1, "look"));
    assert!(state.receives(&json!({"jsonrpc": "2.0", "id": 1, "result": {}})));
    assert_eq!(state.starts_over(), (Vec::new(), Vec::new()));
}

#[test]
fn only_what_may_be_repeated_is_asked_again() {
    let mut state = with_tools();
    for (id, tool) in [(1, "look"), (2, "write"), (3, "unheard-of")] {
        state.sends(&call(id, tool));
    }
    let (to_server, to_client) = state.starts_over();
    assert_eq!(to_server, [call(1, "look")]);
    let ids: Vec<&Value> = to_client.iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids, [&json!(2), &json!(3)]);
    assert_eq!(to_client[0]["result"]["isError"], true);
    // It is asked once more if that server goes too.
    assert_eq!(state.starts_over().0, [call(1, "look")]);
}

#[test]
fn a_new_server_hears_the_hello_and_its_answer_is_kept_back() {
    let mut state = RelayState::default();
    let hello = json!({"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": {}});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    state.sends(&hello);
    assert!(state.receives(&json!({"jsonrpc": "2.0", "id": 7, "result": {}})));
    state.sends(&ready);
    let (to_server, _) = state.starts_over();
    assert_eq!(to_server.len(), 2);
    assert_eq!(
        (&to_server[0]["method"], &to_server[1]),
        (&json!("initialize"), &ready)
    );
    assert_ne!(to_server[0]["id"], 7);
    let answer = json!({"jsonrpc": "2.0", "id": to_server[0]["id"], "result": {}});
    assert!(
        !state.receives(&answer),
        "the client asked once and was answered once"
    );
}

#[test]
fn an_unanswered_hello_is_asked_again_as_it_was() {
    let mut state = RelayState::default();
    let hello = json!({"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": {}});
    state.sends(&hello);
    assert_eq!(state.starts_over().0, [hello]);
}

#[test]
fn a_cancelled_request_is_not_asked_again() {
    let mut state = with_tools();
    state.sends(&call(1, "look"));
    state.sends(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}),
    );
    assert_eq!(state.starts_over(), (Vec::new(), Vec::new()));
}

#[test]
fn what_is_asked_again_is_as_it_was_asked() {
    let mut state = with_tools();
    let call = r#"{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"tools/call","params":{"name":"look","arguments":{"n":1.50e2}}}"#;
    state.sent(format!(" {call} \n").as_bytes());
    assert_eq!(state.start_over().0, [call.as_bytes()]);
    let answer = r#"{"jsonrpc":"2.0","id":123456789012345678901234567890,"result":{}}"#;
    assert!(state.received(answer.as_bytes()));
    assert!(state.start_over().0.is_empty());
}

#[test]
fn messages_that_came_at_once_are_remembered_each_by_itself() {
    let mut state = with_tools();
    state.sends(&json!([call(1, "look"), call(2, "look"), call(3, "write")]));
    assert!(state.receives(&json!([{"jsonrpc": "2.0", "id": 1, "result": {}}])));
    let (to_server, to_client) = state.starts_over();
    assert_eq!(to_server, [call(2, "look")]);
    assert_eq!(to_client[0]["id"], 3);
}

#[test]
fn what_was_answered_among_others_is_not_asked_again() {
    let mut state = with_tools();
    state.sends(&json!([call(1, "look"), call(2, "look")]));
    let meta = json!({"toolcrib/code": "unavailable", "toolcrib/data": {STOPPED: true}});
    let stopped = json!({"jsonrpc": "2.0", "id": 1, "result": {"_meta": meta}});
    let both = json!([stopped, {"jsonrpc": "2.0", "id": 2, "result": {}}]);
    assert!(state.receives(&both));
    assert_eq!(state.starts_over(), (Vec::new(), Vec::new()));
    state.sends(&call(1, "look"));
    assert!(!state.receives(&stopped), "alone it is held back");
    assert_eq!(state.starts_over().0, [call(1, "look")]);
}
