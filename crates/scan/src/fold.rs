//! Strings that are put together from constants, as both languages do it.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE};

use crate::value::Value;

/// `left + right`.
pub fn add(left: &Value, right: &Value) -> Option<Value> {
    Some(match (left, right) {
        (Value::Text { text: a, .. }, Value::Text { text: b, .. }) => {
            if a.len() + b.len() > 8_192 {
                return None;
            }
            Value::assembled(&format!("{a}{b}"))
        }
        (Value::Bytes(a), Value::Bytes(b)) => Value::bytes(&[a.as_ref(), b.as_ref()].concat()),
        (Value::Int(a), Value::Int(b)) => Value::Int(a.checked_add(*b)?),
        (Value::List(a), Value::List(b)) if a.len() + b.len() <= 256 => {
            Value::List([a.as_ref(), b.as_ref()].concat().into())
        }
        _ => return None,
    })
}

/// One element of a string, bytes or a list.
pub fn element(of: &Value, index: i64) -> Option<Value> {
    let at = |length: usize| {
        let length = i64::try_from(length).ok()?;
        let index = if index < 0 { index + length } else { index };
        usize::try_from(index).ok().filter(|_| index < length)
    };
    match of {
        Value::Text { text, .. } if text.is_ascii() => {
            let at = at(text.len())?;
            Some(Value::assembled(&text[at..=at]))
        }
        Value::Bytes(bytes) => Some(Value::Int(bytes[at(bytes.len())?].into())),
        Value::List(list) => Some(list[at(list.len())?].clone()),
        _ => None,
    }
}

/// `of[lower:upper:step]`; bounds that are not given are `None`.
pub fn slice(of: &Value, lower: Option<i64>, upper: Option<i64>, step: i64) -> Option<Value> {
    let elements = match of {
        Value::Text { text, .. } if text.len() > 4_096 => return None,
        other => other.elements()?,
    };
    let length = i64::try_from(elements.len()).ok()?;
    if step == 0 {
        return None;
    }
    let (least, most) = if step > 0 {
        (0, length)
    } else {
        (-1, length - 1)
    };
    let bound = |given: Option<i64>, otherwise: i64| match given {
        None => otherwise,
        Some(index) if index < 0 => index.saturating_add(length).clamp(least, most),
        Some(index) => index.clamp(least, most),
    };
    let (from, to) = if step > 0 {
        (bound(lower, 0), bound(upper, length))
    } else {
        (bound(lower, length - 1), bound(upper, -1))
    };
    let mut taken = Vec::new();
    let mut at = from;
    while (step > 0 && at < to) || (step < 0 && at > to) {
        taken.push(elements.get(usize::try_from(at).ok()?)?.clone());
        at = at.checked_add(step)?;
    }
    match of {
        Value::Text { .. } => {
            let text: Option<String> = taken.iter().map(Value::text).collect();
            Some(Value::assembled(&text?))
        }
        Value::Bytes(_) => {
            let bytes: Option<Vec<u8>> = taken
                .iter()
                .map(|one| u8::try_from(one.int()?).ok())
                .collect();
            Some(Value::bytes(&bytes?))
        }
        _ => Some(Value::List(taken.into())),
    }
}

/// What a value looks like inside another string.
pub fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::Text { text, .. } => Some(text.to_string()),
        Value::Int(int) => Some(int.to_string()),
        Value::Bytes(bytes) => std::str::from_utf8(bytes).ok().map(str::to_owned),
        _ => None,
    }
}

pub fn from_hex(digits: &[u8]) -> Option<Vec<u8>> {
    let digits: Vec<u8> = digits
        .iter()
        .copied()
        .filter(|d| !d.is_ascii_whitespace())
        .collect();
    if digits.len() > 8_192 {
        return None;
    }
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let (pairs, rest) = digits.as_chunks::<2>();
    rest.is_empty()
        .then(|| pairs.iter().map(|two| pair(two)).collect())?
}

pub fn from_base64(text: &[u8]) -> Option<Vec<u8>> {
    if text.len() > 8_192 {
        return None;
    }
    let text = text.trim_ascii();
    STANDARD
        .decode(text)
        .or_else(|_| STANDARD_NO_PAD.decode(text))
        .or_else(|_| URL_SAFE.decode(text))
        .ok()
}

pub fn unquoted(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            bytes.extend(from_hex(&[rest.next()?, rest.next()?])?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

/// Adds a piece; a piece that is not known makes the whole unknown.
pub fn push(whole: &mut Option<String>, piece: Option<&str>) {
    match (whole.as_mut(), piece) {
        (Some(whole), Some(piece)) => whole.push_str(piece),
        _ => *whole = None,
    }
}
