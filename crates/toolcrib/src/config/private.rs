//! The user's own settings and tools count as the user's word, so nobody else may be able to write them.

use std::path::Path;

use toolcrib_core::words::CommandLine;
use toolcrib_store::Ownership;

use super::ConfigError;
use super::file::{self, ConfigFile};
use crate::env::Env;

/// What the user's own config file says.
pub fn user_config(env: &Env) -> Result<ConfigFile, ConfigError> {
    let Some(folder) = env.config_folder() else {
        return Ok(ConfigFile::default());
    };
    let path = folder.join("config.toml");
    for path in [&folder, &path, &folder.join("tools")] {
        check(path)?;
    }
    file::read(&path)
}

fn check(path: &Path) -> Result<(), ConfigError> {
    // What can't be looked at can't be read either, and then that is told.
    let Ok(ownership) = Ownership::of(path) else {
        return Ok(());
    };
    let user = rustix::process::geteuid().as_raw();
    let Some(doubt) = ownership.doubt(user) else {
        return Ok(());
    };
    let chown = CommandLine::new("chown").operand(user);
    let chown = chown.operand(path.display());
    let chmod = CommandLine::new("chmod o-w").operand(path.display());
    let reason = format!("can't be taken for yours: {doubt}");
    let hint = format!("look at what it holds, then `{chown} && {chmod}`");
    Err(ConfigError::in_file(path, reason, hint))
}
