//! JSON that mostly passes through: its text as it came, and its value once somebody asks.
//!
//! Numbers of any size, the order of keys and the spelling of strings stay as they are until somebody edits. Whatever is
//! malformed, nested too deep or holds half a character is refused when it is made, so nobody later meets it.

pub(crate) mod scan;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::{LazyLock, OnceLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use scan::{Kind, Parts, Repeats};

/// Deeper nesting is refused: messages put JSON into a few levels of their own, and readers stop at 128.
pub const MAX_DEPTH: usize = 120;

/// Why a text is no JSON that is taken.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    #[error("it is not valid JSON: {0}")]
    Syntax(#[from] serde_json::Error),
    #[error("it is nested more than {MAX_DEPTH} levels deep")]
    Depth,
    #[error("it contains a string with half a character (a lone surrogate)")]
    HalfCharacter,
    #[error("it is not an object")]
    NoObject,
}

/// Any JSON.
pub struct Json {
    /// Holds no line break, so that it can go into a message that is a line.
    raw: Box<RawValue>,
    /// Boxed, because it travels with every call and most are never asked.
    value: OnceLock<Box<Value>>,
}

impl Json {
    pub fn parse(text: &str) -> Result<Json, JsonError> {
        Json::new(serde_json::from_str(text)?)
    }

    pub fn new(raw: Box<RawValue>) -> Result<Json, JsonError> {
        Json::checked(raw, Repeats::Fine).map(|(json, _)| json)
    }

    /// The JSON, and whether an object in it has two members of one name.
    fn checked(raw: Box<RawValue>, repeats: Repeats) -> Result<(Json, bool), JsonError> {
        let odd = scan::check(raw.get(), repeats)?;
        let json = match odd.line_breaks {
            true => Json::trusted(scan::compact(raw.get()).into_owned()),
            false => Json::of(raw),
        };
        Ok((json, odd.repeats))
    }

    fn of(raw: Box<RawValue>) -> Json {
        Json {
            raw,
            value: OnceLock::new(),
        }
    }

    /// A text that was put together out of what was checked.
    pub(crate) fn trusted(text: String) -> Json {
        Json::of(RawValue::from_string(text).unwrap_or_default())
    }

    /// As it is written.
    pub fn text(&self) -> &str {
        self.raw.get()
    }

    /// As it is written, without white space.
    pub fn compact(&self) -> Cow<'_, str> {
        scan::compact(self.text())
    }

    pub fn raw(&self) -> &RawValue {
        &self.raw
    }

    /// What it says. A number beyond 64 bits is the nearest that fits here, and stays itself in the text.
    pub fn value(&self) -> &Value {
        self.value.get_or_init(|| Box::new(read(self.text())))
    }

    pub fn into_value(mut self) -> Value {
        match self.value.take() {
            Some(value) => *value,
            None => read(self.text()),
        }
    }

    pub fn is_object(&self) -> bool {
        self.text().starts_with('{')
    }

    /// An object that has it as its only member.
    pub fn within(&self, name: &str) -> Json {
        Json::trusted(with_members("{}", [(name, self.text())]))
    }

    /// The whole numbers in it that 64 bits can't hold, as they are written.
    pub fn large_numbers(&self) -> Vec<&str> {
        let text = self.text();
        let numbers = scan::Tokens::of(text).filter(|token| token.kind == Kind::Number);
        let large = |number: &&str| {
            let is_whole = !number.contains(['.', 'e', 'E']);
            is_whole && number.parse::<i64>().is_err() && number.parse::<u64>().is_err()
        };
        numbers.map(|token| token.of(text)).filter(large).collect()
    }

    /// The parts of a list.
    pub fn items(&self) -> impl Iterator<Item = Json> {
        let list = if self.text().starts_with('[') {
            self.text()
        } else {
            ""
        };
        Parts::of(list).map(|(_, part)| Json::trusted(part.to_owned()))
    }

    /// The part that a JSON pointer leads to; nothing where it leads nowhere.
    pub fn pointer(&self, pointer: &str) -> Option<Json> {
        let mut text = self.text();
        let steps = match pointer.is_empty() {
            true => None,
            false => Some(pointer.strip_prefix('/')?.split('/')),
        };
        for step in steps.into_iter().flatten() {
            let name = step.replace("~1", "/").replace("~0", "~");
            text = match text.starts_with('[') {
                true => Parts::of(text).nth(name.parse().ok()?)?.1,
                false => {
                    Parts::of(text)
                        .filter(|(known, _)| *known == name)
                        .last()?
                        .1
                }
            };
        }
        Some(Json::trusted(text.to_owned()))
    }

    /// What it says, where it is a string.
    pub fn as_str(&self) -> Option<Cow<'_, str>> {
        let is_string = self.text().starts_with('"');
        is_string.then(|| scan::decoded(self.text())).flatten()
    }
}

fn read(text: &str) -> Value {
    if let Ok(value) = serde_json::from_str(text) {
        return value;
    }
    // A number too large for any float is the only thing left that can be wrong.
    let bounded = scan::rewritten(text, |token, _| {
        let number = token.of(text);
        let fits = || serde_json::from_str::<serde_json::Number>(number).is_ok();
        (token.kind == Kind::Number && !fits()).then(|| match number.starts_with('-') {
            true => format!("{:e}", f64::MIN),
            false => format!("{:e}", f64::MAX),
        })
    });
    let text = bounded.as_deref().unwrap_or(text);
    serde_json::from_str(text).unwrap_or_default()
}

impl From<Value> for Json {
    fn from(value: Value) -> Json {
        let raw = serde_json::value::to_raw_value(&value).unwrap_or_default();
        Json {
            raw,
            value: OnceLock::from(Box::new(value)),
        }
    }
}

impl Clone for Json {
    fn clone(&self) -> Json {
        Json::of(self.raw.clone())
    }
}

impl std::fmt::Debug for Json {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text())
    }
}

impl std::fmt::Display for Json {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text())
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Json) -> bool {
        self.text() == other.text() || self.value() == other.value()
    }
}

impl PartialEq<Value> for Json {
    fn eq(&self, other: &Value) -> bool {
        self.value() == other
    }
}

impl std::ops::Index<&str> for Json {
    type Output = Value;

    fn index(&self, key: &str) -> &Value {
        &self.value()[key]
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Json, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Json::new(raw).map_err(serde::de::Error::custom)
    }
}

/// A JSON object in which every name stands once: arguments, metadata, `_meta`.
#[derive(Clone, Default)]
pub struct Object {
    /// Nothing where it was made empty: every call makes some, and they cost nothing.
    json: Option<Json>,
}

impl Object {
    pub fn parse(text: &str) -> Result<Object, JsonError> {
        Object::new(serde_json::from_str(text)?)
    }

    /// Where a name stands twice the last one counts, and only that goes on: of two readers that choose differently, one
    /// would get what the other never saw.
    pub fn new(raw: Box<RawValue>) -> Result<Object, JsonError> {
        if !raw.get().starts_with('{') {
            return Err(JsonError::NoObject);
        }
        let (json, repeats) = Json::checked(raw, Repeats::Sought)?;
        Ok(Object::of(match repeats {
            true => Json::from(json.into_value()),
            false => json,
        }))
    }

    fn of(json: Json) -> Object {
        Object { json: Some(json) }
    }

    pub fn text(&self) -> &str {
        self.json.as_ref().map_or("{}", Json::text)
    }

    pub fn json(&self) -> &Json {
        static EMPTY: LazyLock<Json> = LazyLock::new(|| Json::from(Value::Object(Map::new())));
        self.json.as_ref().unwrap_or_else(|| &EMPTY)
    }

    pub fn map(&self) -> &Map<String, Value> {
        static EMPTY: OnceLock<Map<String, Value>> = OnceLock::new();
        let map = self.json().value().as_object();
        map.unwrap_or_else(|| EMPTY.get_or_init(Map::new))
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        self.map().get(name)
    }

    pub fn is_empty(&self) -> bool {
        self.members().next().is_none()
    }

    /// Is there a member of this name?
    pub fn contains_key(&self, name: &str) -> bool {
        self.members().any(|(known, _)| known == name)
    }

    /// Its members in their order, each value as it is written.
    pub fn members(&self) -> impl Iterator<Item = (Cow<'_, str>, &str)> {
        Parts::of(self.text())
    }

    /// Its members in their order, each as JSON of its own.
    pub fn parts(&self) -> impl Iterator<Item = (Cow<'_, str>, Json)> {
        let members = self.members();
        members.map(|(name, text)| (name, Json::trusted(text.to_owned())))
    }

    /// One member, as it is written.
    pub fn member(&self, name: &str) -> Option<Json> {
        let mut members = self.members();
        let (_, text) = members.find(|(known, _)| known == name)?;
        Some(Json::trusted(text.to_owned()))
    }

    /// The text of a member: a string as it is, anything else as JSON; nothing where it is `null` or not there.
    pub fn text_of(&self, name: &str) -> Option<String> {
        match self.get(name)? {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            _ => Some(self.member(name)?.compact().into_owned()),
        }
    }

    pub fn insert(&mut self, name: &str, value: impl Into<Value>) {
        self.set(name, &Json::from(value.into()));
    }

    /// Sets a member; what is there beside it stays as it is.
    pub fn set(&mut self, name: &str, value: &Json) {
        let text = self.text();
        let known = self.members().find(|(known, _)| known == name);
        let new = match known {
            Some((_, old)) => {
                let start = old.as_ptr() as usize - text.as_ptr() as usize;
                let (before, after) = (&text[..start], &text[start + old.len()..]);
                format!("{before}{value}{after}")
            }
            None => with_members(text, [(name, value.text())]),
        };
        *self = Object::of(Json::trusted(new));
    }

    /// The same without the members that `keep` refuses.
    pub fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        if self.members().all(|(name, _)| keep(&name)) {
            return;
        }
        let kept: Vec<_> = self.members().filter(|(name, _)| keep(name)).collect();
        let new = with_members("{}", kept.iter().map(|(name, text)| (&**name, *text)));
        *self = Object::of(Json::trusted(new));
    }

    /// Replaces the whole by a text that was put together out of what was checked.
    pub(crate) fn replace(&mut self, text: String) {
        let raw = RawValue::from_string(text).unwrap_or_default();
        *self = Object::new(raw).unwrap_or_default();
    }
}

/// An object's text with further members at its end.
pub(crate) fn with_members<'a>(
    object: &str,
    members: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> String {
    let open = object.strip_suffix('}').unwrap_or(object);
    let mut text = open.to_owned();
    let mut first = open[1..].trim_start().is_empty();
    for (name, value) in members {
        if !first {
            text.push(',');
        }
        first = false;
        text.push_str(&Value::from(name).to_string());
        text.push(':');
        text.push_str(value);
    }
    text.push('}');
    text
}

impl From<Map<String, Value>> for Object {
    fn from(map: Map<String, Value>) -> Object {
        Object::of(Json::from(Value::Object(map)))
    }
}

impl FromIterator<(String, Value)> for Object {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(members: I) -> Object {
        Object::from(Map::from_iter(members))
    }
}

impl<'a> FromIterator<(&'a str, &'a Json)> for Object {
    /// Each name may come once.
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a Json)>>(members: I) -> Object {
        let members = members.into_iter().map(|(name, json)| (name, json.text()));
        Object::of(Json::trusted(with_members("{}", members)))
    }
}

impl PartialEq for Object {
    fn eq(&self, other: &Object) -> bool {
        self.json() == other.json()
    }
}

impl std::ops::Index<&str> for Object {
    type Output = Value;

    fn index(&self, name: &str) -> &Value {
        &self.json()[name]
    }
}

impl std::fmt::Debug for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text())
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Object, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Object::new(raw).map_err(serde::de::Error::custom)
    }
}
