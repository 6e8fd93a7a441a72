//! The user's own settings and tools count as the user's word, so nobody else may be able to write them.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use toolcrib_core::words::CommandLine;
use toolcrib_store::Ownership;

use super::file::{self, ConfigFile};
use super::{ConfigError, project};
use crate::env::Env;

const EVERYBODY_WRITES: u32 = 0o002;

/// What the user's own config file says.
pub fn user_config(env: &Env) -> Result<ConfigFile, ConfigError> {
    // What a person named wrongly is told where the project is looked for.
    if let Ok(Some(project)) = project::find(None, env) {
        outside(env, &project.root)?;
    }
    let Some(folder) = env.config_folder() else {
        return Ok(ConfigFile::default());
    };
    let path = folder.join("config.toml");
    for path in [&folder, &path, &folder.join("tools")] {
        check(path)?;
    }
    file::read(&path)
}

/// Nothing that lies in a project is the user's own word, whatever variables say: a clone would bring settings, trust and
/// grants with it. A home's usual folders are the user's wherever links in it lead, unless the home lies in the project.
pub fn outside(env: &Env, root: &Path) -> Result<(), ConfigError> {
    let lies_inside = |path: &Path| path.starts_with(root) || real(path).starts_with(root);
    let home = env.home();
    let home_inside = home.is_some_and(|home| lies_inside(&home));
    for (variable, folder, is_usual) in env.own_folders() {
        if (is_usual && !home_inside) || !lies_inside(&folder) {
            continue;
        }
        let reason = format!(
            "leads to `{}`, which is in the project `{}`: what is there can't be taken for yours",
            folder.display(),
            root.display()
        );
        let hint = match variable {
            "HOME" => "set HOME, or the XDG variables, to folders outside of the project",
            _ => "unset it, or set it to a folder outside of the project",
        };
        let place = format!("variable {variable}");
        return Err(ConfigError::new(place, reason, hint));
    }
    Ok(())
}

/// Where a path leads, as far as it is there.
pub fn real(path: &Path) -> PathBuf {
    let mut there = path.ancestors();
    let found = there.find_map(|part| Some((part, part.canonicalize().ok()?)));
    let Some((part, real)) = found else {
        return path.to_path_buf();
    };
    match path.strip_prefix(part) {
        Ok(rest) if rest != Path::new("") => real.join(rest),
        _ => real,
    }
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
    let hint = format!("look at its contents, then `{chown} && {chmod}`");
    Err(ConfigError::in_file(path, reason, hint))
}
