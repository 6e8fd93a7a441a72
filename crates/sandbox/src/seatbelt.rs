//! A policy as a Seatbelt profile, for macOS. **Untested**: written from what is known of the language, never run there.
//!
//! Paths must be real ones: there `/tmp` and `/var` are links below `/private`.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::policy::{Exec, GUARDED, Network, Policy};

/// What programs there need to start at all.
const SYSTEM: [&str; 12] = [
    "/usr/lib",
    "/usr/bin",
    "/bin",
    "/usr/share",
    "/System/Library",
    "/System/Cryptexes",
    "/Library/Apple",
    "/private/etc/ssl",
    "/private/etc/hosts",
    "/private/etc/resolv.conf",
    "/private/var/db/timezone",
    "/private/var/db/dyld",
];
const DEVICES: [&str; 4] = ["/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"];

/// A string of the profile's language.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// The profile for one program. `proxy` is the port of the crib's proxy where single hosts are allowed.
pub fn profile(policy: &Policy, program: &Path, tmp: &Path, proxy: Option<u16>) -> String {
    let mut text = String::from("(version 1)\n(deny default)\n");
    let mut line = |rule: &str, paths: &mut dyn Iterator<Item = &Path>| {
        for path in paths {
            // Writing to a string does not fail.
            let _ = writeln!(text, "({rule} (subpath {}))", quoted(path));
        }
    };
    line("allow file-read*", &mut SYSTEM.iter().map(Path::new));
    line(
        "allow file-read*",
        &mut policy.read.iter().chain(&policy.granted).map(AsRef::as_ref),
    );
    line(
        "allow file-read* file-write*",
        &mut policy.write.iter().map(AsRef::as_ref),
    );
    line("allow file-read* file-write*", &mut [tmp].into_iter());
    // Later rules win.
    line(
        "deny file-write*",
        &mut policy.protect.iter().chain(&policy.keep).map(AsRef::as_ref),
    );
    for name in GUARDED {
        let name = name.replace('.', "\\.");
        let _ = writeln!(text, "(deny file-write* (regex #\"/{name}(/|$)\"))");
    }
    let mut line = |rule: &str, paths: &mut dyn Iterator<Item = &Path>| {
        for path in paths {
            let _ = writeln!(text, "({rule} (subpath {}))", quoted(path));
        }
    };
    let again = policy
        .write
        .iter()
        .filter(|path| policy.protect.iter().any(|kept| path.starts_with(kept)));
    line("allow file-write*", &mut again.map(AsRef::as_ref));
    line(
        "deny file-read* file-write*",
        &mut policy.hide.iter().map(AsRef::as_ref),
    );
    let inside = |path: &&PathBuf| {
        let mut hidden = policy.hide.iter();
        hidden.any(|hidden| *path != hidden && path.starts_with(hidden))
    };
    let named = policy.read.iter().chain(&policy.granted).filter(inside);
    line("allow file-read*", &mut named.map(AsRef::as_ref));
    for device in DEVICES {
        let _ = writeln!(
            text,
            "(allow file-read* file-write-data (literal \"{device}\"))"
        );
    }
    let _ = writeln!(text, "(allow file-read-metadata)");
    let _ = writeln!(
        text,
        "(allow file-read* process-exec (literal {}))",
        quoted(program)
    );
    if policy.exec == Exec::Allowed {
        text.push_str("(allow process-exec)\n");
    }
    text.push_str(
        "(allow process-fork)\n(allow signal (target same-sandbox))\n(allow sysctl-read)\n",
    );
    text.push_str(
        "(allow mach-lookup (global-name \"com.apple.system.opendirectoryd.libinfo\"))\n",
    );
    match (&policy.network, proxy) {
        (Network::Open, _) => text.push_str("(allow network*)\n(allow system-socket)\n"),
        (network, Some(port)) if !network.hosts().is_empty() => {
            let _ = writeln!(
                text,
                "(allow network-outbound (remote ip \"localhost:{port}\"))"
            );
        }
        _ => {}
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(policy: &Policy, proxy: Option<u16>) -> String {
        profile(
            policy,
            Path::new("/opt/python3"),
            Path::new("/private/tmp/x"),
            proxy,
        )
    }

    #[test]
    fn everything_is_denied_first() {
        let text = text(
            &Policy::default_for(Path::new("/t"), Some(Path::new("/p"))),
            None,
        );
        assert!(text.starts_with("(version 1)\n(deny default)\n"));
        assert!(text.contains("(allow file-read* (subpath \"/p\"))"));
        assert!(text.contains("(allow file-read* process-exec (literal \"/opt/python3\"))"));
        assert!(!text.contains("(allow process-exec)") && !text.contains("network"));
        assert_eq!(text.matches('(').count(), text.matches(')').count());
    }

    #[test]
    fn what_is_protected_comes_after_what_is_written() {
        let mut policy = Policy::default_for(Path::new("/t"), Some(Path::new("/p")));
        policy.write = vec!["/p".into(), "/p/.git/hooks".into()];
        let text = text(&policy, None);
        let at = |part: &str| text.find(part).unwrap();
        let write = at("(allow file-read* file-write* (subpath \"/p\"))");
        let keep = at("(deny file-write* (subpath \"/p/.git\"))");
        assert!(write < keep && keep < at("(allow file-write* (subpath \"/p/.git/hooks\"))"));
    }

    #[test]
    fn hosts_go_through_the_proxy_and_paths_are_quoted() {
        let mut policy = Policy {
            network: Network::Hosts(vec!["a.example".parse().unwrap()]),
            ..Policy::default()
        };
        policy.read.push("/a \"b\"\\c".into());
        let with = text(&policy, Some(81));
        assert!(
            with.contains("(remote ip \"localhost:81\")") && with.contains(r#""/a \"b\"\\c""#),
            "{with}"
        );
        assert!(!text(&policy, None).contains("network"));
        policy.network = Network::Open;
        assert!(text(&policy, None).contains("(allow network*)"));
    }
}
