//! JSON-RPC as it comes in: read once, in one pass, without a tree. What only passes through stays text.
//!
//! Fields that nobody here knows are passed over. Ids are kept as they were written.

use std::borrow::Cow;

use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::error::Category;
use serde_json::value::RawValue;

use super::codes;
use super::framing::Scan;

/// More fields than this in one object of a message are not read.
const MAX_FIELDS: usize = 1_000;
/// More messages than this do not come at once.
const MAX_BATCH: usize = 100;

/// A request's id as JSON: a string, or an integer of any size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Id(Box<str>);

impl Id {
    pub fn of(raw: &RawValue) -> Option<Id> {
        let text = raw.get();
        let digits = text.strip_prefix('-').unwrap_or(text);
        let is_integer = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        (text.starts_with('"') || is_integer).then(|| Id(text.into()))
    }

    /// As it was written.
    pub fn as_json(&self) -> &str {
        &self.0
    }
}

/// The fields of an object, each as text.
#[derive(Debug, Default)]
pub struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Fields<'a> {
    /// The field of that name; `null` counts as none. Of several the last counts, as with most readers of JSON.
    pub fn get(&self, name: &str) -> Option<&'a RawValue> {
        let found = self.0.iter().rfind(|(key, _)| key == name);
        found.map(|(_, raw)| *raw).filter(|raw| raw.get() != "null")
    }

    /// The field as a type; none where it is missing or of another form.
    pub fn read<T: Deserialize<'a>>(&self, name: &str) -> Option<T> {
        serde_json::from_str(self.get(name)?.get()).ok()
    }

    pub fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        let raw = self.get(name)?.get();
        // Nearly all text is as it stands between its quotes.
        match raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"')) {
            Some(plain) if !plain.contains('\\') => Some(plain.into()),
            _ => serde_json::from_str::<Text>(raw).ok().map(|text| text.0),
        }
    }

    pub fn value(&self, name: &str) -> Option<Value> {
        self.read(name)
    }
}

/// The `params` of a message.
#[derive(Debug, Default)]
pub struct Params<'a> {
    pub fields: Fields<'a>,
    pub meta: Fields<'a>,
}

impl<'a> Params<'a> {
    pub fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.fields.get(name)
    }

    pub fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        self.fields.text(name)
    }
}

#[derive(Debug)]
pub struct Request<'a> {
    pub id: Id,
    pub method: Cow<'a, str>,
    pub params: Params<'a>,
}

#[derive(Debug)]
pub struct Notification<'a> {
    pub method: Cow<'a, str>,
    pub params: Params<'a>,
}

/// An answer of the client's to something it was asked.
#[derive(Debug)]
pub struct Response<'a> {
    pub id: Option<Id>,
    pub result: Result<&'a RawValue, &'a RawValue>,
}

#[derive(Debug)]
pub enum Message<'a> {
    Request(Request<'a>),
    Notification(Notification<'a>),
    Response(Response<'a>),
}

/// Why something is no message.
#[derive(Debug)]
pub struct Malformed {
    pub code: i32,
    pub id: Option<Id>,
    pub reason: String,
}

/// All that came at once.
#[derive(Debug)]
pub enum Incoming<'a> {
    One(Message<'a>),
    Batch(Vec<&'a RawValue>),
}

/// Reads what came at once.
pub fn read(bytes: &[u8]) -> Result<Incoming<'_>, Malformed> {
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    if first != Some(&b'[') {
        return read_one(bytes).map(Incoming::One);
    }
    match serde_json::from_slice::<Items>(bytes) {
        Ok(Items(items)) if items.is_empty() => Err(Malformed {
            code: codes::INVALID_REQUEST,
            id: None,
            reason: "an empty array holds no message".to_owned(),
        }),
        Ok(Items(items)) => Ok(Incoming::Batch(items)),
        Err(error) => Err(Malformed {
            code: code_of(&error),
            id: None,
            reason: error.to_string(),
        }),
    }
}

/// Reads one message.
pub fn read_one(bytes: &[u8]) -> Result<Message<'_>, Malformed> {
    match serde_json::from_slice::<Envelope>(bytes) {
        Ok(envelope) => envelope.sort(),
        Err(error) => Err(malformed(bytes, &error)),
    }
}

/// What is wrong with a text that could not be read, and whose it is if that can be found.
fn malformed(bytes: &[u8], error: &serde_json::Error) -> Malformed {
    let mut scan = Scan::default();
    scan.feed(bytes);
    let id = scan.id();
    let params = serde_json::from_slice::<Fields>(bytes);
    let params = params.ok().and_then(|object| object.get("params"));
    let code = match params.map(|params| serde_json::from_str::<Params>(params.get())) {
        Some(Err(_)) => codes::INVALID_PARAMS,
        Some(Ok(_)) | None => code_of(error),
    };
    Malformed {
        code,
        id,
        reason: error.to_string(),
    }
}

fn code_of(error: &serde_json::Error) -> i32 {
    match error.classify() {
        Category::Data => codes::INVALID_REQUEST,
        Category::Io | Category::Syntax | Category::Eof => codes::PARSE_ERROR,
    }
}

/// A message before it is known which kind it is of.
#[derive(Default)]
struct Envelope<'a> {
    version: Option<Cow<'a, str>>,
    id: Option<&'a RawValue>,
    method: Option<Cow<'a, str>>,
    params: Option<Params<'a>>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

impl<'a> Envelope<'a> {
    fn sort(self) -> Result<Message<'a>, Malformed> {
        let id = self.id.and_then(Id::of);
        let wrong = |id: Option<Id>, reason: &str| {
            Err(Malformed {
                code: codes::INVALID_REQUEST,
                id,
                reason: reason.to_owned(),
            })
        };
        if self.version.as_deref() != Some("2.0") {
            return wrong(id, "`jsonrpc` must be \"2.0\"");
        }
        let params = self.params.unwrap_or_default();
        match (self.method, self.id, id) {
            (Some(method), Some(_), Some(id)) => {
                Ok(Message::Request(Request { id, method, params }))
            }
            (Some(_), Some(_), None) => wrong(None, "`id` must be a string or an integer"),
            (Some(method), None, _) => Ok(Message::Notification(Notification { method, params })),
            (None, _, id) => match (self.result, self.error) {
                (Some(result), None) => Ok(Message::Response(Response {
                    id,
                    result: Ok(result),
                })),
                (None, Some(error)) => Ok(Message::Response(Response {
                    id,
                    result: Err(error),
                })),
                _ => wrong(
                    id,
                    "the message has neither `method` nor one of `result` and `error`",
                ),
            },
        }
    }
}

/// Two that differ would be read as one thing here and as another elsewhere.
fn twice<E: Error>(key: &str) -> E {
    let shown: String = key.chars().take(64).collect();
    E::custom(format!("`{shown}` is there twice"))
}

/// Text that is borrowed where it can be.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// Visits an object and nothing else: a derived type would take an array too.
macro_rules! from_object {
    ($type:ident, $what:literal, |$map:ident| $body:block) => {
        impl<'de: 'a, 'a> Deserialize<'de> for $type<'a> {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<$type<'a>, D::Error> {
                struct Object;
                impl<'de> Visitor<'de> for Object {
                    type Value = $type<'de>;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str($what)
                    }

                    fn visit_map<A: MapAccess<'de>>(
                        self,
                        mut $map: A,
                    ) -> Result<$type<'de>, A::Error> {
                        $body
                    }
                }
                from.deserialize_map(Object)
            }
        }
    };
}

from_object!(Fields, "an object", |map| {
    let mut fields = Fields::default();
    while let Some(Text(key)) = map.next_key()? {
        if fields.0.len() == MAX_FIELDS {
            return Err(A::Error::custom("an object has too many fields"));
        }
        fields.0.push((key, map.next_value()?));
    }
    Ok(fields)
});

from_object!(Params, "parameters by name", |map| {
    let mut params = Params::default();
    let mut has_meta = false;
    while let Some(Text(key)) = map.next_key()? {
        let is_meta = key == "_meta";
        if params.fields.0.iter().any(|(known, _)| *known == key) || (is_meta && has_meta) {
            return Err(twice(&key));
        }
        if is_meta {
            params.meta = map.next_value::<Option<Fields>>()?.unwrap_or_default();
            has_meta = true;
            continue;
        }
        if params.fields.0.len() == MAX_FIELDS {
            return Err(A::Error::custom("the parameters have too many fields"));
        }
        params.fields.0.push((key, map.next_value()?));
    }
    Ok(params)
});

from_object!(Envelope, "a JSON-RPC message", |map| {
    let mut envelope = Envelope::default();
    let mut seen = 0_u8;
    while let Some(Text(key)) = map.next_key()? {
        let bit = match &*key {
            "jsonrpc" => {
                envelope.version = Some(map.next_value::<Text>()?.0);
                1
            }
            "id" => {
                envelope.id = Some(map.next_value()?);
                2
            }
            "method" => {
                envelope.method = Some(map.next_value::<Text>()?.0);
                4
            }
            "params" => {
                envelope.params = map.next_value()?;
                8
            }
            "result" => {
                envelope.result = Some(map.next_value()?);
                16
            }
            "error" => {
                envelope.error = Some(map.next_value()?);
                32
            }
            _ => {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
        };
        if seen & bit != 0 {
            return Err(twice(&key));
        }
        seen |= bit;
    }
    Ok(envelope)
});

/// The items of an array, each as text.
struct Items<'a>(Vec<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Items<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Items<'a>, D::Error> {
        struct Array;
        impl<'de> Visitor<'de> for Array {
            type Value = Items<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an array of messages")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Items<'de>, A::Error> {
                let mut all = Vec::new();
                while let Some(item) = items.next_element()? {
                    if all.len() == MAX_BATCH {
                        return Err(A::Error::custom(format!(
                            "more than {MAX_BATCH} messages at once"
                        )));
                    }
                    all.push(item);
                }
                Ok(Items(all))
            }
        }
        from.deserialize_seq(Array)
    }
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
