//! Tools folders as settings name them: which there are, in what order, whose they are, and who is trusted.

use std::path::PathBuf;

use toolcrib_core::{Access, Scope};
use toolcrib_sources::Folder;

use super::file::{self, ConfigFile};
use super::private::{real, user_config};
use super::{Project, project_config};
use crate::env::{self, Env};
use crate::store_handle::Trust;

/// The tools folders that lie in a project by what settings say: the user's and, of one that was or is being trusted, its
/// own. Who can change one of them can change what runs.
pub fn local_folders(env: &Env, project: &Project) -> Vec<PathBuf> {
    // Settings that can't be read name no folder; that they can't be is told where they are used.
    let user = user_config(env).unwrap_or_default();
    let own = file::read(&project_config(project)).unwrap_or_default();
    let all = folders(env, Some(project), true, true, &user, &own);
    let local = all.into_iter().filter(|one| one.scope == Scope::Local);
    local.map(|one| one.path).collect()
}

pub(super) fn folders(
    env: &Env,
    project: Option<&Project>,
    trusted: bool,
    programs: bool,
    user: &ConfigFile,
    own: &ConfigFile,
) -> Vec<Folder> {
    let mut found: Vec<(PathBuf, Scope)> = Vec::new();
    // A relative folder lies in whatever project this is, so it is the project's and waits for its trust.
    let placed = |path: PathBuf| match project {
        _ if path.is_absolute() => Some((path, Scope::Global)),
        Some(project) => Some((project.root.join(path), Scope::Local)),
        None => None,
    };
    // Whoever sets variables for a project, such as direnv, means folders of that project.
    let by_variable = |path: PathBuf| match project {
        Some(project) if real(&path).starts_with(&project.root) => Some((path, Scope::Local)),
        _ => placed(path),
    };
    let replaced = match env.get(env::TOOLS_DIR) {
        Some(only) => Some(by_variable(only.into())),
        None => user.tools_dir.as_ref().map(|dir| placed(expand(env, dir))),
    };
    match replaced {
        Some(only) => found.extend(only),
        None => {
            if let Some(project) = project {
                found.push((
                    project.root.join(super::project::MARKER).join("tools"),
                    Scope::Local,
                ));
            }
            if let Some(config) = env.config_folder() {
                found.push((config.join("tools"), Scope::Global));
            }
        }
    }
    let from_variable: Option<Vec<PathBuf>> = env
        .get(env::TOOL_DIRS)
        .map(|dirs| std::env::split_paths(dirs).collect());
    let written = |dirs: &Option<Vec<String>>| -> Vec<PathBuf> {
        dirs.iter().flatten().map(|dir| expand(env, dir)).collect()
    };
    match from_variable {
        Some(dirs) => found.extend(dirs.into_iter().filter_map(by_variable)),
        None => found.extend(written(&user.tool_dirs).into_iter().filter_map(placed)),
    }
    found.extend(written(&own.tool_dirs).into_iter().filter_map(placed));
    let mut folders: Vec<Folder> = Vec::new();
    for (path, scope) in found {
        if folders.iter().any(|folder| folder.path == path) {
            continue;
        }
        let access = match (scope, project) {
            (Scope::Local, Some(project)) if !trusted => Access::untrusted(project.root.clone()),
            _ => Access::Open,
        };
        folders.push(Folder {
            path,
            scope,
            rank: folders.len() as u16,
            access,
            trusted: Vec::new(),
            programs,
        });
    }
    folders
}

/// Tells each folder that is not trusted which of its entries are trusted singly.
pub fn trust_entries(folders: &mut [Folder], entries: &[PathBuf]) {
    for folder in folders {
        let own = entries
            .iter()
            .filter(|entry| entry.parent() == Some(folder.path.as_path()));
        let names = own.filter_map(|entry| entry.file_name()?.to_str());
        folder.trusted = match folder.access {
            Access::Untrusted { .. } => names.map(str::to_owned).collect(),
            _ => Vec::new(),
        };
    }
}

/// Where nobody knows whether the project is trusted, its tools say so, and not that it isn't.
pub fn say_why(folders: &mut [Folder], trust: &Trust) {
    let Trust::Unknown(reason) = trust else {
        return;
    };
    for folder in folders {
        if let Access::Untrusted { unknown, .. } = &mut folder.access {
            *unknown = Some(reason.clone());
        }
    }
}

/// `~/` means home, as a shell would have it.
pub(super) fn expand(env: &Env, path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), env.home()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    }
}
