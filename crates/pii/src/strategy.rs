//! What stands in a finding's place, in the shapes that LangChain gave them.

use crate::detectors::Finding;

/// What happens to what is found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Strategy {
    /// `[REDACTED_EMAIL]`
    #[default]
    Redact,
    /// What tells nothing stays: `jane@****.com`, `****-****-****-1111`.
    Mask,
    /// `<email_hash:45513bb1>`, the same for the same value.
    Hash,
    /// The whole text is refused.
    Block,
}

/// The keyed hash of a value of a kind, in hexadecimal digits. Nothing where the key is out of reach.
pub type HashOf<'a> = &'a (dyn Fn(&str, &str) -> Option<String> + Sync);

/// How much of a hash is shown.
const SHOWN: usize = 8;

/// The text with something else in each finding's place. For `block` that is what `redact` gives: whoever blocks shows
/// none of it.
pub fn covered(text: &str, findings: &[Finding], strategy: Strategy, hash: HashOf) -> String {
    let mut made = String::with_capacity(text.len());
    let mut from = 0;
    for finding in findings {
        made.push_str(&text[from..finding.start]);
        made.push_str(&replacement(text, finding, strategy, hash));
        from = finding.end;
    }
    made.push_str(&text[from..]);
    made
}

fn replacement(text: &str, finding: &Finding, strategy: Strategy, hash: HashOf) -> String {
    let value = &text[finding.start..finding.end];
    let kind = finding.kind;
    match strategy {
        Strategy::Mask if finding.merged => "****".to_owned(),
        Strategy::Mask => masked(kind, value),
        Strategy::Hash => match hash(kind, &normal(kind, value)) {
            Some(hash) => format!("<{kind}_hash:{}>", hash.get(..SHOWN).unwrap_or(&hash)),
            // Without a key a hash could be guessed.
            None => redacted(kind),
        },
        Strategy::Redact | Strategy::Block => redacted(kind),
    }
}

fn redacted(kind: &str) -> String {
    format!("[REDACTED_{}]", kind.to_uppercase())
}

fn masked(kind: &str, value: &str) -> String {
    let last = |count: usize| {
        let from = value.char_indices().rev().nth(count - 1);
        from.map_or(value, |(at, _)| &value[at..])
    };
    match kind {
        "email" => match value.split_once('@') {
            Some((local, domain)) => {
                let ending = domain.rsplit('.').next().unwrap_or_default();
                format!("{local}@****.{ending}")
            }
            None => "****".to_owned(),
        },
        "credit_card" => {
            let digits: String = value.chars().filter(char::is_ascii_digit).collect();
            let last = &digits[digits.len().saturating_sub(4)..];
            match ["-", " "].into_iter().find(|sign| value.contains(sign)) {
                Some(sign) => format!("****{sign}****{sign}****{sign}{last}"),
                None => format!("************{last}"),
            }
        }
        "ip" => match value.split('.').collect::<Vec<_>>().as_slice() {
            [_, _, _, octet] if !value.contains(':') => format!("*.*.*.{octet}"),
            _ => "****".to_owned(),
        },
        "mac_address" => {
            let sign = if value.contains(':') { ":" } else { "-" };
            format!("{}{}", format!("**{sign}").repeat(5), last(2))
        }
        "url" => "[MASKED_URL]".to_owned(),
        _ if value.chars().count() > 4 => format!("****{}", last(4)),
        _ => "****".to_owned(),
    }
}

/// The same text for the same value, however it is written.
fn normal(kind: &str, value: &str) -> String {
    let kept = |keep: fn(&char) -> bool| value.chars().filter(keep).collect::<String>();
    match kind {
        "credit_card" | "ssn" => kept(char::is_ascii_digit),
        "phone" => kept(|c| c.is_ascii_digit() || *c == '+'),
        "iban" => kept(char::is_ascii_alphanumeric).to_ascii_uppercase(),
        "mac_address" => kept(char::is_ascii_hexdigit).to_ascii_lowercase(),
        "email" => value.to_lowercase(),
        "ip" => match value.parse::<std::net::IpAddr>() {
            Ok(address) => address.to_string(),
            Err(_) => value.to_lowercase(),
        },
        _ => value.to_owned(),
    }
}
