//! Hides values in what a worker says: its variables are its own business, and logs and errors are everybody's.

use std::borrow::Cow;
use std::sync::Arc;

/// What stands in a value's place.
const STARS: &str = "***";
/// Shorter values are too common to be secrets, and hiding them would make everything unreadable.
const SHORTEST: usize = 4;

/// The values to hide, the longest first.
#[derive(Clone, Default)]
pub struct Mask(Option<Arc<[String]>>);

impl std::fmt::Debug for Mask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(STARS)
    }
}

impl Mask {
    pub fn of<'a>(values: impl Iterator<Item = &'a str>) -> Mask {
        let mut values: Vec<String> = values
            .filter(|value| value.len() >= SHORTEST)
            .map(str::to_owned)
            .collect();
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        Mask((!values.is_empty()).then(|| values.into()))
    }

    /// The same, with one value more.
    #[must_use]
    pub fn with(&self, value: &str) -> Mask {
        let known = self.0.iter().flat_map(|values| values.iter());
        Mask::of(known.map(String::as_str).chain([value]))
    }

    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut shown = Cow::Borrowed(text);
        for value in self.0.iter().flat_map(|values| values.iter()) {
            if shown.contains(value.as_str()) {
                shown = Cow::Owned(shown.replace(value.as_str(), STARS));
            }
        }
        shown
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
            let begun =
                |value: &&String| value.len() > rest.len() && value.as_bytes().starts_with(rest);
            if values.iter().any(|value| begun(&value)) {
                break;
            }
            if let Some(value) = values
                .iter()
                .find(|value| rest.starts_with(value.as_bytes()))
            {
                shown.extend_from_slice(STARS.as_bytes());
                at += value.len();
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
        let held = String::from_utf8_lossy(&self.held);
        self.mask.text(&held).into_owned().into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_hidden_wherever_the_pipe_cuts_them() {
        let mask = Mask::of(["s3cret-key", "s3cret", "on"].into_iter());
        let text = "key s3cret-key, s3cret, on and s3c";
        let hidden = "key ***, ***, on and s3c";
        assert_eq!(mask.text(text), hidden);
        for cut in 0..text.len() {
            let mut stream = mask.stream();
            let mut shown = stream.push(&text.as_bytes()[..cut]).into_owned();
            shown.extend_from_slice(&stream.push(&text.as_bytes()[cut..]));
            shown.extend_from_slice(&stream.finish());
            let shown = String::from_utf8(shown).unwrap();
            assert_eq!(shown, hidden, "{cut}");
        }
        assert_eq!(Mask::default().text("s3cret"), "s3cret");
    }
}
