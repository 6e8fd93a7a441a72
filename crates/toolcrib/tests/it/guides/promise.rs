//! What a page says that its commands print, held against what they printed.

use crate::support::snapshot::steady;

/// What a block of commands is promised to print. Ids, times and the like may differ, and `…` stands for anything.
#[derive(Default)]
pub struct Promise {
    /// Words that come in this order, others between them.
    beside: Vec<String>,
    /// All of it.
    whole: Option<Whole>,
}

enum Whole {
    Text(String),
    Json(String),
}

impl Promise {
    pub fn beside(beside: Vec<String>) -> Promise {
        Promise {
            beside,
            whole: None,
        }
    }

    pub fn of_text(beside: Vec<String>, text: String) -> Promise {
        let whole = Some(Whole::Text(text));
        Promise { beside, whole }
    }

    pub fn of_json(beside: Vec<String>, text: String) -> Promise {
        let whole = Some(Whole::Json(text));
        Promise { beside, whole }
    }

    /// What was promised and is not so.
    pub fn broken_by(&self, printed: &str) -> Option<String> {
        let told = |promised: &str| {
            Some(format!(
                "promised\n{}\nprinted\n{}",
                promised.trim_end(),
                printed.trim_end()
            ))
        };
        let text = steady(printed);
        let mut rest = text.as_str();
        for promised in &self.beside {
            for part in steady(promised).split('…') {
                match rest.split_once(part) {
                    Some((_, behind)) => rest = behind,
                    None => return told(promised),
                }
            }
        }
        match &self.whole {
            None => None,
            Some(Whole::Text(text)) => {
                let (promised, real) = (lines_of(text), lines_of(printed));
                (!matches(&promised, &real)).then(|| told(text)).flatten()
            }
            Some(Whole::Json(text)) => {
                let (promised, real) = (steady(&packed(text)), steady(&packed(printed)));
                (!matches(&promised, &real)).then(|| told(text)).flatten()
            }
        }
    }
}

/// The lines without what differs from run to run, and without the width of columns.
fn lines_of(text: &str) -> String {
    let line = |line: &str| {
        steady(line)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    let lines: Vec<String> = text.trim_end().lines().map(line).collect();
    match lines.first().is_some_and(|first| first == "…") {
        true => lines.join("\n"),
        false => format!("\n{}", lines.join("\n")),
    }
}

/// JSON without blanks between its parts, and without line breaks.
fn packed(text: &str) -> String {
    let (mut packed, mut quoted, mut escaped) = (String::new(), false, false);
    for sign in text.trim().chars() {
        if sign == '"' && !escaped {
            quoted = !quoted;
        }
        escaped = sign == '\\' && !escaped;
        if quoted || !sign.is_whitespace() {
            packed.push(sign);
        }
    }
    packed
}

/// Is it this text, where `…` stands for anything?
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let Some(last) = pattern.contains('…').then(|| parts.next_back()).flatten() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.split_once(part) {
            Some((_, behind)) => rest = behind,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[test]
fn dots_stand_for_anything() {
    assert!(matches("a…c", "abbbc"));
    assert!(matches("a…", "a\nb\nc"));
    assert!(matches("…b…d", "abcd"));
    assert!(!matches("a…c", "abd"));
    assert!(!matches("a", "ab"));
    assert!(matches("abc", "abc"));
    assert!(!matches("ab…bc", "abc"));
}
