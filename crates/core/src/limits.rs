//! How much one token and one agent may ask for, as settings say: calls a minute, calls at a time, bytes a day.

use std::collections::BTreeMap;

/// What stands for each one that is not named.
const EACH: &str = "*";

/// The limits of one token or agent. What is `None` is not limited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallerLimits {
    pub calls_per_minute: Option<u64>,
    pub concurrency: Option<u64>,
    pub output_bytes_per_day: Option<u64>,
}

/// The limits of all tokens and agents, by their names; `*` is each that is not named.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Limits {
    pub tokens: BTreeMap<String, CallerLimits>,
    pub agents: BTreeMap<String, CallerLimits>,
}

impl Limits {
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty() && self.agents.is_empty()
    }

    pub fn of_token(&self, name: &str) -> CallerLimits {
        of(&self.tokens, name)
    }

    pub fn of_agent(&self, name: &str) -> CallerLimits {
        of(&self.agents, name)
    }
}

fn of(all: &BTreeMap<String, CallerLimits>, name: &str) -> CallerLimits {
    let each = all.get(EACH).copied().unwrap_or_default();
    let own = all.get(name).copied().unwrap_or_default();
    CallerLimits {
        calls_per_minute: own.calls_per_minute.or(each.calls_per_minute),
        concurrency: own.concurrency.or(each.concurrency),
        output_bytes_per_day: own.output_bytes_per_day.or(each.output_bytes_per_day),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_what_differs_for_it() {
        let limits = |calls_per_minute, concurrency| CallerLimits {
            calls_per_minute,
            concurrency,
            output_bytes_per_day: None,
        };
        let each = ("*".to_owned(), limits(Some(10), Some(2)));
        let own = ("ci".to_owned(), limits(Some(600), None));
        let all = Limits {
            tokens: BTreeMap::from([each, own]),
            agents: BTreeMap::new(),
        };
        assert_eq!(all.of_token("ci"), limits(Some(600), Some(2)));
        assert_eq!(all.of_token("other"), limits(Some(10), Some(2)));
        assert_eq!(all.of_agent("ci"), CallerLimits::default());
    }
}
