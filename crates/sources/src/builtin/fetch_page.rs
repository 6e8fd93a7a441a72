//! `fetch-page`: a page of a granted host, as Markdown of its readable part, as text, or as it is.

use std::sync::Arc;

use reqwest::Method;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::json;
use toolcrib_core::words::counted;
use toolcrib_core::{BoxFuture, Call, CallError, CallResult, Outcome, Run};

use super::switch::{Asks, whole_network};
use super::visit::{self, Allowed, Answer, Request, visit};
use super::{Builtin, Effects, Switch, number, off_the_runtime, text};
use crate::Place;
use crate::outbound::{Lookup, system_lookup};
use crate::plugin::attachment;

mod charset;
mod nest;
mod readable;

use readable::Form;

/// A body is taken in no further than this, however much its compression hides.
const MAX_BODY: usize = 5 * 1_000 * 1_000;
const MAX_URL: usize = 4_000;
const MAX_CHARS: u64 = 1_000_000;

struct FetchPage {
    place: Arc<Place>,
    lookup: Lookup,
    /// Pages that are made readable at the same time.
    making: tokio::sync::Semaphore,
}

pub(super) fn tool(place: &Arc<Place>) -> Builtin {
    Builtin {
        name: "fetch-page",
        title: "Fetch page",
        description: "Fetch a web page of a granted host as Markdown of its readable part.",
        parameters: json!({
            "url": {"type": "string", "minLength": 1, "maxLength": MAX_URL, "description": "The page, with http:// or https://."},
            "format": {
                "type": "string", "enum": ["markdown", "text", "html"], "default": "markdown",
                "description": "The readable part as Markdown or text, or the page as it is.",
            },
            "maxChars": {
                "type": "integer", "minimum": 100, "maximum": MAX_CHARS, "description": "How many characters to give at most.",
            },
        }),
        required: &["url"],
        effects: Effects::LooksElsewhere,
        switch: Switch::Granted(Asks {
            all: whole_network(),
            flag: ("--net", "HOST"),
            what: "call hosts",
        }),
        run: Arc::new(FetchPage {
            place: place.clone(),
            lookup: Arc::new(system_lookup),
            making: tokio::sync::Semaphore::new(2),
        }),
    }
}

impl Run for FetchPage {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, CallResult> {
        Box::pin(self.fetch(call))
    }
}

impl FetchPage {
    async fn fetch(&self, call: &Call) -> CallResult {
        let url = visit::plain_url(text(call, "url").unwrap_or_default())?;
        let form = match text(call, "format") {
            Some("html") => Form::Html,
            Some("text") => Form::Text,
            _ => Form::Markdown,
        };
        let most = number(call, "maxChars").unwrap_or(MAX_CHARS).min(MAX_CHARS) as usize;
        let accept = "text/markdown, text/html;q=0.9, text/plain;q=0.8, */*;q=0.5";
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(accept))]);
        let request = Request {
            method: Method::GET,
            headers,
            body: None,
        };
        let allowed = Allowed::Granted(&call.tool.permit.network);
        let Answer { url, response } =
            visit(&self.place, &self.lookup, &allowed, url, &request).await?;
        let status = response.status();
        let content_type = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok());
        let content_type: String = content_type.unwrap_or_default().chars().take(200).collect();
        let (bytes, cut) = visit::body(response, MAX_BODY).await?;
        let mut shown = url.clone();
        shown.set_query(None);
        let outcome = self
            .outcome(bytes, &content_type, &url, form, most, cut)
            .await?;
        let mut outcome = outcome
            .meta("status", status.as_u16())
            .meta("url", shown.as_str())
            .meta("contentType", content_type.as_str());
        outcome.is_error = status.as_u16() >= 400;
        if outcome.output.is_empty() && outcome.is_error {
            outcome.output = format!("status {status}");
        }
        Ok(outcome)
    }

    async fn outcome(
        &self,
        bytes: Vec<u8>,
        content_type: &str,
        url: &url::Url,
        form: Form,
        most: usize,
        cut: bool,
    ) -> CallResult {
        let size = bytes.len();
        let Some(text) = charset::decode(&bytes, content_type) else {
            return binary(&bytes, content_type, url, cut);
        };
        let is_page = readable::is_html(content_type, &text.text);
        let (charset, base) = (text.charset, url.clone());
        let _turn = self
            .making
            .acquire()
            .await
            .map_err(|error| CallError::internal(error.to_string()))?;
        let mut page = off_the_runtime(move || {
            Ok(match is_page {
                true => readable::page(text.text, &base, form),
                false => readable::Page::plain(text.text),
            })
        })
        .await?;
        let mut notes = Vec::new();
        if cut {
            notes.push(format!(
                "[the page is longer than {MAX_BODY} bytes; the rest was not read]"
            ));
        }
        if page.cut {
            notes.push("[the page has too many parts; the rest was not read]".to_owned());
        }
        if let Some((end, _)) = page.text.char_indices().nth(most) {
            let left = page.text[end..].chars().count();
            page.text.truncate(end);
            notes.push(format!(
                "[{} left out; raise maxChars to read on]",
                counted(left, "character")
            ));
        }
        for note in notes {
            page.text.push_str(&format!("\n\n{note}"));
        }
        let title = page
            .title
            .unwrap_or_else(|| url.host_str().unwrap_or_default().to_owned());
        Ok(Outcome::text(page.text)
            .title(title)
            .meta("bytes", size)
            .meta("charset", charset))
    }
}

/// What is not text goes along as it is.
fn binary(bytes: &[u8], content_type: &str, url: &url::Url, cut: bool) -> CallResult {
    let mime = content_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    let mime = match mime.is_empty() {
        true => "application/octet-stream".to_owned(),
        false => mime,
    };
    if cut {
        let output = format!(
            "the answer is {mime} and larger than {MAX_BODY} bytes, so it was not taken in"
        );
        return Ok(Outcome {
            is_error: true,
            ..Outcome::text(output)
        });
    }
    let name = url.path_segments().and_then(|mut parts| parts.next_back());
    let name = name.filter(|name| !name.is_empty());
    let size = counted(bytes.len(), "byte");
    let mut outcome = Outcome::text(format!("the answer is not text; {size} attached as {mime}"));
    outcome.attachments.push(attachment(&mime, bytes, name));
    Ok(outcome.meta("bytes", bytes.len()))
}
