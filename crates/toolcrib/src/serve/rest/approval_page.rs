//! The page on which a person decides: plain HTML that needs no script. Looking never decides; a decision is a form that is
//! sent, by a login that may, with a mark that only this page gave to that login.

use std::sync::Arc;

use axum::extract::rejection::{FormRejection, PathRejection};
use axum::extract::{Form, Path, State};
use axum::http::StatusCode;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;
use toolcrib_core::store::{Approval, ApprovalState, DecisionKind};
use toolcrib_core::{CallError, ErrorCode, Object};

use super::approvals::{approver, may_look};
use super::{ErrorResponse, bad_request, named};
use crate::approver::desk::PAGE;
use crate::serve::Served;
use crate::serve::auth::{Scope, Who};
use crate::store_handle::refused;
use crate::wire::{ApprovalDecision, ErrorView, readable, rfc3339, visible};

/// What a mark is for: nothing else is signed with its key.
const PURPOSE: &str = "approval page";

/// What the form sends.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sent {
    mark: String,
    decision: String,
    #[serde(default)]
    arguments: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    text: String,
}

/// Shows an approval to a person. Takes the scope `approve` or `manage` besides. It decides nothing.
#[utoipa::path(
    get, path = "/approvals/{id}", tag = "approvals", operation_id = "approvalPage",
    params(("id" = String, Path, description = "`id` in the list")),
    responses(
        (status = 200, description = "A page that needs no script", body = String, content_type = "text/html; charset=utf-8"),
        (status = 400, description = "`bad_request`: the id is not UTF-8", body = ErrorView),
        (status = 403, description = "`forbidden`: neither `approve` nor `manage`, or foreign Host or Origin", body = ErrorView),
        (status = 404, description = "`not_found`: there is no such approval", body = ErrorView),
        (status = 503, description = "`unavailable`: the store can't be used", body = ErrorView),
    )
)]
pub async fn show(
    State(served): State<Arc<Served>>,
    who: Who,
    id: Result<Path<String>, PathRejection>,
) -> Result<Response, ErrorResponse> {
    may_look(&who)?;
    let approval = approver(&served)?.get(&named(id)?).await?;
    let mark = match who.may(Scope::Approve) {
        true => Some(mark(&served, &who, &approval.id)?),
        false => None,
    };
    Ok(page(&approval, &who, mark.as_deref()))
}

/// Takes the form of the page.
#[utoipa::path(
    post, path = "/approvals/{id}", tag = "approvals", operation_id = "sendApprovalPage",
    params(("id" = String, Path, description = "`id` in the list")),
    request_body(content = String, content_type = "application/x-www-form-urlencoded", description = "The page's form"),
    responses(
        (status = 303, description = "Decided; back to the page"),
        (status = 400, description = "`bad_request`: the form is not this page's", body = ErrorView),
        (status = 403, description = "`forbidden`: nobody who may decide, or foreign Host or Origin", body = ErrorView),
        (status = 404, description = "`not_found`: there is no such approval", body = ErrorView),
        (status = 409, description = "`conflict`: it was decided already, or is over", body = ErrorView),
        (status = 413, description = "`too_large`: the form is over 10 MB", body = ErrorView),
        (status = 422, description = "`invalid_arguments`: the tool does not take the edited arguments", body = ErrorView),
        (status = 503, description = "`unavailable`: the store can't be used", body = ErrorView),
    )
)]
pub async fn send(
    State(served): State<Arc<Served>>,
    who: Who,
    id: Result<Path<String>, PathRejection>,
    form: Result<Form<Sent>, FormRejection>,
) -> Result<Response, ErrorResponse> {
    let decider = who.decider()?;
    let id = named(id)?;
    let Form(sent) = form.map_err(|_| bad_request("this is not the page's form"))?;
    if sent.mark != mark(&served, &who, &id)? {
        let message = "the form was not made by this page for this login";
        return Err(CallError::new(ErrorCode::Forbidden, message)
            .hint("open the page again and decide there")
            .into());
    }
    let some = |text: String| (!text.trim().is_empty()).then_some(text);
    let kind = DecisionKind::parse(&sent.decision);
    let arguments = match kind {
        Some(DecisionKind::Edit) => Some(Object::parse(&sent.arguments).map_err(|error| {
            bad_request(format!("the arguments are not a JSON object: {error}"))
        })?),
        _ => None,
    };
    let decision = ApprovalDecision {
        decision: sent.decision,
        arguments,
        reason: some(sent.reason).filter(|_| kind == Some(DecisionKind::Reject)),
        text: (kind == Some(DecisionKind::Respond)).then_some(sent.text),
    };
    served.looked().await?;
    approver(&served)?
        .decide(&decider, &id, decision.read()?)
        .await?;
    Ok(Redirect::to(&format!("{PAGE}{id}")).into_response())
}

/// What only this page gives to this login, for this approval.
fn mark(served: &Served, who: &Who, id: &str) -> Result<String, CallError> {
    let store = served.store.as_ref();
    let store = store.ok_or_else(|| CallError::unavailable("this server keeps no approvals"))?;
    let signer = store.ready().map_err(refused)?.signer(PURPOSE);
    let signature = signer.sign(format!("{} {id}", who.identity()).as_bytes());
    Ok(signature.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn page(approval: &Approval, who: &Who, mark: Option<&str>) -> Response {
    let policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, policy),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "same-origin"),
        (CACHE_CONTROL, "no-store"),
    ];
    (StatusCode::OK, headers, html(approval, who, mark)).into_response()
}

const HEAD: &str = r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Approval - Toolcrib</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 50em; margin: 2em auto; padding: 0 1em; color-scheme: light dark; }
pre, textarea, code { font-family: ui-monospace, monospace; }
pre { border: 1px solid; padding: .7em; white-space: pre-wrap; overflow-wrap: anywhere; }
textarea { width: 100%; box-sizing: border-box; }
dt { font-weight: bold; }
form { margin: 1em 0; }
button { font: inherit; padding: .3em 1em; }
</style>
</head>
<body>
"#;

fn html(approval: &Approval, who: &Who, mark: Option<&str>) -> String {
    let arguments = Object::parse(&approval.shown).unwrap_or_default();
    let mut page = HEAD.to_owned();
    page.push_str(&format!(
        "<h1>{}: {}</h1>\n<dl>\n",
        escaped(&approval.tool),
        approval.state
    ));
    let project = approval.project.as_deref().unwrap_or("none");
    let rows = [
        (
            "Asked by",
            format!("{} (agent {})", approval.client, approval.agent),
        ),
        ("Project", project.to_owned()),
        ("Asked at", rfc3339(approval.created_ms)),
        ("Until", rfc3339(approval.expires_ms)),
        (
            "Why you are asked",
            approval.note.clone().unwrap_or_default(),
        ),
    ];
    for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
        page.push_str(&format!("<dt>{name}</dt><dd>{}</dd>\n", escaped(value)));
    }
    if let Some(decided) = &approval.decided {
        let by = format!(
            "{} ({}), {}",
            decided.by,
            decided.how,
            rfc3339(decided.at_ms)
        );
        page.push_str(&format!("<dt>Decided by</dt><dd>{}</dd>\n", escaped(&by)));
    }
    page.push_str("</dl>\n<h2>Arguments</h2>\n");
    page.push_str(&format!("<pre>{}</pre>\n", escaped(&readable(&arguments))));
    if let Some(edited) = &approval.edited {
        page.push_str(&format!(
            "<h2>Arguments as they were changed</h2>\n<pre>{}</pre>\n",
            escaped(&readable(edited))
        ));
    }
    if let Some(words) = &approval.words {
        page.push_str(&format!(
            "<h2>What was said</h2>\n<pre>{}</pre>\n",
            escaped(words)
        ));
    }
    if approval.state == ApprovalState::Pending {
        match mark {
            Some(mark) => page.push_str(&forms(approval, mark)),
            None => page.push_str(
                "<p>This login may look, and not decide. To decide here, run <code>toolcrib token login --approve</code> \
                 in a terminal of your own and open the URL that it prints. Or decide there, with \
                 <code>toolcrib approvals</code>.</p>\n",
            ),
        }
    }
    page.push_str(&format!(
        "<p><small>You are {}. Approval {}.</small></p>\n</body>\n</html>\n",
        escaped(&who.identity()),
        escaped(&approval.id)
    ));
    page
}

fn forms(approval: &Approval, mark: &str) -> String {
    let mut forms = String::new();
    for kind in &approval.allowed {
        let (field, button) = match kind {
            DecisionKind::Approve => (String::new(), "Approve: run it once"),
            DecisionKind::Edit => {
                let shown = Object::parse(&approval.shown).unwrap_or_default();
                let field = format!(
                    "<label>Run it with these arguments instead:<br><textarea name=\"arguments\" rows=\"8\">\n{}</textarea></label><br>\n",
                    escaped(&readable(&shown))
                );
                (field, "Run it with these")
            }
            DecisionKind::Reject => (
                "<label>Why not (the agent reads it):<br><textarea name=\"reason\" rows=\"2\"></textarea></label><br>\n".to_owned(),
                "Reject",
            ),
            DecisionKind::Respond => (
                "<label>Answer in the tool's place:<br><textarea name=\"text\" rows=\"3\"></textarea></label><br>\n".to_owned(),
                "Answer",
            ),
        };
        forms.push_str(&format!(
            "<form method=\"post\">\n<input type=\"hidden\" name=\"mark\" value=\"{mark}\">\n{field}\
             <button name=\"decision\" value=\"{}\">{button}</button>\n</form>\n",
            kind.as_str()
        ));
    }
    forms
}

/// A text of others as HTML shows it: nothing in it is markup, and nothing is unseen.
fn escaped(text: &str) -> String {
    let text = visible(text);
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_others_is_markup() {
        let escaped = escaped("<b a='1' c=\"2\">&\u{202e}");
        assert_eq!(
            escaped,
            "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;\\u{202E}"
        );
    }
}
