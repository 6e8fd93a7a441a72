//! Python's own ways to put strings together: what `"".join(["ev", "al"])` and its kin give.

use crate::fold::{add, from_base64, from_hex, text_of, unquoted};
use crate::value::{LONGEST, Value};

/// How many elements a list may have that is put together.
const MOST: i64 = 256;

/// What a function of the standard library gives for constants.
pub fn function(path: &str, args: &[Value]) -> Option<Value> {
    let first = args.first();
    Some(match path {
        "builtins.chr" => {
            let code = u32::try_from(first?.int()?).ok()?;
            Value::assembled(char::from_u32(code)?.encode_utf8(&mut [0; 4]))
        }
        "builtins.ord" => {
            let mut characters = first?.text()?.chars();
            match (characters.next(), characters.next()) {
                (Some(one), None) => Value::Int(i64::from(u32::from(one))),
                _ => return None,
            }
        }
        "builtins.str" => Value::assembled(&text_of(first?)?),
        "builtins.int" => match args {
            [Value::Int(int)] => Value::Int(*int),
            [Value::Text { text, .. }] => Value::Int(text.trim().parse().ok()?),
            [Value::Text { text, .. }, Value::Int(radix)] => {
                let radix = u32::try_from(*radix)
                    .ok()
                    .filter(|r| (2..=36).contains(r))?;
                let digits = text
                    .trim()
                    .trim_start_matches("0x")
                    .trim_start_matches("0b");
                Value::Int(i64::from_str_radix(digits, radix).ok()?)
            }
            _ => return None,
        },
        "builtins.bytes" | "builtins.bytearray" => match first? {
            Value::List(list) => {
                let bytes: Option<Vec<u8>> = list
                    .iter()
                    .map(|one| u8::try_from(one.int()?).ok())
                    .collect();
                Value::bytes(&bytes?)
            }
            other => Value::bytes(other.raw()?),
        },
        "builtins.bytes.fromhex"
        | "builtins.bytearray.fromhex"
        | "binascii.unhexlify"
        | "binascii.a2b_hex" => Value::bytes(&from_hex(first?.raw()?)?),
        "base64.b64decode"
        | "base64.standard_b64decode"
        | "base64.urlsafe_b64decode"
        | "base64.decodebytes"
        | "binascii.a2b_base64" => Value::bytes(&from_base64(first?.raw()?)?),
        "base64.b16decode" => Value::bytes(&from_hex(first?.raw()?)?),
        "codecs.decode" | "codecs.encode" => decoded(first?, args.get(1)?.text()?)?,
        "urllib.parse.unquote" => Value::assembled(&unquoted(first?.text()?)?),
        "builtins.reversed" => {
            let mut elements = first?.elements()?;
            elements.reverse();
            Value::List(elements.into())
        }
        "builtins.list" | "builtins.tuple" | "builtins.iter" | "builtins.set"
        | "builtins.frozenset" => Value::List(first?.elements()?.into()),
        "builtins.range" => numbers(args)?,
        "builtins.map" => {
            let of = first?.path()?;
            let elements = args.get(1)?.elements()?;
            let mapped: Option<Vec<Value>> = elements
                .into_iter()
                .map(|one| function(of, &[one]))
                .collect();
            Value::List(mapped?.into())
        }
        "operator.add" | "operator.concat" => add(first?, args.get(1)?)?,
        _ => return None,
    })
}

/// What a method of a constant gives.
pub fn method(of: &Value, name: &str, args: &[Value]) -> Option<Value> {
    let first = args.first();
    if let Value::Bytes(bytes) = of {
        return match name {
            "decode" => Some(Value::assembled(std::str::from_utf8(bytes).ok()?)),
            "hex" => Some(Value::assembled(
                &bytes.iter().map(|b| format!("{b:02x}")).collect::<String>(),
            )),
            _ => None,
        };
    }
    let text = of.text()?;
    Some(match name {
        "join" => {
            // A string has as many parts as characters.
            let count = first?.text().map_or(0, |text| text.chars().count());
            if count * (text.len() + 1) > 2 * LONGEST {
                return None;
            }
            let parts = first?.elements()?;
            let parts: Option<Vec<&str>> = parts.iter().map(Value::text).collect();
            let parts = parts?;
            let length: usize = parts.iter().map(|part| part.len() + text.len()).sum();
            if length > 2 * LONGEST {
                return None;
            }
            Value::assembled(&parts.join(text))
        }
        "lower" | "casefold" => Value::assembled(&text.to_lowercase()),
        "upper" => Value::assembled(&text.to_uppercase()),
        "swapcase" => Value::assembled(&text.chars().map(swapped).collect::<String>()),
        "strip" => Value::assembled(stripped(text, first, true, true)?),
        "lstrip" => Value::assembled(stripped(text, first, true, false)?),
        "rstrip" => Value::assembled(stripped(text, first, false, true)?),
        "replace" => {
            let (from, to) = (first?.text()?, args.get(1)?.text()?);
            if text.len().saturating_mul(to.len().max(1)) > 1 << 20 {
                return None;
            }
            Value::assembled(&text.replace(from, to))
        }
        "removeprefix" => Value::assembled(text.strip_prefix(first?.text()?).unwrap_or(text)),
        "removesuffix" => Value::assembled(text.strip_suffix(first?.text()?).unwrap_or(text)),
        "encode" => Value::bytes(text.as_bytes()),
        "split" => {
            let parts: Vec<Value> = match first {
                None => text.split_whitespace().map(Value::assembled).collect(),
                Some(by) => {
                    let by = by.text().filter(|by| !by.is_empty())?;
                    text.split(by).map(Value::assembled).collect()
                }
            };
            Value::List(parts.into())
        }
        "format" => Value::assembled(&filled(text, args)?),
        "__add__" => add(of, first?)?,
        "__str__" => of.clone(),
        _ => return None,
    })
}

/// Other arithmetic that codes hide behind.
pub fn number(left: i64, sign: &str, right: i64) -> Option<Value> {
    let result = match sign {
        "-" => left.checked_sub(right),
        "*" => left.checked_mul(right),
        "^" => Some(left ^ right),
        "|" => Some(left | right),
        "&" => Some(left & right),
        "//" => left.checked_div_euclid(right),
        "%" => left.checked_rem_euclid(right),
        _ => None,
    };
    result.map(Value::Int)
}

/// `text % values`, where only plain texts and numbers are filled in.
pub fn percent(text: &str, values: &Value) -> Option<Value> {
    let values: Vec<Value> = match values {
        Value::List(list) => list.to_vec(),
        other => vec![other.clone()],
    };
    let mut values = values.iter();
    let mut filled = String::new();
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        if character != '%' {
            filled.push(character);
            continue;
        }
        match rest.next()? {
            '%' => filled.push('%'),
            's' | 'd' | 'i' => filled.push_str(&text_of(values.next()?)?),
            'c' => filled.push_str(&match values.next()? {
                Value::Int(code) => char::from_u32(u32::try_from(*code).ok()?)?.to_string(),
                other => other.text()?.to_owned(),
            }),
            _ => return None,
        }
        if filled.len() > 4_096 {
            return None;
        }
    }
    Some(Value::assembled(&filled))
}

/// `"{}{}".format(…)`, where only plain places are filled in.
fn filled(text: &str, args: &[Value]) -> Option<String> {
    let mut filled = String::new();
    let mut next = 0;
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        filled.push_str(&rest[..open]);
        let close = open + rest[open..].find('}')?;
        let place = &rest[open + 1..close];
        let index = if place.is_empty() {
            next += 1;
            next - 1
        } else {
            place.parse::<usize>().ok()?
        };
        filled.push_str(&text_of(args.get(index)?)?);
        rest = &rest[close + 1..];
        if filled.len() > 4_096 {
            return None;
        }
    }
    filled.push_str(rest);
    Some(filled)
}

fn numbers(args: &[Value]) -> Option<Value> {
    let args: Option<Vec<i64>> = args.iter().map(Value::int).collect();
    let (from, to) = match args?.as_slice() {
        [to] => (0, *to),
        [from, to] => (*from, *to),
        _ => return None,
    };
    if to.checked_sub(from)? > MOST {
        return None;
    }
    Some(Value::List((from..to).map(Value::Int).collect()))
}

fn decoded(value: &Value, codec: &str) -> Option<Value> {
    let codec = codec.to_ascii_lowercase().replace(['-', '_'], "");
    Some(match codec.as_str() {
        "rot13" => Value::assembled(&value.text()?.chars().map(rotated).collect::<String>()),
        "hex" | "hexcodec" => Value::bytes(&from_hex(value.raw()?)?),
        "base64" | "base64codec" => Value::bytes(&from_base64(value.raw()?)?),
        "utf8" | "ascii" | "latin1" => Value::assembled(&text_of(value)?),
        _ => return None,
    })
}

fn rotated(character: char) -> char {
    let turn = |first: u8| {
        let at = (character as u8 - first + 13) % 26;
        char::from(first + at)
    };
    match character {
        'a'..='z' => turn(b'a'),
        'A'..='Z' => turn(b'A'),
        other => other,
    }
}

fn swapped(character: char) -> char {
    if character.is_ascii_lowercase() {
        character.to_ascii_uppercase()
    } else {
        character.to_ascii_lowercase()
    }
}

fn stripped<'a>(text: &'a str, of: Option<&Value>, front: bool, back: bool) -> Option<&'a str> {
    let set = match of {
        None => None,
        Some(value) => Some(value.text()?),
    };
    let goes = |c: char| set.map_or(c.is_whitespace(), |set| set.contains(c));
    let text = if front {
        text.trim_start_matches(goes)
    } else {
        text
    };
    Some(if back {
        text.trim_end_matches(goes)
    } else {
        text
    })
}
