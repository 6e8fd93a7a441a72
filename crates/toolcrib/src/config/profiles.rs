//! What agents see and how their calls are governed, from settings.

use std::time::Duration;

use toolcrib_core::call::DEFAULT_AGENT;
use toolcrib_core::{ChainSettings, Profile, Profiles, Selection};

use super::agents::{self, AgentSettings};
use super::file::ConfigFile;
use super::private::user_config;
use super::{ConfigError, Settings};
use crate::env::Env;

/// A profile for each agent of the settings.
pub fn profiles(settings: &Settings) -> Profiles {
    let all = ChainSettings {
        audit: settings.audit,
        output: settings.output_limit.clone(),
        limits: settings.limits.clone(),
        ..ChainSettings::new(settings.default_timeout)
    };
    of(&settings.agents, &all)
}

/// Those of the user's own file alone, for those who have no other settings and call nothing.
pub fn users_profiles(env: &Env) -> Result<Profiles, ConfigError> {
    let agents = agents::agents(&user_config(env)?, &ConfigFile::default(), None)?;
    Ok(of(&agents, &ChainSettings::new(Duration::ZERO)))
}

fn of(agents: &[AgentSettings], all: &ChainSettings) -> Profiles {
    let profile = |agent: &AgentSettings| {
        let own = ChainSettings {
            middleware: agent.middleware.clone(),
            ..all.clone()
        };
        Profile::new(&agent.name, agent.sees.clone(), own)
            .with_mode(agent.mode)
            .with_surface(agent.surface.clone())
    };
    let mut profiles = agents.iter().map(profile);
    match profiles.next() {
        Some(default) => Profiles::new(default, profiles),
        None => Profiles::new(
            Profile::new(DEFAULT_AGENT, Selection::nothing(), all.clone()),
            [],
        ),
    }
}
