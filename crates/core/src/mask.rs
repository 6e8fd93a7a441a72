//! Hides values in what a tool gives: what the crib handed to it is its own business, and answers and logs are everybody's.
//!
//! * [`Mask`]: the values, each in every form in which a program may print it ([`forms`]).
//! * [`Masked`]: a stream in which a pipe may cut a value in two.
//! * [`Hidden`]: the values of one tool while it lives, for its processes may start with others later.

mod forms;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::json::scan::{self, Kind};
use crate::{Json, Object};

/// What stands in a value's place.
pub const STARS: &str = "***";
/// How many values that came later are remembered. Those of living processes are among them.
const MOST_LATER: usize = 256;

/// The values to hide.
#[derive(Clone, Default)]
pub struct Mask(Option<Arc<Values>>);

struct Values {
    plain: Vec<String>,
    /// What is looked for, the longest first.
    forms: Vec<String>,
    /// The bytes with which one of them begins.
    firsts: [bool; 256],
}

/// The fields of blocks that hold bytes as base64.
const BYTES: [&str; 2] = ["data", "blob"];
/// So much base64 may as well be a value itself. In more of it short values stand by chance.
const LITTLE_BASE64: usize = 1_024;

/// Where bytes may be written as base64.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bytes {
    Nowhere,
    InBlocks,
}

/// Whoever prints one of these by mistake tells nothing.
macro_rules! unprinted {
    ($($kind:ty),*) => {$(
        impl std::fmt::Debug for $kind {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(STARS)
            }
        }
    )*};
}

unprinted!(Mask, Masked, Hidden);

impl Values {
    /// How much of the beginning is a value.
    fn at(&self, rest: &[u8]) -> Option<usize> {
        let found = self
            .forms
            .iter()
            .find(|one| rest.starts_with(one.as_bytes()));
        found.map(String::len)
    }

    /// Could all of this be the beginning of a value?
    fn begins(&self, rest: &[u8]) -> bool {
        let longer = self.forms.iter().take_while(|one| one.len() > rest.len());
        longer
            .into_iter()
            .any(|one| one.as_bytes().starts_with(rest))
    }

    fn may_begin(&self, byte: u8) -> bool {
        self.firsts[usize::from(byte)]
    }
}

impl Mask {
    pub fn of<'a>(values: impl IntoIterator<Item = &'a str>) -> Mask {
        let mut plain: Vec<String> = Vec::new();
        for value in values {
            if forms::is_worth_hiding(value) && !plain.iter().any(|one| one == value) {
                plain.push(value.to_owned());
            }
        }
        if plain.is_empty() {
            return Mask::default();
        }
        let mut forms: Vec<String> = plain.iter().flat_map(|value| forms::of(value)).collect();
        forms.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        forms.dedup();
        let mut firsts = [false; 256];
        for byte in forms.iter().filter_map(|form| form.bytes().next()) {
            firsts[usize::from(byte)] = true;
        }
        Mask(Some(Arc::new(Values {
            plain,
            forms,
            firsts,
        })))
    }

    /// The same, with further values.
    #[must_use]
    pub fn with<'a>(&'a self, values: impl IntoIterator<Item = &'a str>) -> Mask {
        Mask::of(self.plain().chain(values))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    fn plain(&self) -> impl Iterator<Item = &str> {
        let values = self.0.iter().flat_map(|values| &values.plain);
        values.map(String::as_str)
    }

    /// The bytes without the values; nothing where there is none in them.
    fn hide(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let values = self.0.as_ref()?;
        let mut shown: Option<Vec<u8>> = None;
        let (mut at, mut from) = (0, 0);
        while at < bytes.len() {
            let found = values.may_begin(bytes[at]).then(|| values.at(&bytes[at..]));
            let Some(length) = found.flatten() else {
                at += 1;
                continue;
            };
            let shown = shown.get_or_insert_default();
            shown.extend_from_slice(&bytes[from..at]);
            shown.extend_from_slice(STARS.as_bytes());
            at += length;
            from = at;
        }
        let mut shown = shown?;
        shown.extend_from_slice(&bytes[from..]);
        Some(shown)
    }

    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.hide(text.as_bytes()) {
            None => Cow::Borrowed(text),
            Some(shown) => Cow::Owned(String::from_utf8_lossy(&shown).into_owned()),
        }
    }

    /// Hides the values in a text that stays where it is.
    pub fn cover(&self, text: &mut String) {
        if let Cow::Owned(shown) = self.text(text) {
            *text = shown;
        }
    }

    /// Hides the values in all texts, keys and numbers of a JSON value.
    pub fn cover_value(&self, value: &mut Value) {
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::Number(number) => {
                if self.hide(number.to_string().as_bytes()).is_some() {
                    *value = STARS.into();
                }
            }
            Value::String(text) => self.cover(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.cover_value(item)),
            Value::Object(map) => self.cover_map(map),
        }
    }

    pub fn cover_map(&self, map: &mut Map<String, Value>) {
        map.values_mut().for_each(|value| self.cover_value(value));
        let telling = |key: &String| self.hide(key.as_bytes()).is_some();
        if map.keys().any(telling) {
            let entries = std::mem::take(map).into_iter();
            *map = entries
                .map(|(key, value)| (self.text(&key).into_owned(), value))
                .collect();
        }
    }

    /// Hides the values in all texts, names and numbers of JSON, whatever escapes they are written with. What holds none
    /// stays as it is written.
    pub fn cover_json(&self, json: &mut Json) {
        if let Some(text) = self.rewritten(json.text(), Bytes::Nowhere) {
            *json = Json::trusted(text);
        }
    }

    pub fn cover_object(&self, object: &mut Object) {
        if let Some(text) = self.rewritten(object.text(), Bytes::Nowhere) {
            object.replace(text);
        }
    }

    /// The same for a block of a result, whose bytes are written as base64.
    pub fn cover_block(&self, block: &mut Object) {
        if let Some(text) = self.rewritten(block.text(), Bytes::InBlocks) {
            block.replace(text);
        }
    }

    fn rewritten(&self, text: &str, bytes: Bytes) -> Option<String> {
        if self.is_empty() {
            return None;
        }
        scan::rewritten(text, |token, name| match token.kind {
            Kind::Key | Kind::Text => {
                let said = scan::decoded(token.of(text)).unwrap_or_default();
                let in_base64 = bytes == Bytes::InBlocks
                    && name
                        .and_then(scan::decoded)
                        .is_some_and(|name| BYTES.contains(&&*name));
                let shown = match in_base64 {
                    true => self.base64(&said),
                    false => self.text(&said),
                };
                match shown {
                    Cow::Borrowed(_) => None,
                    Cow::Owned(shown) => Some(Value::from(shown).to_string()),
                }
            }
            Kind::Number => {
                let number = token.of(text);
                let telling = |number: &str| self.hide(number.as_bytes()).is_some();
                let as_value = || serde_json::from_str::<serde_json::Number>(number);
                let tells = telling(number) || as_value().is_ok_and(|n| telling(&n.to_string()));
                tells.then(|| Value::from(STARS).to_string())
            }
            Kind::Word | Kind::Open | Kind::Close => None,
        })
    }

    /// Hides the values in bytes that are written as base64.
    fn base64<'a>(&self, data: &'a str) -> Cow<'a, str> {
        match STANDARD.decode(data.as_bytes()) {
            Ok(bytes) => match self.hide(&bytes) {
                Some(shown) => Cow::Owned(STANDARD.encode(shown)),
                None if data.len() > LITTLE_BASE64 => Cow::Borrowed(data),
                None => self.text(data),
            },
            Err(_) => self.text(data),
        }
    }

    pub fn cover_base64(&self, data: &mut String) {
        if !self.is_empty()
            && let Cow::Owned(shown) = self.base64(data)
        {
            *data = shown;
        }
    }

    /// A stream in which a value may be cut in two by the pipe.
    pub fn stream(&self) -> Masked {
        Masked {
            mask: self.clone(),
            held: Vec::new(),
        }
    }
}

/// A masked stream: what might be the beginning of a value is held back until more is known.
pub struct Masked {
    mask: Mask,
    held: Vec<u8>,
}

impl Masked {
    /// What may be shown after these bytes came.
    pub fn push<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let Some(values) = &self.mask.0 else {
            return Cow::Borrowed(bytes);
        };
        self.held.extend_from_slice(bytes);
        let mut shown = Vec::with_capacity(self.held.len());
        let mut at = 0;
        while at < self.held.len() {
            let rest = &self.held[at..];
            if !values.may_begin(rest[0]) {
                shown.push(rest[0]);
                at += 1;
                continue;
            }
            if values.begins(rest) {
                break;
            }
            if let Some(length) = values.at(rest) {
                shown.extend_from_slice(STARS.as_bytes());
                at += length;
            } else {
                shown.push(rest[0]);
                at += 1;
            }
        }
        self.held.drain(..at);
        Cow::Owned(shown)
    }

    /// The stream is over, so what was held back is not the beginning of anything longer.
    pub fn finish(self) -> Vec<u8> {
        match self.mask.hide(&self.held) {
            Some(shown) => shown,
            None => self.held,
        }
    }
}

/// What is hidden in all that one tool gives. Clones are of the same.
#[derive(Clone)]
pub struct Hidden(Arc<HiddenWords>);

struct HiddenWords {
    /// What was known from the beginning.
    first: Mask,
    /// What came with its processes, the oldest first.
    later: Mutex<VecDeque<Box<str>>>,
    now: ArcSwap<Mask>,
}

impl Default for Hidden {
    fn default() -> Hidden {
        Hidden::new(Mask::default())
    }
}

impl Hidden {
    pub fn new(first: Mask) -> Hidden {
        Hidden(Arc::new(HiddenWords {
            now: ArcSwap::from_pointee(first.clone()),
            later: Mutex::default(),
            first,
        }))
    }

    /// All values that are known by now.
    pub fn mask(&self) -> Mask {
        Mask::clone(&self.0.now.load())
    }

    /// These are handed to the tool now.
    pub fn add<'a>(&self, values: impl IntoIterator<Item = &'a str>) {
        let mut later = self.0.later.lock().unwrap_or_else(PoisonError::into_inner);
        let mut grown = false;
        for value in values {
            match later.iter().position(|one| **one == *value) {
                Some(at) => {
                    if let Some(known) = later.remove(at) {
                        later.push_back(known);
                    }
                }
                None => {
                    later.push_back(value.into());
                    grown = true;
                }
            }
        }
        if grown {
            let surplus = later.len().saturating_sub(MOST_LATER);
            later.drain(..surplus);
            let mask = self.0.first.with(later.iter().map(|one| &**one));
            self.0.now.store(Arc::new(mask));
        }
    }
}
