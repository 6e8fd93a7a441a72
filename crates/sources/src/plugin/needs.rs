//! What a plugin tool needs beyond the default policy, in words that a person can say yes or no to.

use std::path::{Component, Path, PathBuf};

use toolcrib_core::Spec;

use crate::Place;
use crate::beneath::base_folder;

/// What a tool's handler does, as far as permissions go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Shell,
    Http,
    FileRead,
}

/// What the declared permissions and walls ask for beyond what trust alone gives.
pub fn declared(kind: Kind, spec: &Spec, place: &Place) -> Vec<String> {
    let permissions = &spec.permissions;
    let mut needs = Vec::new();
    if permissions.can_write_files {
        needs.push("to write files (`permissions.canWriteFiles`)".to_owned());
    }
    if kind == Kind::Shell && permissions.can_network {
        needs.push("to use the network (`permissions.canNetwork`)".to_owned());
    }
    if kind == Kind::Shell && permissions.can_execute_commands {
        needs.push("to run programs beyond its own (`permissions.canExecuteCommands`)".to_owned());
    }
    let missing = permissions
        .allowed_environment_vars
        .iter()
        .filter(|name| place.environment.get(name).is_none());
    needs.extend(missing.map(|name| variable(name)));
    let paths = spec
        .sandbox
        .allowed_paths
        .iter()
        .filter_map(|path| outside(place, path));
    needs
        .extend(paths.map(|path| {
            format!("to reach `{path}`, outside the project (`sandbox.allowedPaths`)")
        }));
    needs
}

/// The need for a variable that is not on the allow-list.
pub fn variable(name: &str) -> String {
    format!("to read the environment variable `{name}`")
}

/// The path as it is written, when it leads out of the project. A relative one without a project leads nowhere.
pub fn outside<'a>(place: &Place, path: &'a str) -> Option<&'a str> {
    let folder = base_folder(place.project.as_deref(), path)?;
    let inside = place
        .project
        .as_deref()
        .is_some_and(|project| lies_in(project, &folder));
    (!inside).then_some(path)
}

/// Does `path` lie in `project`, all links followed? Of a path that is not there, the part that is decides.
fn lies_in(project: &Path, path: &Path) -> bool {
    let Ok(project) = project.canonicalize() else {
        return false;
    };
    let mut missing: Vec<Component> = Vec::new();
    let mut there: PathBuf = path.to_path_buf();
    loop {
        if let Ok(real) = there.canonicalize() {
            return missing
                .iter()
                .all(|part| matches!(part, Component::Normal(_)))
                && real.starts_with(&project);
        }
        // A link to nowhere: what it will lead to one day can't be judged now.
        if there.symlink_metadata().is_ok() {
            return false;
        }
        let known = path.components().count() - missing.len();
        let Some(last) = path
            .components()
            .nth(known.saturating_sub(1))
            .filter(|_| known > 0)
        else {
            return false;
        };
        missing.push(last);
        there = path.components().take(known - 1).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_and_missing_parts_judged_by_their_text() {
        let root = tempfile::tempdir().unwrap();
        let project = root.path().join("project");
        std::fs::create_dir_all(project.join("docs")).unwrap();
        std::fs::create_dir_all(root.path().join("other")).unwrap();
        std::os::unix::fs::symlink(root.path().join("other"), project.join("out")).unwrap();
        std::os::unix::fs::symlink("docs", project.join("in")).unwrap();
        std::os::unix::fs::symlink(root.path().join("gone"), project.join("dangling")).unwrap();
        let place = crate::testing::place(Some(&project));
        for inside in [
            ".",
            "docs",
            "in",
            "missing",
            "missing/deeper",
            "docs/../docs",
            "./docs",
        ] {
            assert_eq!(outside(&place, inside), None, "{inside}");
        }
        for out in [
            "..",
            "out",
            "out/missing",
            "../other",
            "docs/../..",
            "missing/../..",
            "dangling",
            "/",
            "/nonexistent",
        ] {
            assert_eq!(outside(&place, out), Some(out), "{out}");
        }
        assert_eq!(
            outside(&place, project.join("docs").to_str().unwrap()),
            None
        );
    }

    #[test]
    fn without_a_project_every_absolute_path_is_outside() {
        let place = crate::testing::place(None);
        assert_eq!(outside(&place, "/"), Some("/"));
        assert_eq!(outside(&place, "docs"), None);
    }
}
