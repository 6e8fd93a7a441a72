//! How much text a client is handed at once, by who asks.

use std::collections::BTreeMap;

use crate::{Caller, client};

/// The most text that one outcome carries, notices included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputLimit {
    pub bytes: usize,
    pub lines: usize,
}

impl OutputLimit {
    pub const DEFAULT: OutputLimit = OutputLimit::of(50_000, 2_000);
    /// Two notices and some text between them.
    pub const LEAST: OutputLimit = OutputLimit::of(4_000, 20);
    /// More text than this makes no client wiser, and costs memory.
    pub const MOST: OutputLimit = OutputLimit::of(1_000_000, 100_000);

    pub const fn of(bytes: usize, lines: usize) -> OutputLimit {
        OutputLimit { bytes, lines }
    }

    /// The lower of the two, for each.
    #[must_use]
    pub fn at_most(self, other: OutputLimit) -> OutputLimit {
        OutputLimit {
            bytes: self.bytes.min(other.bytes),
            lines: self.lines.min(other.lines),
        }
    }
}

/// What settings say about one limit; what is not said stays as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OutputRule {
    pub bytes: Option<usize>,
    pub lines: Option<usize>,
    /// A preview instead of a beginning.
    pub preview: Option<bool>,
}

impl OutputRule {
    fn over(self, limit: OutputLimit) -> OutputLimit {
        let (least, most) = (OutputLimit::LEAST, OutputLimit::MOST);
        let bytes = self.bytes.unwrap_or(limit.bytes);
        let lines = self.lines.unwrap_or(limit.lines);
        OutputLimit {
            bytes: bytes.clamp(least.bytes, most.bytes),
            lines: lines.clamp(least.lines, most.lines),
        }
    }
}

/// The limits of all who ask.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutputRules {
    pub all: OutputRule,
    /// By the name of the client: what people call it, or what it calls itself.
    pub clients: BTreeMap<String, OutputRule>,
    /// By the name of the agent.
    pub agents: BTreeMap<String, OutputRule>,
}

impl OutputRules {
    /// The limit for this caller. What is said of the agent goes first, then what is said of the client, then what is
    /// said of all, which holds for a known client as far as that shows so much.
    pub fn limit(&self, caller: &Caller) -> OutputLimit {
        let all = self.all.over(OutputLimit::DEFAULT);
        let fits = client::shown(&caller.client).map_or(all, |shown| all.at_most(shown));
        let known = self.clients.get(client::known_name(&caller.client));
        let client = self.clients.get(&*caller.client).or(known);
        let limit = client.map_or(fits, |rule| rule.over(fits));
        let agent = self.agents.get(&*caller.agent);
        agent.map_or(limit, |rule| rule.over(limit))
    }

    /// Is this caller shown a preview of what is too long, instead of its beginning? As settings say, and else an agent that
    /// is handed less than usual.
    pub fn previews(&self, caller: &Caller) -> bool {
        let agent = self.agents.get(&*caller.agent);
        let known = self.clients.get(client::known_name(&caller.client));
        let client = self.clients.get(&*caller.client).or(known);
        let said = [agent, client, Some(&self.all)].into_iter().flatten();
        let said = said.filter_map(|rule| rule.preview).next();
        let is_low = |rule: &OutputRule| {
            let limit = rule.over(OutputLimit::DEFAULT);
            limit.at_most(OutputLimit::DEFAULT) == limit && limit != OutputLimit::DEFAULT
        };
        said.unwrap_or_else(|| agent.is_some_and(is_low))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(bytes: usize) -> OutputRule {
        OutputRule {
            bytes: Some(bytes),
            ..OutputRule::default()
        }
    }

    #[test]
    fn a_known_client_is_handed_no_more_than_it_shows() {
        let rules = OutputRules::default();
        let limit = |client: &str| rules.limit(&Caller::new(client)).bytes;
        assert_eq!(limit("rest"), 50_000);
        assert_eq!(limit("claude-code"), 50_000);
        assert_eq!(limit("codex-mcp-client"), 9_000);
        assert_eq!(limit("gemini-cli-mcp-client"), 38_000);
        let larger = OutputRules {
            all: bytes(200_000),
            ..OutputRules::default()
        };
        assert_eq!(larger.limit(&Caller::new("rest")).bytes, 200_000);
        assert_eq!(larger.limit(&Caller::new("codex")).bytes, 9_000);
    }

    #[test]
    fn the_nearest_word_counts() {
        let rules = OutputRules {
            all: bytes(20_000),
            clients: BTreeMap::from([
                ("codex".to_owned(), bytes(30_000)),
                ("claude-ai".to_owned(), bytes(6_000)),
                ("claude".to_owned(), bytes(1)),
            ]),
            agents: BTreeMap::from([("reviewer".to_owned(), bytes(7_000))]),
        };
        let mut caller = Caller::new("codex-mcp-client");
        assert_eq!(rules.limit(&caller), OutputLimit::of(30_000, 2_000));
        caller.agent = "reviewer".into();
        assert_eq!(rules.limit(&caller).bytes, 7_000);
        assert_eq!(rules.limit(&Caller::new("claude-ai")).bytes, 6_000);
        assert_eq!(rules.limit(&Caller::new("claude-code")).bytes, 4_000);
        assert_eq!(rules.limit(&Caller::new("rest")).bytes, 20_000);
    }
}
