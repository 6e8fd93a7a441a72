//! Addresses that no tool reaches, whatever it was granted: where cribs of this user listen. Who gets there with a token
//! that lies about, or at a port that asks for none, is the owner.
//!
//! A crib that listens says so with an empty file whose name is the address and whose lock it holds; a file that nobody
//! holds is what is left of a crib that died. Every crib of the user looks there, whichever started first.

use std::fs::{DirBuilder, DirEntry, File, Permissions};
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

const PREFIX: &str = "listening-";

/// Where this process looks.
static FOLDERS: RwLock<Vec<PathBuf>> = RwLock::new(Vec::new());

/// Says where cribs of this user leave word.
pub fn look_in(folders: Vec<PathBuf>) {
    *FOLDERS.write().unwrap_or_else(PoisonError::into_inner) = folders;
}

/// Word of where this crib listens, for as long as it is held.
pub struct Notice {
    path: PathBuf,
    _held: File,
}

impl Drop for Notice {
    fn drop(&mut self) {
        // The port is taken as long as this is held, so nobody else has a file of this name.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Leaves word in a folder that this crib listens here.
pub fn announce(folder: &Path, address: SocketAddr) -> io::Result<Notice> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    std::fs::set_permissions(folder, Permissions::from_mode(0o700))?;
    let _turn = turn(folder)?;
    forget_the_dead(folder);
    // It has its name only once it is held, so that nobody takes it for a dead crib's.
    let draft = folder.join(format!(".{PREFIX}{}", std::process::id()));
    let _ = std::fs::remove_file(&draft);
    let held = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&draft)?;
    held.lock()?;
    let path = folder.join(format!("{PREFIX}{address}"));
    std::fs::rename(&draft, &path)?;
    Ok(Notice { path, _held: held })
}

/// One crib at a time changes what lies there, so that none clears away what another has just written.
fn turn(folder: &Path) -> io::Result<File> {
    let lock = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(folder.join("listening.lock"))?;
    lock.lock()?;
    Ok(lock)
}

fn forget_the_dead(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if address_of(&entry).is_some() && !is_held(&entry.path()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

fn address_of(entry: &DirEntry) -> Option<SocketAddr> {
    let name = entry.file_name();
    name.to_str()?.strip_prefix(PREFIX)?.parse().ok()
}

/// Where cribs of this user listen now.
pub fn listening() -> Vec<SocketAddr> {
    let folders = FOLDERS.read().unwrap_or_else(PoisonError::into_inner);
    folders.iter().flat_map(|folder| noted(folder)).collect()
}

fn noted(folder: &Path) -> Vec<SocketAddr> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let held = entries.filter(|entry| is_held(&entry.path()));
    held.filter_map(|entry| address_of(&entry)).collect()
}

/// Does a crib of this user hold it? What can't be told counts as held.
fn is_held(path: &Path) -> bool {
    let opened = File::options()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) => return error.kind() != io::ErrorKind::NotFound,
    };
    if file.metadata().is_ok_and(|meta| meta.uid() != user()) {
        return false;
    }
    file.try_lock_shared().is_err()
}

#[expect(unsafe_code, reason = "there is no safe way to ask for it here")]
fn user() -> u32 {
    // SAFETY: asks for a number, and can't fail.
    unsafe { libc::geteuid() }
}

/// Does this address lead to a crib of this user?
pub fn leads_to_a_crib(address: SocketAddr) -> bool {
    let cribs = listening();
    cribs.iter().any(|crib| leads_to(address, *crib))
}

fn leads_to(address: SocketAddr, crib: SocketAddr) -> bool {
    let (ip, own) = (address.ip().to_canonical(), crib.ip().to_canonical());
    // One that listens at every address is behind each of the machine's, and only those can be bound.
    let here = || UdpSocket::bind((ip, 0)).is_ok();
    address.port() == crib.port()
        && (ip.is_loopback()
            || ip.is_unspecified()
            || ip == own
            || own == embedded(ip)
            || own.is_unspecified() && here())
}

/// The fourth version's address in one of the sixth that is written as its mere tail.
fn embedded(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V6(v6) => v6.to_ipv4().map_or(ip, IpAddr::V4),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_crib_is_known_for_as_long_as_it_holds_its_word() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("run");
        let (one, other) = (at("127.0.0.1:7717"), at("[::1]:7718"));
        let first = announce(&folder, one).unwrap();
        let second = announce(&folder, other).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&first.path)), (0o700, 0o600));
        let sorted = || {
            let mut all = noted(&folder);
            all.sort();
            all
        };
        assert_eq!(sorted(), [one, other]);
        drop(second);
        assert_eq!(sorted(), [one]);
        // One that died left its word and no lock.
        std::fs::write(folder.join("listening-127.0.0.1:9"), "").unwrap();
        std::fs::write(folder.join("listening-nonsense"), "").unwrap();
        assert_eq!(sorted(), [one]);
        // The next crib at the same address takes the name over.
        drop(first);
        std::fs::write(folder.join("listening-127.0.0.1:7717"), "").unwrap();
        let _again = announce(&folder, one).unwrap();
        assert_eq!(sorted(), [one]);
        assert!(!folder.join("listening-127.0.0.1:9").exists());
        assert_eq!(noted(Path::new("/nonexistent")), []);
    }

    #[test]
    fn every_address_of_a_crib_leads_to_it_and_no_other_does() {
        let crib = at("127.0.0.1:7717");
        for address in [
            "127.0.0.1:7717",
            "127.9.9.9:7717",
            "[::1]:7717",
            "[::ffff:127.0.0.1]:7717",
            "0.0.0.0:7717",
            "[::]:7717",
        ] {
            assert!(leads_to(at(address), crib), "{address}");
        }
        assert!(!leads_to(at("127.0.0.1:7718"), crib));
        assert!(!leads_to(at("192.0.2.1:7717"), crib));
        assert!(leads_to(at("192.0.2.1:7717"), at("192.0.2.1:7717")));
        assert!(!leads_to(at("192.0.2.1:7717"), at("0.0.0.0:7717")));
    }
}
