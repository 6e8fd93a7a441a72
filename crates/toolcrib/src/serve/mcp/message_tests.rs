//! What is read as which kind of message, and what is wrong with what is none.

use super::*;

fn request(text: &str) -> Request<'_> {
    match read_one(text.as_bytes()) {
        Ok(Message::Request(request)) => request,
        other => panic!("{text} is read as {other:?}"),
    }
}

#[test]
fn ids_come_back_as_they_were_written() {
    for id in [
        "0",
        "-7",
        "123456789012345678901234567890",
        "\"\"",
        r#""a\u0062\"c""#,
        r#""\ud800""#,
    ] {
        let text = format!(r#"{{"jsonrpc":"2.0","id": {id} ,"method":"ping"}}"#);
        assert_eq!(request(&text).id.as_json(), id);
    }
    for id in ["null", "1.5", "1e3", "true", "[1]", "{}"] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        let malformed = read_one(text.as_bytes()).unwrap_err();
        assert_eq!(
            (malformed.code, malformed.id),
            (codes::INVALID_REQUEST, None),
            "{id}"
        );
    }
}

#[test]
fn what_nobody_knows_is_passed_over() {
    let text = r#"{"extra":[1,{"a":2}],"jsonrpc":"2.0","method":"tools/call","id":1,
        "params":{"x":{},"name":"a","arguments":{"n":1.50},"_meta":{"k":null,"progressToken":7}}}"#;
    let request = request(text);
    assert_eq!(request.method, "tools/call");
    assert_eq!(request.params.text("name").as_deref(), Some("a"));
    assert_eq!(
        request.params.get("arguments").unwrap().get(),
        r#"{"n":1.50}"#
    );
    assert_eq!(request.params.meta.get("progressToken").unwrap().get(), "7");
    assert!(request.params.meta.get("k").is_none() && request.params.get("none").is_none());
}

#[test]
fn the_kinds_of_messages() {
    let kind = |text: &str| match read_one(text.as_bytes()) {
        Ok(Message::Request(_)) => "request".to_owned(),
        Ok(Message::Notification(_)) => "notification".to_owned(),
        Ok(Message::Response(response)) => format!("response {}", response.result.is_ok()),
        Err(malformed) => format!("{} {:?}", malformed.code, malformed.id.map(|id| id.0)),
    };
    for (text, expected) in [
        (r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#, "request"),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":null}"#,
            "request",
        ),
        (r#"{"jsonrpc":"2.0","method":"m"}"#, "notification"),
        (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "response true"),
        (
            r#"{"jsonrpc":"2.0","id":null,"error":{}}"#,
            "response false",
        ),
        (r#"{"jsonrpc":"2.0","id":1}"#, r#"-32600 Some("1")"#),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":1,"error":2}"#,
            r#"-32600 Some("1")"#,
        ),
        (
            r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#,
            r#"-32600 Some("1")"#,
        ),
        (r#"{"id":"a","method":"m"}"#, r#"-32600 Some("\"a\"")"#),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
            r#"-32600 Some("1")"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","method":"n"}"#,
            r#"-32600 Some("1")"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"name":"a","n\u0061me":"b"}}"#,
            r#"-32602 Some("1")"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{},"_meta":{"a":1}}}"#,
            r#"-32602 Some("1")"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}"#,
            r#"-32602 Some("1")"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":[]}}"#,
            r#"-32602 Some("1")"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m""#,
            r#"-32700 Some("1")"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":"a,b","method""#,
            r#"-32700 Some("\"a,b\"")"#,
        ),
        ("{", "-32700 None"),
        ("", "-32700 None"),
        ("null", "-32600 None"),
        ("7", "-32600 None"),
        ("\u{0}", "-32700 None"),
    ] {
        assert_eq!(kind(text), expected, "{text}");
    }
}

#[test]
fn arrays_hold_messages_up_to_a_number() {
    let read = |text: &str| match read(text.as_bytes()) {
        Ok(Incoming::Batch(items)) => Ok(items.len()),
        Ok(Incoming::One(_)) => panic!("{text} is one"),
        Err(malformed) => Err(malformed.code),
    };
    assert_eq!(read(" [1,{}]"), Ok(2));
    assert_eq!(read("[]"), Err(codes::INVALID_REQUEST));
    assert_eq!(read("[1,"), Err(codes::PARSE_ERROR));
    let many = |count: usize| format!("[{}1]", "1,".repeat(count - 1));
    assert_eq!(read(&many(MAX_BATCH)), Ok(MAX_BATCH));
    assert_eq!(read(&many(MAX_BATCH + 1)), Err(codes::INVALID_REQUEST));
}
