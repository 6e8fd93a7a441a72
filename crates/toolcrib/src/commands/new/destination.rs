//! Where a new tool goes, and when it may not go there.

use std::io;
use std::path::{Path, PathBuf};

use toolcrib_core::words::CommandLine;
use toolcrib_core::{ErrorCode, Hint, SourceKind, ToolName};

use crate::commands::Scene;
use crate::config::{Project, project, project::MARKER};
use crate::env::Env;
use crate::failure::Failure;
use crate::open::Opened;

pub fn global_folder(env: &Env) -> Result<PathBuf, Failure> {
    let config = env.config_folder().ok_or_else(|| {
        Failure::new(
            ErrorCode::BadRequest,
            "there is no home directory with tools for every project",
        )
        .hint("set HOME or XDG_CONFIG_HOME")
    })?;
    Ok(config.join("tools"))
}

pub fn local_folder(opened: &Opened, scene: &Scene, name: &ToolName) -> Result<PathBuf, Failure> {
    let Some(project) = &opened.project else {
        let message = format!(
            "there is no project around `{}`",
            scene.env.directory.display()
        );
        let new = CommandLine::new("toolcrib new")
            .operand(name)
            .switch("--global");
        let large = project::is_too_large(&scene.env.directory, &scene.env);
        let (message, before) = match large {
            true => (
                format!("{message}: a home directory and the root are never one"),
                "go to a folder of your project and say it there, or make a tool for every project: ",
            ),
            false => (
                message,
                "make one here with `toolcrib init`, or a tool for every project: ",
            ),
        };
        return Err(
            Failure::new(ErrorCode::BadRequest, message).hint(Hint::run(new).before(before))
        );
    };
    let marker = project.root.join(MARKER);
    let tools = marker.join("tools");
    if !opened.trust.is_trusted() {
        refuse_way_out(project, &marker)?;
        refuse_way_out(project, &tools)?;
    }
    Ok(tools)
}

/// Nothing is written where a link of a project that nobody trusted leads to.
pub fn refuse_way_out(project: &Project, folder: &Path) -> Result<(), Failure> {
    let inside = match folder.symlink_metadata() {
        Err(_) => true,
        Ok(_) => folder
            .canonicalize()
            .is_ok_and(|real| real.starts_with(&project.root)),
    };
    if inside {
        return Ok(());
    }
    let message = format!(
        "`{}` leads out of the project, which is not trusted",
        folder.display()
    );
    Err(Failure::new(ErrorCode::Denied, message)
        .hint("check where the link leads, then run `toolcrib trust`"))
}

pub fn make_folder(folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|error| unwritable(folder, error))
}

/// Refuses a name that a file of the folder, or a tool in one, has already.
pub async fn refuse_taken(opened: &Opened, tools: &Path, name: &ToolName) -> Result<(), Failure> {
    let entries = match std::fs::read_dir(tools) {
        Ok(entries) => Some(entries),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(unwritable(tools, error)),
    };
    for entry in entries.into_iter().flatten().flatten() {
        let file = entry.file_name();
        let stem = file.to_str().map(|f| f.split_once('.').map_or(f, |f| f.0));
        if stem == Some(name.as_str()) {
            return Err(taken(name, &entry.path()));
        }
    }
    let _sources = opened.load_all().await;
    let view = opened.crib.owners_view();
    let mut found = view.tools().filter(|tool| tool.name() == name.as_str());
    match found.find(|tool| tool.source == SourceKind::Builtin || lies_in(&tool.file, tools)) {
        Some(tool) if tool.source == SourceKind::Builtin => {
            let message = format!("`{name}` is a tool that comes with Toolcrib");
            Err(Failure::new(ErrorCode::Conflict, message).hint("take another name"))
        }
        Some(tool) => Err(taken(name, tool.file.as_deref().unwrap_or(tools))),
        None => Ok(()),
    }
}

fn lies_in(file: &Option<PathBuf>, folder: &Path) -> bool {
    file.as_ref().is_some_and(|file| file.starts_with(folder))
}

pub fn taken(name: &ToolName, by: &Path) -> Failure {
    Failure::new(
        ErrorCode::Conflict,
        format!("the name `{name}` is taken by `{}`", by.display()),
    )
    .hint("take another name, or change what is there")
}

pub fn unwritable(path: &Path, error: io::Error) -> Failure {
    Failure::new(
        ErrorCode::Unavailable,
        format!("`{}` can't be written", path.display()),
    )
    .cause(error)
    .hint("check the folder's permissions and free space")
}
