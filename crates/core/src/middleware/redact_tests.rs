//! What of a tool's secrets comes through the link: nothing, on whatever way.

use std::sync::Mutex;

use serde_json::json;

use super::*;
use crate::middleware::{Books, Shared};
use crate::testing::{NoOutputs, tool};
use crate::{Attachment, AttachmentKind, CallError, Caller, Context, Outcome, Progress, Run, Tool};

const SECRET: &str = "hunter-two";
/// The secret in spellings that no search of the text itself would find.
const ARGUMENTS: &str = r#"{"key": {"of": "hunter\u002dtwo", "\u0068unter-two": 1.0, "big": 123456789012345678901234567890}}"#;

/// A tool that gets its secret when it runs, tells of it, and ends as the test says.
struct Blabber<F> {
    hidden: Option<Hidden>,
    end: F,
}

impl<F: Fn(&Call) -> Option<CallResult> + Send + Sync> Run for Blabber<F> {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, CallResult> {
        Box::pin(async move {
            if let Some(hidden) = &self.hidden {
                hidden.add([SECRET]);
            }
            call.context.progress(Progress {
                title: Some(format!("title {SECRET}")),
                message: Some(format!("message {SECRET}")),
                data: Map::from_iter([(SECRET.to_owned(), json!([SECRET]))]),
                ..Progress::default()
            });
            match (self.end)(call) {
                Some(result) => result,
                None => std::future::pending().await,
            }
        })
    }

    fn hidden(&self, _: &Tool) -> Option<Hidden> {
        self.hidden.clone()
    }
}

fn call(run: impl Run + 'static, told: &Arc<Mutex<Vec<Progress>>>) -> Call {
    let told = told.clone();
    Call {
        tool: Arc::new(tool("blab", Arc::new(run))),
        arguments: Object::parse(ARGUMENTS).unwrap(),
        caller: Caller::new("test"),
        context: Context::noop().with_progress(Arc::new(move |progress| {
            told.lock().unwrap().push(progress)
        })),
    }
}

async fn run(call: &mut Call) -> CallResult {
    let shared = Shared::new(Arc::new(NoOutputs), || 7, Books::default());
    Next::new(&[Arc::new(Redact)], &shared).run(call).await
}

fn given(call: &Call) -> bool {
    call.arguments["key"]["of"] == SECRET
}

#[tokio::test]
async fn nothing_of_an_outcome_tells_it() {
    let run = Blabber {
        hidden: Some(Hidden::default()),
        end: |call: &Call| {
            assert!(given(call), "the tool itself gets what was sent");
            let mut outcome = Outcome::structured(json!({"a": SECRET, SECRET: [SECRET]}))
                .title(SECRET)
                .meta(SECRET, json!({"deep": [SECRET]}));
            outcome.attachments = vec![Attachment {
                kind: AttachmentKind::Text,
                mime_type: "text/plain".to_owned(),
                text: Some(SECRET.to_owned()),
                data: Some("aHVudGVyLXR3bw==".to_owned()),
                name: Some(SECRET.to_owned()),
            }];
            Some(Ok(outcome))
        },
    };
    let told = Arc::default();
    let mut call = call(run, &told);
    let outcome = self::run(&mut call).await.unwrap();
    let said = format!(
        "{outcome:?} {:?} {:?}",
        told.lock().unwrap(),
        call.arguments
    );
    assert!(!said.contains(SECRET), "{said}");
    assert!(!said.contains("aHVudGVyLXR3bw"), "{said}");
    let data = outcome.structured.unwrap();
    assert_eq!(data, json!({"a": "***", "***": ["***"]}));
    assert_eq!(outcome.output, data.text());
    assert_eq!(told.lock().unwrap().len(), 1);
    assert_eq!(call.arguments["key"]["of"], "***");
}

/// The secret with escapes, as a part of JSON text.
const ESCAPED: &str = r"\u0068unter-t\u0077o";

/// All that a result of MCP's may hold, with the secret in each place.
fn everywhere() -> Outcome {
    let base64 = "aHVudGVyLXR3bw==";
    let text = format!(
        r#"{{"content": [
            {{"type": "text", "text": "a {ESCAPED} b", "annotations": {{"{ESCAPED}": "{ESCAPED}"}}, "n": 1.0}},
            {{"type": "image", "data": "{base64}", "mimeType": "{ESCAPED}", "_meta": {{"k": "{ESCAPED}"}}}},
            {{"type": "audio", "d\u0061ta": "{base64}", "data": "{base64}", "mimeType": "audio/wav"}},
            {{"type": "resource", "resource": {{"uri": "a:{ESCAPED}", "text": "{ESCAPED}", "blob": "{base64}"}}}},
            {{"type": "resource_link", "uri": "a:{ESCAPED}", "name": "{ESCAPED}"}},
            {{"type": "{ESCAPED}", "deep": [[["{ESCAPED}"]]]}}],
          "structuredContent": {{"{ESCAPED}": ["{ESCAPED}"], "big": 123456789012345678901234567890}},
          "_meta": {{"{ESCAPED}": {{"a": "{ESCAPED}"}}, "f": 1.50}}, "isError": false}}"#
    );
    Outcome::from_json(Json::parse(&text).unwrap())
}

#[tokio::test]
async fn escapes_hide_it_from_nobody_and_what_is_not_changed_stays() {
    let run = Blabber {
        hidden: Some(Hidden::default()),
        end: |call: &Call| {
            assert!(given(call));
            let metadata = format!(r#"{{"m": "{ESCAPED}", "{ESCAPED}": {{"x": 1.0}}}}"#);
            Some(Ok(Outcome {
                metadata: Object::parse(&metadata).unwrap(),
                ..everywhere()
            }))
        },
    };
    let told = Arc::default();
    let mut call = call(run, &told);
    let outcome = self::run(&mut call).await.unwrap();
    let said = format!(
        "{outcome:?} {:?} {:?}",
        told.lock().unwrap(),
        call.arguments
    );
    for form in [SECRET, ESCAPED, "\\u0068", "aHVudGVyLXR3bw", "\\u002d"] {
        assert!(!said.contains(form), "{form}: {said}");
    }
    let content = outcome.content.unwrap();
    let block = |at: usize| content.blocks[at].object().text();
    assert_eq!(
        block(0),
        r#"{"type":"text","text":"a *** b","annotations":{"***":"***"},"n":1.0}"#
    );
    assert_eq!(
        block(4),
        r#"{"type":"resource_link","uri":"a:***","name":"***"}"#
    );
    assert_eq!(
        content.meta.unwrap().text(),
        r#"{"***":{"a":"***"},"f":1.50}"#
    );
    assert_eq!(
        outcome.structured.unwrap().text(),
        r#"{"***":["***"],"big":123456789012345678901234567890}"#
    );
    assert_eq!(
        outcome.metadata.text(),
        r#"{"m": "***", "***": {"x": 1.0}}"#
    );
    assert_eq!(
        call.arguments.text(),
        r#"{"key": {"of": "***", "***": 1.0, "big": 123456789012345678901234567890}}"#
    );
}

#[tokio::test]
async fn a_name_that_stands_twice_hides_nothing() {
    let run = Blabber {
        hidden: Some(Hidden::default()),
        end: |_: &Call| {
            let text = format!(r#"{{"a": "{SECRET}", "a": {{"b": "{ESCAPED}", "b": 1}}}}"#);
            Some(Ok(Outcome::from_json(Json::parse(&text).unwrap())))
        },
    };
    let mut call = call(run, &Arc::default());
    let outcome = self::run(&mut call).await.unwrap();
    assert_eq!(
        outcome.structured.as_ref().unwrap().text(),
        r#"{"a": "***", "a": {"b": "***", "b": 1}}"#
    );
    assert!(!format!("{outcome:?}").contains(SECRET));
}

#[tokio::test]
async fn nothing_of_an_error_tells_it() {
    let run = Blabber {
        hidden: Some(Hidden::default()),
        end: |_: &Call| {
            let error = CallError::internal(SECRET).hint(SECRET);
            Some(Err(error.data(json!({"stderr": SECRET}))))
        },
    };
    let mut call = call(run, &Arc::default());
    let error = self::run(&mut call).await.unwrap_err();
    assert!(!format!("{error:?}").contains(SECRET), "{error:?}");
}

#[tokio::test]
async fn the_arguments_of_a_call_that_was_given_up_are_covered() {
    let run = Blabber {
        hidden: Some(Hidden::default()),
        end: |_: &Call| None,
    };
    let mut call = call(run, &Arc::default());
    {
        let mut running: BoxFuture<'_, CallResult> = Box::pin(self::run(&mut call));
        let polled = poll_once(&mut running).await;
        assert!(!polled);
    }
    assert_eq!(call.arguments["key"]["of"], "***");
}

/// Polls once; true if it is over.
async fn poll_once(running: &mut BoxFuture<'_, CallResult>) -> bool {
    std::future::poll_fn(|cx| std::task::Poll::Ready(running.as_mut().poll(cx).is_ready())).await
}

#[tokio::test]
async fn a_tool_that_gets_nothing_is_left_alone() {
    let run = Blabber {
        hidden: None,
        end: |_: &Call| Some(Ok(Outcome::text(SECRET))),
    };
    let told = Arc::default();
    let mut call = call(run, &told);
    let outcome = self::run(&mut call).await.unwrap();
    assert_eq!(outcome.output, SECRET);
    assert!(given(&call));
    assert_eq!(
        told.lock().unwrap()[0].data[SECRET],
        Value::from(vec![SECRET])
    );
}
