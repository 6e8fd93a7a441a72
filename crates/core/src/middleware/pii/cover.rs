//! Personal data in texts, and in the strings of JSON: judged as they are read, and what holds none stays as it is written.

use std::borrow::Cow;
use std::cell::RefCell;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use toolcrib_pii::{DetectError, Detectors, HashOf, Strategy, covered};

use super::super::cover::Cover;
use crate::json::scan::{self, Kind};
use crate::{Json, Object};

/// The fields of blocks that hold bytes as base64.
const BYTES: [&str; 2] = ["data", "blob"];

/// What was found, by kind.
pub type Counts = Vec<(String, usize)>;

pub fn add(counts: &mut Counts, kind: &str, more: usize) {
    match counts.iter_mut().find(|(known, _)| known == kind) {
        Some((_, count)) => *count += more,
        None => counts.push((kind.to_owned(), more)),
    }
}

/// One look over what a call gave, or gets.
pub struct PiiCover<'a> {
    detectors: &'a Detectors,
    strategy: Strategy,
    hash: HashOf<'a>,
    counts: RefCell<Counts>,
    failed: RefCell<Option<DetectError>>,
}

impl<'a> PiiCover<'a> {
    pub fn new(detectors: &'a Detectors, strategy: Strategy, hash: HashOf<'a>) -> PiiCover<'a> {
        PiiCover {
            detectors,
            strategy,
            hash,
            counts: RefCell::default(),
            failed: RefCell::default(),
        }
    }

    /// What was found, or why that can't be said.
    pub fn end(self) -> Result<Counts, DetectError> {
        match self.failed.into_inner() {
            Some(error) => Err(error),
            None => Ok(self.counts.into_inner()),
        }
    }

    fn shown<'t>(&self, text: &'t str, label: Option<&str>) -> Cow<'t, str> {
        match self.detectors.find(text, label) {
            Ok(findings) if findings.is_empty() => Cow::Borrowed(text),
            Ok(findings) => {
                let mut counts = self.counts.borrow_mut();
                findings
                    .iter()
                    .for_each(|finding| add(&mut counts, finding.kind, 1));
                Cow::Owned(covered(text, &findings, self.strategy, self.hash))
            }
            Err(error) => {
                *self.failed.borrow_mut() = Some(error);
                Cow::Owned(String::new())
            }
        }
    }

    /// Bytes as base64 are looked at where they are text.
    fn bytes<'t>(&self, data: &'t str) -> Cow<'t, str> {
        let Ok(bytes) = STANDARD.decode(data.as_bytes()) else {
            return self.shown(data, None);
        };
        let text = str::from_utf8(&bytes).map(|text| self.shown(text, None));
        match text {
            Ok(Cow::Owned(shown)) => Cow::Owned(STANDARD.encode(shown)),
            Ok(Cow::Borrowed(_)) | Err(_) => Cow::Borrowed(data),
        }
    }

    /// The text of JSON with other strings and names in it. Numbers are never personal.
    fn rewritten(&self, text: &str, bytes: &[&str]) -> Option<String> {
        let mut names: Vec<String> = Vec::new();
        scan::rewritten(text, |token, name| {
            if !matches!(token.kind, Kind::Key | Kind::Text) {
                return None;
            }
            let written = token.of(text);
            // What can't be read is looked at as it is written.
            let said = scan::decoded(written).unwrap_or(Cow::Borrowed(written));
            let name = name.and_then(scan::decoded);
            let is_bytes = name.as_deref().is_some_and(|name| bytes.contains(&name));
            let shown = match is_bytes {
                true => self.bytes(&said),
                false => self.shown(&said, name.as_deref()),
            };
            let Cow::Owned(shown) = shown else {
                return None;
            };
            let shown = match token.kind {
                Kind::Key => distinct(shown, &mut names),
                _ => shown,
            };
            Some(Value::from(shown).to_string())
        })
    }
}

/// Two names that are covered alike must not become one.
fn distinct(name: String, taken: &mut Vec<String>) -> String {
    let alike = taken.iter().filter(|known| **known == name).count();
    taken.push(name.clone());
    match alike {
        0 => name,
        more => format!("{name}_{}", more + 1),
    }
}

impl Cover for PiiCover<'_> {
    fn is_idle(&self) -> bool {
        false
    }

    /// A text that is JSON stays JSON.
    fn text(&self, text: &mut String) {
        let may_be = text.starts_with(['{', '[']);
        if may_be && serde_json::from_str::<&RawValue>(text).is_ok() {
            if let Some(shown) = self.rewritten(text, &[]) {
                *text = shown;
            }
        } else if let Cow::Owned(shown) = self.shown(text, None) {
            *text = shown;
        }
    }

    fn json(&self, json: &mut Json) {
        if let Some(text) = self.rewritten(json.text(), &[]) {
            *json = Json::trusted(text);
        }
    }

    fn object(&self, object: &mut Object) {
        if let Some(text) = self.rewritten(object.text(), &[]) {
            object.replace(text);
        }
    }

    fn block(&self, block: &mut Object) {
        if let Some(text) = self.rewritten(block.text(), &BYTES) {
            block.replace(text);
        }
    }

    fn base64(&self, data: &mut String) {
        if let Cow::Owned(shown) = self.bytes(data) {
            *data = shown;
        }
    }

    fn value(&self, value: &mut Value) {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
            Value::String(text) => self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(map) => self.map(map),
        }
    }

    fn map(&self, map: &mut Map<String, Value>) {
        if map.is_empty() {
            return;
        }
        let mut object = Object::from(std::mem::take(map));
        self.object(&mut object);
        *map = object.map().clone();
    }
}
