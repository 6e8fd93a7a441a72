//! What the front makes of an agent's view: once, when first asked for.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use axum::body::Bytes;
use serde_json::{Value, json};
use toolcrib_core::client::has_todo_list;
use toolcrib_core::{Loading, Seen, View};

use super::asker::Asker;
use super::headers::{ParamHeader, param_headers};
use super::message::{Id, Request};
use super::methods::Reply;
use super::reply::Answer;
use super::{Mcp, older, small};
use crate::serve::convert::{self, TTL_MS};

/// How many tools one page has. Most cribs have fewer in all, and clients that read no second page lose none.
const PAGE: usize = 500;

/// The pages of a list, for clients without and with a list of their own of what is to be done.
struct NewestList([Vec<Bytes>; 2]);

struct OlderList([Vec<Bytes>; 2]);

/// The same of the small surface.
struct NewestSmall(Vec<Bytes>);

struct OlderSmall(Vec<Bytes>);

/// The arguments of each tool that travel in headers too.
struct HeaderIndex(HashMap<String, Vec<ParamHeader>>);

/// `tools/list`: at once where all tools are there. Those that are being loaded are waited for, but not long: some clients
/// never ask again. What comes later is told as a change, and the list that lacks it is not to be kept.
pub fn begin(mcp: &Arc<Mcp>, asker: &Asker, seen: &Seen, request: &Request) -> Reply {
    let served = &mcp.served;
    // What is no text leads nowhere either.
    let text = || request.params.text("cursor").unwrap_or_default();
    let cursor = request.params.get("cursor").map(|_| text());
    if served.crib.loading() == Loading::Done {
        let view = served.view(&asker.who);
        seen.note(&view);
        let form = Form::of(mcp, &view, asker);
        return Reply::Now(match tools(&view, form, cursor.as_deref()) {
            Some(list) => Answer::written(&request.id, list),
            None => no_cursor(&request.id),
        });
    }
    let (mcp, asker, id) = (mcp.clone(), asker.clone(), request.id.clone());
    let seen = seen.clone();
    let cursor = cursor.map(Cow::into_owned);
    Reply::Later(Box::pin(async move {
        let served = &mcp.served;
        if let Err(error) = served.looked().await {
            let said = super::methods::with_hint(&error);
            return Some(Answer::error(Some(&id), super::codes::INTERNAL, &said));
        }
        let whole = served.settled().await;
        let view = served.view(&asker.who);
        seen.note(&view);
        let form = Form::of(&mcp, &view, &asker);
        let page = match whole {
            true => tools(&view, form, cursor.as_deref()).cloned(),
            false => unfinished(&view, form, cursor.as_deref()),
        };
        Some(match page {
            Some(page) => Answer::written(&id, &page),
            None => no_cursor(&id),
        })
    }))
}

/// The answer to a cursor that no page of ours gave.
pub fn no_cursor(id: &Id) -> Answer {
    let message =
        "`cursor` leads nowhere; take the `nextCursor` of the page before, or none to begin";
    Answer::error(Some(id), super::codes::INVALID_PARAMS, message)
}

/// The same page of a list that is about to change.
fn unfinished(view: &View, form: Form, cursor: Option<&str>) -> Option<Bytes> {
    let mut pages = form.pages(view);
    let mut page = pages.nth(cursor.map_or(Some(0), page_of)?)?;
    page["ttlMs"] = 0.into();
    Some(Bytes::from(page.to_string()))
}

/// The result of `tools/list` as bytes, from where a cursor of ours leads; nothing where it leads nowhere.
fn tools<'a>(view: &'a View, form: Form, cursor: Option<&str>) -> Option<&'a Bytes> {
    let made = |view: &View, form: Form| -> Vec<Bytes> {
        let pages = form.pages(view);
        pages.map(|page| Bytes::from(page.to_string())).collect()
    };
    let both = |view: &View| {
        [false, true].map(|without_todo| {
            let form = Form {
                without_todo,
                ..form
            };
            made(view, form)
        })
    };
    let pages = match (form.newest, form.small) {
        (true, false) => &view.derived(|view| NewestList(both(view))).0[form.which()],
        (false, false) => &view.derived(|view| OlderList(both(view))).0[form.which()],
        (true, true) => &view.derived(|view| NewestSmall(made(view, form))).0,
        (false, true) => &view.derived(|view| OlderSmall(made(view, form))).0,
    };
    let page = match cursor {
        None => 0,
        Some(cursor) => page_of(cursor)?,
    };
    pages.get(page)
}

/// What leads to a page. Clients hear of a list that changes in between, so pages can go by their number.
fn cursor_of(page: usize) -> String {
    format!("page-{page}")
}

fn page_of(cursor: &str) -> Option<usize> {
    let page = cursor.strip_prefix("page-")?.parse().ok()?;
    (page > 0 && cursor_of(page) == cursor).then_some(page)
}

/// The arguments of a tool that travel in headers too.
pub fn headers_of<'a>(view: &'a View, tool: &str) -> &'a [ParamHeader] {
    let index = view.derived(in_headers);
    index.0.get(tool).map_or(&[], Vec::as_slice)
}

/// In whose words a list is, and of which tools.
#[derive(Clone, Copy)]
struct Form {
    newest: bool,
    /// Few tools, and a search for the others.
    small: bool,
    /// Without our list of what is to be done, for a client that has one of its own.
    without_todo: bool,
}

impl Form {
    fn of(mcp: &Mcp, view: &View, asker: &Asker) -> Form {
        Form {
            newest: asker.revision.is_stateless(),
            small: mcp.is_searched(view, &asker.who),
            without_todo: has_todo_list(&asker.client),
        }
    }

    /// Which of two lists it is.
    fn which(self) -> usize {
        usize::from(self.without_todo)
    }

    /// The pages of a list, one after the other.
    fn pages(self, view: &View) -> Box<dyn Iterator<Item = Value>> {
        let tools = match (self.small, self.without_todo) {
            (true, _) => small::tools(view),
            (false, true) => convert::tools_without_todo_list(view),
            (false, false) => convert::tools(view),
        };
        match self.newest {
            true => Box::new(pages(tools).map(|mut page| {
                page["resultType"] = super::COMPLETE.into();
                page
            })),
            false => Box::new(pages(tools.into_iter().map(older::tool).collect())),
        }
    }
}

/// The results that make up a list; one at least.
fn pages(mut tools: Vec<Value>) -> impl Iterator<Item = Value> {
    let count = tools.len().div_ceil(PAGE).max(1);
    (1..=count).map(move |next| {
        let rest = tools.split_off(tools.len().min(PAGE));
        let page = std::mem::replace(&mut tools, rest);
        let mut result = json!({"tools": page, "ttlMs": TTL_MS, "cacheScope": "private"});
        if next < count {
            result["nextCursor"] = cursor_of(next).into();
        }
        result
    })
}

fn in_headers(view: &View) -> HeaderIndex {
    let tools = view.tools().map(|tool| {
        let headers = param_headers(tool.spec.input_schema.value());
        (tool.name().to_owned(), headers)
    });
    HeaderIndex(tools.filter(|(_, headers)| !headers.is_empty()).collect())
}
