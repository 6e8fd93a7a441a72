//! Registered tools: what the store remembers by name and command becomes a tool, as a program in a folder does.
//!
//! A registration has the fields of `tool.json` and runs as an executable does; it belongs to the user and is there in
//! every project. Every change of any process is heard of through the store and applied. A store in trouble leaves
//! the last known registrations serving.
//!
//! * [`reading`]: a registration as JSON, in both directions.
//! * [`examine`]: starts a program to see whether it is what it is said to be.
//! * [`source`]: keeps the catalog as the store has it.

mod examine;
mod reading;
mod source;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use toolcrib_core::store::CustomTool;
use toolcrib_core::{Access, Permit, Rank, Reads, SandboxOptions, SourceKey, SourceKind, Update};

use crate::confine::Workshop;
use crate::executable::Home;
use crate::executable::bundle;
use crate::executable::definition::Definition;
use crate::executable::manifest::{Manifest, Start};
use crate::fields::Report;
use crate::permits::Wanted;
use crate::worker::{Key, Recipe};
use crate::{Loaded, Place, command_files, confine, permits};

pub use examine::{Examination, Yes, described_name, examine};
pub use reading::{HIDDEN, Read, RegistrationKind, absolute, read, written};
pub use source::RegisteredSource;

/// What every registration is kept under in the catalog.
fn key(name: &str) -> SourceKey {
    SourceKey(format!("registered:{name}").into())
}

/// The tool that a registration makes; `stamp` differs when its files do, `content` when they hold something else.
fn update(tool: &CustomTool, stamp: &str, content: String, place: &Arc<Place>) -> Update {
    let loaded = load(tool, stamp, content, place);
    Update {
        key: key(&tool.name),
        rank: Rank::Registered,
        file: None,
        tools: loaded.tools,
        problems: loaded.problems,
    }
}

fn load(tool: &CustomTool, stamp: &str, content: String, place: &Arc<Place>) -> Loaded {
    let mut report = Report::without_file(SourceKind::Registered);
    report.tool = Some(tool.name.clone());
    let mut known = written(tool);
    let Some(manifest) = manifest(&known, place, &mut report).filter(|_| !report.failed) else {
        return Loaded {
            tools: Vec::new(),
            problems: report.finish(),
            ..Loaded::default()
        };
    };
    // Values of variables go into no hash that others may see; the revision stands for them.
    known.remove("env");
    let home = Home {
        source: SourceKind::Registered,
        file: None,
        scope: None,
        module: SourceKind::Registered.as_str().to_owned(),
        access: Access::Open,
        stem: tool.name.clone(),
        hash: format!("{}-{}-{stamp}", tool.id, tool.revision),
        content: Some(content),
        packages: None,
    };
    place.code.note_real(run_files(tool));
    let key = format!("registered-{}-{stamp}-{}", tool.id, manifest.fingerprint());
    let workshop = Workshop::new(manifest.blueprint(&tool.name), Key(key.into()), own(tool))
        .with_secrets(manifest.secrets.clone())
        .without(manifest.hidden.clone());
    let made = Definition::remembered(&home, known).tool(
        &manifest.shown,
        manifest.retries,
        Some(&workshop),
        place,
        &mut report,
    );
    Loaded {
        tools: made.into_iter().collect(),
        problems: report.finish(),
        ..Loaded::default()
    }
}

fn manifest(map: &Map<String, Value>, place: &Place, report: &mut Report) -> Option<Manifest> {
    let root = place.directory();
    let base = Start {
        home: root,
        start: root,
        program: None,
    };
    let manifest = Manifest::read(map, &base, place, report);
    // Nobody named the folder that it starts in: it is whatever project this is.
    let named = map.get("workingDir").is_some_and(|dir| !dir.is_null());
    manifest.map(|manifest| match named {
        true => manifest,
        false => manifest.in_a_foreign_folder(),
    })
}

/// Is it known what a registration is called? The user's settings let tools out of their walls by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Naming {
    ByName,
    Unnamed,
}

/// How its program is started to be asked, with what it was granted or is about to be. Whoever registers it grants the
/// secrets that it names.
fn recipe(
    tool: &CustomTool,
    manifest: &Manifest,
    permit: &Permit,
    naming: Naming,
    place: &Place,
) -> Recipe {
    let lent = manifest.secrets.iter().map(|one| place.lent(one));
    let reads = wanted(tool, place).reads;
    let mut policy = confine::policy(&own(tool), permit, &reads, &sandbox(tool), place);
    policy.hide.extend(manifest.hidden.iter().cloned());
    let confinement = match naming {
        Naming::ByName => place.walls.around_registered(&tool.name, policy),
        Naming::Unnamed => place.walls.around_unnamed(policy),
    };
    let mut blueprint = manifest.blueprint(&tool.name);
    blueprint.dir = confine::start(blueprint.dir, &confinement, place);
    blueprint.secrets = lent.collect();
    Recipe {
        blueprint,
        confinement,
        code: place.code.clone(),
    }
}

/// What a registration declares around itself, as far as it can be read.
fn sandbox(tool: &CustomTool) -> SandboxOptions {
    let written = tool.sandbox.clone().unwrap_or_default();
    serde_json::from_value(written).unwrap_or_default()
}

/// What a registration asks for.
fn wanted(tool: &CustomTool, place: &Place) -> Wanted {
    let written = tool.permissions.clone().unwrap_or_default();
    let permissions = serde_json::from_value(written).unwrap_or_default();
    let sandbox = sandbox(tool);
    let declared = Permit::declared(&permissions, &sandbox);
    let reads = Reads::declared(&permissions, &sandbox);
    permits::wanted(&declared, &reads, &Access::Open, place)
}

/// The files that a registration is made of: its program, and the script of an interpreter, which is its first argument
/// that is no option. What other arguments name is data, and read only where that is declared and granted.
fn files(tool: &CustomTool) -> Vec<PathBuf> {
    let script = tool.args.iter().find(|arg| !arg.starts_with('-'));
    let named = std::iter::once(&tool.command).chain(script).map(Path::new);
    let files = named.filter(|path| path.is_absolute() && !path.is_dir());
    files.map(Path::to_path_buf).collect()
}

/// The same with all else that its arguments name and that is run: as it is now, and no other tool's to write. It is read
/// only where that is declared and granted.
fn run_files(tool: &CustomTool) -> Vec<PathBuf> {
    let start = tool.working_dir.as_deref().unwrap_or("/");
    let mut all = files(tool);
    all.extend(command_files::named(
        &tool.command,
        &tool.args,
        Path::new(start),
    ));
    all.retain(|path| path.is_absolute() && !path.is_dir());
    all.sort();
    all.dedup();
    all
}

/// What belongs to the program: the files that are named, and the folders they lie in. A folder that holds everything
/// (the root, a home, what lies hidden in one, a folder of the system's) is not its own. A script is the very file that was
/// registered: what became a link since leads to somebody else's.
fn own(tool: &CustomTool) -> Vec<PathBuf> {
    let real = |path: &Path| path.canonicalize().ok();
    let mut own = files(tool);
    own.retain(|file| *file == Path::new(&tool.command) || real(file).as_ref() == Some(file));
    let folders: Vec<PathBuf> = own
        .iter()
        .filter_map(|file| Some((file.parent()?, real(file.parent()?)?)))
        .filter(|(folder, real)| [*folder, real].into_iter().all(is_own_folder))
        .map(|(folder, _)| folder.to_path_buf())
        .collect();
    own.extend(folders);
    own.retain(|path| path.exists());
    own
}

fn is_own_folder(folder: &Path) -> bool {
    folder.components().count() > 3 && !folder.starts_with("/usr") && !holds_settings(folder)
}

/// Is this a folder in which programs of all kinds keep settings and keys, such as `.config` or `.ssh`? A folder below it
/// may be one program's own.
fn holds_settings(folder: &Path) -> bool {
    let hidden = |folder: &Path| {
        let name = folder.file_name().unwrap_or_default();
        name.to_string_lossy().starts_with('.') && name != ".toolcrib"
    };
    let shared = folder.ends_with(".local/share") || folder.ends_with(".local/state");
    hidden(folder) || shared
}

/// Differs when one of the files may have changed. Looks at the disk.
fn stamp(files: &[PathBuf]) -> String {
    use std::os::unix::fs::MetadataExt;
    let mut hash = Sha256::new();
    for file in files {
        let meta = std::fs::metadata(file).ok();
        // The time of the last change is nobody's to set.
        let seen = meta.map(|m| {
            let times = (m.mtime(), m.mtime_nsec(), m.ctime(), m.ctime_nsec());
            (m.dev(), m.ino(), m.len(), m.mode(), times)
        });
        hash.update(format!("{seen:?}"));
    }
    crate::hex(&hash.finalize()[..8])
}

/// What a yes to this registration is a yes to: how its program is started, what it declares, what its files hold.
/// Names of variables count, their values do not.
fn content_hash(tool: &CustomTool) -> String {
    let names: Vec<&String> = tool.env.0.keys().collect();
    let said = serde_json::json!([
        tool.command,
        tool.args,
        tool.working_dir,
        names,
        tool.permissions,
        tool.sandbox
    ]);
    let mut hash = Sha256::new();
    hash.update(said.to_string());
    for file in run_files(tool) {
        let regular = std::fs::metadata(&file)
            .ok()
            .filter(std::fs::Metadata::is_file);
        if let Some(digest) = regular.and_then(|meta| bundle::content(&file, &meta).ok()) {
            hash.update(digest);
        }
    }
    crate::hex(&hash.finalize())
}
