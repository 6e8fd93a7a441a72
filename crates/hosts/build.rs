//! Lists the files of each host, so that the binary carries them; bundles the TypeScript host, where Node is there.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let here = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let out = PathBuf::from(variable("OUT_DIR"));
    let sdk = here.join("../../sdk");
    let python = sdk.join("python/src");
    println!("cargo::rerun-if-changed={}", python.display());
    let mut listed = format!("static PYTHON_FILES: Files = {};\n", list(&python));
    let typescript = match bundle(&sdk.join("typescript"), &out.join("typescript")) {
        Ok(dist) => format!("Some({})", list(&dist)),
        Err(why) => {
            println!("cargo::warning=TypeScript tools are left out of this build: {why}");
            "None".to_owned()
        }
    };
    let _ = writeln!(
        listed,
        "static TYPESCRIPT_FILES: Option<Files> = {typescript};"
    );
    std::fs::write(out.join("files.rs"), listed).expect("the list of files is written");
}

/// Bundles the TypeScript host in a folder of the build's own; gives the folder with what it is made of.
fn bundle(sdk: &Path, work: &Path) -> Result<PathBuf, String> {
    for part in SOURCES {
        println!("cargo::rerun-if-changed={}", sdk.join(part).display());
    }
    println!("cargo::rerun-if-env-changed=PATH");
    let same_lock = std::fs::read(work.join(LOCK)).ok() == std::fs::read(sdk.join(LOCK)).ok();
    let installed = same_lock && work.join("node_modules").is_dir();
    for part in SOURCES {
        copy(&sdk.join(part), &work.join(part)).map_err(|error| format!("{part}: {error}"))?;
    }
    if !installed {
        run(
            "npm",
            &["ci", "--ignore-scripts", "--no-audit", "--no-fund"],
            work,
        )?;
    }
    run("node", &["build.mjs"], work)?;
    Ok(work.join("dist"))
}

/// The files that the bundle is made from.
const SOURCES: [&str; 6] = [
    "src",
    "build.mjs",
    "package.json",
    "tsconfig.json",
    "tsconfig.types.json",
    LOCK,
];
const LOCK: &str = "package-lock.json";

#[expect(clippy::disallowed_methods, reason = "a build runs what it needs")]
fn run(program: &str, args: &[&str], dir: &Path) -> Result<(), String> {
    let done = Command::new(program).args(args).current_dir(dir).output();
    let done = done.map_err(|error| format!("`{program}` can't be started: {error}"))?;
    if done.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&done.stderr).replace('\n', " ");
    Err(format!("`{program} {}` failed: {said}", args.join(" ")))
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    if !from.is_dir() {
        std::fs::create_dir_all(to.parent().unwrap_or(to))?;
        return std::fs::copy(from, to).map(drop);
    }
    let _ = std::fs::remove_dir_all(to);
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "cargo speaks to a build in variables"
)]
fn variable(name: &str) -> String {
    std::env::var(name).expect("cargo sets it")
}

/// The files below a folder, sorted, as a Rust list of names and contents.
fn list(folder: &Path) -> String {
    let mut files = Vec::new();
    walk(folder, &mut files);
    files.sort();
    let mut text = String::from("&[\n");
    for file in files {
        let name = file.strip_prefix(folder).expect("it lies in the folder");
        let path = file.canonicalize().expect("the file is there");
        let _ = writeln!(
            text,
            "    ({:?}, include_bytes!({path:?})),",
            name.to_string_lossy()
        );
    }
    text.push(']');
    text
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') || name == "__pycache__" || name.ends_with(".egg-info") {
            continue;
        }
        if path.is_dir() {
            walk(&path, files);
        } else {
            files.push(path);
        }
    }
}
