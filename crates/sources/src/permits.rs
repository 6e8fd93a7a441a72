//! What a tool asks for, with paths as they really are, and whether it was granted.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use toolcrib_core::permit::{paths, secret_name};
use toolcrib_core::{Access, Permit, Tool, Ungranted};

use crate::Place;
use crate::beneath::base_folder;
use crate::options;

/// What is asked for beyond the default. Links are followed: what is asked for is what the path leads to. A path in the
/// project is relative, so that a tool of every project asks the same in each.
pub fn asked(declared: &Permit, place: &Place) -> Permit {
    let project = place.project.as_deref();
    beyond(declared.with_paths(|path| real(project, path)), place)
}

/// The same by the text alone, for what nobody trusted yet.
pub fn asked_unseen(declared: &Permit, place: &Place) -> Permit {
    beyond(declared.clone(), place)
}

/// Could this be granted with `--env`: a variable's name, or a secret as `secret://NAME`?
pub fn is_variable(name: &str) -> bool {
    options::is_variable(name) || secret_name(name).is_some()
}

/// The project is read by every tool, and so are the variables of the allow-list.
fn beyond(mut permit: Permit, place: &Place) -> Permit {
    permit.read.retain(|path| !paths::may_read(".", path));
    permit
        .env
        .retain(|name| place.environment.get(name).is_none());
    permit
}

/// What a tool does, in words for the person who is asked to trust it.
pub fn told(asks: &Permit) -> impl Iterator<Item = String> {
    asks.words()
        .into_iter()
        .map(|words| format!("asks {words}"))
}

/// Lets a tool run with what it was granted, or says what is missing.
pub fn judge(tool: &mut Tool, place: &Place) {
    if tool.access != Access::Open {
        return;
    }
    let grants: Arc<_> = place.grants.borrow().clone();
    let granted = match tool.origin() {
        Some(origin) => grants.for_tool(origin, tool.name(), &tool.content),
        None => Permit::default(),
    };
    if tool.asks.is_empty() && granted.is_empty() {
        return;
    }
    let granted = located(&granted, place);
    match granted.covers(&located(&tool.asks, place)) {
        Ok(()) => tool.permit = granted,
        Err(missing) => tool.access = Access::NeedsGrant(Ungranted::new(&missing, &grants)),
    }
}

/// A permit in this project, with every path absolute.
pub fn located(permit: &Permit, place: &Place) -> Permit {
    let project = place.project.as_deref().map(root);
    permit.at(project.as_deref())
}

/// What a path leads to, links followed; relative where that lies in the project. A relative path without a project
/// leads nowhere.
pub fn real(project: Option<&Path>, path: &str) -> Option<String> {
    let path = base_folder(project, path)?;
    let text = |path: &Path| paths::clean(&path.to_string_lossy());
    let Some(found) = followed(&path) else {
        return Some(text(&path));
    };
    let found = PathBuf::from(text(&found));
    let below = project.and_then(|project| found.strip_prefix(root(project)).ok());
    Some(text(below.unwrap_or(&found)))
}

/// What a path leads to, from the root on.
pub fn absolute(project: Option<&Path>, path: &str) -> Option<String> {
    let project = project.map(root);
    let found = real(project.as_deref(), path)?;
    paths::absolute(project.as_deref(), &found)
}

fn root(project: &Path) -> PathBuf {
    let real = project.canonicalize();
    real.unwrap_or_else(|_| project.to_path_buf())
}

/// The path with all links followed. Of a path that is not there, the part that is decides. None for a link to nowhere:
/// what it will lead to one day can't be said now.
fn followed(path: &Path) -> Option<PathBuf> {
    let mut there = path.to_path_buf();
    let mut missing: Vec<Component> = Vec::new();
    let mut parts: Vec<Component> = path.components().collect();
    loop {
        if let Ok(real) = there.canonicalize() {
            let missing = missing.iter().rev();
            return Some(missing.fold(real, |path, part| path.join(part)));
        }
        if there.symlink_metadata().is_ok() {
            return None;
        }
        missing.push(parts.pop()?);
        there = parts.iter().collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_and_missing_parts_judged_by_their_text() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let project = root.join("project");
        std::fs::create_dir_all(project.join("docs")).unwrap();
        std::fs::create_dir_all(root.join("other")).unwrap();
        std::os::unix::fs::symlink(root.join("other"), project.join("out")).unwrap();
        std::os::unix::fs::symlink("docs", project.join("in")).unwrap();
        let real = |path: &str| real(Some(&project), path).unwrap();
        for (path, inside) in [
            (".", "."),
            ("docs", "docs"),
            ("in", "docs"),
            ("in/x", "docs/x"),
            ("missing/deeper", "missing/deeper"),
            ("docs/../docs", "docs"),
            (project.join("docs").to_str().unwrap(), "docs"),
        ] {
            assert_eq!(real(path), inside, "{path}");
        }
        for (path, out) in [
            ("..", root.clone()),
            ("out", root.join("other")),
            ("out/missing", root.join("other/missing")),
            ("../other", root.join("other")),
            ("missing/../..", root.clone()),
            ("/nonexistent", "/nonexistent".into()),
        ] {
            assert_eq!(real(path), out.to_str().unwrap(), "{path}");
        }
        assert_eq!(super::real(None, "/"), Some("/".to_owned()));
        assert_eq!(super::real(None, "docs"), None);
    }

    #[test]
    fn a_link_to_nowhere_is_not_the_project() {
        let project = tempfile::tempdir().unwrap();
        let project = project.path().canonicalize().unwrap();
        std::os::unix::fs::symlink("/nonexistent/gone", project.join("dangling")).unwrap();
        let place = crate::testing::place(Some(&project));
        let declared = Permit {
            read: vec!["dangling".to_owned()],
            ..Permit::default()
        };
        assert_eq!(asked(&declared, &place).read.len(), 1);
    }
}
