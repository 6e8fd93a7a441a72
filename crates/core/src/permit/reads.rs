//! What a tool reads of the project without any grant.

use super::paths;
use crate::{Permissions, SandboxOptions};

/// What a tool reads of the project by default, beside itself. A grant gives more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Reads {
    /// All of it: what a tool has that says nothing.
    #[default]
    Project,
    /// These paths of it, which are relative to it.
    Only(Vec<String>),
    /// Nothing of it.
    Itself,
}

impl Reads {
    /// What a tool says of itself: the lesser of its two blocks. Paths are as they were written; those that lie outside
    /// the project are the business of [`super::Permit::declared`].
    pub fn declared(permissions: &Permissions, sandbox: &SandboxOptions) -> Reads {
        let permissions = permissions.clone().expanded();
        match (permissions.can_read_files, sandbox.allowed_paths.as_slice()) {
            (Some(false), _) => Reads::Itself,
            (_, []) => Reads::Project,
            (_, paths) => Reads::Only(paths.to_vec()),
        }
    }

    /// The same with other paths; those without another one, and those that lead out of the project, are left out.
    #[must_use]
    pub fn with_paths(&self, other: impl Fn(&str) -> Option<String>) -> Reads {
        let Reads::Only(list) = self else {
            return self.clone();
        };
        let inside = list.iter().filter_map(|path| other(path));
        let inside: Vec<String> = inside.filter(|path| paths::may_read(".", path)).collect();
        let inside = paths::tidy(&inside, paths::may_read);
        match inside.first().map(String::as_str) {
            None => Reads::Itself,
            Some(".") => Reads::Project,
            Some(_) => Reads::Only(inside),
        }
    }

    /// The paths of the project that it reads, where that is not all of it.
    pub fn narrowed(&self) -> Option<&[String]> {
        match self {
            Reads::Project => None,
            Reads::Only(list) => Some(list),
            Reads::Itself => Some(&[]),
        }
    }

    /// Does it read this path, which is relative to the project?
    pub fn gives(&self, path: &str) -> bool {
        match self.narrowed() {
            None => paths::may_read(".", path),
            Some(list) => list.iter().any(|place| paths::may_read(place, path)),
        }
    }

    /// Does it read this path, or something in it?
    pub fn touches(&self, path: &str) -> bool {
        let inside = |list: &[String]| list.iter().any(|place| paths::may_read(path, place));
        self.gives(path) || self.narrowed().is_some_and(inside)
    }

    /// What it reads in words, where that is not all of the project.
    pub fn words(list: &[String]) -> String {
        match list {
            [] => "itself, nothing of the project".to_owned(),
            list => {
                let named: Vec<String> = list.iter().map(|path| format!("`{path}`")).collect();
                format!("itself, and of the project {}", named.join(", "))
            }
        }
    }
}
