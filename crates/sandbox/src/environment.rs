//! The environment a tool starts with: empty but for a short allow-list.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// Variables that say where the user is and how they write, and nothing that could be a secret.
const ALLOWED: [&str; 10] = [
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TERM", "TMPDIR", "SHELL",
];

/// The variables of the allow-list, as they stood when the crib started.
#[derive(Debug, Clone, Default)]
pub struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// Keeps what the allow-list names.
    pub fn from_vars(vars: impl IntoIterator<Item = (OsString, OsString)>) -> Environment {
        let allowed = |name: &OsStr| {
            name.to_str()
                .is_some_and(|name| ALLOWED.contains(&name) || name.starts_with("LC_"))
        };
        Environment(vars.into_iter().filter(|(name, _)| allowed(name)).collect())
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
