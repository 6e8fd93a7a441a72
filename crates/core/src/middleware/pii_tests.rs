//! Personal data is hidden wherever a tool may put it, and what is none stays as it is written.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::*;
use crate::profile::{ListedLink, MiddlewareTable};
use crate::store::{CallRecord, Recorded, StoreError};
use crate::testing::{NoOutputs, builtins, request, tool};
use crate::{ChainSettings, Crib, Json, OutputId, Page, Profiles, Progress, Request, Run, Spool};

/// Gives what it was made with, and tells what it was called with.
struct Gives(Box<dyn Fn(&Call) -> CallResult + Send + Sync>);

impl Run for Gives {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, CallResult> {
        Box::pin(async move { (self.0)(call) })
    }
}

/// Hashes with a key that is no secret.
struct Book;

impl CallBook for Book {
    fn record(&self, _: CallRecord) -> Recorded {
        Recorded::Queued
    }

    fn record_durably(&self, _: CallRecord) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn argument_hash(&self, arguments: &Object) -> Option<String> {
        let sum = arguments.text().bytes().fold(7_u64, |sum, byte| {
            sum.wrapping_mul(1_099_511_628_211) ^ u64::from(byte)
        });
        Some(format!("{sum:016x}"))
    }
}

type Texts = Arc<Mutex<HashMap<String, Vec<u8>>>>;

/// Outputs in memory.
#[derive(Clone, Default)]
struct Memory(Texts);

struct MemorySpool(Texts, Vec<u8>);

fn put(texts: &Texts, bytes: Vec<u8>) -> Whole {
    static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(1);
    let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let id = OutputId::parse(&format!("{number:08x}")).unwrap();
    let whole = Whole {
        id: id.clone(),
        bytes: bytes.len() as u64,
        lines: super::super::trim::count_lines(&bytes),
        cut: false,
    };
    texts.lock().unwrap().insert(id.to_string(), bytes);
    whole
}

impl Outputs for Memory {
    fn keep<'a>(&'a self, _: &'a str, text: &'a [u8]) -> BoxFuture<'a, io::Result<Whole>> {
        Box::pin(async move { Ok(put(&self.0, text.to_vec())) })
    }

    fn spool<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Box<dyn Spool>>> {
        let spool = MemorySpool(self.0.clone(), Vec::new());
        Box::pin(async move { Ok(Box::new(spool) as Box<dyn Spool>) })
    }

    fn read<'a>(
        &'a self,
        _: &'a str,
        id: &'a OutputId,
        offset: u64,
        max: usize,
    ) -> BoxFuture<'a, io::Result<Page>> {
        let texts = self.0.lock().unwrap();
        let page = texts.get(id.as_str()).map(|text| {
            let from = usize::try_from(offset).unwrap().min(text.len());
            Page {
                offset,
                bytes: text[from..(from + max).min(text.len())].to_vec(),
                total: text.len() as u64,
            }
        });
        let page = page.ok_or(io::ErrorKind::NotFound.into());
        Box::pin(std::future::ready(page))
    }

    fn remove<'a>(&'a self, _: &'a str, id: &'a OutputId) -> BoxFuture<'a, io::Result<()>> {
        self.0.lock().unwrap().remove(id.as_str());
        Box::pin(std::future::ready(Ok(())))
    }
}

impl Spool for MemorySpool {
    fn write<'a>(&'a mut self, bytes: &'a [u8]) -> BoxFuture<'a, io::Result<()>> {
        self.1.extend_from_slice(bytes);
        Box::pin(std::future::ready(Ok(())))
    }

    fn finish(self: Box<Self>) -> BoxFuture<'static, io::Result<Whole>> {
        Box::pin(async move { Ok(put(&self.0, self.1)) })
    }
}

fn read(parameters: Value) -> Result<ListedLink, String> {
    let mut table = json!({"name": "pii"});
    let more = parameters.as_object().unwrap().clone();
    table.as_object_mut().unwrap().extend(more);
    let table: MiddlewareTable = serde_json::from_value(table).unwrap();
    ListedLink::read(&table).map_err(|error| error.to_string())
}

fn crib(
    parameters: Value,
    outputs: Arc<dyn Outputs>,
    gives: impl Fn(&Call) -> CallResult + Send + Sync + 'static,
) -> Crib {
    let settings = ChainSettings {
        middleware: vec![read(parameters).unwrap()],
        ..ChainSettings::new(Duration::from_secs(5))
    };
    let profiles = Profiles::everybody(settings);
    let crib = Crib::with_book(outputs, || 7, profiles, Some(Arc::new(Book)));
    crib.apply(builtins([tool("t", Arc::new(Gives(Box::new(gives))))]));
    crib
}

async fn outcome(parameters: Value, given: Outcome) -> CallResult {
    let crib = crib(parameters, Arc::new(NoOutputs), move |_| Ok(given.clone()));
    crib.call(request("t", json!({}))).await
}

async fn text(parameters: Value, given: &str) -> String {
    outcome(parameters, Outcome::text(given))
        .await
        .unwrap()
        .output
}

#[tokio::test]
async fn each_strategy_has_langchains_shape() {
    let with =
        |strategy: &str| json!({"pii_types": ["email", "credit_card", "ip"], "strategy": strategy});
    let given = "jane.doe@example.co.uk 4111-1111-1111-1111 10.0.0.77";
    assert_eq!(
        text(json!({"pii_types": ["email"]}), given).await,
        "[REDACTED_EMAIL] 4111-1111-1111-1111 10.0.0.77"
    );
    assert_eq!(
        text(with("mask"), given).await,
        "jane.doe@****.uk ****-****-****-1111 *.*.*.77"
    );
    let hashed = text(with("hash"), "a@example.com A@EXAMPLE.COM b@example.com").await;
    let parts: Vec<&str> = hashed.split(' ').collect();
    assert_eq!(parts[0], parts[1], "the same address, written in two ways");
    assert_ne!(parts[0], parts[2]);
    assert!(
        parts[0].starts_with("<email_hash:") && parts[0].len() == "<email_hash:45513bb1>".len()
    );
    let error = outcome(with("block"), Outcome::text(given))
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::Denied);
    let blocked = outcome(
        json!({"pii_type": "email", "strategy": "block"}),
        Outcome::text(given),
    )
    .await;
    let blocked = blocked.unwrap_err().message;
    assert_eq!(blocked, "Detected 1 instance(s) of email in text content");
}

#[tokio::test]
async fn it_is_hidden_wherever_a_tool_may_put_it() {
    let personal = "a@example.com";
    let data = STANDARD.encode(format!("to {personal}"));
    let contract = json!({
        "output": personal, "title": personal, "metadata": {"m": [personal]}, "structured": {"s": personal, personal: 1},
        "attachments": [
            {"type": "text", "mimeType": "text/plain", "text": personal, "name": personal},
            {"type": "file", "mimeType": "text/csv", "data": data},
        ],
    });
    let blocks = json!({"content": [
        {"type": "text", "text": personal, "_meta": {"x": personal}},
        {"type": "resource", "resource": {"uri": "file:///x", "text": personal}},
        {"type": "resource", "resource": {"uri": "file:///y", "blob": data}},
        {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
    ], "structuredContent": {"s": personal}, "_meta": {"from": personal}});
    for given in [contract, blocks] {
        let given = Outcome::from_json(given.into());
        let shown = outcome(json!({"pii_types": ["email"]}), given)
            .await
            .unwrap();
        let all = format!("{shown:?}");
        assert!(!all.contains(personal) && !all.contains(&data), "{all}");
        assert!(shown.output.contains("[REDACTED_EMAIL]"));
        if let Some(content) = &shown.content {
            assert_eq!(content.words(), shown.output);
            let image = content.blocks[3].object().text();
            assert_eq!(
                image,
                r#"{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"}"#
            );
        }
    }
}

#[tokio::test]
async fn json_is_judged_decoded_and_the_rest_stays_as_written() {
    let written = r#"{"n": 4111111111111111, "f": 1.0, "e": "a\u0040example.com", "k": "\u00e4\/", "card": "4111111111111111",  "a@example.com": 1, "b@example.com": 2}"#;
    let wanted = r#"{"n": 4111111111111111, "f": 1.0, "e": "[REDACTED_EMAIL]", "k": "\u00e4\/", "card": "[REDACTED_CREDIT_CARD]",  "[REDACTED_EMAIL]": 1, "[REDACTED_EMAIL]_2": 2}"#;
    let types = json!({"pii_types": ["email", "credit_card"]});
    let given = Outcome::structured(Json::parse(written).unwrap());
    let shown = outcome(types.clone(), given).await.unwrap();
    let data = shown.structured.unwrap();
    assert_eq!(data.text(), wanted);
    assert_eq!(shown.output, data.compact());
    // The same where a tool prints it.
    assert_eq!(
        text(types.clone(), &format!("{written}\n")).await,
        format!("{wanted}\n")
    );
    // What holds nothing is not touched, and a name may tell that a number is none.
    let clean = r#"{"order_id": "4111111111111111", "at": 1700000000}"#;
    assert_eq!(text(types, clean).await, clean);
}

#[tokio::test]
async fn progress_and_errors_are_covered_and_a_block_lets_none_of_it_pass() {
    for strategy in ["redact", "block"] {
        let parameters = json!({"pii_types": ["email"], "strategy": strategy});
        let crib = crib(parameters, Arc::new(NoOutputs), |call| {
            call.context.progress(Progress {
                title: Some("for a@example.com".to_owned()),
                data: serde_json::Map::from_iter([("to".to_owned(), "a@example.com".into())]),
                ..Progress::default()
            });
            let error = CallError::unavailable("no a@example.com").hint("ask a@example.com");
            Err(error.data(json!({"who": ["a@example.com", 5]})))
        });
        let told: Arc<Mutex<Vec<Progress>>> = Arc::default();
        let listener = told.clone();
        let mut request: Request = request("t", json!({}));
        request.context = request
            .context
            .with_progress(Arc::new(move |step| listener.lock().unwrap().push(step)));
        let error = crib.call(request).await.unwrap_err();
        assert_eq!(error.message, "no [REDACTED_EMAIL]");
        assert_eq!(error.code, ErrorCode::Unavailable);
        assert_eq!(
            *error.data.unwrap(),
            json!({"who": ["[REDACTED_EMAIL]", 5]})
        );
        assert_eq!(error.hint.unwrap().to_string(), "ask [REDACTED_EMAIL]");
        let told = format!("{:?}", told.lock().unwrap());
        assert!(
            told.contains("for [REDACTED_EMAIL]") && !told.contains("a@example.com"),
            "{told}"
        );
    }
}

#[tokio::test]
async fn an_output_on_disk_is_covered_and_its_first_form_goes() {
    let line = "a line that tells nothing and fills the disk\n".repeat(12_000);
    let spooled = format!("first a@example.com\n{line}last b@example.com");
    for (strategy, is_shown) in [("redact", true), ("block", false)] {
        let memory = Memory::default();
        let whole = put(&memory.0, spooled.clone().into_bytes());
        // The beginning ends within the address.
        let given = Outcome {
            output: spooled[..14].to_owned(),
            whole: Some(whole.clone()),
            ..Outcome::default()
        };
        let parameters = json!({"pii_types": ["email"], "strategy": strategy});
        let crib = crib(parameters, Arc::new(memory.clone()), move |_| {
            Ok(given.clone())
        });
        let result = crib.call(request("t", json!({}))).await;
        let kept = memory.0.lock().unwrap();
        assert!(!kept.contains_key(whole.id.as_str()), "{strategy}");
        if !is_shown {
            let message = result.unwrap_err().message;
            assert_eq!(message, "Detected 2 instance(s) of email in text content");
            assert!(kept.is_empty());
            continue;
        }
        let shown = result.unwrap();
        assert!(
            shown.output.contains("\n\nfirst [REDACTE"),
            "{}",
            shown.output
        );
        let id = shown.metadata["outputId"].as_str().unwrap();
        let wanted = spooled.replace("a@example.com", "[REDACTED_EMAIL]");
        let wanted = wanted.replace("b@example.com", "[REDACTED_EMAIL]");
        assert!(kept[id] == wanted.as_bytes());
    }
}

#[tokio::test]
async fn what_can_not_be_looked_at_is_not_shown() {
    let id = OutputId::parse("00000000").unwrap();
    let lost = Outcome {
        output: "mail jane@exam".to_owned(),
        whole: Some(Whole {
            id,
            bytes: 99,
            lines: 1,
            cut: false,
        }),
        ..Outcome::default()
    };
    let shown = outcome(json!({"pii_types": ["email"]}), lost)
        .await
        .unwrap();
    assert!(
        shown.output.contains("\n\nmail \n") && !shown.output.contains("jane"),
        "{}",
        shown.output
    );
}

#[tokio::test]
async fn arguments_are_left_alone_unless_somebody_says_so() {
    let called = async |parameters: Value| {
        let seen: Arc<Mutex<Option<String>>> = Arc::default();
        let noted = seen.clone();
        let crib = crib(parameters, Arc::new(NoOutputs), move |call| {
            *noted.lock().unwrap() = Some(call.arguments.text().to_owned());
            Ok(Outcome::text("to a@example.com"))
        });
        let result = crib
            .call(request("t", json!({"to": "a@example.com"})))
            .await;
        (
            seen.lock().unwrap().clone(),
            result.map(|outcome| outcome.output),
        )
    };
    let as_given = Some(r#"{"to":"a@example.com"}"#.to_owned());
    let hidden = Ok("to [REDACTED_EMAIL]".to_owned());
    let shown = Ok("to a@example.com".to_owned());
    let email = |more: Value| {
        let mut parameters = json!({"pii_type": "email"});
        parameters
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        parameters
    };
    assert_eq!(
        called(email(json!({}))).await,
        (as_given.clone(), hidden.clone())
    );
    let off = json!({"apply_to_output": false});
    assert_eq!(called(email(off)).await, (as_given.clone(), shown.clone()));
    // As LangChain means it: what a tool gives is its results.
    let results = json!({"apply_to_output": false, "apply_to_tool_results": true});
    assert_eq!(called(email(results)).await, (as_given, hidden));
    let input = json!({"apply_to_input": true, "apply_to_output": false});
    let covered = Some(r#"{"to":"[REDACTED_EMAIL]"}"#.to_owned());
    assert_eq!(called(email(input)).await, (covered, shown));
    let block = json!({"apply_to_input": true, "strategy": "block"});
    let (seen, result) = called(email(block)).await;
    let error = result.unwrap_err();
    assert_eq!(
        (seen, error.code, error.unreached),
        (None, ErrorCode::Denied, true)
    );
}

#[tokio::test]
async fn patterns_of_ones_own_are_found() {
    let own = json!({"pii_types": ["email", {"name": "employee_id", "pattern": "EMP-\\d{6}"}]});
    assert_eq!(
        text(own, "EMP-123456 a@example.com").await,
        "[REDACTED_EMPLOYEE_ID] [REDACTED_EMAIL]"
    );
    let langchains = json!({"pii_type": "badge", "detector": "B\\d+", "strategy": "mask"});
    assert_eq!(
        text(langchains, "B123456 and B1").await,
        "****3456 and ****"
    );
}

#[test]
fn what_can_not_be_meant_is_refused_with_what_was() {
    let why = |parameters: Value| read(parameters).err().unwrap();
    for (parameters, wanted) in [
        (
            json!({"pii_types": ["emial"]}),
            "there is no PII type `emial`; did you mean `email`?",
        ),
        (json!({"pii_types": ["badge"]}), "any other needs a pattern"),
        (
            json!({"pii_types": ["email"], "stratgy": "mask"}),
            "did you mean `strategy`?",
        ),
        (
            json!({"pii_types": ["email"], "strategy": "masks"}),
            "did you mean `mask`?",
        ),
        (
            json!({"pii_types": ["email"], "apply_to_ouput": true}),
            "did you mean `apply_to_output`?",
        ),
        (json!({}), "missing field `pii_types`"),
        (json!({"pii_types": []}), "names no type"),
        (json!({"pii_type": "x", "detector": "("}), "can't be used"),
        (
            json!({"pii_type": "x", "detector": "a*"}),
            "matches an empty text",
        ),
        (
            json!({"pii_type": "x", "detector": "((a{100}){100}){100}"}),
            "can't be used",
        ),
    ] {
        let why = why(parameters);
        assert!(
            why.starts_with("middleware `pii`: ") && why.contains(wanted),
            "{why}"
        );
    }
}
