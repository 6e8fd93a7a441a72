//! Reads what an entry of a tools folder holds and makes tools of it, or of its last good version.

use std::collections::BTreeSet;
use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sha2::{Digest, Sha256};
use toolcrib_core::store::LastGood;
use toolcrib_core::{Access, ErrorType, Problem, Scope, SourceKind, Update};

use super::last_good::{may_stand_in, stand_in};
use super::{
    Candidate, EntryReading, FileState, Folder, Found, News, Reread, WatchedFolder, hex, key,
};
use crate::entry::{Content, FileKind, Stamp};
use crate::executable::{self, MANIFEST, bundle, named};
use crate::origin::{Loaded, Origin};
use crate::script::{self, Around, Language, Script};
use crate::undescribed::Read;
use crate::{Place, beneath, plugin};

/// Larger files are not tools; one byte more is read, so that the loader can say so.
const MAX_FILE: u64 = plugin::MAX_FILE as u64;

/// How much is read of an untrusted project in one look. Whoever clones it pays for the scan.
const UNTRUSTED: u64 = 16 * 1_024 * 1_024;

const NO_MORE: &str = "the project is not trusted, and its tool files";

/// What is left to be read of an untrusted project in this look.
struct Allowance(AtomicU64);

impl Allowance {
    fn take(&self, bytes: u64) -> Result<(), String> {
        let taken = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(bytes)
            });
        taken.map(drop).map_err(|_| {
            format!(
                "{NO_MORE} hold more than the {UNTRUSTED} bytes that are read of such a project"
            )
        })
    }
}

impl WatchedFolder {
    /// Reads files, on all cores when they are many.
    pub(super) fn read_all(
        &self,
        candidates: Vec<Candidate>,
        place: &Arc<Place>,
        last_good: &dyn LastGood,
        reread: &Reread,
    ) -> Vec<EntryReading> {
        let allowance = Allowance(AtomicU64::new(UNTRUSTED));
        let read = |file: &Candidate| self.read_one(file, place, last_good, reread, &allowance);
        // Of an untrusted project the same files are read every time: in their order.
        let workers = match self.folder.access {
            Access::Untrusted { .. } => 1,
            _ => std::thread::available_parallelism().map_or(1, usize::from),
        };
        if candidates.len() < 64 || workers == 1 {
            return candidates.iter().map(read).collect();
        }
        let share = candidates.len().div_ceil(workers.min(8));
        std::thread::scope(|scope| {
            let parts: Vec<_> = candidates
                .chunks(share)
                .map(|files| scope.spawn(move || files.iter().map(read).collect::<Vec<_>>()))
                .collect();
            let parts = parts.into_iter();
            parts
                .flat_map(|part| part.join().unwrap_or_default())
                .collect()
        })
    }

    fn read_one(
        &self,
        file: &Candidate,
        place: &Arc<Place>,
        last_good: &dyn LastGood,
        reread: &Reread,
        allowance: &Allowance,
    ) -> EntryReading {
        let content = self.folder.content(file, place, allowance);
        let programs = self.folder.programs_of(file, &content, place);
        let hash: [u8; 32] = match &content {
            Ok(content) if !programs.is_empty() => {
                let hash = Sha256::new().chain_update(content.hash());
                plugin::programs::add(hash, &programs).finalize().into()
            }
            Ok(content) => content.hash(),
            Err(error) => Sha256::digest(error.as_bytes()).into(),
        };
        let before = self.known.get(&file.name);
        let (stamp, beside) = match &content {
            Ok(Content::Script(script)) if !matches!(file.kind, FileKind::Bundle) => {
                let beside: Vec<PathBuf> = script
                    .files()
                    .filter(|path| *path != file.path)
                    .map(Path::to_path_buf)
                    .chain([requirements_of(&file.path, script.language)])
                    .filter(|path| script.around.has(path))
                    .collect();
                (stamp_of(&file.path, &beside), beside)
            }
            _ if !programs.is_empty() => {
                let beside: Vec<PathBuf> = programs.into_iter().collect();
                (stamp_of(&file.path, &beside), beside)
            }
            _ => (Some(file.stamp.clone()), Vec::new()),
        };
        let whole = matches!(reread, Reread::All);
        let same = before.is_some_and(|known| known.hash == hash && !(known.afresh && whole));
        let answered = same && before.is_some_and(|known| known.afresh);
        let news = match reread {
            Reread::Anew if same => {
                let mut news = self.folder.load(file, content, place, last_good);
                // Who has answered afresh is not asked once more.
                if answered && let Found::Again(update, _) = news.update {
                    news.update = Found::Update(update);
                }
                // The text of what is known was kept when it was new.
                if let Found::Update(_) = news.update {
                    news.keep = None;
                }
                Some(news)
            }
            _ if same => None,
            _ => Some(self.folder.load(file, content, place, last_good)),
        };
        EntryReading {
            name: file.name.clone(),
            known: FileState {
                stamp: stamp.unwrap_or_else(|| file.stamp.clone()),
                hash,
                beside,
                afresh: answered,
                waits: same && before.is_some_and(|known| known.waits),
            },
            news,
        }
    }
}

/// The stamp of a script and of what lies beside it that it is made of.
pub(super) fn stamp_of(file: &Path, beside: &[PathBuf]) -> Option<Stamp> {
    let meta = std::fs::metadata(file).ok()?;
    let others: Vec<Metadata> = beside
        .iter()
        .filter_map(|path| std::fs::metadata(path).ok())
        .collect();
    Some(Stamp::of(std::iter::once(&meta).chain(&others)))
}

fn requirements_of(file: &Path, language: &dyn Language) -> PathBuf {
    file.with_file_name(language.requirements_file())
}

impl Folder {
    /// The programs of the project that a plugin runs, which are part of it.
    fn programs_of(
        &self,
        file: &Candidate,
        content: &Result<Content, String>,
        place: &Place,
    ) -> BTreeSet<PathBuf> {
        match content {
            Ok(Content::Text(text)) => self.origin(file, &file.path).programs(text, place),
            _ => BTreeSet::new(),
        }
    }

    fn origin<'a>(&self, file: &Candidate, path: &'a Path) -> Origin<'a> {
        Origin {
            file: path,
            scope: self.scope,
            access: self.access_of(&file.name),
            alone: self.is_alone(&file.name),
        }
    }

    /// Reads a file without waiting for pipes. Of an untrusted project only what really lies in it; of an entry that is
    /// trusted by itself only what really is its own.
    fn read(
        &self,
        name: &str,
        path: &Path,
        most: u64,
        allowance: &Allowance,
    ) -> Result<Vec<u8>, String> {
        let said = |error: io::Error| format!("the file can't be read: {error}");
        let entry = self.path.join(name);
        let file = match &self.access {
            Access::Untrusted { .. } => {
                let alone = self.is_alone(name);
                if alone && entry.is_symlink() {
                    return Err("it is a link, and only itself is trusted".to_owned());
                }
                let base = match alone && path != entry {
                    true => &entry,
                    false => &self.path,
                };
                let below = path.strip_prefix(base).unwrap_or(path);
                let opened = beneath::open(base, &below.to_string_lossy());
                opened
                    .map_err(|error| format!("the file can't be read: {error}"))?
                    .file
            }
            _ => {
                let file = File::options()
                    .read(true)
                    .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
                    .open(path);
                file.map_err(said)?
            }
        };
        let meta = file.metadata().map_err(said)?;
        if !meta.is_file() {
            return Err("it is not a regular file".to_owned());
        }
        if let Access::Untrusted { .. } = self.access_of(name) {
            allowance.take(meta.len().min(most))?;
        }
        // Room for one byte more than there should be: then one read takes all and the next finds the end.
        let mut text = Vec::with_capacity(meta.len().min(most) as usize + 1);
        file.take(most).read_to_end(&mut text).map_err(said)?;
        Ok(text)
    }

    /// What an entry holds. Of an untrusted project only the text of a plugin, manifest or script is read.
    fn content(
        &self,
        file: &Candidate,
        place: &Place,
        allowance: &Allowance,
    ) -> Result<Content, String> {
        let said = |error: io::Error| format!("the file can't be read: {error}");
        let trusted = self.access_of(&file.name) == Access::Open;
        match file.kind {
            FileKind::Plugin => self
                .read(&file.name, &file.path, MAX_FILE + 1, allowance)
                .map(Content::Text),
            FileKind::Script(language) => {
                let script = self.script(
                    language,
                    stem(&file.name),
                    file,
                    &file.path,
                    place,
                    allowance,
                )?;
                Ok(Content::Script(Box::new(script)))
            }
            FileKind::Program => {
                let head = self.read(&file.name, &file.path, 256, allowance)?;
                if !bundle::is_program(&head) {
                    return Ok(Content::Idle);
                }
                if !trusted {
                    let hash = Sha256::digest(&head).into();
                    return Ok(Content::Program { hash });
                }
                let meta = std::fs::metadata(&file.path).map_err(said)?;
                let hash = bundle::content(&file.path, &meta).map_err(said)?;
                Ok(Content::Program { hash })
            }
            FileKind::Bundle => self.bundle(file, trusted, place, allowance),
        }
    }

    /// How much of what lies around an entry belongs to it.
    fn around(&self, entry: &Candidate) -> Around {
        match (self.is_alone(&entry.name), entry.kind) {
            (false, _) => Around::Trusted,
            (true, FileKind::Bundle) => Around::Folder(entry.path.clone()),
            (true, _) => Around::Nothing,
        }
    }

    /// A script with what it imports; of an untrusted project its own text, and the packages that it would need.
    fn script(
        &self,
        language: &'static dyn Language,
        stem: &str,
        entry: &Candidate,
        path: &Path,
        place: &Place,
        allowance: &Allowance,
    ) -> Result<Script, String> {
        let text = self.read(&entry.name, path, MAX_FILE + 1, allowance)?;
        let around = self.around(entry);
        if self.access != Access::Open {
            let trusted = self.is_alone(&entry.name);
            let requirements = requirements_of(path, language);
            let read = |path: &Path| {
                let wanted = trusted || path == requirements;
                wanted.then(|| self.read(&entry.name, path, MAX_FILE + 1, allowance).ok())?
            };
            return Ok(Script::gather(language, stem, path, &text, around, read));
        }
        // Only what the confined process could read itself: a link, or an import that leads elsewhere, brings nothing in.
        let project = place
            .project
            .as_deref()
            .filter(|_| self.scope == Scope::Local);
        let own = [Some(self.path.as_path()), path.parent(), project];
        let own: Vec<PathBuf> = own
            .into_iter()
            .flatten()
            .filter_map(|folder| folder.canonicalize().ok())
            .collect();
        let read = |path: &Path| {
            let real = path.canonicalize().ok()?;
            let within = own.iter().any(|folder| real.starts_with(folder));
            within.then(|| self.read(&entry.name, &real, MAX_FILE + 1, allowance).ok())?
        };
        Ok(Script::gather(language, stem, path, &text, around, read))
    }

    fn bundle(
        &self,
        file: &Candidate,
        trusted: bool,
        place: &Place,
        allowance: &Allowance,
    ) -> Result<Content, String> {
        let parts = bundle::parts(&file.path);
        let program = bundle::program(&file.path, &parts).map(Path::to_path_buf);
        if let Some((language, path)) = bundle::script(&file.path, &parts) {
            let script = self.script(language, &file.name, file, path, place, allowance)?;
            // A program of the same name that speaks the protocol itself is none of the host's.
            if program.is_none() || script.has_tools() {
                let script = match trusted {
                    true => script.beside(bundle::hash(&file.path, &parts, None)?),
                    false => script,
                };
                return Ok(Content::Script(Box::new(script)));
            }
        }
        let written = file.path.join(MANIFEST);
        let manifest = match parts.iter().any(|part| part.path == written) {
            true => Some(self.read(&file.name, &written, MAX_FILE + 1, allowance)?),
            false => None,
        };
        if !self.programs || (manifest.is_none() && program.is_none()) {
            return Ok(Content::Idle);
        }
        let hash = match (trusted, &manifest) {
            // Of the very text that was read: another may be there by now.
            (true, _) => bundle::hash(&file.path, &parts, manifest.as_deref())?,
            (false, Some(manifest)) => Sha256::digest(manifest).into(),
            (false, None) => [1; 32],
        };
        let hash = match manifest.as_deref().filter(|_| trusted) {
            Some(text) => {
                let project = place.project.as_deref();
                named::with(hash, &named::files(&file.path, text, &parts, project))
            }
            None => hash,
        };
        Ok(Content::Bundle {
            hash,
            manifest,
            program,
        })
    }

    fn load(
        &self,
        file: &Candidate,
        content: Result<Content, String>,
        place: &Arc<Place>,
        last_good: &dyn LastGood,
    ) -> News {
        let trusted = self.access_of(&file.name) == Access::Open;
        let (read, keep) = match content {
            Err(reason) => {
                let loaded = Loaded {
                    problems: vec![unreadable(file, &reason)],
                    ..Loaded::default()
                };
                (Read::Ready(loaded), None)
            }
            Ok(content) => self.parse(file, content, place),
        };
        let (mut loaded, again) = match read {
            Read::Ready(loaded) => (loaded, None),
            Read::Again(loaded, draft) => (loaded, Some(draft)),
            Read::Pending(draft, problems) => {
                let update = Found::Pending {
                    draft,
                    problems,
                    stale: false,
                };
                return News { update, keep };
            }
        };
        let good = trusted && !loaded.is_broken() && !loaded.tools.is_empty();
        if trusted && may_stand_in(&loaded) {
            match self.once_good(file, place, last_good) {
                Some(Read::Ready(good) | Read::Again(good, _)) => stand_in(&mut loaded, good.tools),
                Some(Read::Pending(draft, _)) => {
                    let update = Found::Pending {
                        draft,
                        problems: loaded.problems,
                        stale: true,
                    };
                    return News { update, keep: None };
                }
                None => {}
            }
        }
        let update = Update {
            key: key(&file.path),
            rank: self.rank(),
            file: Some(file.path.clone()),
            tools: loaded.tools,
            problems: loaded.problems,
        };
        let keep = keep.filter(|_| good);
        match again {
            None => News {
                update: Found::Update(update),
                keep,
            },
            Some(draft) => News {
                update: Found::Again(update, draft),
                keep,
            },
        }
    }

    /// Makes tools of what was read. Gives the text too, where it may have to stand in for a later one.
    fn parse(
        &self,
        file: &Candidate,
        content: Content,
        place: &Arc<Place>,
    ) -> (Read, Option<Vec<u8>>) {
        let hash = hex(&content.hash());
        let origin = |path| self.origin(file, path);
        match content {
            Content::Text(text) => {
                let loaded = plugin::load(&text, &origin(&file.path), place);
                (Read::Ready(loaded), Some(text))
            }
            Content::Script(script) => {
                let (keep, path) = (script.keep(), script.file.clone());
                // A tool made of a folder starts in that folder; a file alone starts in the project.
                let start = match file.kind {
                    FileKind::Bundle => &file.path,
                    _ => place.directory(),
                };
                let project = self.access == Access::Open;
                let read = script::read(*script, &origin(&path), place, start, project);
                (read, Some(keep))
            }
            Content::Program { .. } => {
                let entry = executable::Entry {
                    name: &file.name,
                    hash: &hash,
                    manifest: None,
                    program: Some(&file.path),
                    is_folder: false,
                    alone: self.is_alone(&file.name),
                };
                (executable::read(&entry, &origin(&file.path), place), None)
            }
            Content::Bundle {
                manifest, program, ..
            } => {
                let written = file.path.join(MANIFEST);
                let main = match (&manifest, &program) {
                    (None, Some(program)) => program,
                    _ => &written,
                };
                let entry = executable::Entry {
                    name: &file.name,
                    hash: &hash,
                    manifest: manifest.as_deref(),
                    program: program.as_deref(),
                    is_folder: true,
                    alone: self.is_alone(&file.name),
                };
                (executable::read(&entry, &origin(main), place), manifest)
            }
            Content::Idle => (Read::Ready(Loaded::default()), None),
        }
    }

    /// What the last good version of an entry gives. With the other files as they were, it has the pool that it had.
    pub(super) fn once_good(
        &self,
        file: &Candidate,
        place: &Arc<Place>,
        last_good: &dyn LastGood,
    ) -> Option<Read> {
        let kept = last_good.read(&self.path, &file.name)?;
        let content = match file.kind {
            FileKind::Plugin => Content::Text(kept),
            FileKind::Program => return None,
            FileKind::Script(language) => {
                let around = self.around(file);
                let script = Script::kept(language, stem(&file.name), &file.path, &kept, around)?;
                Content::Script(Box::new(script))
            }
            FileKind::Bundle => {
                let parts = bundle::parts(&file.path);
                match bundle::script(&file.path, &parts) {
                    Some((language, path)) => {
                        let around = self.around(file);
                        let script = Script::kept(language, &file.name, path, &kept, around)?;
                        Content::Script(Box::new(script))
                    }
                    None => Content::Bundle {
                        hash: named::with(
                            bundle::hash(&file.path, &parts, Some(&kept)).ok()?,
                            &named::files(&file.path, &kept, &parts, place.project.as_deref()),
                        ),
                        manifest: Some(kept),
                        program: bundle::program(&file.path, &parts).map(Path::to_path_buf),
                    },
                }
            }
        };
        Some(self.parse(file, content, place).0)
    }
}

/// A name without its suffix.
fn stem(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

fn unreadable(file: &Candidate, reason: &str) -> Problem {
    let source = match file.kind {
        FileKind::Plugin => SourceKind::Plugin,
        FileKind::Script(language) => language.source(),
        FileKind::Program | FileKind::Bundle => SourceKind::Executable,
    };
    let hint = match reason {
        _ if reason.starts_with(NO_MORE) => {
            "take files out of the folder, or look through the project and `toolcrib trust` it"
        }
        _ if reason.starts_with(bundle::TOO_MUCH) => {
            "keep in the folder what the tool is made of, and move data and builds elsewhere"
        }
        _ => {
            "make it a regular file that this user may read, for instance with `chmod u+r`, or take it out of the folder"
        }
    };
    Problem::error(source, ErrorType::Io, reason)
        .file(&file.path)
        .hint(hint)
}
