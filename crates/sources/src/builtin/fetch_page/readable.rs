//! What a person would read of a page, as Markdown or text.
//!
//! The libraries that do so trust their input. [`nest`](super::nest) first makes it one whose tree is not much larger nor
//! deeper than the text, and they get a stack of their own.

use dom_smoothie::{Config, Readability, TextMode};
use url::Url;

use super::nest;

/// The stack for trees as deep as [`nest`] lets them be.
const STACK: usize = 32 * 1_024 * 1_024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Markdown,
    Text,
    Html,
}

/// A page as it is given.
pub struct Page {
    pub text: String,
    pub title: Option<String>,
    /// It had more parts than are looked at.
    pub cut: bool,
}

impl Page {
    pub fn plain(text: String) -> Page {
        Page {
            text,
            title: None,
            cut: false,
        }
    }
}

/// Is this a page, rather than a text that is given as it stands?
pub fn is_html(content_type: &str, text: &str) -> bool {
    let mime = content_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    let begins = || {
        let head: String = text.trim_start().chars().take(15).collect();
        let head = head.to_ascii_lowercase();
        head.starts_with("<!doctype html") || head.starts_with("<html")
    };
    matches!(mime.as_str(), "text/html" | "application/xhtml+xml") || mime.is_empty() && begins()
}

pub fn page(html: String, base: &Url, form: Form) -> Page {
    if form == Form::Html {
        return Page::plain(html);
    }
    let nested = nest::nested(&html);
    drop(html);
    stacker::grow(STACK, || {
        let (title, text) = match article(&nested.html, base, form) {
            Some(found) => found,
            None => (None, whole(&nested.html, form)),
        };
        let title = title.map(|title| title.trim().to_owned());
        let title = title.filter(|title| !title.is_empty());
        let text = tidy(&text);
        let text = match (&title, form) {
            (Some(title), Form::Markdown) if !text.starts_with("# ") => {
                format!("# {title}\n\n{text}")
            }
            _ => text,
        };
        Page {
            text,
            title,
            cut: nested.cut,
        }
    })
}

/// The readable part, where the page has one.
fn article(html: &str, base: &Url, form: Form) -> Option<(Option<String>, String)> {
    let config = Config {
        text_mode: match form {
            Form::Markdown => TextMode::Markdown,
            Form::Text | Form::Html => TextMode::Formatted,
        },
        disable_json_ld: true,
        ..Config::default()
    };
    let mut reader = Readability::new(html, Some(base.as_str()), Some(config)).ok()?;
    let article = reader.parse().ok()?;
    Some((Some(article.title), article.text_content.to_string()))
}

/// All that can be read, of a page that is no article.
fn whole(html: &str, form: Form) -> String {
    let document = dom_query::Document::from(html);
    match form {
        Form::Markdown => document.md(None).to_string(),
        Form::Text | Form::Html => document.formatted_text().to_string(),
    }
}

/// No more than one empty line at a time, and none at the ends.
fn tidy(text: &str) -> String {
    let mut tidied = String::with_capacity(text.len());
    let mut empty = 0;
    for line in text.trim().lines() {
        let line = line.trim_end();
        empty = if line.is_empty() { empty + 1 } else { 0 };
        if empty <= 1 {
            tidied.push_str(line);
            tidied.push('\n');
        }
    }
    tidied.truncate(tidied.trim_end().len());
    tidied
}
