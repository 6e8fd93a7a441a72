//! The fourth step: what an entry makes. Where it is broken, its last good version stands in for it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolcrib_core::{Access, ErrorType, Pending, Problem, SourceKind, Tool, Update};

use super::last_good::{may_stand_in, stand_in};
use super::list::Entry;
use super::read::{Content, NO_MORE, stem};
use super::{Folder, Needs, key};
use crate::description::Description;
use crate::entry::FileKind;
use crate::executable::{self, MANIFEST, bundle, named};
use crate::origin::Loaded;
use crate::script::{self, Script};
use crate::{Place, examples, hex, plugin};

/// An entry that reads differently than before, on its way to an update.
pub(super) struct Draft {
    pub folder: Arc<Folder>,
    pub entry: Entry,
    /// The hash of what was read.
    pub hash: [u8; 32],
    /// The file that its tools are told to come from.
    pub file: PathBuf,
    pub description: Description,
    /// The text that is worth standing in for a later one, should it turn out to be good.
    pub keep: Option<Vec<u8>>,
    /// Is it a last good version that stands in for a broken one?
    pub stale: bool,
    /// Its place in the order of all drafts of its folder: a later one outdoes it.
    pub number: u64,
    /// What the catalog has of the entry, which goes on until this is ready.
    pub before: Vec<Arc<Tool>>,
    /// Must a process of it answer before it takes over?
    pub unproved: bool,
    /// May it be withheld, because it may be half of a save?
    pub patient: bool,
    /// Do its examples decide whether it takes over? Then this is what goes on otherwise, if anything.
    pub gate: Option<Vec<Arc<Tool>>>,
}

impl Draft {
    pub fn new(
        folder: &Arc<Folder>,
        entry: Entry,
        hash: [u8; 32],
        content: Result<Content, String>,
        needs: &Needs,
    ) -> Draft {
        let (description, keep) = match content {
            Ok(content) => describe(folder, &entry, content, &needs.place),
            Err(reason) => {
                let unreadable = Loaded::problems(vec![unreadable(&entry, &reason)]);
                (Description::Known(unreadable), None)
            }
        };
        let mut draft = Draft {
            folder: folder.clone(),
            file: entry.path.clone(),
            entry,
            hash,
            description,
            keep,
            stale: false,
            number: 0,
            before: Vec::new(),
            unproved: false,
            patient: false,
            gate: None,
        };
        draft.lean_on_last_good(needs);
        draft
    }

    /// Where it is broken already, its last good version stands in for it, or is asked in its place.
    fn lean_on_last_good(&mut self, needs: &Needs) {
        let trusted = self.folder.trusts(&self.entry.name);
        let broken = self.description.loaded().is_some_and(may_stand_in);
        if !trusted || !broken {
            return;
        }
        match once_good(&self.folder, &self.entry, needs) {
            Some(Description::Wanted { tool, .. }) => {
                let problems = self.description.problems();
                self.description = Description::Wanted { tool, problems };
                self.stale = true;
                self.keep = None;
            }
            Some(Description::Known(good) | Description::Remembered { known: good, .. }) => {
                if let Some(loaded) = self.description.loaded_mut() {
                    stand_in(loaded, good.tools);
                }
            }
            None => {}
        }
    }

    /// It reads as before and is made anew. Who has answered is not asked once more, and what is known was kept when it
    /// was new.
    pub fn anew(mut self, answered: bool) -> Draft {
        self.description = match self.description {
            Description::Remembered {
                known, problems, ..
            } if answered => Description::Known(known.after(problems)),
            description => description,
        };
        if let Description::Known(_) = self.description {
            self.keep = None;
        }
        self
    }

    /// Does somebody have to be asked what it is?
    pub fn is_question(&self) -> bool {
        self.unproved || !matches!(self.description, Description::Known(_))
    }

    /// It takes over from what the catalog has. A program does so once a process of it has answered: until then the old one
    /// serves, and a program that is half-written never does.
    pub fn takes_over(&mut self, before: Vec<Arc<Tool>>) {
        let runs = |tool: &Arc<Tool>| {
            tool.source == SourceKind::Executable && tool.access == Access::Open && !tool.stale
        };
        let known = match &self.description {
            Description::Known(loaded) => loaded.tools.iter().any(runs),
            _ => false,
        };
        let served = before.iter().any(|tool| tool.pending.is_none());
        self.unproved = known && served;
        self.before = before;
    }

    /// Its examples decide whether it takes over from these.
    pub fn is_gated(&mut self, served: Vec<Arc<Tool>>) {
        if let Description::Known(loaded) = &self.description {
            self.unproved |= loaded.tools.iter().any(examples::may_try);
        }
        self.gate = Some(served);
    }

    /// What the catalog gets until it is known what the entry has: what was known last, or what its text tells.
    pub fn meanwhile(&self, needs: &Needs) -> Option<Update> {
        let Description::Wanted { tool, problems } = &self.description else {
            return None;
        };
        let trusted = self.folder.trusts(&self.entry.name) && !self.stale;
        let once = trusted.then(|| once_good(&self.folder, &self.entry, needs));
        let mut tools = match once.flatten() {
            Some(Description::Known(good) | Description::Remembered { known: good, .. })
                if !good.tools.is_empty() =>
            {
                good.tools
            }
            _ => tool.meanwhile().tools,
        };
        for tool in &mut tools {
            Arc::make_mut(tool).pending = Some(Pending::Description);
        }
        Some(Update {
            key: key(&self.entry.path),
            rank: self.folder.rank(),
            file: tool
                .file()
                .map(Path::to_path_buf)
                .or(Some(self.file.clone())),
            tools,
            problems: problems.clone(),
        })
    }
}

/// Makes tools of what was read. Gives the text too, where it may have to stand in for a later one.
fn describe(
    folder: &Folder,
    entry: &Entry,
    content: Content,
    place: &Arc<Place>,
) -> (Description, Option<Vec<u8>>) {
    let hash = hex(&content.hash());
    let program = |manifest: Option<&[u8]>, program: Option<&Path>, main: &Path, is_folder| {
        let held = executable::Entry {
            name: &entry.name,
            hash: &hash,
            manifest,
            program,
            is_folder,
        };
        executable::read(&held, &folder.origin(entry, main), place)
    };
    match content {
        Content::Text { text, .. } => {
            let loaded = plugin::load(&text, &folder.origin(entry, &entry.path), place);
            (Description::Known(loaded), Some(text))
        }
        Content::Script(script) => {
            let (keep, path) = (script.keep(), script.file.clone());
            // A tool made of a folder starts in that folder; a file alone starts in the project.
            let start = match entry.kind {
                FileKind::Bundle => &entry.path,
                _ => place.directory(),
            };
            let project = folder.access == Access::Open;
            let read = script::read(*script, &folder.origin(entry, &path), place, start, project);
            (read, Some(keep))
        }
        Content::Program { .. } => {
            let path = entry.path.as_path();
            (program(None, Some(path), path, false), None)
        }
        Content::Bundle {
            manifest,
            program: own,
            ..
        } => {
            let written = entry.path.join(MANIFEST);
            let main = match (&manifest, &own) {
                (None, Some(own)) => own,
                _ => &written,
            };
            let read = program(manifest.as_deref(), own.as_deref(), main, true);
            (read, manifest)
        }
        Content::Idle => (Description::Known(Loaded::default()), None),
    }
}

/// What the last good version of an entry gives. With the other files as they were, it has the pool that it had.
pub(super) fn once_good(folder: &Folder, entry: &Entry, needs: &Needs) -> Option<Description> {
    let kept = needs.last_good.read(&folder.path, &entry.name)?;
    let content = kept_content(folder, entry, kept, &needs.place)?;
    Some(describe(folder, entry, content, &needs.place).0)
}

fn kept_content(folder: &Folder, entry: &Entry, kept: Vec<u8>, place: &Place) -> Option<Content> {
    let script = |language, stem: &str, path: &Path| {
        let script = Script::kept(language, stem, path, &kept, folder.around(entry))?;
        Some(Content::Script(Box::new(script)))
    };
    match entry.kind {
        FileKind::Plugin => Some(Content::text(kept)),
        FileKind::Program => None,
        FileKind::Script(language) => script(language, stem(&entry.name), &entry.path),
        FileKind::Bundle => {
            let path = &entry.path;
            let parts = bundle::parts(path);
            if let Some((language, main)) = bundle::script(path, &parts) {
                return script(language, &entry.name, main);
            }
            let named = named::files(path, &kept, &parts, place.project.as_deref());
            Some(Content::Bundle {
                hash: named::with(bundle::hash(path, &parts, Some(&kept)).ok()?, &named),
                manifest: Some(kept),
                program: bundle::program(path, &parts).map(Path::to_path_buf),
            })
        }
    }
}

fn unreadable(entry: &Entry, reason: &str) -> Problem {
    let source = match entry.kind {
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
        .file(&entry.path)
        .hint(hint)
}
