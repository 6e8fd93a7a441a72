//! What a tool asks for, with paths as they really are, and whether it was granted.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use toolcrib_core::permit::{paths, secret_name};
use toolcrib_core::{Access, Permit, Reads, Tool, Ungranted};

use crate::Place;
use crate::beneath::base_folder;
use crate::options;

/// What a tool wants: what it asks for beyond the default, and what of the project it reads by default.
pub struct Wanted {
    pub asks: Permit,
    pub reads: Reads,
}

/// What a tool wants that declares this. Links are followed: what is asked for is what the path leads to. A path that
/// is written relative to the project stays relative, so that a tool of every project asks the same in each; one that
/// is written from the root on is the same place in every project. Of what nobody trusted yet only the text counts.
pub fn wanted(declared: &Permit, reads: &Reads, access: &Access, place: &Place) -> Wanted {
    let project = place.project.as_deref();
    let untrusted = matches!(access, Access::Untrusted { .. });
    let relative = |path: &str| match untrusted {
        true => Some(inside(project, path)),
        false => real(project, path),
    };
    let reads = reads.with_paths(relative);
    let mut asks = declared.clone();
    // What it reads by default needs no grant, nor do the variables of the allow-list.
    asks.read
        .retain(|path| !relative(path).is_some_and(|path| reads.gives(&path)));
    asks.env
        .retain(|name| place.environment.get(name).is_none());
    if !untrusted {
        asks = asks.with_paths(|path| match Path::new(path).is_absolute() {
            true => absolute(project, path),
            false => real(project, path),
        });
    }
    Wanted { asks, reads }
}

/// Could this be granted with `--env`: a variable's name, or a secret as `secret://NAME`?
pub fn is_variable(name: &str) -> bool {
    options::is_variable(name) || secret_name(name).is_some()
}

/// The path relative to the project where it lies in it, by its text.
fn inside(project: Option<&Path>, path: &str) -> String {
    let path = paths::clean(path);
    let below = project.and_then(|project| Path::new(&path).strip_prefix(project).ok());
    match below {
        Some(below) => paths::clean(&below.to_string_lossy()),
        None => path,
    }
}

/// What a tool does, in words for the person who is asked to trust it.
pub fn describe(asks: &Permit) -> impl Iterator<Item = String> {
    asks.words()
        .into_iter()
        .map(|words| format!("asks {words}"))
}

/// Lets a tool run with what it was granted, or says what is missing.
pub fn judge(tool: &mut Tool, place: &Place) {
    judge_as(tool, None, place);
}

/// The same for a tool that may have been granted something before its name was known, under that of its file.
pub fn judge_as(tool: &mut Tool, file: Option<&str>, place: &Place) {
    if tool.access != Access::Open {
        return;
    }
    let grants: Arc<_> = place.grants.borrow().clone();
    let named = |name: &str| match tool.origin() {
        Some(origin) => grants.for_tool(origin, name, &tool.content),
        None => Permit::default(),
    };
    let before = file.map(named).unwrap_or_default();
    let granted = named(tool.name()).join(&before);
    if tool.asks.is_empty() && granted.is_empty() {
        return;
    }
    let granted = located(&granted, place);
    match granted.covers(&located(&tool.asks, place)) {
        Ok(()) => tool.permit = granted,
        Err(missing) => {
            let earlier = tool.origin().map(|origin| {
                let earlier = grants.for_earlier(origin, tool.name(), &tool.content);
                located(&earlier, place)
            });
            let earlier = earlier.unwrap_or_default();
            tool.access = Access::NeedsGrant(Ungranted::new(&missing, &grants, &earlier));
        }
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
    // What is guarded must be named itself, not led to. Where the project lies names nothing in it.
    let said = project.and_then(|project| {
        let said = path.strip_prefix(project);
        said.or_else(|_| path.strip_prefix(root(project))).ok()
    });
    let said = said.filter(|_| below.is_some()).unwrap_or(&path);
    let led_to = below.unwrap_or(&found);
    if guards(led_to).any(|name| !guards(said).any(|named| named == name)) {
        return Some(text(&path));
    }
    Some(text(led_to))
}

/// What is guarded by its name in a path.
fn guards(path: &Path) -> impl Iterator<Item = &std::ffi::OsStr> {
    let guarded = |name: &&std::ffi::OsStr| paths::GUARDED.iter().any(|one| *name == *one);
    path.components().map(Component::as_os_str).filter(guarded)
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
    fn what_is_guarded_is_named_and_never_led_to() {
        let project = tempfile::tempdir().unwrap();
        let project = project.path().canonicalize().unwrap();
        std::fs::create_dir_all(project.join(".git/hooks")).unwrap();
        std::os::unix::fs::symlink(".git", project.join("out")).unwrap();
        let real = |path: &str| real(Some(&project), path).unwrap();
        assert_eq!(real(".git/hooks"), ".git/hooks");
        let out = project.join("out").display().to_string();
        assert_eq!(
            real("out"),
            out,
            "and at the start it is refused, for it leads elsewhere"
        );
        // A worktree of an agent's lies in a folder of that name, which names none in it.
        let worktree = project.join(".claude/worktrees/one");
        std::fs::create_dir_all(worktree.join(".claude")).unwrap();
        std::os::unix::fs::symlink(".claude", worktree.join("out")).unwrap();
        let real = |path: &str| super::real(Some(&worktree), path).unwrap();
        assert_eq!(real(".claude"), ".claude");
        assert_eq!(real("out"), worktree.join("out").display().to_string());
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
        let wanted = wanted(&declared, &Reads::Project, &Access::Open, &place);
        assert_eq!(wanted.asks.read.len(), 1);
        let only = Reads::Only(vec!["dangling".to_owned()]);
        let wanted = super::wanted(&declared, &only, &Access::Open, &place);
        assert_eq!((wanted.asks.read.len(), wanted.reads), (1, Reads::Itself));
    }

    #[test]
    fn paths_of_the_project_are_read_and_others_asked_for() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let project = root.join("project");
        std::fs::create_dir_all(project.join("docs")).unwrap();
        std::os::unix::fs::symlink("docs", project.join("in")).unwrap();
        std::os::unix::fs::symlink("/usr", project.join("out")).unwrap();
        let place = crate::testing::place(Some(&project));
        let docs = project.join("docs").display().to_string();
        let untrusted = Access::untrusted(project.clone());
        let only = |path: &str| Reads::Only(vec![path.to_owned()]);
        for (path, reads, asks) in [
            ("docs", only("docs"), None),
            ("in", only("docs"), None),
            (docs.as_str(), only("docs"), None),
            (".", Reads::Project, None),
            ("docs/../..", Reads::Itself, root.to_str()),
            ("out", Reads::Itself, Some("/usr")),
            ("/srv", Reads::Itself, Some("/srv")),
        ] {
            let declared = Permit {
                read: vec![path.to_owned()],
                ..Permit::default()
            };
            let found = wanted(&declared, &only(path), &Access::Open, &place);
            assert_eq!(found.reads, reads, "{path}");
            let asked: Vec<&str> = found.asks.read.iter().map(String::as_str).collect();
            assert_eq!(asked, Vec::from_iter(asks), "{path}");
            // By the text alone, a link is a path like any other.
            if !["in", "out"].contains(&path) {
                let unseen = wanted(&declared, &only(path), &untrusted, &place);
                assert_eq!(unseen.reads, reads, "{path}");
            }
        }
    }

    #[test]
    fn a_place_that_is_named_from_the_root_on_is_the_same_in_every_project() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let (here, there) = (root.join("here"), root.join("there"));
        std::fs::create_dir_all(&here).unwrap();
        std::fs::create_dir_all(&there).unwrap();
        let out = here.join("out").display().to_string();
        let declared = Permit {
            write: vec![out.clone()],
            ..Permit::default()
        };
        for project in [&here, &there] {
            let place = crate::testing::place(Some(project));
            let found = wanted(&declared, &Reads::Project, &Access::Open, &place);
            assert_eq!(found.asks.write, [out.as_str()]);
        }
    }

    #[test]
    fn the_limit_that_runs_is_the_lesser_of_the_declared_and_the_granted_one() {
        use crate::confine::policy;
        use toolcrib_core::SandboxOptions;
        let place = crate::testing::place(None);
        let limit = |granted: Option<u64>, declared: Option<u64>| {
            let permit = Permit {
                memory_mb: granted,
                ..Permit::default()
            };
            let sandbox = SandboxOptions {
                max_memory_mb: declared,
                ..SandboxOptions::default()
            };
            policy(&[], &permit, &Reads::Project, &sandbox, &place).memory_mb
        };
        // What every tool has is said in two crates, and is the same.
        let default = toolcrib_sandbox::Policy::default();
        assert_eq!(limit(None, None), default.memory_mb);
        let none = Permit::default().limits(&SandboxOptions::default());
        assert_eq!(none.cpu_percent, default.cpu_percent);
        assert_eq!(limit(None, Some(2048)), default.memory_mb);
        assert_eq!(limit(Some(2048), None), 2048);
        assert_eq!(limit(Some(2048), Some(100)), 100);
    }
}
