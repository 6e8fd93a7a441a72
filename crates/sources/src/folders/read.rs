//! The third step: what an entry holds, and the hash of it.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use sha2::{Digest, Sha256};
use toolcrib_core::{Access, Scope};

use super::Folder;
use super::list::Entry;
use crate::entry::FileKind;
use crate::executable::{MANIFEST, bundle, named};
use crate::origin::Origin;
use crate::script::{Around, Language, Script};
use crate::{Place, beneath, plugin};

/// Larger files are not tools; one byte more is read, so that the loader can say so.
const MAX_FILE: u64 = plugin::MAX_FILE as u64;

/// How much is read of an untrusted project in one look. Whoever clones it pays for the scan.
const UNTRUSTED: u64 = 16 * 1_024 * 1_024;

pub(super) const NO_MORE: &str = "the project is not trusted, and its tool files";

/// What an entry holds.
pub(super) enum Content {
    Text {
        text: Vec<u8>,
        /// The programs of the project that it runs, which are part of it.
        programs: BTreeSet<PathBuf>,
    },
    Script(Box<Script>),
    Program {
        hash: [u8; 32],
    },
    Bundle {
        hash: [u8; 32],
        manifest: Option<Vec<u8>>,
        program: Option<PathBuf>,
    },
    /// Nothing that is a tool.
    Idle,
}

impl Content {
    /// A plugin's text that runs no program of the project.
    pub fn text(text: Vec<u8>) -> Content {
        Content::Text {
            text,
            programs: BTreeSet::new(),
        }
    }

    pub fn hash(&self) -> [u8; 32] {
        match self {
            Content::Text { text, programs } => {
                let hash = Sha256::digest(text);
                match programs.is_empty() {
                    true => hash.into(),
                    false => {
                        let hash = Sha256::new().chain_update(hash);
                        plugin::programs::add(hash, programs).finalize().into()
                    }
                }
            }
            Content::Script(script) => Sha256::digest(script.hash()).into(),
            Content::Program { hash } | Content::Bundle { hash, .. } => *hash,
            Content::Idle => [0; 32],
        }
    }

    /// The other files that an entry is made of, where there may be some: its stamp then is theirs, too.
    pub fn beside(&self, entry: &Entry) -> Option<Vec<PathBuf>> {
        match self {
            Content::Script(script) if !matches!(entry.kind, FileKind::Bundle) => {
                let beside = script
                    .files()
                    .filter(|path| *path != entry.path)
                    .map(Path::to_path_buf)
                    .chain([requirements_of(&entry.path, script.language)])
                    .filter(|path| script.around.has(path));
                Some(beside.collect())
            }
            Content::Text { programs, .. } if !programs.is_empty() => {
                Some(programs.iter().cloned().collect())
            }
            _ => None,
        }
    }
}

fn requirements_of(file: &Path, language: &dyn Language) -> PathBuf {
    file.with_file_name(language.requirements_file())
}

/// A name without its suffix.
pub(super) fn stem(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

impl Folder {
    /// Where an entry's file at `path` lies, and what that means for it.
    pub(super) fn origin<'a>(&self, entry: &Entry, path: &'a Path) -> Origin<'a> {
        Origin {
            file: path,
            scope: self.scope,
            access: self.access_of(&entry.name),
            alone: self.is_alone(&entry.name),
        }
    }

    /// How much of what lies around an entry belongs to it.
    pub(super) fn around(&self, entry: &Entry) -> Around {
        match (self.is_alone(&entry.name), entry.kind) {
            (false, _) => Around::Trusted,
            (true, FileKind::Bundle) => Around::Folder(entry.path.clone()),
            (true, _) => Around::Nothing,
        }
    }
}

/// Reads a folder's entries, in one look.
pub(super) struct Reader<'a> {
    folder: &'a Folder,
    place: &'a Place,
    /// What is left to be read of an untrusted project.
    left: AtomicU64,
}

impl Reader<'_> {
    pub fn new<'a>(folder: &'a Folder, place: &'a Place) -> Reader<'a> {
        Reader {
            folder,
            place,
            left: AtomicU64::new(UNTRUSTED),
        }
    }

    /// What an entry holds. Of an untrusted project only the text of a plugin, manifest or script is read.
    pub fn read(&self, entry: &Entry) -> Result<Content, String> {
        match entry.kind {
            FileKind::Plugin => {
                let text = self.file(entry, &entry.path, MAX_FILE + 1)?;
                let origin = self.folder.origin(entry, &entry.path);
                let programs = origin.programs(&text, self.place);
                Ok(Content::Text { text, programs })
            }
            FileKind::Script(language) => {
                let script = self.script(language, stem(&entry.name), entry, &entry.path)?;
                match self.folder.programs && is_runnable(&entry.path) && script.is_program() {
                    true => self.program(entry),
                    false => Ok(Content::Script(Box::new(script))),
                }
            }
            FileKind::Program => self.program(entry),
            FileKind::Bundle => self.bundle(entry),
        }
    }

    fn take(&self, bytes: u64) -> Result<(), String> {
        let order = Ordering::Relaxed;
        let less = |left: u64| left.checked_sub(bytes);
        let taken = self.left.fetch_update(order, order, less);
        taken.map(drop).map_err(|_| {
            format!(
                "{NO_MORE} hold more than the {UNTRUSTED} bytes that are read of such a project"
            )
        })
    }

    /// Opens a file without waiting for pipes. Of an untrusted project only what really lies in it; of an entry that is
    /// trusted by itself only what really is its own.
    fn open(&self, entry: &Entry, path: &Path) -> Result<File, String> {
        let folder = self.folder;
        if let Access::Untrusted { .. } = &folder.access {
            let own = folder.path.join(&entry.name);
            let alone = folder.is_alone(&entry.name);
            if alone && own.is_symlink() {
                return Err("it is a link, and only itself is trusted".to_owned());
            }
            let base = match alone && path != own {
                true => &own,
                false => &folder.path,
            };
            let below = path.strip_prefix(base).unwrap_or(path);
            let opened = beneath::open(base, &below.to_string_lossy());
            return opened.map(|opened| opened.file).map_err(unread);
        }
        let file = File::options()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(path);
        file.map_err(unread)
    }

    /// The bytes of a file that belongs to an entry.
    fn file(&self, entry: &Entry, path: &Path, most: u64) -> Result<Vec<u8>, String> {
        let file = self.open(entry, path)?;
        let meta = file.metadata().map_err(unread)?;
        if !meta.is_file() {
            return Err("it is not a regular file".to_owned());
        }
        if let Access::Untrusted { .. } = self.folder.access_of(&entry.name) {
            self.take(meta.len().min(most))?;
        }
        // Room for one byte more than there should be: then one read takes all and the next finds the end.
        let mut text = Vec::with_capacity(meta.len().min(most) as usize + 1);
        file.take(most).read_to_end(&mut text).map_err(unread)?;
        Ok(text)
    }

    fn program(&self, entry: &Entry) -> Result<Content, String> {
        let head = self.file(entry, &entry.path, 256)?;
        if !bundle::is_program(&head) {
            return Ok(Content::Idle);
        }
        let hash = match self.folder.trusts(&entry.name) {
            true => {
                let meta = std::fs::metadata(&entry.path).map_err(unread)?;
                bundle::content(&entry.path, &meta).map_err(unread)?
            }
            false => Sha256::digest(&head).into(),
        };
        Ok(Content::Program { hash })
    }

    /// A script with what it imports; of an untrusted project its own text, and the packages that it would need.
    fn script(
        &self,
        language: &'static dyn Language,
        stem: &str,
        entry: &Entry,
        path: &Path,
    ) -> Result<Script, String> {
        let folder = self.folder;
        let text = self.file(entry, path, MAX_FILE + 1)?;
        let around = folder.around(entry);
        let bytes = |path: &Path| self.file(entry, path, MAX_FILE + 1).ok();
        if folder.access != Access::Open {
            let trusted = folder.is_alone(&entry.name);
            let requirements = requirements_of(path, language);
            let read = |path: &Path| {
                let wanted = trusted || path == requirements;
                wanted.then(|| bytes(path))?
            };
            return Ok(Script::gather(language, stem, path, &text, around, read));
        }
        // Only what the confined process could read itself: a link, or an import that leads elsewhere, brings nothing in.
        let project = self.place.project.as_deref();
        let project = project.filter(|_| folder.scope == Scope::Local);
        let own = [Some(folder.path.as_path()), path.parent(), project];
        let own: Vec<PathBuf> = own
            .into_iter()
            .flatten()
            .filter_map(|folder| folder.canonicalize().ok())
            .collect();
        let read = |path: &Path| {
            let real = path.canonicalize().ok()?;
            let within = own.iter().any(|folder| real.starts_with(folder));
            within.then(|| bytes(&real))?
        };
        Ok(Script::gather(language, stem, path, &text, around, read))
    }

    fn bundle(&self, entry: &Entry) -> Result<Content, String> {
        let trusted = self.folder.trusts(&entry.name);
        let path = &entry.path;
        let parts = bundle::parts(path);
        let program = bundle::program(path, &parts).map(Path::to_path_buf);
        if let Some((language, main)) = bundle::script(path, &parts) {
            let script = self.script(language, &entry.name, entry, main)?;
            // A program of the same name that speaks the protocol itself is none of the host's.
            if program.is_none() || script.has_tools() {
                let script = match trusted {
                    true => script.beside(bundle::hash(path, &parts, None)?),
                    false => script,
                };
                return Ok(Content::Script(Box::new(script)));
            }
        }
        let written = path.join(MANIFEST);
        let manifest = match parts.iter().any(|part| part.path == written) {
            true => Some(self.file(entry, &written, MAX_FILE + 1)?),
            false => None,
        };
        if !self.folder.programs || (manifest.is_none() && program.is_none()) {
            return Ok(Content::Idle);
        }
        let hash = match (trusted, &manifest) {
            // Of the very text that was read: another may be there by now.
            (true, Some(text)) => {
                let hash = bundle::hash(path, &parts, Some(text))?;
                let project = self.place.project.as_deref();
                named::with(hash, &named::files(path, text, &parts, project))
            }
            (true, None) => bundle::hash(path, &parts, None)?,
            (false, Some(text)) => Sha256::digest(text).into(),
            (false, None) => [1; 32],
        };
        Ok(Content::Bundle {
            hash,
            manifest,
            program,
        })
    }
}

/// Has it the run bit?
fn is_runnable(path: &Path) -> bool {
    let meta = std::fs::metadata(path);
    meta.is_ok_and(|meta| meta.permissions().mode() & 0o111 != 0)
}

fn unread(error: impl std::fmt::Display) -> String {
    format!("the file can't be read: {error}")
}
