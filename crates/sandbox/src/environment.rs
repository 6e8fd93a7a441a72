//! The environment a tool starts with: empty but for a short allow-list.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Variables that say where the user is and how they write, and nothing that could be a secret.
const ALLOWED: [&str; 10] = [
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TERM", "TMPDIR", "SHELL",
];

/// The variables of the allow-list, as they stood when the crib started. PATH has folders from the root on and no others:
/// an empty or relative entry means the folder that a process starts in, which is the project.
#[derive(Debug, Clone, Default)]
pub struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// Keeps what the allow-list names.
    pub fn from_vars(vars: impl IntoIterator<Item = (OsString, OsString)>) -> Environment {
        let allowed = |name: &OsStr| {
            name.to_str()
                .is_some_and(|name| ALLOWED.contains(&name) || name.starts_with("LC_"))
        };
        let kept = vars.into_iter().filter(|(name, _)| allowed(name));
        Environment(kept.collect()).on_path(Path::is_absolute)
    }

    /// The same with those entries of PATH alone. Without any there is none: an empty one would mean where one is.
    fn on_path(mut self, keeps: impl Fn(&Path) -> bool) -> Environment {
        let Some(path) = self.0.remove(OsStr::new("PATH")) else {
            return self;
        };
        let kept: Vec<_> = std::env::split_paths(&path)
            .filter(|entry| keeps(entry))
            .collect();
        // Entries of a PATH have no separator in them, or they would be two.
        if let (false, Ok(kept)) = (kept.is_empty(), std::env::join_paths(kept)) {
            self.0.insert("PATH".into(), kept);
        }
        self
    }

    /// The same without what leads into this folder: no program of a project is taken for one of the system's, whatever
    /// npm or direnv put on the PATH, and nothing temporary lies where its tools read.
    #[must_use]
    pub fn outside(mut self, folder: &Path) -> Environment {
        let real = folder
            .canonicalize()
            .unwrap_or_else(|_| folder.to_path_buf());
        let inside = |path: &Path| {
            let leads = path.canonicalize();
            let leads = leads.as_deref().unwrap_or(path);
            path.starts_with(folder) || leads.starts_with(&real)
        };
        self = self.on_path(|entry| !inside(entry));
        if self.get("TMPDIR").is_some_and(|tmp| inside(Path::new(tmp))) {
            self.0.remove(OsStr::new("TMPDIR"));
        }
        self
    }

    /// Where files are put that nobody keeps.
    pub fn tmp(&self) -> &Path {
        self.get("TMPDIR").map_or(Path::new("/tmp"), Path::new)
    }

    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&OsString, &OsString)> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_no_place_for_the_systems_programs() {
        let root = tempfile::tempdir().unwrap();
        let project = root.path().join("project");
        std::fs::create_dir_all(project.join("bin")).unwrap();
        std::os::unix::fs::symlink(project.join("bin"), root.path().join("way")).unwrap();
        let (inside, way) = (project.join("bin"), root.path().join("way"));
        let path = format!("{}:/usr/bin:{}:/bin", inside.display(), way.display());
        let vars = [("PATH", path), ("TMPDIR", inside.display().to_string())];
        let environment = Environment::from_vars(vars.map(|(k, v)| (k.into(), v.into())));
        let environment = environment.outside(&project);
        assert_eq!(environment.get("PATH"), Some(OsStr::new("/usr/bin:/bin")));
        assert_eq!(environment.get("TMPDIR"), None);
    }

    #[test]
    fn no_entry_of_the_path_means_the_folder_one_is_in() {
        let of = |path: &str| Environment::from_vars([("PATH".into(), path.into())]);
        for (written, kept) in [
            (":/usr/bin", Some("/usr/bin")),
            ("/usr/bin::/bin:", Some("/usr/bin:/bin")),
            (".:bin:../x:/bin", Some("/bin")),
            (".", None),
            ("", None),
        ] {
            assert_eq!(of(written).get("PATH"), kept.map(OsStr::new), "{written}");
        }
        let inside = of("/usr/bin").outside(Path::new("/usr"));
        assert_eq!(inside.get("PATH"), None);
    }

    #[test]
    fn only_the_list_passes() {
        let vars = [
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("AWS_SECRET_ACCESS_KEY", "x"),
            ("LD_PRELOAD", "y"),
        ];
        let environment = Environment::from_vars(vars.map(|(k, v)| (k.into(), v.into())));
        assert_eq!(environment.get("PATH"), Some(OsStr::new("/bin")));
        assert_eq!(environment.get("LC_ALL"), Some(OsStr::new("C")));
        assert_eq!(environment.0.len(), 2);
    }
}
