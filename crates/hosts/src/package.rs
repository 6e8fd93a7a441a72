//! The SDKs as packages that `pip` and `npm` install without a network, for people's editors and tests: what tool files import,
//! without the host. Tools that Toolcrib runs never need them.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use crate::archive::{Entry, MARK, tar_gz, zip};
use crate::{
    Files, PYTHON_ABOUT, PYTHON_FILES, TYPESCRIPT_ABOUT, TYPESCRIPT_FILES, TYPESCRIPT_TYPES,
};

/// What Python tool files import.
const PYTHON_PACKAGE: &str = "toolcrib/";
/// What the bundle for TypeScript is made of; the rest of that folder is the host.
const TYPESCRIPT_PACKAGE: [&str; 3] = ["plugin.js", "plugin.cjs", "locales.cjs"];

/// A package as one file.
pub struct Package {
    pub name: String,
    pub version: String,
    /// The name that the file must have, by the rules of `pip` and `npm`.
    pub file: String,
    pub bytes: Vec<u8>,
}

/// Was this file written by Toolcrib, in this version or another?
pub fn is_ours(bytes: &[u8]) -> bool {
    // At the end of a zip file, at the head of a gzip file.
    let head = bytes.get(10..).unwrap_or_default();
    bytes.ends_with(MARK.as_bytes()) || head.starts_with(MARK.as_bytes())
}

/// The wheel for Python.
pub fn python() -> Package {
    let manifest = text(PYTHON_ABOUT, "pyproject.toml");
    let [name, version, summary, python, licence] = [
        "name = ",
        "version = ",
        "description = ",
        "requires-python = ",
        "license = { text = ",
    ]
    .map(|key| value(manifest, key));
    let readme = text(PYTHON_ABOUT, "README.md");
    let metadata = format!(
        "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: {summary}\nLicense: {licence}\n\
        Requires-Python: {python}\nDescription-Content-Type: text/markdown\n\n{readme}"
    );
    let wheel =
        "Wheel-Version: 1.0\nGenerator: toolcrib\nRoot-Is-Purelib: true\nTag: py3-none-any\n";
    let info = format!("{name}-{version}.dist-info");
    let sources = PYTHON_FILES
        .iter()
        .filter(|(name, _)| name.starts_with(PYTHON_PACKAGE));
    let mut entries: Vec<Entry> = sources
        .map(|(name, content)| ((*name).to_owned(), *content))
        .collect();
    for (name, content) in licences(PYTHON_ABOUT) {
        entries.push((format!("{info}/licenses/{name}"), content));
    }
    entries.push((format!("{info}/METADATA"), metadata.as_bytes()));
    entries.push((format!("{info}/WHEEL"), wheel.as_bytes()));
    let record = record(&entries, &info);
    entries.push((format!("{info}/RECORD"), record.as_bytes()));
    Package {
        name: name.to_owned(),
        version: version.to_owned(),
        file: format!("{name}-{version}-py3-none-any.whl"),
        bytes: zip(&entries),
    }
}

/// What a wheel says of each of its files.
fn record(entries: &[Entry], info: &str) -> String {
    let line = |(name, content): &Entry| {
        let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(content));
        format!("{name},sha256={hash},{}\n", content.len())
    };
    let lines: String = entries.iter().map(line).collect();
    format!("{lines}{info}/RECORD,,\n")
}

/// The tarball for Node, Bun and Deno; none where the build had no Node.
pub fn typescript() -> Option<Package> {
    let manifest = text(TYPESCRIPT_ABOUT, "package.json");
    let [name, version] = ["\"name\": ", "\"version\": "].map(|key| value(manifest, key));
    let bundle = TYPESCRIPT_FILES?
        .iter()
        .filter(|(name, _)| TYPESCRIPT_PACKAGE.contains(name));
    let built = bundle
        .chain(TYPESCRIPT_TYPES)
        .map(|(name, content)| (format!("package/dist/{name}"), *content));
    let about = TYPESCRIPT_ABOUT
        .iter()
        .map(|(name, content)| (format!("package/{name}"), *content));
    let entries: Vec<Entry> = about.chain(built).collect();
    Some(Package {
        name: name.to_owned(),
        version: version.to_owned(),
        // As `npm pack` calls it.
        file: format!(
            "{}-{version}.tgz",
            name.trim_start_matches('@').replace('/', "-")
        ),
        bytes: tar_gz(&entries),
    })
}

fn licences(files: Files) -> impl Iterator<Item = (&'static str, &'static [u8])> {
    let files = files.iter().copied();
    files.filter(|(name, _)| name.starts_with("LICENSE"))
}

/// A file's text; empty where it is none.
fn text(files: Files, name: &str) -> &'static str {
    let file = files.iter().find(|(known, _)| *known == name);
    file.and_then(|(_, content)| std::str::from_utf8(content).ok())
        .unwrap_or_default()
}

/// What stands in quotes behind the first of these keys.
fn value<'a>(manifest: &'a str, key: &str) -> &'a str {
    let line = manifest
        .lines()
        .find_map(|line| line.trim_start().strip_prefix(key));
    line.and_then(|line| line.split('"').nth(1))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_has_the_version_of_the_binary_and_the_name_that_its_installer_wants() {
        let version = env!("CARGO_PKG_VERSION");
        let (python, typescript) = (python(), typescript().unwrap());
        assert_eq!(python.file, format!("toolcrib-{version}-py3-none-any.whl"));
        assert_eq!(typescript.file, format!("toolcrib-plugin-{version}.tgz"));
        assert_eq!(typescript.name, "@toolcrib/plugin");
        for package in [&python, &typescript] {
            assert_eq!(package.version, version);
        }
    }

    #[test]
    fn what_toolcrib_wrote_is_known_again() {
        assert!(is_ours(&python().bytes));
        assert!(is_ours(&typescript().unwrap().bytes));
        for other in [&b""[..], b"PK\x05\x06", &[0x1f; 100]] {
            assert!(!is_ours(other));
        }
    }

    #[test]
    fn metadata_is_what_the_manifest_says() {
        let wheel = python().bytes;
        let wheel = String::from_utf8_lossy(&wheel);
        for line in [
            "\nName: toolcrib\n",
            "\nSummary: Python functions as tools for AI agents\n",
            "\nLicense: MIT OR Apache-2.0\n",
            "\nRequires-Python: >=3.9\n",
        ] {
            assert!(wheel.contains(line), "{line}");
        }
        assert!(wheel.contains("toolcrib/py.typed"));
        assert!(
            !wheel.contains("toolcrib_host/"),
            "the host is no part of it"
        );
    }
}
