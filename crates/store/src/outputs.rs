//! Whole outputs in the data folder: one file each, by owner, for a day and under a disk quota.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use toolcrib_core::{BoxFuture, KeptOutput, OutputId, Outputs, Page, Spool, Whole};

use crate::file;

/// How much is kept, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputLimits {
    /// The most that one call keeps.
    pub max_bytes: u64,
    /// The most that all kept outputs take together; the oldest go first.
    pub quota_bytes: u64,
    pub keep_for: Duration,
}

impl Default for OutputLimits {
    fn default() -> OutputLimits {
        OutputLimits {
            max_bytes: 256 * 1_024 * 1_024,
            quota_bytes: 1_024 * 1_024 * 1_024,
            keep_for: Duration::from_secs(24 * 3_600),
        }
    }
}

/// A folder is looked over for what has to go at most this often.
const TIDY_EVERY: Duration = Duration::from_secs(10);

#[derive(Clone)]
pub struct OutputFiles(Arc<Inner>);

struct Inner {
    folder: PathBuf,
    limits: OutputLimits,
    tidied: Mutex<Option<Instant>>,
    /// What all outputs take: as it was found at the last look, and what was written since.
    total: AtomicU64,
    /// Why the last output could not be kept, until one can.
    trouble: Mutex<Option<String>>,
}

impl OutputFiles {
    pub fn in_folder(data: &Path, limits: OutputLimits) -> OutputFiles {
        OutputFiles(Arc::new(Inner {
            folder: data.join("outputs"),
            limits,
            tidied: Mutex::default(),
            total: AtomicU64::new(0),
            trouble: Mutex::default(),
        }))
    }

    /// Why outputs can't be kept, where the last one could not. Looks whether it is better now; blocks on the disk.
    pub fn trouble(&self) -> Option<String> {
        self.0.trouble().as_ref()?;
        let tried = self.0.create("probe").and_then(|mut draft| {
            let some = [b' '; 64 * 1_024];
            draft.write(&some, some.len() as u64)
        });
        self.0.note(&tried);
        self.0.trouble().clone()
    }

    /// Removes what is too old, then the oldest until the rest is under the quota.
    pub fn tidy(&self) {
        self.0.tidy(self.0.limits.quota_bytes);
    }
}

impl Inner {
    fn trouble(&self) -> MutexGuard<'_, Option<String>> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers how the disk took it.
    fn note<T>(&self, done: &io::Result<T>) {
        *self.trouble() = done.as_ref().err().map(ToString::to_string);
    }

    fn owner_folder(&self, owner: &str) -> PathBuf {
        self.folder.join(file::short_hash(owner.as_bytes()))
    }

    fn create(&self, owner: &str) -> io::Result<PartialOutput> {
        self.tidy_now_and_then();
        let folder = self.owner_folder(owner);
        file::make_folder(&folder)?;
        let name = uuid::Uuid::now_v7().to_string();
        let id = OutputId::parse(&name).ok_or_else(|| io::Error::other("an id that is none"))?;
        let path = folder.join(&name);
        let file = file::create_private(&path)?;
        Ok(PartialOutput {
            file: Some(file),
            path,
            whole: Whole {
                id,
                bytes: 0,
                lines: 0,
                cut: false,
            },
            ends_in_newline: true,
        })
    }

    fn files(&self) -> Vec<(SystemTime, u64, PathBuf)> {
        let folders = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let files =
            folders.flat_map(|folder| fs::read_dir(folder.path()).into_iter().flatten().flatten());
        let mut found: Vec<_> = files
            .filter_map(|file| {
                let meta = file.metadata().ok()?;
                Some((meta.modified().ok()?, meta.len(), file.path()))
            })
            .collect();
        found.sort();
        found
    }

    fn list(&self, owner: &str, most: usize) -> Vec<KeptOutput> {
        let files = fs::read_dir(self.owner_folder(owner));
        let found = files.into_iter().flatten().flatten().filter_map(|file| {
            let meta = file.metadata().ok()?;
            let modified = meta.modified().ok()?;
            let age = modified.elapsed().unwrap_or_default();
            let at = modified.duration_since(SystemTime::UNIX_EPOCH).ok()?;
            let kept = KeptOutput {
                id: OutputId::parse(file.file_name().to_str()?)?,
                bytes: meta.len(),
                at_ms: u64::try_from(at.as_millis()).ok()?,
            };
            (age <= self.limits.keep_for).then_some(kept)
        });
        let mut found: Vec<KeptOutput> = found.collect();
        // Ids begin with the time.
        found.sort_by(|a, b| b.id.as_str().cmp(a.id.as_str()));
        found.truncate(most);
        found
    }

    /// Removes what is too old, and the oldest until the rest takes no more than `most`.
    fn tidy(&self, most: u64) {
        let files = self.files();
        let now = SystemTime::now();
        let mut total: u64 = files.iter().map(|(_, size, _)| size).sum();
        for (modified, size, path) in &files {
            let old = now
                .duration_since(*modified)
                .is_ok_and(|age| age > self.limits.keep_for);
            if old || total > most {
                let _ = fs::remove_file(path);
                total -= size;
            }
        }
        self.total.store(total, Ordering::Relaxed);
    }

    /// So much was written. Where that is more than there may be, the oldest go now; a tenth more than need be, so that it
    /// is not looked for again at once.
    fn grew(&self, by: u64) {
        let quota = self.limits.quota_bytes;
        if self
            .total
            .fetch_add(by, Ordering::Relaxed)
            .saturating_add(by)
            > quota
        {
            self.tidy(quota - quota / 10);
        }
    }

    /// The most that one output may take.
    fn longest(&self) -> u64 {
        let quota = self.limits.quota_bytes;
        self.limits.max_bytes.min(quota - quota / 10)
    }

    fn tidy_now_and_then(&self) {
        {
            let mut tidied = self.tidied.lock().unwrap_or_else(PoisonError::into_inner);
            if tidied.is_some_and(|at| at.elapsed() < TIDY_EVERY) {
                return;
            }
            *tidied = Some(Instant::now());
        }
        self.tidy(self.limits.quota_bytes);
    }

    fn read(&self, owner: &str, id: &OutputId, offset: u64, max: usize) -> io::Result<Page> {
        let mut file = File::open(self.owner_folder(owner).join(id.as_str()))?;
        let meta = file.metadata()?;
        let old = meta
            .modified()?
            .elapsed()
            .is_ok_and(|age| age > self.limits.keep_for);
        if old {
            return Err(io::ErrorKind::NotFound.into());
        }
        file.seek(SeekFrom::Start(offset))?;
        let mut bytes = Vec::new();
        file.take(max as u64).read_to_end(&mut bytes)?;
        Ok(Page {
            offset,
            bytes,
            total: meta.len(),
        })
    }
}

/// A file that is still being written; dropped unfinished, it goes.
struct PartialOutput {
    file: Option<File>,
    path: PathBuf,
    whole: Whole,
    ends_in_newline: bool,
}

impl PartialOutput {
    fn write(&mut self, bytes: &[u8], max: u64) -> io::Result<()> {
        // After a cut nothing may follow, even where it would fit: what is kept is a beginning without a gap.
        if self.whole.cut {
            return Ok(());
        }
        let room = usize::try_from(max.saturating_sub(self.whole.bytes)).unwrap_or(usize::MAX);
        let mut taken = &bytes[..bytes.len().min(room)];
        if taken.len() < bytes.len() {
            self.whole.cut = true;
            // Never half a character: a cut file reads as text to its end.
            while !taken.is_empty() && bytes[taken.len()] & 0xC0 == 0x80 {
                taken = &taken[..taken.len() - 1];
            }
        }
        if taken.is_empty() {
            return Ok(());
        }
        if let Some(file) = &mut self.file {
            file.write_all(taken)?;
        }
        self.whole.bytes += taken.len() as u64;
        self.whole.lines += taken.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.ends_in_newline = taken.ends_with(b"\n");
        Ok(())
    }

    fn finish(mut self) -> Whole {
        self.file = None;
        self.whole.lines += u64::from(!self.ends_in_newline);
        self.path = PathBuf::new();
        self.whole.clone()
    }
}

impl Drop for PartialOutput {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Runs disk work off the runtime's threads.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(io::Error::other)?
}

impl Outputs for OutputFiles {
    fn keep<'a>(&'a self, owner: &'a str, text: &'a [u8]) -> BoxFuture<'a, io::Result<Whole>> {
        let (inner, owner, text) = (self.0.clone(), owner.to_owned(), text.to_vec());
        Box::pin(blocking(move || {
            let kept = inner.create(&owner).and_then(|mut draft| {
                draft.write(&text, inner.longest())?;
                inner.grew(draft.whole.bytes);
                Ok(draft.finish())
            });
            inner.note(&kept);
            kept
        }))
    }

    fn spool<'a>(&'a self, owner: &'a str) -> BoxFuture<'a, io::Result<Box<dyn Spool>>> {
        let (inner, owner) = (self.0.clone(), owner.to_owned());
        Box::pin(async move {
            let made = inner.clone();
            let draft = blocking(move || inner.create(&owner)).await;
            if draft.is_err() {
                made.note(&draft);
            }
            Ok(Box::new(SpoolFile {
                draft: Some(draft?),
                inner: made,
            }) as Box<dyn Spool>)
        })
    }

    fn list<'a>(&'a self, owner: &'a str, most: usize) -> BoxFuture<'a, Vec<KeptOutput>> {
        let (inner, owner) = (self.0.clone(), owner.to_owned());
        Box::pin(async move {
            let listed = blocking(move || Ok(inner.list(&owner, most))).await;
            listed.unwrap_or_default()
        })
    }

    fn read<'a>(
        &'a self,
        owner: &'a str,
        id: &'a OutputId,
        offset: u64,
        max: usize,
    ) -> BoxFuture<'a, io::Result<Page>> {
        let (inner, owner, id) = (self.0.clone(), owner.to_owned(), id.clone());
        Box::pin(blocking(move || inner.read(&owner, &id, offset, max)))
    }

    fn remove<'a>(&'a self, owner: &'a str, id: &'a OutputId) -> BoxFuture<'a, io::Result<()>> {
        let path = self.0.owner_folder(owner).join(id.as_str());
        Box::pin(blocking(move || fs::remove_file(path)))
    }
}

struct SpoolFile {
    /// Away while a write is under way.
    draft: Option<PartialOutput>,
    inner: Arc<Inner>,
}

impl Spool for SpoolFile {
    fn write<'a>(&'a mut self, bytes: &'a [u8]) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(async move {
            let mut draft = self
                .draft
                .take()
                .ok_or_else(|| io::Error::other("an earlier write failed"))?;
            let (bytes, inner) = (bytes.to_vec(), self.inner.clone());
            let written = blocking(move || {
                let before = draft.whole.bytes;
                draft.write(&bytes, inner.longest())?;
                inner.grew(draft.whole.bytes - before);
                Ok(draft)
            });
            let written = written.await;
            self.inner.note(&written);
            self.draft = Some(written?);
            Ok(())
        })
    }

    fn finish(mut self: Box<Self>) -> BoxFuture<'static, io::Result<Whole>> {
        Box::pin(async move {
            let draft = self
                .draft
                .take()
                .ok_or_else(|| io::Error::other("an earlier write failed"))?;
            Ok(draft.finish())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outputs(dir: &Path, max_bytes: u64, quota_bytes: u64) -> OutputFiles {
        OutputFiles::in_folder(
            dir,
            OutputLimits {
                max_bytes,
                quota_bytes,
                ..OutputLimits::default()
            },
        )
    }

    #[tokio::test]
    async fn kept_outputs_are_read_in_pages_by_their_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let outputs = outputs(dir.path(), 1_000, 10_000);
        let whole = outputs.keep("default", b"one\ntwo\nthree").await.unwrap();
        assert_eq!((whole.bytes, whole.lines, whole.cut), (13, 3, false));
        let page = outputs.read("default", &whole.id, 4, 3).await.unwrap();
        assert_eq!((page.bytes.as_slice(), page.total), (&b"two"[..], 13));
        assert!(
            outputs
                .read("default", &whole.id, 99, 3)
                .await
                .unwrap()
                .bytes
                .is_empty()
        );
        let foreign = outputs.read("other", &whole.id, 0, 3).await.unwrap_err();
        assert_eq!(foreign.kind(), io::ErrorKind::NotFound);
        assert!(outputs.remove("other", &whole.id).await.is_err());
        outputs.remove("default", &whole.id).await.unwrap();
        assert!(outputs.read("default", &whole.id, 0, 3).await.is_err());
    }

    #[tokio::test]
    async fn one_call_keeps_no_more_than_its_limit() {
        let dir = tempfile::tempdir().unwrap();
        let outputs = outputs(dir.path(), 4, 10_000);
        let mut spool = outputs.spool("default").await.unwrap();
        spool.write(b"ab").await.unwrap();
        spool.write("cä".as_bytes()).await.unwrap();
        spool.write(b"more").await.unwrap();
        let whole = spool.finish().await.unwrap();
        assert!(whole.cut);
        let page = outputs.read("default", &whole.id, 0, 100).await.unwrap();
        assert_eq!(page.bytes, b"abc", "half a character and what follows it");
    }

    #[tokio::test]
    async fn an_unfinished_spool_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let outputs = outputs(dir.path(), 100, 1_000);
        let mut spool = outputs.spool("default").await.unwrap();
        spool.write(b"text").await.unwrap();
        drop(spool);
        assert!(outputs.0.files().is_empty());
    }

    #[tokio::test]
    async fn the_oldest_go_when_the_quota_is_reached() {
        let dir = tempfile::tempdir().unwrap();
        let outputs = outputs(dir.path(), 100, 25);
        let mut kept = Vec::new();
        for age in [300, 200, 100] {
            let whole = outputs.keep("default", &[b'x'; 10]).await.unwrap();
            let path = outputs.0.owner_folder("default").join(whole.id.as_str());
            let file = File::options().write(true).open(path).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(age))
                .unwrap();
            kept.push(whole.id);
        }
        outputs.tidy();
        assert!(outputs.read("default", &kept[0], 0, 1).await.is_err());
        assert!(outputs.read("default", &kept[1], 0, 1).await.is_ok());
        assert!(outputs.read("default", &kept[2], 0, 1).await.is_ok());
    }

    #[tokio::test]
    async fn after_a_day_it_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let outputs = outputs(dir.path(), 100, 1_000);
        let whole = outputs.keep("default", b"text").await.unwrap();
        let path = outputs.0.owner_folder("default").join(whole.id.as_str());
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(25 * 3_600))
            .unwrap();
        assert!(outputs.read("default", &whole.id, 0, 1).await.is_err());
        outputs.tidy();
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn all_outputs_together_never_take_more_than_the_quota() {
        let dir = tempfile::tempdir().unwrap();
        let outputs = outputs(dir.path(), 100_000, 10_000);
        let total = || {
            outputs
                .0
                .files()
                .iter()
                .map(|(_, size, _)| size)
                .sum::<u64>()
        };
        for _ in 0..50 {
            let kept = outputs.keep("default", &[b'x'; 3_000]).await.unwrap();
            assert!(total() <= 10_000, "{}", total());
            assert!(outputs.read("default", &kept.id, 0, 1).await.is_ok());
        }
        // One that would take all of it, and more, is cut.
        let mut spool = outputs.spool("default").await.unwrap();
        for _ in 0..10 {
            spool.write(&[b'x'; 3_000]).await.unwrap();
            assert!(total() <= 10_000, "{}", total());
        }
        assert!(spool.finish().await.unwrap().cut);
    }
}
