//! Messages and lines, whatever bytes they come in.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, ReadBuf};

use super::lines::{Line, Lines, MAX_MESSAGE, Overflow};
use super::message::{Message, Outgoing, RpcError};

/// Gives its chunks one by one, however large the reader's buffer is.
struct Chunks(std::collections::VecDeque<Vec<u8>>);

impl AsyncRead for Chunks {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(mut chunk) = self.0.pop_front() {
            let rest = chunk.split_off(chunk.len().min(into.remaining()));
            into.put_slice(&chunk);
            if !rest.is_empty() {
                self.0.push_front(rest);
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// All lines of a stream that comes in these chunks.
fn lines_of(chunks: Vec<Vec<u8>>) -> Result<Vec<Line>, Overflow> {
    let chunks = chunks.into_iter().filter(|chunk| !chunk.is_empty());
    let mut lines = Lines::new(Chunks(chunks.collect()));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut all = Vec::new();
        while let Some(line) = lines.next().await? {
            all.push(line);
        }
        Ok(all)
    })
}

/// Cuts a text at these places.
fn cut(text: &[u8], places: &[usize]) -> Vec<Vec<u8>> {
    let mut places: Vec<usize> = places.iter().map(|at| at % (text.len() + 1)).collect();
    places.extend([0, text.len()]);
    places.sort_unstable();
    places
        .windows(2)
        .map(|pair| text[pair[0]..pair[1]].to_vec())
        .collect()
}

fn result(id: u64, value: Value) -> Line {
    Line::Message(Box::new(Message::Answer {
        id: Some(id),
        result: Ok(value.into()),
    }))
}

fn text(text: &str) -> Line {
    Line::Text(text.to_owned())
}

/// Pieces that worker output is made of, sound and broken.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(b"\n".to_vec()),
        Just(b"{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"result\":{\"a\":[1,{}]}}\n".to_vec()),
        Just(b"{\n  \"id\": 2,\n  \"result\": {\n  }\n}\n".to_vec()),
        Just(b"{\"method\":\"log\",\"params\":{\"message\":\"\\\"}{\"}}\n".to_vec()),
        Just(b"{\"id\":3,\n".to_vec()),
        Just(b"{\"id\": \"unfinished\n".to_vec()),
        Just(b"}\n".to_vec()),
        Just(b"plain text\r\n".to_vec()),
        Just("ümläut \u{2028} line\n".as_bytes().to_vec()),
        proptest::collection::vec(any::<u8>(), 0..40),
    ]
}

proptest! {
    #[test]
    fn any_split_into_chunks_gives_the_same_lines(
        pieces in proptest::collection::vec(piece(), 0..12),
        places in proptest::collection::vec(any::<usize>(), 0..20),
    ) {
        let stream = pieces.concat();
        let whole = lines_of(vec![stream.clone()]);
        prop_assert_eq!(&lines_of(cut(&stream, &places)), &whole);
        let bytes = stream.iter().map(|byte| vec![*byte]).collect();
        prop_assert_eq!(&lines_of(bytes), &whole);
    }

    #[test]
    fn whole_messages_are_never_lost_behind_text(
        noise in "[a-z ]{0,20}",
        value in any::<i32>(),
    ) {
        let stream = format!("{noise}\n{{\"id\":\"7\",\"result\":{value}}}\n");
        let lines = lines_of(vec![stream.into_bytes()]).unwrap();
        prop_assert_eq!(lines.last(), Some(&result(7, json!(value))));
    }

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2_000)) {
        let _ = Message::parse(&bytes);
        lines_of(vec![bytes]).unwrap();
    }
}

#[test]
fn lines_are_messages_or_text() {
    let stream =
        "hello\n\n  {\"id\":\"1\",\"result\":null}  \r\n{\"a\":1}\n[1]\n{oops}\nlast words";
    let expected = [
        text("hello"),
        result(1, Value::Null),
        text("{\"a\":1}"),
        text("[1]"),
        text("{oops}"),
        text("last words"),
    ];
    assert_eq!(lines_of(vec![stream.into()]).unwrap(), expected);
}

#[test]
fn an_object_over_several_lines_is_joined() {
    let stream =
        "{\n\"id\": 1,\n\"result\": {\"text\": \"a } b { \\\" c\",\n\"list\": [{}\n]\n}\n}\nnext\n";
    let value = json!({"text": "a } b { \" c", "list": [{}]});
    let expected = [result(1, value), text("next")];
    assert_eq!(lines_of(vec![stream.into()]).unwrap(), expected);
}

#[test]
fn a_beginning_that_was_none_does_not_swallow_the_message_after_it() {
    for beginning in [
        "{",
        "{\"a\": [",
        "{\"a\": 1,",
        "{\"unfinished",
        "{\"a\": {\"b\": 1",
    ] {
        let stream = format!("{beginning}\n{{\"id\":\"1\",\"result\":true}}\n");
        let lines = lines_of(vec![stream.into_bytes()]).unwrap();
        // `{` and `[` may be followed by an object; all else is text, and the message counts.
        let joined = beginning.ends_with('[');
        assert_eq!(
            lines.contains(&result(1, json!(true))),
            !joined,
            "{beginning}: {lines:?}"
        );
    }
}

#[test]
fn the_last_line_needs_no_newline() {
    let stream = b"{\"id\":\"1\",\"result\":2}".to_vec();
    assert_eq!(lines_of(vec![stream]).unwrap(), [result(1, json!(2))]);
    let stream = b"{\"id\":\"1\",\n\"res".to_vec();
    assert_eq!(
        lines_of(vec![stream]).unwrap(),
        [text("{\"id\":\"1\","), text("\"res")]
    );
}

#[test]
fn too_much_is_refused() {
    let megabyte = vec![b'x'; 1_048_576];
    let endless = |count: usize| vec![megabyte.clone(); count];
    assert_eq!(lines_of(endless(12)), Err(Overflow::Message));
    let mut joined = vec![b"{\"a\":[\n".to_vec()];
    let rows = b"1,\n".repeat(400_000);
    joined.extend(vec![rows; 10]);
    assert_eq!(lines_of(joined), Err(Overflow::Message));
    let lines = b"all work and no play\n".repeat(50_000);
    assert_eq!(lines_of(vec![lines; 70]), Err(Overflow::Noise));
}

#[test]
fn the_largest_message_is_read() {
    let frame = "{\"id\":\"1\",\"result\":\"\"}\n".len();
    let value = "x".repeat(MAX_MESSAGE - frame);
    let line = format!("{{\"id\":\"1\",\"result\":\"{value}\"}}\n");
    let chunks = line.as_bytes().chunks(60_000).map(<[u8]>::to_vec).collect();
    assert_eq!(lines_of(chunks).unwrap(), [result(1, value.into())]);
}

#[test]
fn a_request_is_one_line() {
    let line = Outgoing::line(Some("1"), "execute", json!({"text": "a\nb\u{2028}"})).unwrap();
    let text = String::from_utf8(line).unwrap();
    assert_eq!(text.matches('\n').count(), 1);
    assert!(text.ends_with('\n'));
    let told: Value = serde_json::from_str(&text).unwrap();
    let expected = json!({"jsonrpc": "2.0", "id": "1", "method": "execute", "params": {"text": "a\nb\u{2028}"}});
    assert_eq!(told, expected);
    let notice = Outgoing::line(None, "cancel", json!({})).unwrap();
    assert!(!String::from_utf8(notice).unwrap().contains("\"id\""));
}

#[test]
fn ids_are_read_as_they_come() {
    let id_of = |id: &str| {
        let line = format!("{{\"id\": {id}, \"result\": 1}}");
        match Message::parse(line.as_bytes()).unwrap() {
            Message::Answer { id, .. } => id,
            Message::Notice { .. } => panic!("{line}"),
        }
    };
    assert_eq!(id_of("\"12\""), Some(12));
    assert_eq!(id_of("12"), Some(12));
    assert_eq!(id_of("null"), None);
    // An id that is none of ours belongs to nobody; it is not a missing one.
    for foreign in ["\"x\"", "-1", "1.5", "\"\""] {
        assert_eq!(id_of(foreign), Some(0), "{foreign}");
    }
    for none in ["[1]", "{}", "true"] {
        assert_eq!(id_of(none), None, "{none}");
    }
}

#[test]
fn errors_are_read_however_they_are_written() {
    let error_of = |error: Value| {
        let line = json!({"id": 1, "error": error, "result": null}).to_string();
        match Message::parse(line.as_bytes()).unwrap() {
            Message::Answer { result, .. } => result.unwrap_err(),
            Message::Notice { .. } => panic!("{line}"),
        }
    };
    let error = |code, message: &str, data| RpcError {
        code,
        message: message.to_owned(),
        data,
        said: Box::default(),
    };
    let whole = json!({"code": -32001, "message": "no", "data": [1]});
    assert_eq!(error_of(whole), error(-32001, "no", Some(json!([1]))));
    assert_eq!(error_of(json!({})), error(0, "", None));
    assert_eq!(
        error_of(json!({"code": -32602.0, "data": null})),
        error(-32602, "", None)
    );
    assert_eq!(
        error_of(json!({"code": "E", "message": 3})),
        error(0, "3", None)
    );
    assert_eq!(error_of(json!("on fire")), error(0, "on fire", None));
}

#[test]
fn an_error_that_cannot_be_read_is_one() {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    for odd in [
        r#"{"code": 1, "message": "half \ud83d"}"#,
        r#"{"code": 1, "message": "m", "data": 1e999}"#,
        &format!(r#"{{"code": 1, "message": "m", "data": {deep}}}"#),
    ] {
        let line = format!(r#"{{"id": 1, "error": {odd}}}"#);
        match Message::parse(line.as_bytes()) {
            Ok(Message::Answer {
                id: Some(1),
                result: Err(error),
            }) => assert!(error.message.contains("can't be read"), "{}", error.message),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn what_is_no_message_is_told_from_what_may_become_one() {
    let unfinished = |line: &str| Message::parse(line.as_bytes()).unwrap_err().is_unfinished();
    for line in ["{", "{\"a", "{\"a\":", "{\"a\": {}", "{\"a\": \"b\","] {
        assert!(unfinished(line), "{line}");
    }
    for line in [
        "{}",
        "{\"id\": 1}",
        "{a",
        "{\"a\" 1",
        "{} {}",
        "{\"method\": 4}",
        "{\"error\": null}",
    ] {
        assert!(!unfinished(line), "{line}");
    }
    let notice = Message::parse(b"{\"method\": \"log\", \"id\": 4}").unwrap();
    let expected = Message::Notice {
        method: "log".to_owned(),
        params: Value::Null,
    };
    assert_eq!(
        notice, expected,
        "a request of the worker's is heard, not answered"
    );
}
