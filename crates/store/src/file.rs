//! Files that are written whole or not at all, for the user alone.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use sha2::{Digest, Sha256};

/// Makes a folder and its parents, open to nobody else.
pub fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

pub fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

/// Replaces a file's content in one step: a reader sees the old text or the new one, a crash leaves either.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace(path, bytes, File::sync_all)
}

/// The same for what can be made again: a reader never sees half a text, but a power cut may leave one.
pub fn write_cache(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace(path, bytes, |_| Ok(()))
}

fn replace(path: &Path, bytes: &[u8], settle: fn(&File) -> io::Result<()>) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    make_folder(folder)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let draft = folder.join(format!(".{name}.{}", uuid::Uuid::now_v7().simple()));
    let written = (|| {
        let mut file = create_private(&draft)?;
        file.write_all(bytes)?;
        settle(&file)?;
        fs::rename(&draft, path)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written
}

/// Holds a lock among processes until it is dropped.
pub struct Lock {
    _file: File,
}

/// Waits for the lock beside `path`. Whoever holds it does so for a few file operations.
pub fn lock(path: &Path) -> io::Result<Lock> {
    let folder = path.parent().unwrap_or(Path::new("."));
    make_folder(folder)?;
    let lock: PathBuf = path.with_extension("lock");
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(lock)?;
    flock(&file, FlockOperation::LockExclusive)?;
    Ok(Lock { _file: file })
}

/// A short, path-safe name for anything.
pub fn short_hash(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes)[..12])
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
