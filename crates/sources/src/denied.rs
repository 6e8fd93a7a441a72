//! What a tool was kept from, as far as can be told from how it failed, and the grant that would help.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use toolcrib_sandbox::{Denial, Exec, Network, Policy};

/// Places that nobody can grant as a whole.
const NEVER: [&str; 6] = ["/", "/proc", "/sys", "/dev", "/run", "/tmp"];

/// What a failed call shows: what the host said of it, and what the proxy refused meanwhile.
pub struct Failure<'a> {
    pub tool: &'a str,
    /// Where its process started.
    pub directory: &'a Path,
    pub message: &'a str,
    pub data: Option<&'a Value>,
    pub denials: &'a [Denial],
}

impl Failure<'_> {
    /// The command that would help, where the walls are to blame.
    pub fn hint(&self, policy: &Policy) -> Option<String> {
        let flag = self
            .host()
            .or_else(|| self.path(policy))
            .or_else(|| self.network(policy))?;
        let (what, flag) = flag;
        Some(format!(
            "the sandbox kept it from {what}; if it should, say `toolcrib grant {} {flag}`",
            self.tool
        ))
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.data?.get(key)?.as_str()
    }

    /// A host that the proxy refused.
    fn host(&self) -> Option<(String, String)> {
        let denial = self.denials.first()?;
        let host = match denial.port {
            443 => denial.host.clone(),
            port => format!("{}:{port}", denial.host),
        };
        let why = denial.reason.trim_end_matches('.');
        let what = match why {
            "" => format!("`{host}`"),
            why => format!("`{host}` ({why})"),
        };
        Some((what, format!("--net {host}")))
    }

    /// A file that is hidden or not to be written, or a program that is not to be run.
    fn path(&self, policy: &Policy) -> Option<(String, String)> {
        let errno = self.text("errno")?;
        let named = Path::new(self.text("path")?);
        let refused = ["EACCES", "EPERM", "EROFS"].contains(&errno);
        let once = policy.exec == Exec::Once;
        if refused && once && errno != "EROFS" && is_program(named) {
            let what = format!("running `{}`", named.display());
            return Some((what, "--exec".to_owned()));
        }
        // A tool that may not read the project starts elsewhere, and what it calls so is no path of the project's.
        if named.is_relative() && !within(&policy.read, self.directory) {
            return None;
        }
        // A relative path starts where the tool does, which is the project in most cases.
        let path = self.directory.join(named);
        if NEVER.contains(&path.as_path().to_str()?) {
            return None;
        }
        let quoted = format!("'{}'", path.display().to_string().replace('\'', r"'\''"));
        let read = || {
            let what = format!("reading `{}`", path.display());
            Some((what, format!("--read {quoted}")))
        };
        let write = || {
            let what = format!("writing `{}`", path.display());
            Some((what, format!("--write {quoted}")))
        };
        let readable = within(&policy.read, &path) || within(&policy.write, &path);
        let writable = within(&policy.write, &path) && !within(&policy.protect, &path);
        match errno {
            "EROFS" if !writable => write(),
            // Where mounts keep files apart, what may not be read is not there at all.
            "ENOENT" if !readable && path.exists() => read(),
            "ENOENT" if !readable && path.parent().is_some_and(Path::exists) => write(),
            "EACCES" | "EPERM" if !readable => read(),
            "EACCES" | "EPERM" if !writable => write(),
            _ => None,
        }
    }

    /// A network that it does not have.
    fn network(&self, policy: &Policy) -> Option<(String, String)> {
        if policy.network != Network::None {
            return None;
        }
        if let Some(host) = self.text("host") {
            return Some((format!("`{host}`"), format!("--net {host}")));
        }
        let trace = self.text("traceback").unwrap_or_default();
        let message = format!("{}\n{trace}", self.message).to_ascii_lowercase();
        let words = [
            "urlopen",
            "socket",
            "connect",
            "getaddrinfo",
            "name resolution",
            "fetch failed",
        ];
        let about = words.iter().any(|word| message.contains(word));
        let pathless = self.text("path").is_none();
        (about && pathless).then(|| ("the network".to_owned(), "--net HOST".to_owned()))
    }
}

fn within(folders: &[PathBuf], path: &Path) -> bool {
    folders.iter().any(|folder| path.starts_with(folder))
}

/// A program by its path, or by its bare name.
fn is_program(path: &Path) -> bool {
    if !path.is_absolute() {
        return path.components().count() == 1;
    }
    path.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hint(data: Value, message: &str, denials: &[Denial]) -> Option<String> {
        let mut policy = Policy::default_for(Path::new("/p/t.py"), Some(Path::new("/p")));
        policy.write = vec!["/p/out".into()];
        let failure = Failure {
            tool: "mine",
            directory: Path::new("/p"),
            message,
            data: Some(&data),
            denials,
        };
        failure.hint(&policy)
    }

    #[test]
    fn the_grant_that_helps_is_named() {
        let said = |data, message| hint(data, message, &[]).unwrap_or_default();
        let file = |errno: &str, path: &str| said(json!({"errno": errno, "path": path}), "");
        assert!(
            file("EACCES", "/srv/other/id")
                .ends_with("`toolcrib grant mine --read '/srv/other/id'`")
        );
        assert!(file("EROFS", "/p/new").ends_with("--write '/p/new'`"));
        assert!(file("EACCES", "/p/out's").ends_with(r"--write '/p/out'\''s'`"));
        assert!(file("EPERM", "/bin/sh").ends_with("--exec`"));
        assert!(file("EPERM", "ls").ends_with("--exec`"));
        assert!(file("EROFS", "new.txt").ends_with("--write '/p/new.txt'`"));
        assert!(file("EROFS", "/srv/x").ends_with("--write '/srv/x'`"));
        assert!(file("ENOENT", "/etc/passwd").ends_with("--read '/etc/passwd'`"));
        assert!(file("ENOENT", "/etc/new-thing").ends_with("--write '/etc/new-thing'`"));
        assert!(said(json!({}), "<urlopen error [Errno 1]>").ends_with("--net HOST`"));
        assert!(said(json!({"host": "example.com"}), "").ends_with("--net example.com`"));
        let denial = Denial {
            host: "example.com".to_owned(),
            port: 8080,
            reason: String::new(),
        };
        let told = hint(json!({}), "", &[denial]).unwrap();
        assert!(told.ends_with("--net example.com:8080`"), "{told}");
    }

    #[test]
    fn what_is_the_tools_own_fault_has_no_hint() {
        for (errno, path) in [
            ("ENOENT", "/p/missing"),
            ("ENOENT", "/nowhere/at/all"),
            ("EACCES", "/"),
            ("EISDIR", "/p"),
            ("EACCES", "/p/out/x"),
        ] {
            let data = json!({"errno": errno, "path": path});
            assert_eq!(hint(data, "", &[]), None, "{errno} {path}");
        }
        assert_eq!(hint(json!({}), "ValueError: no", &[]), None);
    }
}
