//! What every program may read: the system's programs and libraries, and what belongs to an interpreter.

use std::path::{Path, PathBuf};

use crate::resolver::read_small;

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
const NEVER: [&str; 3] = ["/", "/run", "/tmp"];
/// What the kernel shows as files: neither these nor anything in them.
pub(crate) const KERNELS: [&str; 3] = ["/proc", "/dev", "/sys"];

/// Can nobody open this, whatever was granted? A path without links and `..`. The one list of such places: for what a
/// policy opens, and for what a hint says to grant.
pub fn is_never_opened(path: &Path) -> bool {
    NEVER.iter().any(|never| path == Path::new(never))
        || KERNELS.iter().any(|root| path.starts_with(root))
}

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

/// Where the machine's own programs are installed.
const SHARED: [&str; 7] = [
    "/usr",
    "/opt",
    "/bin",
    "/sbin",
    "/snap",
    "/nix/store",
    "/gnu/store",
];
/// Files and folders that only an installation has.
const SIGNS: [&str; 6] = [
    "pyvenv.cfg",
    "conda-meta",
    "Cellar",
    "lib/node_modules",
    "lib/rustlib",
    "lib/jvm.cfg",
];
/// What the folders of languages begin with that lie in the `lib` of an installation.
const LIBRARIES: [&str; 6] = [
    "python3",
    "libpython3",
    "ruby",
    "perl5",
    "libnode",
    "erlang",
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

/// The names in a prefix that belong to the program in its `bin`.
pub(crate) fn parts_of(prefix: &Path) -> impl Iterator<Item = &'static str> {
    // Users keep data of all kinds in `~/.local/share`.
    let share = (!prefix.ends_with(".local")).then_some("share");
    OF_A_PREFIX.into_iter().chain(share)
}

/// Is this where the machine's own programs are installed, which nobody keeps private?
pub(crate) fn is_shared(prefix: &Path) -> bool {
    SHARED.iter().any(|root| prefix.starts_with(root))
}

/// Is this folder what programs of some language are installed in, and not just any folder with a `bin`?
pub(crate) fn is_installation(prefix: &Path) -> bool {
    let there = |name: &str| prefix.join(name).exists();
    if SIGNS.into_iter().any(there) {
        return true;
    }
    let libraries = std::fs::read_dir(prefix.join("lib"));
    let mut libraries = libraries.into_iter().flatten().flatten();
    libraries.any(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        LIBRARIES.iter().any(|begin| name.starts_with(begin))
    })
}

/// The program that a virtual environment was made from.
pub(crate) fn base_of_environment(prefix: &Path) -> Option<PathBuf> {
    let text = read_small(&prefix.join("pyvenv.cfg"))?;
    let value = text.lines().find_map(|line| {
        let (name, value) = line.split_once('=')?;
        (name.trim() == "home").then(|| PathBuf::from(value.trim()))
    })?;
    Some(value.join("python3")).filter(|python| python.is_absolute() && python.is_file())
}
