//! Tests of the crib's words as MCP's JSON.

use serde_json::json;

use super::*;
use crate::serve::tests::fixture;

fn outcome(outcome: Outcome, tool: &Tool) -> Value {
    serde_json::to_value(super::outcome(outcome, tool)).unwrap()
}

#[test]
fn a_string_is_one_text_block_alone() {
    let tool = fixture::tool("t", fixture::echo());
    let result = outcome(Outcome::text("hi"), &tool);
    assert_eq!(result, json!({"content": [{"type": "text", "text": "hi"}]}));
}

#[test]
fn data_is_said_twice_and_never_when_cut_or_failed() {
    let tool = fixture::tool("t", fixture::echo());
    let data = || Outcome::structured(json!({"a": 1}));
    let whole = outcome(data(), &tool);
    assert_eq!(whole["structuredContent"], json!({"a": 1}));
    assert_eq!(whole["content"][0]["text"], r#"{"a":1}"#);
    let failed = outcome(
        Outcome {
            is_error: true,
            ..data()
        },
        &tool,
    );
    assert_eq!(
        (failed.get("structuredContent"), &failed["isError"]),
        (None, &json!(true))
    );
    let cut = outcome(data().meta("truncated", true), &tool);
    assert_eq!(cut.get("structuredContent"), None);
}

#[test]
fn data_that_is_no_object_is_wrapped_for_older_revisions() {
    let tool = fixture::tool("t", fixture::echo());
    for (data, wrapped, expected) in [
        (json!([1, 2]), false, json!({"result": [1, 2]})),
        (json!(7), false, json!({"result": 7})),
        (json!({"a": 1}), false, json!({"a": 1})),
        (json!({"a": 1}), true, json!({"result": {"a": 1}})),
    ] {
        let mut view = super::outcome(Outcome::structured(data.clone()), &tool);
        view.wrap_data(wrapped);
        let view = serde_json::to_value(view).unwrap();
        assert_eq!(view["structuredContent"], expected);
        assert_eq!(view["content"][0]["text"], data.to_string());
    }
    let mut text = super::outcome(Outcome::text("hi"), &tool);
    text.wrap_data(true);
    assert_eq!(
        serde_json::to_value(text).unwrap().get("structuredContent"),
        None
    );
}

#[test]
fn attachments_become_the_blocks_of_their_kind() {
    let tool = fixture::tool("t", fixture::echo());
    let with = |kind, mime: &str, text: Option<&str>, data: Option<&str>, name: Option<&str>| {
        let attachment = Attachment {
            kind,
            mime_type: mime.to_owned(),
            text: text.map(str::to_owned),
            data: data.map(str::to_owned),
            name: name.map(str::to_owned),
        };
        let attachments = vec![attachment];
        let view = outcome(
            Outcome {
                attachments,
                ..Outcome::text("")
            },
            &tool,
        );
        view["content"][0].clone()
    };
    use AttachmentKind::{File, Image, Text};
    assert_eq!(
        with(Image, "image/png", None, Some("AA"), None),
        json!({"type": "image", "data": "AA", "mimeType": "image/png"})
    );
    assert_eq!(
        with(File, "audio/wav", None, Some("AA"), None),
        json!({"type": "audio", "data": "AA", "mimeType": "audio/wav"})
    );
    assert_eq!(
        with(Text, "text/plain", Some("t"), None, None),
        json!({"type": "text", "text": "t"})
    );
    assert_eq!(
        with(File, "a/b", None, Some("AA"), Some("a b/c.d")),
        json!({"type": "resource", "resource":
            {"uri": "toolcrib://attachments/a_b_c.d", "mimeType": "a/b", "blob": "AA"}})
    );
    assert_eq!(
        with(File, "a/b", None, None, None),
        json!({"type": "resource", "resource":
            {"uri": "toolcrib://attachments/attachment-0", "mimeType": "a/b", "text": ""}})
    );
}

/// Every kind of block, with all that MCP knows and something that it does not.
const OWN_FORM: &str = r#"{"content":[
    {"type":"text","text":"a","annotations":{"audience":["user"],"priority":1.0,"lastModified":"2026-01-01T00:00:00Z"},"_meta":{"x/y":1}},
    {"type":"image","data":"AA==","mimeType":"image/png","annotations":{"priority":0.50}},
    {"type":"audio","data":"AA==","mimeType":"audio/wav","later":[1]},
    {"type":"resource_link","uri":"file:///a","name":"a","title":"A","size":123456789012345678901234567890,"icons":[{"src":"data:,"}]},
    {"type":"resource","resource":{"uri":"file:///b","mimeType":"text/plain","text":"\u0062","_meta":{"z":null}}},
    {"type":"resource","resource":{"uri":"file:///c","blob":"AA==","later":1e2}},
    {"type":"later","deep":{"a":[{}]}},
    {"type":"text","text":""}],
    "structuredContent":{"b":1.0,"a":[123456789012345678901234567890]},"isError":false,"_meta":{"k/v":{"n":1.50}}}"#;

#[test]
fn a_result_of_mcps_own_form_goes_out_as_it_came() {
    let mut tool = fixture::tool("t", fixture::echo());
    tool.spec.version = Some("1.2".into());
    let came = Json::parse(OWN_FORM).unwrap();
    let gone = serde_json::to_string(&super::outcome(Outcome::from_json(came.clone()), &tool));
    assert_eq!(gone.unwrap(), came.text());
    let server = OWN_FORM.replace(r#""isError":false"#, r#""isError":true,"later":{"x":1.0}"#);
    let came = Json::parse(&server).unwrap();
    let gone = serde_json::to_string(&super::outcome(Outcome::from_mcp(&came).unwrap(), &tool));
    let gone = Json::parse(&gone.unwrap()).unwrap();
    assert_eq!(gone, came);
    for part in [
        r#""later":{"x":1.0}"#,
        "123456789012345678901234567890",
        "1.50",
        r"\u0062",
    ] {
        assert!(gone.text().contains(part), "{gone}");
    }
}

#[test]
fn what_was_cut_of_it_is_said_beside_its_own_meta() {
    let tool = fixture::tool("t", fixture::echo());
    let came = Outcome::from_json(Json::parse(OWN_FORM).unwrap());
    let result = outcome(came.meta("truncated", true), &tool);
    assert_eq!(
        result["_meta"],
        json!({"k/v": {"n": 1.5}, "toolcrib/metadata": {"truncated": true}})
    );
}

#[test]
fn a_listed_tool_has_its_title_icons_and_meta() {
    let mut listed = fixture::tool("t", fixture::echo());
    listed.spec.annotations.title = Some("Hint".into());
    listed.spec.title = Some("Tool".into());
    listed.spec.icons = Some(json!([{"src": "data:,", "sizes": ["any"], "later": 1}]).into());
    listed.spec.meta = Some(Object::parse(r#"{"a/b": {"c": 1}}"#).unwrap());
    let view = tool(&listed);
    assert_eq!(
        (&view["title"], &view["annotations"]["title"]),
        (&json!("Tool"), &json!("Hint"))
    );
    assert_eq!(
        view["icons"],
        json!([{"src": "data:,", "sizes": ["any"], "later": 1}])
    );
    assert_eq!(view["_meta"], json!({"a/b": {"c": 1}}));
}

#[test]
fn what_the_crib_adds_is_in_meta() {
    let mut tool = fixture::tool("t", fixture::echo());
    tool.spec.version = Some("1.2".into());
    let view = outcome(Outcome::text("hi").title("Said").meta("a", 1), &tool);
    assert_eq!(
        view["_meta"],
        json!({"toolcrib/title": "Said", "toolcrib/metadata": {"a": 1}, "toolcrib/version": "1.2"})
    );
}

#[test]
fn errors_follow_the_table() {
    for code in ErrorCode::ALL {
        let refused = CallError::new(code, "no").hint("do");
        match (code, error(&refused)) {
            (ErrorCode::UnknownTool, ErrorReply::Protocol(number, _)) => {
                assert_eq!(number, -32602)
            }
            (ErrorCode::Internal, ErrorReply::Protocol(number, _)) => {
                assert_eq!(number, -32603)
            }
            (_, ErrorReply::Result(result)) => {
                let result = serde_json::to_value(result).unwrap();
                assert_eq!(result["isError"], true);
                assert_eq!(result["content"][0]["text"], "no\nhint: do");
                assert_eq!(result["_meta"]["toolcrib/code"], code.as_str());
            }
            (code, ErrorReply::Protocol(..)) => panic!("{code} is no protocol error"),
        }
    }
}
