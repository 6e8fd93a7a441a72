//! What agents see and how their calls are governed, from settings. There is one profile, for every agent.

use toolcrib_core::{ChainSettings, Profiles};

use super::{ConfigError, Settings};

pub fn profiles(settings: &Settings) -> Result<Profiles, ConfigError> {
    let chain = ChainSettings {
        audit: settings.audit,
        ..ChainSettings::new(settings.default_timeout)
    };
    Profiles::everybody(chain).map_err(|error| {
        let hint = "take it out, or correct its parameters";
        ConfigError::new("the settings", error.to_string(), hint)
    })
}
