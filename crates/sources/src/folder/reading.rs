//! Reads what an entry of a tools folder holds and makes tools of it, or of its last good version.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use toolcrib_core::store::LastGood;
use toolcrib_core::{Access, ErrorType, Problem, Severity, SourceKind, Tool, Update};

use super::{Candidate, Found, Known, News, Reading, Shelf, hex, is_broken, key};
use crate::entry::{Content, FileKind};
use crate::executable::{self, MANIFEST, bundle};
use crate::origin::{Loaded, Origin};
use crate::{Place, beneath, plugin};

/// Larger files are not tools; one byte more is read, so that the loader can say so.
const MAX_FILE: u64 = plugin::MAX_FILE as u64;

impl Shelf {
    /// Reads a file without waiting for pipes. Of an untrusted project only what really lies in it.
    fn read(&self, entry: &Candidate, path: &Path, most: u64) -> Result<Vec<u8>, String> {
        let said = |error: io::Error| format!("the file can't be read: {error}");
        let file = match self.access_of(&entry.name) {
            Access::Untrusted { .. } => {
                let below = path.strip_prefix(&self.folder.path).unwrap_or(path);
                let opened = beneath::open(&self.folder.path, &below.to_string_lossy());
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
        // Room for one byte more than there should be: then one read takes all and the next finds the end.
        let mut text = Vec::with_capacity(meta.len().min(most) as usize + 1);
        file.take(most).read_to_end(&mut text).map_err(said)?;
        Ok(text)
    }

    /// Reads files, on all cores when they are many.
    pub(super) fn read_all(
        &self,
        candidates: Vec<Candidate>,
        place: &Arc<Place>,
        last_good: &dyn LastGood,
    ) -> Vec<Reading> {
        let read = |file: &Candidate| self.read_one(file, place, last_good);
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
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

    fn read_one(&self, file: &Candidate, place: &Arc<Place>, last_good: &dyn LastGood) -> Reading {
        let content = self.content(file);
        let hash: [u8; 32] = match &content {
            Ok(content) => content.hash(),
            Err(error) => Sha256::digest(error.as_bytes()).into(),
        };
        let before = self.known.get(&file.name);
        let same = before.is_some_and(|known| known.hash == hash);
        Reading {
            name: file.name.clone(),
            known: Known {
                stamp: file.stamp.clone(),
                hash,
            },
            news: (!same).then(|| self.load(file, content, place, last_good)),
        }
    }

    /// What an entry holds. Of an untrusted project only the text of a plugin or manifest is read.
    fn content(&self, file: &Candidate) -> Result<Content, String> {
        let said = |error: io::Error| format!("the file can't be read: {error}");
        let trusted = self.access_of(&file.name) == Access::Open;
        match file.kind {
            FileKind::Plugin => self.read(file, &file.path, MAX_FILE + 1).map(Content::Text),
            FileKind::Program => {
                let head = self.read(file, &file.path, 256)?;
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
            FileKind::Bundle => {
                let parts = bundle::parts(&file.path);
                let written = file.path.join(MANIFEST);
                let manifest = match parts.iter().any(|part| part.path == written) {
                    true => Some(self.read(file, &written, MAX_FILE + 1)?),
                    false => None,
                };
                let program = bundle::program(&file.path, &parts).map(Path::to_path_buf);
                if manifest.is_none() && program.is_none() {
                    return Ok(Content::Idle);
                }
                let hash = match (trusted, &manifest) {
                    (true, _) => bundle::hash(&file.path, &parts, None),
                    (false, Some(manifest)) => Sha256::digest(manifest).into(),
                    (false, None) => [1; 32],
                };
                Ok(Content::Bundle {
                    hash,
                    manifest,
                    program,
                })
            }
        }
    }

    fn load(
        &self,
        file: &Candidate,
        content: Result<Content, String>,
        place: &Arc<Place>,
        last_good: &dyn LastGood,
    ) -> News {
        let trusted = self.access_of(&file.name) == Access::Open;
        let (read, text) = match content {
            Err(reason) => {
                let loaded = Loaded {
                    tools: Vec::new(),
                    problems: vec![unreadable(&file.path, &reason)],
                };
                (executable::Read::Ready(loaded), None)
            }
            Ok(content) => self.parse(file, content, place),
        };
        let mut loaded = match read {
            executable::Read::Ready(loaded) => loaded,
            executable::Read::Pending(draft, problems) => {
                return News {
                    update: Found::Pending {
                        draft,
                        problems,
                        stale: false,
                    },
                    keep: text,
                };
            }
        };
        let broken = is_broken(&loaded);
        let good = trusted && !broken && !loaded.tools.is_empty();
        if trusted
            && broken
            && let Some(text) = last_good.read(&self.folder.path, &file.name)
        {
            match self.once_good(file, text, place) {
                executable::Read::Ready(good) => stand_in(&mut loaded, good.tools),
                executable::Read::Pending(draft, _) => {
                    let update = Found::Pending {
                        draft,
                        problems: loaded.problems,
                        stale: true,
                    };
                    return News { update, keep: None };
                }
            }
        }
        let update = Update {
            key: key(&file.path),
            rank: self.rank(),
            file: Some(file.path.clone()),
            tools: loaded.tools,
            problems: loaded.problems,
        };
        News {
            update: Found::Update(update),
            keep: text.filter(|_| good),
        }
    }

    /// Makes tools of what was read. Gives the text too, where it may have to stand in for a later one.
    fn parse(
        &self,
        file: &Candidate,
        content: Content,
        place: &Arc<Place>,
    ) -> (executable::Read, Option<Vec<u8>>) {
        let hash = hex(&content.hash());
        let origin = |path| Origin {
            file: path,
            scope: self.folder.scope,
            access: self.access_of(&file.name),
        };
        match content {
            Content::Text(text) => {
                let loaded = plugin::load(&text, &origin(&file.path), place);
                (executable::Read::Ready(loaded), Some(text))
            }
            Content::Program { .. } => {
                let entry = executable::Entry {
                    name: &file.name,
                    hash: &hash,
                    manifest: None,
                    program: Some(&file.path),
                    is_folder: false,
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
                };
                (executable::read(&entry, &origin(main), place), manifest)
            }
            Content::Idle => (executable::Read::Ready(Loaded::default()), None),
        }
    }

    /// What a text that was good once gives. With the other files as they were, it has the pool that it had.
    fn once_good(&self, file: &Candidate, text: Vec<u8>, place: &Arc<Place>) -> executable::Read {
        let content = match file.kind {
            FileKind::Plugin => Content::Text(text),
            FileKind::Program => Content::Idle,
            FileKind::Bundle => {
                let parts = bundle::parts(&file.path);
                Content::Bundle {
                    hash: bundle::hash(&file.path, &parts, Some(&text)),
                    manifest: Some(text),
                    program: bundle::program(&file.path, &parts).map(Path::to_path_buf),
                }
            }
        };
        self.parse(file, content, place).0
    }
}

/// Lets the last good version of each broken tool stand in for it, marked stale. A problem without a tool's name
/// may be about any tool that is missing now.
fn stand_in(loaded: &mut Loaded, good: Vec<Arc<Tool>>) {
    let errors: Vec<&Problem> = loaded
        .problems
        .iter()
        .filter(|p| p.severity == Severity::Error)
        .collect();
    let broken = |tool: &Tool| {
        errors.iter().any(|problem| {
            problem
                .tool_name
                .as_deref()
                .is_none_or(|name| name == tool.name())
        })
    };
    let missing = |tool: &Tool| !loaded.tools.iter().any(|new| new.name() == tool.name());
    let mut stale: Vec<Arc<Tool>> = good
        .into_iter()
        .filter(|tool| broken(tool) && missing(tool))
        .collect();
    mark_stale(&mut stale);
    loaded.tools.extend(stale);
}

pub(super) fn mark_stale(tools: &mut [Arc<Tool>]) {
    for tool in tools {
        Arc::make_mut(tool).stale = true;
    }
}

fn unreadable(path: &Path, reason: &str) -> Problem {
    Problem::error(SourceKind::Plugin, ErrorType::Io, reason)
        .file(path)
        .hint("make it a regular file that this user may read, for instance with `chmod u+r`, or take it out of the folder")
}
