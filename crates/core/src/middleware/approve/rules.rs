//! What settings say about approvals: which calls, which decisions, how long.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use crate::store::DecisionKind;

const WAIT: Duration = Duration::from_secs(30);
const MAX_WAIT: f64 = 3_600.0;
const EXPIRES: Duration = Duration::from_secs(3_600);
const MAX_EXPIRES: f64 = 7.0 * 86_400.0;
/// The longest text that a person reads about a tool.
const MAX_NOTE: usize = 1_000;

/// Parameters as they hold.
#[derive(Deserialize)]
#[serde(try_from = "Written")]
pub(super) struct Rules {
    /// Globs of names, the first that fits counts.
    tools: Vec<(String, Asks)>,
    pub wait: Duration,
    pub expires: Duration,
}

enum Asks {
    Nobody,
    Person {
        allowed: Vec<DecisionKind>,
        note: Option<String>,
    },
}

/// What a person is asked about a call.
pub(super) struct Asking<'a> {
    pub allowed: &'a [DecisionKind],
    pub note: Option<&'a str>,
}

/// Parameters as they are written, ours and LangChain's.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    approve_tools: Vec<String>,
    #[serde(default)]
    interrupt_on: BTreeMap<String, Interrupt>,
    allowed_decisions: Option<Vec<String>>,
    wait: Option<f64>,
    expires: Option<f64>,
    description_prefix: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Interrupt {
    Plain(bool),
    Table(InterruptTable),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InterruptTable {
    allowed_decisions: Option<Vec<String>>,
    description: Option<String>,
}

impl TryFrom<Written> for Rules {
    type Error = String;

    fn try_from(written: Written) -> Result<Rules, String> {
        let default = decisions(written.allowed_decisions)?;
        let default = default.unwrap_or_else(|| DecisionKind::ALL.to_vec());
        let prefix = written.description_prefix;
        let mut tools = Vec::new();
        for (name, interrupt) in written.interrupt_on {
            let asks = match interrupt {
                Interrupt::Plain(false) => Asks::Nobody,
                Interrupt::Plain(true) => Asks::Person {
                    allowed: default.clone(),
                    note: bounded(prefix.clone()),
                },
                Interrupt::Table(table) => Asks::Person {
                    allowed: decisions(table.allowed_decisions)?.unwrap_or_else(|| default.clone()),
                    note: bounded(table.description.or_else(|| prefix.clone())),
                },
            };
            tools.push((name, asks));
        }
        // A whole name says more than a pattern.
        tools.sort_by_key(|(name, _)| name.contains(['*', '?']));
        for name in written.approve_tools {
            let asks = Asks::Person {
                allowed: default.clone(),
                note: bounded(prefix.clone()),
            };
            tools.push((name, asks));
        }
        if tools.is_empty() {
            return Err(
                "it names no tools; write `approve_tools = [\"*\"]` to be asked for all".to_owned(),
            );
        }
        Ok(Rules {
            tools,
            wait: seconds("wait", written.wait, WAIT, 0.0, MAX_WAIT)?,
            expires: seconds("expires", written.expires, EXPIRES, 1.0, MAX_EXPIRES)?,
        })
    }
}

impl Rules {
    /// What a person is asked about a call of this tool, if anybody is.
    pub fn question(&self, tool: &str) -> Option<Asking<'_>> {
        let (_, asks) = self.tools.iter().find(|(glob, _)| fits(glob, tool))?;
        match asks {
            Asks::Nobody => None,
            Asks::Person { allowed, note } => Some(Asking {
                allowed,
                note: note.as_deref(),
            }),
        }
    }
}

fn bounded(note: Option<String>) -> Option<String> {
    note.map(|note| note.chars().take(MAX_NOTE).collect())
}

fn decisions(words: Option<Vec<String>>) -> Result<Option<Vec<DecisionKind>>, String> {
    let Some(words) = words else { return Ok(None) };
    let read = |word: &String| {
        DecisionKind::parse(word).ok_or_else(|| {
            let known = DecisionKind::ALL.map(DecisionKind::as_str).join("`, `");
            format!("unknown variant `{word}`, expected one of `{known}`")
        })
    };
    let read: Vec<DecisionKind> = words.iter().map(read).collect::<Result<_, _>>()?;
    match read.is_empty() {
        true => Err("`allowed_decisions` is empty, so nobody could decide anything".to_owned()),
        false => Ok(Some(read)),
    }
}

fn seconds(
    key: &str,
    given: Option<f64>,
    default: Duration,
    least: f64,
    most: f64,
) -> Result<Duration, String> {
    match given {
        None => Ok(default),
        Some(given) if (least..=most).contains(&given) => Ok(Duration::from_secs_f64(given)),
        Some(_) => Err(format!("`{key}` is in seconds, from {least} to {most}")),
    }
}

/// Does a name fit a pattern, in which `*` stands for any text and `?` for one character?
fn fits(glob: &str, name: &str) -> bool {
    let (glob, name) = (glob.as_bytes(), name.as_bytes());
    let (mut at, mut of) = (0, 0);
    // Where the last star was, and how much of the name it took.
    let mut star = None;
    while of < name.len() {
        match glob.get(at) {
            Some(b'*') => {
                star = Some((at, of));
                at += 1;
            }
            Some(b'?') => (at, of) = (at + 1, of + 1),
            Some(byte) if *byte == name[of] => (at, of) = (at + 1, of + 1),
            _ => match star {
                Some((starred, taken)) => {
                    star = Some((starred, taken + 1));
                    (at, of) = (starred + 1, taken + 1);
                }
                None => return false,
            },
        }
    }
    glob[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(written: Value) -> Result<Rules, String> {
        serde_json::from_value(written).map_err(|error| error.to_string())
    }

    #[test]
    fn globs_fit() {
        for (glob, name, expected) in [
            ("*", "a", true),
            ("deploy*", "deploy-all", true),
            ("deploy*", "redeploy", false),
            ("*deploy", "redeploy", true),
            ("a*b*c", "aXbXbYc", true),
            ("a*b*c", "aXbXbY", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("send-mail", "send-mail", true),
            ("send-mail", "send-mails", false),
            ("", "a", false),
        ] {
            assert_eq!(fits(glob, name), expected, "{glob} {name}");
        }
    }

    #[test]
    fn our_names_and_langchain_s_mean_the_same() {
        let ours = read(json!({"approve_tools": ["send*"], "wait": 0.5})).unwrap();
        assert_eq!(ours.question("send-mail").unwrap().allowed.len(), 4);
        assert!(ours.question("list").is_none());
        assert_eq!(
            (ours.wait, ours.expires),
            (Duration::from_millis(500), EXPIRES)
        );
        let theirs = read(json!({"interrupt_on": {
            "send*": {"allowed_decisions": ["approve", "reject"], "description": "mail leaves the house"},
            "send-draft": false,
            "wipe": true,
        }}));
        let theirs = theirs.unwrap();
        let asking = theirs.question("send-mail").unwrap();
        assert_eq!(
            asking.allowed,
            [DecisionKind::Approve, DecisionKind::Reject]
        );
        assert_eq!(asking.note, Some("mail leaves the house"));
        assert!(theirs.question("send-draft").is_none());
        assert!(theirs.question("wipe").is_some());
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (written, why) in [
            (json!({}), "names no tools"),
            (
                json!({"approve_tools": ["a"], "allowed_decisions": []}),
                "is empty",
            ),
            (
                json!({"approve_tools": ["a"], "allowed_decisions": ["ok"]}),
                "unknown variant `ok`",
            ),
            (json!({"approve_tools": ["a"], "wait": -1}), "in seconds"),
            (json!({"approve_tools": ["a"], "wait": 1e9}), "in seconds"),
            (json!({"approve_tool": ["a"]}), "unknown field"),
        ] {
            let refused = read(written.clone()).err().unwrap();
            assert!(refused.contains(why), "{written} {refused}");
        }
    }
}
