//! Which project this is: a flag, a variable, the nearest `.toolcrib/`, or the git checkout, in that order.

use std::path::{Path, PathBuf};

use crate::env::{self, Env};

/// The folder that marks a project.
pub const MARKER: &str = ".toolcrib";

/// A project's root and how it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    pub root: PathBuf,
    pub found_by: FoundBy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundBy {
    Flag,
    Variable(&'static str),
    Marker,
    Git,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProjectError {
    #[error("the project `{0}` is not a folder that can be entered")]
    NotAFolder(PathBuf),
    #[error("there is no project around `{0}`")]
    NoProject(PathBuf),
    #[error("`{0}` is a home directory or the root, and never a project")]
    TooLarge(PathBuf),
}

/// Finds the project. What a person named must be one; what lies about is only taken if it can be.
pub fn find(flag: Option<&Path>, env: &Env) -> Result<Option<Project>, ProjectError> {
    if let Some(path) = flag.or(env.named_project.as_deref()) {
        return named(&env.directory.join(path), FoundBy::Flag, env).map(Some);
    }
    for variable in [env::PROJECT, env::CLAUDE_PROJECT] {
        if let Some(path) = env.path(variable) {
            return named(&path, FoundBy::Variable(variable), env).map(Some);
        }
    }
    let Ok(directory) = env.directory.canonicalize() else {
        return Ok(None);
    };
    let nearest = |mark: &str| {
        directory
            .ancestors()
            .find(|dir| !is_too_large(dir, env) && dir.join(mark).symlink_metadata().is_ok())
    };
    let found = match nearest(MARKER) {
        Some(root) => Some((root, FoundBy::Marker)),
        None => nearest(".git").map(|root| (root, FoundBy::Git)),
    };
    Ok(found.map(|(root, found_by)| Project {
        root: root.to_path_buf(),
        found_by,
    }))
}

/// The project that a person named by its path.
pub fn named(path: &Path, found_by: FoundBy, env: &Env) -> Result<Project, ProjectError> {
    let root = path.canonicalize().ok().filter(|root| root.is_dir());
    let root = root.ok_or_else(|| ProjectError::NotAFolder(path.to_path_buf()))?;
    if is_too_large(&root, env) {
        return Err(ProjectError::TooLarge(root));
    }
    Ok(Project { root, found_by })
}

pub fn is_too_large(path: &Path, env: &Env) -> bool {
    let home = env.home().and_then(|home| home.canonicalize().ok());
    path == Path::new("/") || home.is_some_and(|home| path == home)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct World {
        _dir: tempfile::TempDir,
        home: PathBuf,
    }

    fn world(folders: &[&str]) -> World {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap().join("home");
        std::fs::create_dir(&home).unwrap();
        for folder in folders {
            std::fs::create_dir_all(home.join(folder)).unwrap();
        }
        World { _dir: dir, home }
    }

    impl World {
        fn find(
            &self,
            at: &str,
            vars: &[(&str, &str)],
            flag: Option<&str>,
        ) -> Result<Option<Project>, ProjectError> {
            let mut vars = vars.to_vec();
            let home = self.home.to_str().unwrap();
            vars.push(("HOME", home));
            find(flag.map(Path::new), &Env::of(&vars, &self.home.join(at)))
        }

        fn root(&self, at: &str) -> Option<String> {
            let project = self.find(at, &[], None).unwrap()?;
            Some(
                project
                    .root
                    .strip_prefix(&self.home)
                    .unwrap()
                    .display()
                    .to_string(),
            )
        }
    }

    #[test]
    fn the_marker_beats_git_and_the_nearest_wins() {
        let world = world(&["p/.git", "p/sub/.toolcrib", "p/sub/deep", "p/other"]);
        assert_eq!(world.root("p/sub/deep").as_deref(), Some("p/sub"));
        assert_eq!(world.root("p/other").as_deref(), Some("p"));
    }

    #[test]
    fn home_and_root_are_never_a_project() {
        let world = world(&[".toolcrib", ".git", "x"]);
        assert_eq!(world.root("x"), None);
        assert!(matches!(
            world.find("x", &[], Some("..")),
            Err(ProjectError::TooLarge(_))
        ));
        assert!(matches!(
            world.find("x", &[], Some("/")),
            Err(ProjectError::TooLarge(_))
        ));
    }

    #[test]
    fn flag_then_variables() {
        let world = world(&["a", "b", "c", "here/.toolcrib"]);
        let path = |name: &str| world.home.join(name).display().to_string();
        let (b, c) = (path("b"), path("c"));
        let vars = [
            ("TOOLCRIB_PROJECT", b.as_str()),
            ("CLAUDE_PROJECT_DIR", c.as_str()),
        ];
        let by = |project: Option<Project>| project.unwrap().found_by;
        assert_eq!(
            by(world.find("here", &vars, Some("../a")).unwrap()),
            FoundBy::Flag
        );
        assert_eq!(
            by(world.find("here", &vars, None).unwrap()),
            FoundBy::Variable("TOOLCRIB_PROJECT")
        );
        assert_eq!(
            by(world.find("here", &vars[1..], None).unwrap()),
            FoundBy::Variable("CLAUDE_PROJECT_DIR")
        );
        assert_eq!(
            by(world
                .find("here", &[("TOOLCRIB_PROJECT", "")], None)
                .unwrap()),
            FoundBy::Marker
        );
        assert!(matches!(
            world.find("here", &[], Some("none")),
            Err(ProjectError::NotAFolder(_))
        ));
    }
}
