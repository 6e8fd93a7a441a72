//! Lists the files of each host and of each SDK's package, so that the binary carries them; bundles the TypeScript host, where Node is there.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let here = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let out = PathBuf::from(variable("OUT_DIR"));
    let sdk = here.join("../../sdk");
    let python = sdk.join("python/src");
    println!("cargo::rerun-if-changed={}", python.display());
    let (mut types, mut typescript) = (Vec::new(), "None".to_owned());
    match bundle(&sdk.join("typescript"), &out.join("typescript")) {
        Ok(dist) => {
            let (declared, run) = files(&dist).into_iter().partition(is_for_editors);
            types = declared;
            typescript = format!("Some({})", list(run));
        }
        Err(why) => {
            println!("cargo::warning=TypeScript tools are left out of this build: {why}");
        }
    }
    let mut listed = String::new();
    for (name, kind, files) in [
        ("PYTHON_FILES", "Files", list(files(&python))),
        ("TYPESCRIPT_FILES", "Option<Files>", typescript),
        ("TYPESCRIPT_TYPES", "Files", list(types)),
        (
            "PYTHON_ABOUT",
            "Files",
            about(&sdk.join("python"), "pyproject.toml"),
        ),
        (
            "TYPESCRIPT_ABOUT",
            "Files",
            about(&sdk.join("typescript"), "package.json"),
        ),
    ] {
        let _ = writeln!(listed, "static {name}: {kind} = {files};");
    }
    std::fs::write(out.join("files.rs"), listed).expect("the list of files is written");
}

/// What a package says of itself: its manifest, its page, its licences.
fn about(sdk: &Path, manifest: &str) -> String {
    let own = [manifest, "README.md"].map(|name| (name.to_owned(), sdk.join(name)));
    let licences = ["LICENSE-APACHE", "LICENSE-MIT"]
        .map(|name| (name.to_owned(), sdk.join("../..").join(name)));
    let files: Vec<_> = own.into_iter().chain(licences).collect();
    for (_, path) in &files {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    list(files)
}

/// Types and what belongs to them: nothing that runs.
fn is_for_editors((name, _): &(String, PathBuf)) -> bool {
    name.ends_with(".d.ts") || name.ends_with(".d.cts") || name.ends_with("LICENSE")
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

/// The files below a folder, sorted, with the names they have there.
fn files(folder: &Path) -> Vec<(String, PathBuf)> {
    let mut paths = Vec::new();
    walk(folder, &mut paths);
    paths.sort();
    let named = paths.into_iter().map(|path| {
        let name = path.strip_prefix(folder).expect("it lies in the folder");
        (name.to_string_lossy().into_owned(), path)
    });
    named.collect()
}

/// Files as a Rust list of names and contents.
fn list(files: Vec<(String, PathBuf)>) -> String {
    let mut text = String::from("&[\n");
    for (name, path) in files {
        let path = path.canonicalize().expect("the file is there");
        let _ = writeln!(text, "    ({name:?}, include_bytes!({path:?})),");
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
