//! Runs the product as an ordinary user, where the tests are root's.

use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown};
use std::path::Path;
use std::process::Command;

use super::World;

/// The user `nobody`.
pub const ORDINARY: u32 = 65_534;

/// Who runs these tests.
pub fn own_user() -> u32 {
    Path::new("/proc/self").metadata().unwrap().uid()
}

/// Gives all that lies below to the user, who may then write there.
pub fn give(path: &Path, user: u32) {
    lchown(path, Some(user), Some(user)).unwrap();
    if path.is_dir() && !path.is_symlink() {
        for entry in std::fs::read_dir(path).unwrap() {
            give(&entry.unwrap().path(), user);
        }
    }
}

pub fn open_to_all(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A copy of the binary, which may lie where only root comes.
#[expect(
    clippy::disallowed_methods,
    reason = "a file that this process had written could not be executed while another thread forks"
)]
pub fn copy_binary(folder: &Path) -> std::path::PathBuf {
    open_to_all(folder);
    let copy = folder.join("toolcrib");
    let mut cp = Command::new("cp");
    cp.arg(env!("CARGO_BIN_EXE_toolcrib")).arg(&copy);
    assert!(cp.status().unwrap().success());
    open_to_all(&copy);
    copy
}

/// Lets an ordinary user run this world from here on, with all that lies in it. Where the tests are an ordinary user's,
/// nothing changes.
pub fn ordinary(world: &mut World) {
    world
        .vars
        .push(("PATH", "/usr/local/bin:/usr/bin:/bin".to_owned()));
    if own_user() != 0 {
        return;
    }
    if world.user.is_none() {
        world.binary = copy_binary(&world.root());
        world.user = Some(ORDINARY);
    }
    give(&world.root(), ORDINARY);
}
