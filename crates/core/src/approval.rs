//! A person's yes to one call: how its arguments are written to be hashed, and the permission to run that a claim gives.
//!
//! Why: `docs/design/0018-approvals.md`.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use crate::json::scan::{self, Kind, Parts};
use crate::middleware::Next;
use crate::store::{ApprovalBook, Claim, RunEnd, StoreError, Subject};
use crate::{Call, CallResult, Object, Tool};

/// The arguments in one way: names sorted, strings decoded and written again, numbers as they are spelled. Two texts that
/// a tool could tell apart by more than the order of names are two here.
pub fn canonical(arguments: &Object) -> String {
    let mut text = String::with_capacity(arguments.text().len());
    write(&mut text, arguments.text());
    text
}

fn write(out: &mut String, text: &str) {
    match text.as_bytes().first() {
        Some(b'{') => {
            let mut members: Vec<(Cow<'_, str>, &str)> = Parts::of(text).collect();
            members.sort_by(|one, other| one.0.cmp(&other.0));
            out.push('{');
            for (name, value) in members {
                write_string(out, &name);
                out.push(':');
                write(out, value);
                out.push(',');
            }
            out.push('}');
        }
        Some(b'[') => {
            out.push('[');
            for (_, item) in Parts::of(text) {
                write(out, item);
                out.push(',');
            }
            out.push(']');
        }
        Some(b'"') => match scan::decoded(text) {
            Some(said) => write_string(out, &said),
            None => out.push_str(text),
        },
        _ => {
            let word = scan::Tokens::of(text)
                .find(|token| matches!(token.kind, Kind::Number | Kind::Word));
            out.push_str(word.map_or(text, |token| token.of(text)));
        }
    }
}

fn write_string(out: &mut String, text: &str) {
    out.push_str(&serde_json::Value::from(text).to_string());
}

/// Whose call this is, and of what.
pub(crate) fn subject(call: &Call) -> Subject {
    Subject {
        project: call
            .context
            .directory
            .as_ref()
            .map(|root| root.to_string_lossy().into()),
        agent: call.caller.agent.clone(),
        token: call.caller.token.clone(),
        tool: call.tool.spec.name.shared(),
        content: content(&call.tool),
    }
}

/// All of a tool that a person says yes to: what it is made of, where it comes from, what it may do.
pub(crate) fn content(tool: &Tool) -> String {
    let Tool {
        spec: _,
        source,
        scope: _,
        file,
        module,
        interpreter,
        confined,
        plugin_name: _,
        access: _,
        declares: _,
        asks: _,
        reads,
        permit,
        stale: _,
        pending: _,
        shadows: _,
        hash,
        content,
        run: _,
    } = tool;
    format!(
        "{source:?} {file:?} {module:?} {interpreter:?} {confined} {reads:?} {permit:?} {hash:?} {content:?}"
    )
}

/// The permission to run one call, which nothing but a claim in the store makes. A call that is given up while it has one
/// is `interrupted`.
pub(crate) struct Permission {
    book: Arc<dyn ApprovalBook>,
    id: Arc<str>,
    has_ended: bool,
}

impl Permission {
    /// Takes a person's yes for exactly this call; nothing where it is not for this one, or is used already.
    pub async fn claim(
        book: &Arc<dyn ApprovalBook>,
        id: &Arc<str>,
        call: &Call,
        arguments: String,
        limit: Duration,
    ) -> Result<Option<Permission>, StoreError> {
        let record = &call.context.record_id;
        let claim = Claim {
            id: id.clone(),
            subject: subject(call),
            arguments,
            call: record.as_ref().unwrap_or(&call.context.call_id).clone(),
            limit,
        };
        let won = book.claim(claim).await?;
        Ok(won.then(|| Permission {
            book: book.clone(),
            id: id.clone(),
            has_ended: false,
        }))
    }

    /// Runs the call, once.
    pub async fn spend(mut self, call: &mut Call, next: Next<'_>) -> CallResult {
        let result = next.run(call).await;
        self.has_ended = true;
        if let Err(error) = self.book.end(&self.id, RunEnd::Used).await {
            tracing::warn!(%error, approval = %self.id, "that an approval was used could not be noted");
        }
        result
    }
}

impl Drop for Permission {
    fn drop(&mut self) {
        if !self.has_ended {
            self.book.end_soon(&self.id, RunEnd::Interrupted);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        canonical(&Object::parse(text).unwrap())
    }

    #[test]
    fn what_a_tool_could_not_tell_apart_is_written_alike() {
        let one = written(r#"{"b": {"d": [1, "x"], "c": null}, "a": "é"}"#);
        assert_eq!(
            one,
            written("{\"a\":\"\\u00e9\",\n \"b\":{\"c\":null,\"d\":[1,\"x\"]}}")
        );
        assert_eq!(written("{}"), canonical(&Object::default()));
    }

    #[test]
    fn what_it_could_tell_apart_is_not() {
        let all = [
            r#"{"n": 1}"#,
            r#"{"n": 1.0}"#,
            r#"{"n": 1e0}"#,
            r#"{"n": "1"}"#,
            r#"{"n": true}"#,
            r#"{"n": "true"}"#,
            r#"{"n": [1]}"#,
            r#"{"n": 0.1}"#,
            r#"{"n": 0.1000000000000000055511151231257827}"#,
            r#"{"n": 100000000000000000000001}"#,
            r#"{"n": 100000000000000000000002}"#,
            r#"{"n": 1e400}"#,
            r#"{"n": 1e401}"#,
            r#"{"n": "1,2"}"#,
            r#"{"n": ["1", "2"]}"#,
            r#"{"n": ["1,2"]}"#,
            r#"{"n": "a\u0000b"}"#,
            r#"{"n": "a\\u0000b"}"#,
            r#"{"n": {"a": 1, "b": 2}}"#,
            r#"{"n": {"a": 1}, "b": 2}"#,
            r#"{"n": "é"}"#,
            r#"{"n": "e\u0301"}"#,
        ];
        for (at, one) in all.iter().enumerate() {
            for other in &all[at + 1..] {
                assert_ne!(written(one), written(other), "{one} {other}");
            }
        }
    }
}
