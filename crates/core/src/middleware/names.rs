//! What parameters of several links share: one name or a list of them.

use serde::Deserialize;

use crate::ErrorCode;

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Names {
    One(String),
    Many(Vec<String>),
}

impl Names {
    pub fn into_vec(self) -> Vec<String> {
        match self {
            Names::One(name) => vec![name],
            Names::Many(names) => names,
        }
    }
}

/// Reads error codes, or says which was meant.
pub(super) fn codes(names: &[String]) -> Result<Vec<ErrorCode>, String> {
    let code = |name: &String| {
        ErrorCode::parse(name).ok_or_else(|| {
            let known = ErrorCode::ALL.map(ErrorCode::as_str);
            let near = nearest(name, known).map(|near| format!("; did you mean `{near}`?"));
            format!(
                "there is no error code `{name}`{}",
                near.unwrap_or_default()
            )
        })
    };
    names.iter().map(code).collect()
}

/// The one that was meant, if any is like it at all.
pub(super) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let scored = known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(name, word), name));
    let best = scored
        .filter(|(score, _)| *score > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    best.map(|(_, name)| name)
}
