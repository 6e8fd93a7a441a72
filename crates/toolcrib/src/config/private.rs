//! The user's own settings and tools count as the user's word, so nobody else may be able to write them.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use toolcrib_core::words::CommandLine;
use toolcrib_store::Ownership;

use super::ConfigError;
use super::file::{self, ConfigFile};
use crate::env::Env;

const EVERYBODY_WRITES: u32 = 0o002;

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

/// A tools folder that the user named from the root on runs as the user's own. Whom it belongs to the user may have had in
/// mind; that everybody may write there, hardly.
pub fn check_named(path: &Path) -> Result<(), ConfigError> {
    let mode = path.metadata().map_or(0, |meta| meta.mode());
    if mode & EVERYBODY_WRITES == 0 {
        return Ok(());
    }
    let chmod = CommandLine::new("chmod o-w").operand(path.display());
    let reason = "can't be a folder of your own tools: every user of this machine may write to it";
    let hint = format!(
        "look at what it holds, then `{chmod}`, or take it out of `tool_dirs` and `tools_dir`"
    );
    Err(ConfigError::in_file(path, reason, hint))
}

fn check(path: &Path) -> Result<(), ConfigError> {
    // What can't be looked at can't be read either, and then that is told.
    let Ok(ownership) = Ownership::of(path, &[]) else {
        return Ok(());
    };
    let user = rustix::process::geteuid().as_raw();
    let Some(doubt) = ownership.doubt(user) else {
        return Ok(());
    };
    let chown = CommandLine::new("chown").operand(user);
    let chown = chown.operand(path.display());
    let chmod = CommandLine::new("chmod go-w").operand(path.display());
    let reason = format!("can't be taken for yours: {doubt}");
    let hint = format!("look at what it holds, then `{chown} && {chmod}`");
    Err(ConfigError::in_file(path, reason, hint))
}
