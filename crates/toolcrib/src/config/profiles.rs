//! What agents see and how their calls are governed, from settings. There is one profile, for every agent.

use toolcrib_core::{ChainSettings, Profiles};

use super::Settings;

pub fn profiles(settings: &Settings) -> Profiles {
    Profiles::everybody(ChainSettings {
        audit: settings.audit,
        output: settings.output_limit.clone(),
        ..ChainSettings::new(settings.default_timeout)
    })
}
