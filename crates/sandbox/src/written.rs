//! What of the folders that a policy lets be written is written indeed, for the crib itself where it writes in a tool's name.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::machine::CannotConfine;
use crate::policy::{GUARDED, Policy};
use crate::resolved_paths::ResolvedPaths;

/// What a policy lets be written on this disk, by the same rules that hold a process with that policy.
#[derive(Debug, Clone)]
pub struct Written {
    /// What was granted.
    places: Vec<PathBuf>,
    /// What stays unwritten in there.
    kept: BTreeSet<PathBuf>,
    /// Where the names begin that a grant says.
    project: Option<PathBuf>,
}

impl Written {
    /// Looks everything up. `home` is the user's. It reads the folders that may be written, so it may take a second.
    pub fn of(policy: &Policy, home: Option<&Path>) -> Result<Written, CannotConfine> {
        let paths = ResolvedPaths::written(policy, home)?;
        let places = paths.write.iter().map(|spot| spot.path.clone());
        let places = places.chain(paths.unmade.iter().cloned()).collect();
        let kept = paths.protect.iter().map(|spot| spot.path.clone());
        let kept = kept.chain(paths.missing.iter().cloned());
        Ok(Written {
            places,
            kept: kept.chain(paths.linked.iter().cloned()).collect(),
            project: policy.within.clone(),
        })
    }

    /// May this be written or made? The path has no links in it. Other than a process, whose walls know what is there when
    /// it starts, nobody makes here what would be guarded once it is there.
    pub fn allows(&self, path: &Path) -> bool {
        let open = |place: &&PathBuf| {
            let mut kept = self.kept.iter();
            path.starts_with(place)
                && !kept.any(|kept| path.starts_with(kept) && kept.starts_with(place))
                && !self.makes_guarded(place, path)
        };
        self.places.iter().any(|place| open(&place))
    }

    /// Is there a name on the way from `place` to the path that is guarded, and that the grant did not say?
    fn makes_guarded(&self, place: &Path, path: &Path) -> bool {
        let project = self.project.as_deref();
        let said = project.and_then(|project| place.strip_prefix(project).ok());
        let said = said.unwrap_or(place);
        let named = |name: &str| said.components().any(|part| part.as_os_str() == name);
        let rest = path.strip_prefix(place).unwrap_or(path);
        let mut names = GUARDED.iter().filter(|name| !named(name));
        names.any(|name| {
            let mut parts = rest.components();
            parts.any(|part| part.as_os_str().eq_ignore_ascii_case(name))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_could_not_write_is_not_written_and_nothing_guarded_is_made() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let at = |path: &str| root.join(path);
        for folder in [
            "p/.git",
            "p/src",
            "p/sub/.git",
            "p/tools",
            "p/.claude",
            "own",
        ] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        std::fs::write(
            at("p/sub/.git/config"),
            "[core]\n\thooksPath = ../run/hooks\n",
        )
        .unwrap();
        std::fs::create_dir_all(at("p/run/hooks")).unwrap();
        std::fs::write(at("p/tools/a.py"), "").unwrap();
        std::fs::hard_link(at("p/tools/a.py"), at("p/src/alias")).unwrap();
        let policy = |write: &[&str]| Policy {
            write: write.iter().map(|path| at(path)).collect(),
            protect: vec![at("p/later")],
            keep: vec![at("p/tools/a.py")],
            never: vec![at("own")],
            within: Some(at("p")),
            ..Policy::default()
        };
        let whole = Written::of(&policy(&["p"]), None).unwrap();
        for path in ["p/new", "p/src/new", "p/gitignore", "p/tools/b.txt"] {
            assert!(whole.allows(&at(path)), "{path}");
        }
        for path in [
            "own/x",
            "q",
            "p/.git/hooks/pre-commit",
            "p/sub/.GIT",
            "p/sub/.git/config",
            "p/run/hooks/x",
            "p/later/x",
            "p/tools/a.py",
            "p/src/alias",
            "p/.claude/settings.json",
            "p/new/.mcp.json",
            "p/new/.git/config",
            "p/node_modules/x",
        ] {
            assert!(!whole.allows(&at(path)), "{path}");
        }
        let named = Written::of(&policy(&["p/.claude", "p/src", "p/none/yet"]), None).unwrap();
        assert!(named.allows(&at("p/.claude/settings.json")) && named.allows(&at("p/none/yet/x")));
        assert!(!named.allows(&at("p/new")) && !named.allows(&at("p/src/.claude/x")));
        assert!(Written::of(&policy(&["own"]), None).is_err());
    }
}
