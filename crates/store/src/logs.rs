//! What workers say beside the protocol: one file per tool, for the person who looks for it.
//!
//! A thread of its own writes, so that a slow disk holds nobody up. A file is bounded: when it is full it becomes the
//! old one, and the old one goes. Several processes may write one file; each piece lands whole.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::mpsc::{self, SyncSender};
use std::time::Duration;

use toolcrib_core::store::Logs;

use crate::file;

/// How large a file grows before it becomes the old one.
const MAX_FILE: u64 = 1_024 * 1_024;
/// How many pieces wait for the disk before words are lost.
const WAITING: usize = 256;
/// A file that nobody wrote to for so long is closed.
const IDLE: Duration = Duration::from_secs(30);

pub struct LogFiles {
    folder: PathBuf,
    writer: OnceLock<SyncSender<Piece>>,
}

enum Piece {
    Text(String, Vec<u8>),
    Flush(SyncSender<()>),
}

impl LogFiles {
    /// The logs of one project's tools.
    pub fn in_folder(data: &Path, project: Option<&Path>) -> LogFiles {
        let name = project.unwrap_or(Path::new("")).as_os_str();
        let name = file::short_hash(name.as_encoded_bytes());
        LogFiles {
            folder: data.join("logs").join(name),
            writer: OnceLock::new(),
        }
    }

    /// The file that holds what this tool's worker said.
    pub fn file(&self, tool: &str) -> PathBuf {
        self.folder.join(format!("{}.log", safe(tool)))
    }

    /// How far the log of this tool reaches now.
    pub fn end(&self, tool: &str) -> u64 {
        self.file(tool).metadata().map_or(0, |meta| meta.len())
    }

    /// What was said since the log reached so far, and how far it reaches now. A log that is shorter than that was
    /// begun anew.
    pub fn read(&self, tool: &str, from: u64, most: u64) -> io::Result<(Vec<u8>, u64)> {
        let mut log = match File::open(self.file(tool)) {
            Ok(log) => log,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), 0)),
            Err(error) => return Err(error),
        };
        let end = log.metadata()?.len();
        let from = if from > end { 0 } else { from };
        let from = from.max(end.saturating_sub(most));
        log.seek(SeekFrom::Start(from))?;
        let mut text = Vec::new();
        log.take(end - from).read_to_end(&mut text)?;
        Ok((text, end))
    }

    /// Waits until everything said so far is written.
    pub fn flush(&self) {
        let (done, written) = mpsc::sync_channel(1);
        if let Some(writer) = self.writer.get()
            && writer.send(Piece::Flush(done)).is_ok()
        {
            let _ = written.recv_timeout(Duration::from_secs(2));
        }
    }

    fn start(&self) -> SyncSender<Piece> {
        let (writer, pieces) = mpsc::sync_channel(WAITING);
        let folder = self.folder.clone();
        let thread = std::thread::Builder::new().name("logs".to_owned());
        if let Err(error) = thread.spawn(move || write(&folder, &pieces)) {
            tracing::warn!(%error, "what workers say can't be logged");
        }
        writer
    }
}

/// A tool's name can be no path: it comes from a file's name at worst.
fn safe(tool: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let name: String = tool.chars().take(80).collect();
    name.replace(|c: char| !plain(c), "_")
}

impl Logs for LogFiles {
    fn append(&self, tool: &str, text: &[u8]) {
        let writer = self.writer.get_or_init(|| self.start());
        // Full, or the disk is gone: the worker's words are not worth waiting for.
        let _ = writer.try_send(Piece::Text(tool.to_owned(), text.to_vec()));
    }
}

fn write(folder: &Path, pieces: &mpsc::Receiver<Piece>) {
    let mut open: HashMap<String, File> = HashMap::new();
    let mut told = false;
    loop {
        let piece = match pieces.recv_timeout(IDLE) {
            Ok(piece) => piece,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                open.clear();
                continue;
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => return,
        };
        let (tool, text) = match piece {
            Piece::Text(tool, text) => (tool, text),
            Piece::Flush(done) => {
                let _ = done.send(());
                continue;
            }
        };
        if let Err(error) = append(folder, &mut open, &tool, text) {
            open.remove(&tool);
            if !std::mem::replace(&mut told, true) {
                tracing::warn!(%error, "what workers say can't be logged");
            }
        }
    }
}

fn append(
    folder: &Path,
    open: &mut HashMap<String, File>,
    tool: &str,
    mut text: Vec<u8>,
) -> io::Result<()> {
    if text.last() != Some(&b'\n') {
        text.push(b'\n');
    }
    let path = folder.join(format!("{}.log", safe(tool)));
    let full = match open.get(tool) {
        Some(file) => file.metadata()?.len() + text.len() as u64 > MAX_FILE,
        None => false,
    };
    if full {
        open.remove(tool);
        std::fs::rename(&path, path.with_extension("log.old"))?;
    }
    if !open.contains_key(tool) {
        file::make_folder(folder)?;
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&path)?;
        open.insert(tool.to_owned(), file);
    }
    match open.get_mut(tool) {
        Some(file) => file.write_all(&text),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_kept_bounded_and_read_on() {
        let data = tempfile::tempdir().unwrap();
        let logs = LogFiles::in_folder(data.path(), None);
        assert_eq!(logs.read("t", 0, 100).unwrap(), (Vec::new(), 0));
        logs.append("t", b"one");
        logs.append("t", b"two\n");
        logs.flush();
        assert_eq!(logs.read("t", 0, 100).unwrap(), (b"one\ntwo\n".to_vec(), 8));
        assert_eq!(logs.read("t", 4, 100).unwrap(), (b"two\n".to_vec(), 8));
        assert_eq!(logs.read("t", 0, 4).unwrap().0, b"two\n");
        for _ in 0..40 {
            logs.append("t", &[b'x'; 64 * 1_024]);
            logs.flush();
        }
        assert!(logs.end("t") <= MAX_FILE);
        let old = logs.file("t").with_extension("log.old");
        assert!(old.metadata().unwrap().len() <= MAX_FILE);
    }

    #[test]
    fn no_name_leads_out_of_the_folder() {
        let data = tempfile::tempdir().unwrap();
        let logs = LogFiles::in_folder(data.path(), None);
        assert!(logs.file("../../x").starts_with(data.path().join("logs")));
        assert!(!logs.file("../../x").to_string_lossy().contains(".."));
    }
}
