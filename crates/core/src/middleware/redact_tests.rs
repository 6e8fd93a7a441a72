//! What of a tool's secrets comes through the link: nothing, on whatever way.

use std::sync::Mutex;

use serde_json::{Map, Value, json};

use super::*;
use crate::middleware::Shared;
use crate::testing::{NoOutputs, tool};
use crate::{Attachment, AttachmentKind, Caller, Context, Run, Tool};

const SECRET: &str = "hunter-two";

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
        arguments: Map::from_iter([("key".to_owned(), json!({"of": SECRET}))]),
        caller: Caller::new("test"),
        context: Context::noop().with_progress(Arc::new(move |progress| {
            told.lock().unwrap().push(progress)
        })),
    }
}

async fn run(call: &mut Call) -> CallResult {
    let shared = Shared::new(Arc::new(NoOutputs), || 7, None);
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
    assert_eq!(
        outcome.structured,
        Some(json!({"a": "***", "***": ["***"]}))
    );
    assert_eq!(outcome.output, outcome.structured.unwrap().to_string());
    assert_eq!(told.lock().unwrap().len(), 1);
    assert_eq!(call.arguments["key"]["of"], "***");
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
