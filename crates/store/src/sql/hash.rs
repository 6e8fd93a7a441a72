//! Keyed and plain hashes, and randomness from the system.

use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use toolcrib_core::Object;

use crate::file::hex;

/// As many bytes as asked for that nobody can guess.
pub(super) fn random<const N: usize>() -> Result<[u8; N], getrandom::Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

pub(super) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// A secret of 256 bits that nobody can guess, as text that needs no quoting anywhere.
pub fn new_secret() -> std::io::Result<String> {
    let random = random::<32>().map_err(|error| std::io::Error::other(error.to_string()))?;
    Ok(hex(&random))
}

/// The code of a message under a key that two sides share.
pub fn hmac_sha256(key: &[u8], message: &[u8]) -> [u8; 32] {
    mac_of(key, message).finalize().into_bytes().into()
}

/// Is this the code of that message? Takes as long for one that is nearly right.
pub fn is_hmac_sha256(key: &[u8], message: &[u8], code: &[u8]) -> bool {
    mac_of(key, message).verify_slice(code).is_ok()
}

fn mac_of(key: &[u8], message: &[u8]) -> Hmac<Sha256> {
    // HMAC takes keys of any length: a longer one than a block of the hash is hashed first.
    let mut block = [0; 64];
    match key.len() {
        length @ 0..=64 => block[..length].copy_from_slice(key),
        _ => block[..32].copy_from_slice(&Sha256::digest(key)),
    }
    let mut mac = Hmac::<Sha256>::new(&block.into());
    mac.update(message);
    mac
}

/// What a secret is looked up by: who watches the lookup's time learns nothing of the secret itself.
pub fn fingerprint(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

/// The key of argument hashes. It lies in the store beside them: it keeps hashes of guessable arguments from being
/// compared with other stores' or with a table made elsewhere, not from whoever reads this whole store.
#[derive(Clone)]
pub(super) struct ArgumentKey(Hmac<Sha256>);

impl ArgumentKey {
    pub(super) fn new(key: &[u8]) -> Option<ArgumentKey> {
        Hmac::new_from_slice(key).ok().map(ArgumentKey)
    }

    /// The same for equal arguments, whatever the order of their keys.
    pub(super) fn hash(&self, arguments: &Object) -> String {
        let mut text = Vec::with_capacity(256);
        write_map(&mut text, arguments.map());
        // Their values are rounded, and two numbers that differ must not look like one.
        let mut large = arguments.json().large_numbers();
        large.sort_unstable();
        large
            .iter()
            .for_each(|number| text.extend_from_slice(number.as_bytes()));
        let mut mac = self.0.clone();
        mac.update(&text);
        hex(&mac.finalize().into_bytes())
    }

    pub(super) fn approvals(&self) -> ApprovalKey {
        ApprovalKey(self.signer("approvals").0)
    }

    /// A key for another purpose, which tells nothing of this one. Arguments begin with `{`, purposes never do.
    pub(super) fn signer(&self, purpose: &'static str) -> Signer {
        let mut mac = self.0.clone();
        mac.update(purpose.as_bytes());
        Signer::new(mac.finalize().into_bytes().into())
    }
}

/// The key of what approvals are for: another one in every store, so that no row of one store means anything in another.
#[derive(Clone)]
pub(super) struct ApprovalKey(Hmac<Sha256>);

pub(super) fn hashed(key: &ApprovalKey, text: &str) -> String {
    let mut mac = key.0.clone();
    mac.update(text.as_bytes());
    hex(&mac.finalize().into_bytes())
}

/// Signs what is given out and comes back.
#[derive(Clone)]
pub struct Signer(Hmac<Sha256>);

impl Signer {
    /// The length of a signature.
    pub const LENGTH: usize = 16;

    fn new(key: [u8; 32]) -> Signer {
        // As long as a block of the hash: a shorter key is filled up with zeros, so says HMAC.
        let mut block = [0; 64];
        block[..32].copy_from_slice(&key);
        Signer(Hmac::new(&block.into()))
    }

    /// One whose key nobody else has, and nobody keeps.
    pub fn random() -> std::io::Result<Signer> {
        let key = random::<32>().map_err(|error| std::io::Error::other(error.to_string()))?;
        Ok(Signer::new(key))
    }

    pub fn sign(&self, text: &[u8]) -> [u8; Signer::LENGTH] {
        let mut mac = self.0.clone();
        mac.update(text);
        let whole: [u8; 32] = mac.finalize().into_bytes().into();
        std::array::from_fn(|at| whole[at])
    }

    /// Is this the signature of that text? Takes as long for one that is nearly right.
    pub fn verify(&self, text: &[u8], signature: &[u8; Signer::LENGTH]) -> bool {
        let mut mac = self.0.clone();
        mac.update(text);
        mac.verify_truncated_left(signature).is_ok()
    }
}

fn write_map(text: &mut Vec<u8>, map: &Map<String, Value>) {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    text.push(b'{');
    for (key, value) in entries {
        // Writing a string to memory can't fail.
        let _ = serde_json::to_writer(&mut *text, key);
        text.push(b':');
        write_value(text, value);
        text.push(b',');
    }
    text.push(b'}');
}

fn write_value(text: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Object(map) => write_map(text, map),
        Value::Array(items) => {
            text.push(b'[');
            for item in items {
                write_value(text, item);
                text.push(b',');
            }
            text.push(b']');
        }
        plain => {
            let _ = serde_json::to_writer(text, plain);
        }
    }
}

/// Compares without telling by time where the first difference is.
pub(super) fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let differing = a.iter().zip(b).fold(0, |all, (a, b)| all | (a ^ b));
    a.len() == b.len() && std::hint::black_box(differing) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn hash(key: &[u8], value: Value) -> String {
        let arguments = Object::parse(&value.to_string()).unwrap();
        ArgumentKey::new(key).unwrap().hash(&arguments)
    }

    #[test]
    fn order_of_keys_does_not_count_and_the_rest_does() {
        let one = hash(b"k", json!({"a": 1, "b": {"c": [1, "x"], "d": null}}));
        assert_eq!(
            one,
            hash(b"k", json!({"b": {"d": null, "c": [1, "x"]}, "a": 1}))
        );
        assert_ne!(
            one,
            hash(b"l", json!({"a": 1, "b": {"c": [1, "x"], "d": null}}))
        );
        assert_ne!(
            one,
            hash(b"k", json!({"a": 1, "b": {"c": ["x", 1], "d": null}}))
        );
        assert_ne!(
            hash(b"k", json!({"a": ["b,c"]})),
            hash(b"k", json!({"a": ["b", "c"]}))
        );
    }

    #[test]
    fn large_numbers_are_told_apart() {
        let hash = |text: &str| {
            let arguments = Object::parse(text).unwrap();
            ArgumentKey::new(b"k").unwrap().hash(&arguments)
        };
        let one = hash(r#"{"n": 100000000000000000000001, "m": 1}"#);
        assert_ne!(one, hash(r#"{"n": 100000000000000000000002, "m": 1}"#));
        assert_eq!(one, hash(r#"{"m": 1, "n": 100000000000000000000001}"#));
    }

    #[test]
    fn a_signature_holds_for_its_text_key_and_purpose() {
        let key = ArgumentKey::new(b"k").unwrap();
        let (one, two) = (key.signer("one"), key.signer("two"));
        let signature = one.sign(b"text");
        assert!(key.signer("one").verify(b"text", &signature));
        assert!(!one.verify(b"texT", &signature) && !two.verify(b"text", &signature));
        let other = ArgumentKey::new(b"l").unwrap().signer("one");
        assert!(!other.verify(b"text", &signature));
        assert!(!Signer::random().unwrap().verify(b"text", &signature));
    }

    #[test]
    fn equal_is_equal() {
        assert!(same("abc", "abc") && same("", ""));
        assert!(!same("abc", "abd") && !same("abc", "ab") && !same("ab", "abc"));
    }
}
