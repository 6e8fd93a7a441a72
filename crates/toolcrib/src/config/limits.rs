//! `[limits]`: how much each token and each agent may ask for.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use toolcrib_core::{CallerLimits, Limits};

use super::file::ConfigFile;

/// How much each token and each agent may ask for; a call must be within both. The name "*" stands for each one that is
/// not named.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitsSection {
    /// What holds for one token, by its name.
    pub tokens: Option<BTreeMap<String, CallerLimitsSection>>,
    /// What holds for one agent, by its name.
    pub agents: Option<BTreeMap<String, CallerLimitsSection>>,
}

/// How much one token or agent may ask for. What is left out is not limited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallerLimitsSection {
    /// The most calls within any minute.
    pub calls_per_minute: Option<u64>,
    /// The most calls that run at the same time.
    #[schemars(range(min = 1))]
    pub concurrency: Option<u64>,
    /// Bytes of output within a day after which no more calls are made.
    pub output_bytes_per_day: Option<u64>,
}

/// The limits of the user's own file; a project has none.
pub(super) fn limits(user: &ConfigFile) -> Limits {
    let section = user.limits.clone().unwrap_or_default();
    Limits {
        tokens: each(section.tokens),
        agents: each(section.agents),
    }
}

fn each(sections: Option<BTreeMap<String, CallerLimitsSection>>) -> BTreeMap<String, CallerLimits> {
    let limits = |section: CallerLimitsSection| CallerLimits {
        calls_per_minute: section.calls_per_minute,
        concurrency: section.concurrency.map(|most| most.max(1)),
        output_bytes_per_day: section.output_bytes_per_day,
    };
    let sections = sections.into_iter().flatten();
    sections
        .map(|(name, section)| (name, limits(section)))
        .collect()
}
