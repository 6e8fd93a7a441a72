//! Programs of the project that a plugin's commands run. A yes to the plugin is a yes to them as they are, so they are
//! part of what a grant is bound to. What else a command names is data.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::template::{Dashes, Template};
use crate::beneath::base_folder;
use crate::executable::bundle;
use crate::{Place, command_files};

/// The files of the project that the commands in this text run: programs by their path, and scripts. Also those that are
/// not there yet.
pub fn paths(text: &[u8], place: &Place) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let (Some(project), Ok(written)) = (place.project.as_deref(), serde_json::from_slice(text))
    else {
        return found;
    };
    let written: Value = written;
    let tools = written.get("tools").and_then(Value::as_array);
    for handler in tools
        .into_iter()
        .flatten()
        .filter_map(|one| one.get("handler"))
    {
        let field = |key: &str| handler.get(key).and_then(Value::as_str);
        let command = field("command").map(|text| Template::parse(text, Dashes::Allowed));
        let start = base_folder(Some(project), field("cwd").unwrap_or("."));
        let (Some(Ok(command)), Some(start)) = (command, start) else {
            continue;
        };
        let program = command.program().unwrap_or_default();
        // A word that a placeholder decides is data, or a value that an option was given.
        let words: Vec<String> = command
            .words()
            .skip(1)
            .map(Option::unwrap_or_default)
            .collect();
        let own = program
            .contains('/')
            .then(|| start.join(&program).components().collect());
        let named = command_files::named(&program, &words, &start);
        let paths = own.into_iter().chain(named);
        found.extend(paths.filter(|path: &PathBuf| lies_in(path, project)));
    }
    found
}

/// Adds what these files hold.
pub fn add(mut hash: Sha256, paths: &BTreeSet<PathBuf>) -> Sha256 {
    for path in paths {
        hash.update([0]);
        hash.update(path.as_os_str().as_encoded_bytes());
        hash.update([0]);
        let meta = path.metadata().ok().filter(|meta| meta.is_file());
        match meta.map(|meta| bundle::content(path, &meta)) {
            Some(Ok(digest)) => hash.update(digest),
            Some(Err(error)) => hash.update(error.to_string()),
            None => {}
        }
    }
    hash
}

/// Does it really lie in the project? What is not there is judged by its text.
fn lies_in(path: &Path, project: &Path) -> bool {
    match (path.canonicalize(), project.canonicalize()) {
        (Ok(path), Ok(project)) => path.starts_with(project),
        _ => {
            path.starts_with(project) && !path.components().any(|part| part == Component::ParentDir)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_and_scripts_of_the_project_are_found_and_data_is_not() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let project = root.join("p");
        std::fs::create_dir_all(project.join("bin")).unwrap();
        for file in ["p/bin/run", "p/notes.md", "p/x.py", "out.py"] {
            std::fs::write(root.join(file), "").unwrap();
        }
        let place = crate::testing::place(Some(&project));
        let found = |command: &str, cwd: Option<&str>| -> Vec<String> {
            let handler = serde_json::json!({"type": "shell", "command": command, "cwd": cwd});
            let text = serde_json::json!({"tools": [{"handler": handler}]}).to_string();
            let paths = paths(text.as_bytes(), &place);
            let name = |path: &PathBuf| path.strip_prefix(&project).unwrap().display().to_string();
            paths.iter().map(name).collect()
        };
        assert_eq!(found("./bin/run {{x}}", None), ["bin/run"]);
        assert_eq!(found("./run", Some("bin")), ["bin/run"]);
        assert_eq!(
            found("uv run python3 -u x.py later.sh", None),
            ["later.sh", "x.py"]
        );
        let script = project.join("x.py").display().to_string();
        assert_eq!(found(&format!("python3 {script}"), None), ["x.py"]);
        let written = "node -r ./hook.cjs --import=x.mjs {{x}} y.js";
        assert_eq!(found(written, None), ["hook.cjs", "x.mjs", "y.js"]);
        for data in [
            "cat notes.md",
            "python3 ../out.py",
            "/bin/sh -c true",
            "git log",
            "x.py",
        ] {
            assert!(found(data, None).is_empty(), "{data}");
        }
        assert!(paths(b"[", &place).is_empty());
    }
}
