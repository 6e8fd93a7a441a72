//! A tool that is being written: out of sight until it is whole, and never in the place of another.

use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

/// A folder that no crib looks at. It goes when this is dropped.
pub struct StagingFolder {
    folder: PathBuf,
}

impl StagingFolder {
    pub fn in_folder(tools: &Path) -> io::Result<StagingFolder> {
        let folder = tools.join(format!(".new-{}", uuid::Uuid::now_v7().simple()));
        std::fs::create_dir(&folder)?;
        Ok(StagingFolder { folder })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn write(&self, name: &str, text: &str, executable: bool) -> io::Result<()> {
        let mut options = std::fs::File::options();
        options.write(true).create_new(true);
        options.mode(if executable { 0o777 } else { 0o666 });
        let mut file = options.open(self.folder.join(name))?;
        file.write_all(text.as_bytes())
    }

    /// Puts the whole folder to where it belongs, in one step. Fails where something is there.
    pub fn place(self, target: &Path) -> io::Result<()> {
        rename_new(&self.folder, target)
    }

    /// The same for a single file of it.
    pub fn place_file(self, name: &str, target: &Path) -> io::Result<()> {
        rename_new(&self.folder.join(name), target)
    }
}

impl Drop for StagingFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Renames without ever replacing anything.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        // Some network file systems can't; then there is a moment between the look and the step.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => match to.symlink_metadata() {
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => std::fs::rename(from, to),
        },
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_replaced_and_nothing_left_behind() {
        let dir = tempfile::tempdir().unwrap();
        let make = || {
            let draft = StagingFolder::in_folder(dir.path()).unwrap();
            draft.write("a", "text", true).unwrap();
            draft
        };
        make().place(&dir.path().join("x")).unwrap();
        assert_eq!(
            std::fs::read_to_string(dir.path().join("x/a")).unwrap(),
            "text"
        );
        // An empty folder is something, too.
        std::fs::create_dir(dir.path().join("y")).unwrap();
        let taken = make().place(&dir.path().join("y")).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
        make().place_file("a", &dir.path().join("z")).unwrap();
        let taken = make().place_file("a", &dir.path().join("z")).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
        drop(make());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3);
    }
}
