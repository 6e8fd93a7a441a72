//! Files as editors save them: at once, or in steps between which they are gone, empty or half there.

use std::fs::{File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How a file is saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    RenameOver,
    TruncateAndWrite,
    UnlinkAndCreate,
    BackupAndRename,
    Halves,
}

impl Manner {
    pub const ALL: [Manner; 5] = [
        Manner::RenameOver,
        Manner::TruncateAndWrite,
        Manner::UnlinkAndCreate,
        Manner::BackupAndRename,
        Manner::Halves,
    ];

    /// Saves a text, with this pause where there are two steps. The file may be run as before.
    pub async fn save(self, path: &Path, text: &str, pause: Duration) {
        let mode = path.metadata().unwrap().permissions().mode();
        match self {
            Manner::RenameOver => {
                let draft = beside(path, ".", ".draft");
                write(&draft, text, mode);
                std::fs::rename(&draft, path).unwrap();
            }
            Manner::TruncateAndWrite => {
                let mut file = File::create(path).unwrap();
                between_steps(pause).await;
                file.write_all(text.as_bytes()).unwrap();
            }
            Manner::UnlinkAndCreate => {
                std::fs::remove_file(path).unwrap();
                between_steps(pause).await;
                write(path, text, mode);
            }
            Manner::BackupAndRename => {
                let backup = beside(path, "", "~");
                std::fs::rename(path, &backup).unwrap();
                between_steps(pause).await;
                write(path, text, mode);
                std::fs::remove_file(&backup).unwrap();
            }
            Manner::Halves => {
                let (first, second) = text.split_at(text.len() / 2);
                let mut file = File::create(path).unwrap();
                file.write_all(first.as_bytes()).unwrap();
                between_steps(pause).await;
                file.write_all(second.as_bytes()).unwrap();
            }
        }
    }
}

async fn between_steps(pause: Duration) {
    // sleeps: the time that an editor takes between two steps
    tokio::time::sleep(pause).await;
}

fn write(path: &Path, text: &str, mode: u32) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn beside(path: &Path, before: &str, after: &str) -> PathBuf {
    let name = path.file_name().unwrap().to_str().unwrap();
    path.with_file_name(format!("{before}{name}{after}"))
}
