//! What every program may read: the system's programs and libraries, and what belongs to an interpreter.

use std::path::{Path, PathBuf};

/// Programs, libraries, and the few settings without which they don't start or speak the user's language. Nothing in
/// here is a secret, not even for root.
const SYSTEM: [&str; 45] = [
    "/usr",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/bin",
    "/sbin",
    "/nix/store",
    "/gnu/store",
    "/etc/alternatives",
    "/etc/bash.bashrc",
    "/etc/ca-certificates",
    "/etc/crypto-policies",
    "/etc/debian_version",
    "/etc/fonts",
    "/etc/gai.conf",
    "/etc/gitconfig",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/inputrc",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/localtime",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/perl",
    "/etc/pki/ca-trust/extracted",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/certs",
    "/etc/profile",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/timezone",
    "/etc/wgetrc",
    "/sys/devices/system/cpu",
];

/// Devices that give and take nothing.
pub(crate) const DEVICES: [&str; 4] = ["/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"];

/// What of `/proc` is shown where it is the machine's own.
pub(crate) const PROC: [&str; 4] = ["/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat"];

/// Folders that would show what walls hide, or are replaced behind them.
pub(crate) const NEVER: [&str; 7] = ["/", "/proc", "/sys", "/dev", "/run", "/tmp", "/dev/shm"];

/// What of a prefix belongs to the program in its `bin`.
const OF_A_PREFIX: [&str; 9] = [
    "bin",
    "lib",
    "lib32",
    "lib64",
    "libexec",
    "include",
    "Cellar",
    "opt",
    "pyvenv.cfg",
];

/// What the names of folders in /etc begin with that interpreters read when they start.
const INTERPRETERS: [&str; 2] = ["java-", "python3"];

pub(crate) fn paths() -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir("/etc").into_iter().flatten().flatten();
    let of_interpreters = entries.filter(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        INTERPRETERS.iter().any(|begin| name.starts_with(begin))
    });
    let system = SYSTEM.iter().map(PathBuf::from);
    system.chain(of_interpreters.map(|entry| entry.path()))
}

/// What belongs to a program at this path: its own file, and the libraries of the prefix it is installed in, such as
/// that of a virtual environment or of a version manager. A home is no prefix.
pub(crate) fn belonging_to(program: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let mut found = of_prefix(program, home);
    let environment = program.parent().and_then(Path::parent);
    // Once: an environment that was made from another names what both were made from.
    if let Some(python) = environment.and_then(home_of_environment) {
        found.extend(of_prefix(&python, home));
    }
    found
}

fn of_prefix(program: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let mut found = vec![program.to_path_buf()];
    let prefix = program
        .parent()
        .filter(|folder| folder.ends_with("bin"))
        .and_then(Path::parent)
        .filter(|prefix| *prefix != Path::new("/"))
        .filter(|prefix| home.is_none_or(|home| !home.starts_with(prefix)));
    if let Some(prefix) = prefix {
        found.extend(OF_A_PREFIX.iter().map(|name| prefix.join(name)));
        // Users keep data of all kinds in there.
        if !prefix.ends_with(".local") {
            found.push(prefix.join("share"));
        }
    }
    found.retain(|path| path.exists());
    found
}

/// The program that a virtual environment was made from.
fn home_of_environment(prefix: &Path) -> Option<PathBuf> {
    let text = std::fs::read_to_string(prefix.join("pyvenv.cfg")).ok()?;
    let value = text.lines().find_map(|line| {
        let (name, value) = line.split_once('=')?;
        (name.trim() == "home").then(|| PathBuf::from(value.trim()))
    })?;
    Some(value.join("python3")).filter(|python| python.is_absolute() && python.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_belongs_to_its_program_and_a_home_does_not() {
        let home = tempfile::tempdir().unwrap();
        let make = |path: &str| {
            let path = home.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            path
        };
        let python = make(".pyenv/versions/3/bin/python3");
        make(".pyenv/versions/3/lib/os.py");
        make(".local/share/keyrings/secret");
        make(".local/lib/x");
        make("lib/x");
        let names = |program: &Path| {
            let mut names: Vec<String> = belonging_to(program, Some(home.path()))
                .iter()
                .map(|path| {
                    path.strip_prefix(home.path())
                        .unwrap()
                        .display()
                        .to_string()
                })
                .collect();
            names.sort();
            names
        };
        let base = [
            ".pyenv/versions/3/bin",
            ".pyenv/versions/3/bin/python3",
            ".pyenv/versions/3/lib",
        ];
        assert_eq!(names(&python), base);
        assert_eq!(names(&make("bin/tool")), ["bin/tool"]);
        let local = make(".local/bin/tool");
        assert_eq!(
            names(&local),
            [".local/bin", ".local/bin/tool", ".local/lib"]
        );

        let venv = make("project/.venv/bin/python");
        let cfg = make("project/.venv/pyvenv.cfg");
        std::fs::write(
            cfg,
            format!("home = {}\n", python.parent().unwrap().display()),
        )
        .unwrap();
        let found = names(&venv);
        assert!(found.contains(&"project/.venv/pyvenv.cfg".to_owned()));
        assert!(
            base.iter().all(|path| found.contains(&(*path).to_owned())),
            "{found:?}"
        );
    }
}
