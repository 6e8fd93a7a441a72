//! How much text is handed over at once, as the user's file says it and a project's lowers it.

use std::collections::BTreeMap;

use toolcrib_core::{OutputLimit, OutputRule, OutputRules};

use super::file::{ConfigFile, OutputRuleSection};

/// The user's rules, none of them above what the project says.
pub(super) fn output_rules(user: &ConfigFile, own: &ConfigFile) -> OutputRules {
    let user = user.output_limit.clone().unwrap_or_default();
    let own = own.output_limit.clone().unwrap_or_default();
    let own = rule(OutputRuleSection {
        bytes: own.bytes,
        lines: own.lines,
        preview: own.preview,
    });
    let all = OutputRuleSection {
        bytes: user.bytes,
        lines: user.lines,
        preview: user.preview,
    };
    let each = |rules: Option<BTreeMap<String, OutputRuleSection>>| {
        let rules = rules.unwrap_or_default().into_iter();
        let lowered = rules.map(|(name, section)| (name, lowered(rule(section), own, None)));
        lowered.collect()
    };
    OutputRules {
        all: lowered(rule(all), own, Some(OutputLimit::DEFAULT)),
        clients: each(user.clients),
        agents: each(user.agents),
    }
}

fn rule(section: OutputRuleSection) -> OutputRule {
    let size =
        |number: Option<u64>| number.map(|number| usize::try_from(number).unwrap_or(usize::MAX));
    OutputRule {
        bytes: size(section.bytes),
        lines: size(section.lines),
        preview: section.preview,
    }
}

/// What a rule says, or else what holds by itself, but never more than `own`.
fn lowered(rule: OutputRule, own: OutputRule, itself: Option<OutputLimit>) -> OutputRule {
    let lower = |said: Option<usize>, own: Option<usize>, itself: Option<usize>| match own {
        Some(own) => said.or(itself).map(|said| said.min(own)),
        None => said,
    };
    OutputRule {
        bytes: lower(rule.bytes, own.bytes, itself.map(|limit| limit.bytes)),
        lines: lower(rule.lines, own.lines, itself.map(|limit| limit.lines)),
        preview: own.preview.or(rule.preview),
    }
}

#[cfg(test)]
mod tests {
    use toolcrib_core::Caller;

    use super::*;

    #[test]
    fn a_project_lowers_every_rule_and_raises_none() {
        let file = |text: &str| toml::from_str::<ConfigFile>(text).unwrap();
        let user = file(
            "[output_limit]\nlines = 500\n[output_limit.clients.codex]\nbytes = 30000\n\
             [output_limit.agents.reviewer]\nbytes = 5000\n",
        );
        let limit = |own: &str, client: &str, agent: &str| {
            let mut caller = Caller::new(client);
            caller.agent = agent.into();
            let limit = output_rules(&user, &file(own)).limit(&caller);
            (limit.bytes, limit.lines)
        };
        assert_eq!(limit("", "rest", "default"), (50_000, 500));
        assert_eq!(limit("", "codex-mcp-client", "default"), (30_000, 500));
        assert_eq!(limit("", "codex-mcp-client", "reviewer"), (5_000, 500));
        let own = "[output_limit]\nbytes = 10000\nlines = 1000\n";
        assert_eq!(limit(own, "rest", "default"), (10_000, 500));
        assert_eq!(limit(own, "codex-mcp-client", "default"), (10_000, 500));
        assert_eq!(limit(own, "gemini-cli", "reviewer"), (5_000, 500));
        let higher = "[output_limit]\nbytes = 90000\n";
        assert_eq!(limit(higher, "rest", "default"), (50_000, 500));
        assert_eq!(limit(higher, "codex", "default"), (30_000, 500));
    }
}
