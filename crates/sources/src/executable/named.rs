//! Files that a `tool.json` names: its program, the first argument that is no option, and what else among the arguments is
//! run ([`command_files`]). They are the tool wherever they lie, also where the hash of its folder does not look: in hidden folders, in what
//! a build leaves, behind a link. A yes to the tool is a yes to them as they are. Other arguments are data.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::MANIFEST;
use super::bundle::{self, Part};
use crate::{command_files, plugin};

/// The files that this `tool.json` of a folder names and that are not among the folder's parts. Programs of the machine are
/// none: only what really lies in the folder or in the project changes with the tool.
pub fn files(folder: &Path, manifest: &[u8], parts: &[Part], project: Option<&Path>) -> Vec<Part> {
    let Ok(written) = serde_json::from_slice::<Value>(manifest) else {
        return Vec::new();
    };
    let text = |key: &str| written.get(key).and_then(Value::as_str);
    let start = folder.join(text("workingDir").unwrap_or_default());
    let args = written.get("args").and_then(Value::as_array);
    let args = args.into_iter().flatten().filter_map(Value::as_str);
    let args: Vec<String> = args.map(str::to_owned).collect();
    let first = args.iter().find(|arg| !arg.starts_with('-'));
    let command = text("command");
    let own = command.filter(|command| command.contains('/'));
    let named = own.into_iter().chain(first.map(String::as_str));
    let named = named.filter(|one| !one.is_empty() && !one.contains('\0'));
    let named = named.flat_map(|one| [folder.join(one), start.join(one)]);
    let run =
        [folder, &start].map(|from| command_files::named(command.unwrap_or_default(), &args, from));
    let paths = named.chain(run.into_iter().flatten());
    let roots: Vec<PathBuf> = [Some(folder), project]
        .into_iter()
        .flatten()
        .filter_map(|root| root.canonicalize().ok())
        .collect();
    let mut found: Vec<Part> = Vec::new();
    for path in paths {
        let known = |part: &Part| part.path == path;
        if parts.iter().any(known) || found.iter().any(known) {
            continue;
        }
        let real = path.canonicalize().ok();
        let real = real.filter(|real| roots.iter().any(|root| real.starts_with(root)));
        let meta = real.and_then(|real| real.metadata().ok());
        if let Some(meta) = meta.filter(|meta| meta.is_file()) {
            found.push(Part { path, meta });
        }
    }
    found
}

/// The same for the folder's own `tool.json`, as it is on the disk.
pub fn of(folder: &Path, parts: &[Part], project: Option<&Path>) -> Vec<Part> {
    let path = folder.join(MANIFEST);
    let mut text = Vec::new();
    if parts.iter().any(|part| part.path == path) {
        let opened = File::options()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(&path);
        // What can't be read is reported when the tool is read.
        let read =
            opened.and_then(|file| file.take(plugin::MAX_FILE as u64).read_to_end(&mut text));
        drop(read);
    }
    files(folder, &text, parts, project)
}

/// The hash of a tool that is made of these files too.
pub fn with(hash: [u8; 32], files: &[Part]) -> [u8; 32] {
    if files.is_empty() {
        return hash;
    }
    let mut all = Sha256::new();
    all.update(hash);
    for part in files {
        all.update(part.path.as_os_str().as_encoded_bytes());
        all.update([0]);
        match bundle::content(&part.path, &part.meta) {
            Ok(digest) => all.update(digest),
            Err(error) => all.update(error.to_string()),
        }
    }
    all.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_manifest_names_is_found_where_nobody_else_looks() {
        let root = tempfile::tempdir().unwrap();
        let (project, folder) = (root.path().join("p"), root.path().join("p/tools/t"));
        for file in ["tools/t/target/run", "tools/t/.bin/x", "lib/y", "outside"] {
            let path = project.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        std::fs::rename(project.join("outside"), root.path().join("outside")).unwrap();
        std::os::unix::fs::symlink("../../lib/y", folder.join("link")).unwrap();
        let found = |manifest: &str| -> Vec<String> {
            let files = files(&folder, manifest.as_bytes(), &[], Some(&project));
            let name = |part: &Part| part.path.file_name().unwrap().to_str().unwrap().to_owned();
            files.iter().map(name).collect()
        };
        assert_eq!(found(r#"{"command": "./target/run"}"#), ["run"]);
        let args = r#"{"command": "python3", "args": ["-u", ".bin/x", "../../lib/y"]}"#;
        assert_eq!(found(args), ["x"], "what comes behind the script is data");
        assert_eq!(found(r#"{"command": "sh", "args": ["link"]}"#), ["link"]);
        let late =
            r#"{"command": "python3", "args": ["-W", "ignore", "../../lib/y", "tool.json"]}"#;
        assert_eq!(found(late), ["y"], "an option's value is no script");
        let there = r#"{"command": "sh", "workingDir": "../../lib", "args": ["y"]}"#;
        assert_eq!(found(there), ["y"]);
        for machine in ["/bin/sh", "../../../outside", "target", "run"] {
            let text = serde_json::json!({"command": machine}).to_string();
            assert!(found(&text).is_empty(), "{machine}");
        }
        assert!(found("[]").is_empty() && found("{").is_empty());
    }
}
