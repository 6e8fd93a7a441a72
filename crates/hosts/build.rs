//! Lists the files of each host, so that the binary carries them.

use std::fmt::Write;
use std::path::{Path, PathBuf};

fn main() {
    let here = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let sdk = here.join("../../sdk");
    let python = sdk.join("python/src");
    println!("cargo::rerun-if-changed={}", python.display());
    let listed = format!(
        "static PYTHON_FILES: &[(&str, &[u8])] = {};\n",
        list(&python, &[])
    );
    let out = PathBuf::from(variable("OUT_DIR")).join("files.rs");
    std::fs::write(out, listed).expect("the list of files is written");
}

fn variable(name: &str) -> String {
    std::env::var(name).expect("cargo sets it")
}

/// The files below a folder, sorted, as a Rust list of names and contents.
fn list(folder: &Path, passed_over: &[&str]) -> String {
    let mut files = Vec::new();
    walk(folder, passed_over, &mut files);
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

fn walk(folder: &Path, passed_over: &[&str], files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') || name == "__pycache__" || name.ends_with(".egg-info") {
            continue;
        }
        if passed_over.contains(&name.as_str()) {
            continue;
        }
        if path.is_dir() {
            walk(&path, passed_over, files);
        } else {
            files.push(path);
        }
    }
}
