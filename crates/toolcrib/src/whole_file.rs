//! Files that commands write into folders of people's choosing: whole or not at all, and behind no link.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Writes a file; a link or a file of that name is replaced. The folder may be anybody's, such as a clone: the draft has a name
/// that nobody knows before, and is made anew.
pub fn write(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let draft = folder.join(format!(".toolcrib.{}.draft", uuid::Uuid::now_v7().simple()));
    let made = File::options().write(true).create_new(true).open(&draft);
    let written = made
        .and_then(|mut made| made.write_all(bytes))
        .and_then(|()| std::fs::rename(&draft, file));
    if written.is_err() {
        let _ = std::fs::remove_file(&draft);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_in_the_folder_leads_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let (precious, file) = (folder.path().join("precious"), folder.path().join("a.whl"));
        std::fs::write(&precious, "kept").unwrap();
        // Numbers of processes are few: a clone could bring a link for each.
        let guessed = format!("a.whl.{}.draft", std::process::id());
        for link in [folder.path().join(guessed), file.clone()] {
            std::os::unix::fs::symlink(&precious, link).unwrap();
        }
        write(&file, b"package").unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"package");
        assert_eq!(std::fs::read(&precious).unwrap(), b"kept");
        let left = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, 3, "no draft is left");
    }
}
