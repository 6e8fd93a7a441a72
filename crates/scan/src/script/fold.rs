//! JavaScript's own ways to put strings together: what `["ev", "al"].join("")` and its kin give.

use crate::fold::{add, element, from_base64, from_hex, slice, text_of, unquoted};
use crate::value::{LONGEST, Value};

/// What a function gives for constants.
pub fn function(path: &str, args: &[Value]) -> Option<Value> {
    let first = args.first();
    Some(match path {
        "global.String.fromCharCode" | "global.String.fromCodePoint" => {
            let text: Option<String> = args.iter().map(letter).collect();
            Value::assembled(&text?)
        }
        "global.String" => Value::assembled(&text_of(first?)?),
        "global.atob" => Value::assembled(std::str::from_utf8(&from_base64(first?.raw()?)?).ok()?),
        "global.unescape" | "global.decodeURIComponent" | "global.decodeURI" => {
            Value::assembled(&unquoted(first?.text()?)?)
        }
        "global.Buffer.from" | "buffer.Buffer.from" => {
            match (first?, args.get(1).and_then(Value::text)) {
                (Value::Text { text, .. }, Some("base64" | "base64url")) => {
                    Value::bytes(&from_base64(text.as_bytes())?)
                }
                (Value::Text { text, .. }, Some("hex")) => {
                    Value::bytes(&from_hex(text.as_bytes())?)
                }
                (Value::List(list), _) => {
                    let bytes: Option<Vec<u8>> = list
                        .iter()
                        .map(|one| u8::try_from(one.int()?).ok())
                        .collect();
                    Value::bytes(&bytes?)
                }
                (other, _) => Value::bytes(other.raw()?),
            }
        }
        "global.Array.from" => Value::List(first?.elements()?.into()),
        _ => return None,
    })
}

fn letter(code: &Value) -> Option<char> {
    char::from_u32(u32::try_from(code.int()?).ok()?)
}

/// What a method of a constant gives.
pub fn method(of: &Value, name: &str, args: &[Value]) -> Option<Value> {
    let first = args.first();
    match (of, name) {
        (Value::Bytes(bytes), "toString") => {
            return Some(Value::assembled(std::str::from_utf8(bytes).ok()?));
        }
        (Value::List(list), "join") => {
            let by = match first {
                None => ",",
                Some(by) => by.text()?,
            };
            let parts: Option<Vec<String>> = list.iter().map(text_of).collect();
            let parts = parts?;
            let length: usize = parts.iter().map(|part| part.len() + by.len()).sum();
            return (length <= 2 * LONGEST).then(|| Value::assembled(&parts.join(by)));
        }
        (Value::List(list), "reverse" | "toReversed") => {
            return Some(Value::List(list.iter().rev().cloned().collect()));
        }
        (_, "concat") => {
            return args
                .iter()
                .try_fold(of.clone(), |whole, part| add(&whole, part));
        }
        (_, "slice" | "subarray") => {
            return slice(of, bound(first)?, bound(args.get(1))?, 1);
        }
        (_, "at") => return element(of, first?.int()?),
        _ => {}
    }
    let text = of.text()?;
    Some(match name {
        "toLowerCase" | "toLocaleLowerCase" => Value::assembled(&text.to_lowercase()),
        "toUpperCase" | "toLocaleUpperCase" => Value::assembled(&text.to_uppercase()),
        "trim" | "trimStart" | "trimEnd" => Value::assembled(text.trim()),
        "toString" | "valueOf" | "normalize" => of.clone(),
        "replace" | "replaceAll" => {
            let (from, to) = (first?.text()?, args.get(1)?.text()?);
            if to.len() > 64 {
                return None;
            }
            let times = if name == "replace" { 1 } else { usize::MAX };
            Value::assembled(&text.replacen(from, to, times))
        }
        "substring" => slice(of, bound(first)?, bound(args.get(1))?, 1)?,
        "substr" => {
            let from = first?.int()?;
            let to = bound(args.get(1))?.map(|length| from.saturating_add(length));
            slice(of, Some(from), to, 1)?
        }
        "charAt" => element(of, first?.int()?)?,
        "split" => match first?.text()? {
            "" => Value::List(of.elements()?.into()),
            by => Value::List(text.split(by).map(Value::assembled).collect()),
        },
        _ => return None,
    })
}

/// A bound that is not given, or known; anything else can't be followed.
fn bound(value: Option<&Value>) -> Option<Option<i64>> {
    match value {
        None => Some(None),
        Some(value) => value.int().map(Some),
    }
}
