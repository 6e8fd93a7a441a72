//! What can still be read from a line that is no message: whose answer it was meant to be.
//!
//! A worker that answers `NaN`, half a character, 129 levels or one field twice has answered all the same, and whoever
//! waits must not wait for its time to run out. A line counts as an answer only where its own members say so; a dictionary
//! that somebody printed stays a line of the log.

use super::message::{Message, RpcError, number};

/// The answer that a line was meant to be, as an error with the reason; nothing where it was none.
pub fn answer(line: &[u8], why: &str) -> Option<Message> {
    let start = line.iter().position(|byte| *byte == b'{')?;
    let members = members(&line[start..]);
    let has = |name: &str| members.iter().any(|(key, _)| *key == name.as_bytes());
    let is_answer = has("result") || has("error");
    if !is_answer || has("method") || !(has("jsonrpc") || has("id")) {
        return None;
    }
    let mut ids = members.iter().filter(|(key, _)| *key == b"id");
    let ids = ids.by_ref().filter_map(|(_, value)| read(value));
    let mut ids: Vec<u64> = ids.collect();
    ids.dedup();
    let why = why.split(" at line ").next().unwrap_or_default();
    Some(Message::Answer {
        // Two ids that differ are none.
        id: match ids.as_slice() {
            [id] => Some(*id),
            _ => None,
        },
        result: Err(RpcError {
            code: RpcError::FAILED,
            message: format!("the tool's answer can't be read: {why}"),
            data: None,
            said: Box::default(),
        }),
    })
}

fn read(value: &[u8]) -> Option<u64> {
    number(&serde_json::from_slice(value).ok()?)
}

/// The members of the object that a line begins, with those of their values that are strings or numbers. Takes any bytes.
fn members(line: &[u8]) -> Vec<(&[u8], &[u8])> {
    let mut found = Vec::new();
    let mut depth = 0_usize;
    let mut key_may_come = false;
    let mut at = 0;
    while at < line.len() {
        match line[at] {
            b'"' => {
                let end = string_end(line, at);
                let after = skip_space(line, end);
                if depth == 1 && key_may_come && line.get(after) == Some(&b':') {
                    let value = skip_space(line, after + 1);
                    let inside = &line[at + 1..end.saturating_sub(1).max(at + 1)];
                    found.push((inside, scalar(line, value)));
                }
                key_may_come = false;
                at = end;
                continue;
            }
            b'{' | b'[' => {
                depth += 1;
                key_may_come = depth == 1;
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                key_may_come = false;
                if depth == 0 {
                    break;
                }
            }
            b',' => key_may_come = true,
            byte if byte.is_ascii_whitespace() => {}
            _ => key_may_come = false,
        }
        at += 1;
    }
    found
}

/// Behind the quote that ends the string which begins here.
fn string_end(line: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < line.len() {
        match line[at] {
            b'\\' => at += 1,
            b'"' => return at + 1,
            _ => {}
        }
        at += 1;
    }
    line.len()
}

fn skip_space(line: &[u8], from: usize) -> usize {
    let rest = line.get(from..).unwrap_or_default();
    let space = rest.iter().take_while(|byte| byte.is_ascii_whitespace());
    from + space.count()
}

/// The string or number that begins here.
fn scalar(line: &[u8], start: usize) -> &[u8] {
    let end = match line.get(start) {
        Some(b'"') => string_end(line, start),
        _ => {
            let rest = line.get(start..).unwrap_or_default();
            let plain = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
            start + rest.iter().take_while(plain).count()
        }
    };
    line.get(start..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(line: &str) -> Option<Option<u64>> {
        match answer(line.as_bytes(), "why at line 1 column 2")? {
            Message::Answer { id, result } => {
                let told = result.unwrap_err().message;
                assert_eq!(told, "the tool's answer can't be read: why");
                Some(id)
            }
            Message::Notice { .. } => None,
        }
    }

    #[test]
    fn an_answer_is_known_by_its_members() {
        for (line, expected) in [
            (r#"{"jsonrpc":"2.0","id":"7","result":NaN}"#, Some(Some(7))),
            (r#"{"id":7,"result":NaN}"#, Some(Some(7))),
            (r#"{"id" : "7" , "error" : NaN}"#, Some(Some(7))),
            (r#"noise {"id":7,"result":1}"#, Some(Some(7))),
            (
                r#"{"result":{"id":8,"deep":[{"id":9}]},"id":"7"}"#,
                Some(Some(7)),
            ),
            (r#"{"result":"\"id\":8","id":"7"}"#, Some(Some(7))),
            (r#"{"id":"7","id":"7","result":1}"#, Some(Some(7))),
            (r#"{"id":"7","id":"8","result":1}"#, Some(None)),
            (r#"{"jsonrpc":"2.0","result":NaN}"#, Some(None)),
            (r#"{"id":"7","result":"never ends"#, Some(Some(7))),
            (r#"{"id":"7"}"#, None),
            (r#"{"result": NaN}"#, None),
            (r#"{"method":"progress","id":"7","result":NaN}"#, None),
            (r#"{'id': 7, 'result': nan}"#, None),
            ("no object", None),
        ] {
            assert_eq!(id(line), expected, "{line}");
        }
    }

    #[test]
    fn any_bytes_are_taken() {
        for line in [
            &b"{\""[..],
            b"{\"\\",
            b"{\"id\":",
            b"{\"id\":\"",
            b"{\xff\"id\":7,\"result\":\xfe}",
            b"{{{{",
            b"}}}{",
        ] {
            let _ = answer(line, "why");
        }
    }
}
