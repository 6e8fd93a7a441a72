//! What `--fix` does: only what changes no meaning, and only where it is plain which text is meant.

use super::Finding;
use crate::wire::ToolView;

/// A file's text after it was fixed, and how many findings that settles.
#[derive(Debug, PartialEq, Eq)]
pub struct Fixed {
    pub text: String,
    pub settled: usize,
}

/// The text of a JSON file without the faults that can be fixed safely; nothing where none can.
pub fn fix(text: &str, tools: &[(&ToolView, &[Finding])]) -> Option<Fixed> {
    let mut fixed = Fixed {
        text: text.to_owned(),
        settled: 0,
    };
    for (tool, findings) in tools {
        if !findings
            .iter()
            .any(|finding| finding.code == "description-space")
        {
            continue;
        }
        let tidy = tool
            .description
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        let (old, new) = (quoted(&tool.description), quoted(&tidy));
        // Written otherwise or twice, it is not plain which one is meant.
        if fixed.text.matches(&old).count() == 1 {
            fixed.text = fixed.text.replace(&old, &new);
            fixed.settled += 1;
        }
    }
    let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&fixed.text).is_ok();
    (fixed.settled > 0 && is_json).then_some(fixed)
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
