//! A script with the files beside it that it imports: all that is scanned, hashed, kept and run.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::str::Utf8Error;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use toolcrib_core::{ErrorType, Problem};
use toolcrib_scan::{BUDGET, Cause, Finding, Position, SyntaxError};

use super::language::{Language, OnlyIn, Outline, Wanted};
use crate::entry::is_passed_over;

/// The longest text of one file.
pub const MAX_TEXT: u64 = BUDGET.bytes as u64;
/// How many files one script may import from beside it, and how much text they may hold together.
const MAX_FILES: usize = 200;
const MAX_ALL: usize = 4 * 1_024 * 1_024;

/// How much of what lies around a script belongs to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Around {
    /// What it imports from beside it, and the packages above it.
    #[default]
    Trusted,
    /// Nothing: it is a file that is trusted by itself.
    Nothing,
    /// This folder, which is trusted by itself.
    Folder(PathBuf),
}

impl Around {
    /// May this file be part of the script at `file`?
    pub fn has(&self, file: &Path) -> bool {
        match self {
            Around::Trusted => true,
            Around::Nothing => false,
            Around::Folder(folder) => file.starts_with(folder),
        }
    }
}

/// A script: its own text and those of the files that it imports from beside it.
pub struct Script {
    pub language: &'static dyn Language,
    /// What its tools are called after where they have no name: the file's name without suffix, or the folder's.
    pub stem: String,
    pub file: PathBuf,
    pub around: Around,
    texts: BTreeMap<PathBuf, Text>,
    /// What the file beside it says of the packages it needs.
    pub requirements: Option<String>,
    /// Hash of everything else that it may depend on.
    beside: Option<[u8; 32]>,
    /// What could not be taken in.
    troubles: Vec<(PathBuf, String)>,
}

struct Text {
    text: String,
    outline: Result<Outline, SyntaxError>,
    /// Which file each import means that has to be told.
    resolved: BTreeMap<String, PathBuf>,
}

/// What is kept of a good version.
#[derive(Serialize, Deserialize)]
struct GoodVersion {
    texts: BTreeMap<PathBuf, String>,
    requirements: Option<String>,
}

impl Script {
    /// Takes a script in with what it imports. `read` gives the bytes of a file, where there is one.
    pub fn gather(
        language: &'static dyn Language,
        stem: &str,
        file: &Path,
        text: &[u8],
        around: Around,
        read: impl Fn(&Path) -> Option<Vec<u8>>,
    ) -> Script {
        let read = |path: &Path| around.has(path).then(|| read(path))?;
        let mut script = Script {
            language,
            stem: stem.to_owned(),
            file: file.to_path_buf(),
            around: around.clone(),
            texts: BTreeMap::new(),
            requirements: None,
            beside: None,
            troubles: Vec::new(),
        };
        let root = file.parent().unwrap_or(Path::new("/"));
        let mut size = text.len();
        // What was asked for and is there, and what is not: nothing is looked for twice.
        let mut known = HashSet::from([file.to_path_buf()]);
        let mut missing = HashSet::new();
        let mut waiting = vec![(file.to_path_buf(), text.to_vec())];
        while let Some((path, bytes)) = waiting.pop() {
            for wanted in script.take_in(&path, bytes, root) {
                let there = |choice: &PathBuf| {
                    if known.contains(choice) {
                        return Some((choice.clone(), None));
                    }
                    if missing.contains(choice) {
                        return None;
                    }
                    let bytes = read(choice);
                    if bytes.is_none() {
                        missing.insert(choice.clone());
                    }
                    Some((choice.clone(), Some(bytes?)))
                };
                let Some((found, bytes)) = wanted.choices.iter().find_map(there) else {
                    continue;
                };
                if let (Some(specifier), Some(text)) =
                    (wanted.specifier, script.texts.get_mut(&path))
                {
                    text.resolved.insert(specifier, found.clone());
                }
                let Some(bytes) = bytes else { continue };
                size += bytes.len();
                if known.len() >= MAX_FILES || size > MAX_ALL {
                    let what = format!(
                        "imports more than {MAX_FILES} files or {MAX_ALL} bytes from beside it"
                    );
                    script.troubles.push((file.to_path_buf(), what));
                    waiting.clear();
                    break;
                }
                known.insert(found.clone());
                waiting.push((found, bytes));
            }
        }
        let beside = read(&root.join(language.requirements_file()));
        script.requirements = beside.and_then(|bytes| String::from_utf8(bytes).ok());
        script
    }

    /// A good version that was kept, as far as it belongs to the script.
    pub fn kept(
        language: &'static dyn Language,
        stem: &str,
        file: &Path,
        kept: &[u8],
        around: Around,
    ) -> Option<Script> {
        let kept: GoodVersion = serde_json::from_slice(kept).ok()?;
        let main = kept.texts.get(file)?.as_bytes();
        let read = |path: &Path| Some(kept.texts.get(path)?.as_bytes().to_vec());
        let beside = around.has(&file.with_file_name(language.requirements_file()));
        let mut script = Script::gather(language, stem, file, main, around, read);
        script.requirements = kept.requirements.filter(|_| beside);
        Some(script)
    }

    /// What is to be kept of it, should it turn out to be good.
    pub fn keep(&self) -> Vec<u8> {
        let texts = self.texts.iter();
        let kept = GoodVersion {
            texts: texts
                .map(|(path, one)| (path.clone(), one.text.clone()))
                .collect(),
            requirements: self.requirements.clone(),
        };
        serde_json::to_vec(&kept).unwrap_or_default()
    }

    /// It lies in a folder of its own, whose other files may matter too.
    pub fn beside(mut self, hash: [u8; 32]) -> Script {
        self.beside = Some(hash);
        self
    }

    /// Adds a file's text and gives what it imports.
    fn take_in(&mut self, path: &Path, bytes: Vec<u8>, root: &Path) -> Vec<Wanted> {
        if bytes.len() as u64 > MAX_TEXT {
            let what = format!("is larger than the {MAX_TEXT} bytes that a tool file may have");
            self.troubles.push((path.to_path_buf(), what));
            return Vec::new();
        }
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let what = not_utf8(error.as_bytes(), error.utf8_error());
                self.troubles.push((path.to_path_buf(), what));
                return Vec::new();
            }
        };
        // A byte order mark is no part of the text.
        let text = text
            .strip_prefix('\u{feff}')
            .map(str::to_owned)
            .unwrap_or(text);
        let mut outline = self.language.outline(&text, path, root);
        let imports = match &mut outline {
            Ok(outline) => std::mem::take(&mut outline.imports),
            Err(_) => Vec::new(),
        };
        let text = Text {
            text,
            outline,
            resolved: BTreeMap::new(),
        };
        self.texts.insert(path.to_path_buf(), text);
        imports
    }

    /// The files it is made of.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.texts.keys().map(PathBuf::as_path)
    }

    /// Each file's path and text.
    pub fn texts(&self) -> impl Iterator<Item = (&Path, &str)> {
        let texts = self.texts.iter();
        texts.map(|(path, one)| (path.as_path(), one.text.as_str()))
    }

    fn outline(&self) -> Option<&Outline> {
        self.texts.get(&self.file)?.outline.as_ref().ok()
    }

    /// The tools that its text shows: their names and descriptions.
    pub fn declared(&self) -> impl Iterator<Item = (String, Option<&str>)> {
        let tools = self
            .outline()
            .into_iter()
            .flat_map(|outline| &outline.tools);
        tools.map(|declared| {
            let name = self.language.tool_name(declared, &self.stem);
            (name, declared.description.as_deref())
        })
    }

    /// Does its text show that it has tools?
    pub fn has_tools(&self) -> bool {
        self.declared().next().is_some()
    }

    /// The script's own text.
    fn own_text(&self) -> &str {
        let text = self.texts.get(&self.file);
        text.map_or("", |one| one.text.as_ref())
    }

    /// Is it a program that speaks the protocol itself, rather than a file with tools for the host?
    pub fn is_program(&self) -> bool {
        let text = self.own_text();
        let speaks = ["jsonrpc", "initialize", "execute"];
        text.starts_with("#!") && !self.has_tools() && speaks.iter().all(|word| text.contains(word))
    }

    /// What a file without tools is instead, where its text tells, and what to do about it.
    pub fn something_else(&self) -> Option<(&'static str, &'static str)> {
        let text = self.own_text();
        let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
        let imports = |module: &str| {
            let mut lines = text.lines().map(str::trim_start);
            lines.any(|line| {
                let line = line.strip_prefix("from ").or(line.strip_prefix("import "));
                line.is_some_and(|line| line.starts_with(module))
            })
        };
        let server = imports("fastmcp")
            || imports("mcp.server")
            || has(&[
                "@modelcontextprotocol/sdk/server",
                "from \"fastmcp\"",
                "from 'fastmcp'",
            ]);
        if server {
            return Some((
                "it is an MCP server, and not a file of tools",
                "servers of others come in a later version; until then connect your agents to it directly, or make its functions tools (docs/guides/python-tool.md, typescript-tool.md)",
            ));
        }
        let unmarked = imports("toolcrib") && text.contains("def ") && !text.contains("@tool");
        unmarked.then_some((
            "it imports `toolcrib` and marks no function as a tool",
            "write `@tool` on the line above the function; a file that only helps others is called `_name.py`",
        ))
    }

    /// That it has no tool, unless it is empty.
    pub fn without_tools(&self) -> Option<Box<Problem>> {
        let (what, hint) = self.language.without_tools();
        let problem = Problem::error(self.language.source(), ErrorType::Validation, what);
        let problem = problem.hint(hint).file(&self.file).note();
        (!self.own_text().trim().is_empty()).then(|| Box::new(problem))
    }

    /// Can there be a tool in it at all?
    pub fn may_have_tools(&self) -> bool {
        let word = self.language.word().as_bytes();
        let text = self.texts.get(&self.file);
        let mut words = text
            .into_iter()
            .flat_map(|one| one.text.as_bytes().windows(word.len()));
        words.any(|one| one.eq_ignore_ascii_case(word))
    }

    /// Where one of its texts uses what only this runtime has.
    pub fn only_in(&self, runtime: &str) -> Option<Position> {
        let outlines = self.texts.values().flat_map(|one| &one.outline);
        let mut places = outlines.filter_map(|outline| outline.only_in);
        places
            .find(|place: &OnlyIn| place.runtime == runtime)
            .map(|place| place.at)
    }

    /// Which file each import means that has to be told: importer, specifier, file.
    pub fn resolved(&self) -> impl Iterator<Item = (&Path, &str, &Path)> {
        self.texts.iter().flat_map(|(path, one)| {
            let resolved = one.resolved.iter();
            resolved.map(move |(specifier, meant)| {
                (path.as_path(), specifier.as_str(), meant.as_path())
            })
        })
    }

    /// The packages that it needs: those it names itself, else those of the file beside it.
    pub fn packages(&self) -> Option<Result<&str, &str>> {
        let own = self
            .outline()
            .and_then(|outline| outline.requirements.as_ref());
        match own {
            Some(own) => Some(own.as_ref().map(String::as_str).map_err(String::as_str)),
            None => self.requirements.as_deref().map(Ok),
        }
    }

    /// What the scan found, in the order of files. A file that is a tool of its own tells of itself.
    pub fn findings(&self) -> impl Iterator<Item = (&Path, &Finding)> {
        let own = self
            .texts
            .iter()
            .filter(|(path, _)| !self.is_neighbour(path));
        own.flat_map(|(path, one)| {
            let found = one.outline.iter().flat_map(|outline| &outline.findings);
            found.map(|finding| (path.as_path(), finding))
        })
    }

    /// Is it another entry of the same tools folder?
    fn is_neighbour(&self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        path != self.file && path.parent() == self.file.parent() && !is_passed_over(&name)
    }

    /// What keeps it from being run.
    pub fn problems(&self) -> Vec<Problem> {
        let source = self.language.source();
        let language = self.language.name();
        let troubles = self.troubles.iter().map(|(path, what)| {
            Problem::error(source, ErrorType::Syntax, format!("the file {what}"))
                .file(path)
                .hint("save it as UTF-8, and split what is too large")
        });
        let texts = self.texts.iter();
        let errors = texts.filter_map(|(path, one)| {
            let error = one.outline.as_ref().err()?;
            let (message, hint) = match error.cause {
                Cause::Language => (
                    format!("it is not valid {language}: {}", error.message),
                    "fix this line and save",
                ),
                Cause::Budget => (
                    format!("it takes too much to scan: {}", error.message),
                    "make it smaller or simpler; `toolcrib help scan` lists what a file may hold",
                ),
            };
            let problem = Problem::error(source, ErrorType::Syntax, message)
                .file(path)
                .at(error.at.line as usize, error.at.column as usize);
            Some(problem.hint(hint))
        });
        troubles.chain(errors).collect()
    }

    /// Differs wherever a text does that it is made of.
    pub fn hash(&self) -> String {
        let mut hash = Sha256::new();
        let mut add = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        for (path, one) in &self.texts {
            add(path.as_os_str().as_encoded_bytes());
            add(one.text.as_bytes());
        }
        for (path, what) in &self.troubles {
            add(path.as_os_str().as_encoded_bytes());
            add(what.as_bytes());
        }
        add(self.requirements.as_deref().unwrap_or_default().as_bytes());
        add(&self.beside.unwrap_or_default());
        crate::hex(&hash.finalize())
    }

    /// What runs, as a person reads it.
    pub fn shown(&self) -> String {
        let name = self.file.file_name().unwrap_or_default().to_string_lossy();
        format!("{} {name}", self.language.name())
    }
}

fn not_utf8(bytes: &[u8], error: Utf8Error) -> String {
    let before = &bytes[..error.valid_up_to()];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    format!("is not UTF-8: line {line} has bytes that are not a character")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gathered(text: &str, read: impl Fn(&Path) -> Option<Vec<u8>>) -> Script {
        Script::gather(
            &crate::script::python::Python,
            "x",
            Path::new("/tools/x.py"),
            text.as_bytes(),
            Around::Trusted,
            read,
        )
    }

    #[test]
    fn no_more_files_are_read_than_a_script_may_have() {
        let count = std::cell::Cell::new(0);
        let names: Vec<String> = (0..1_000)
            .map(|number| format!("import m{number}\n"))
            .collect();
        let script = gathered(&names.concat(), |path| {
            let is_module = path.extension().is_some_and(|suffix| suffix == "py")
                && !path.ends_with("__init__.py");
            is_module.then(|| {
                count.set(count.get() + 1);
                vec![b'\n'; 1_000]
            })
        });
        assert_eq!(count.get(), MAX_FILES);
        let problems = script.problems();
        assert_eq!(problems.len(), 1);
        assert!(problems[0].message.contains("more than 200 files"));
    }

    #[test]
    fn a_file_that_is_not_there_is_looked_for_once() {
        let count = std::cell::Cell::new(0);
        gathered(&"import a.b\n".repeat(500), |_| {
            count.set(count.get() + 1);
            None
        });
        // Two packages, each a file or a folder, and the list of requirements.
        assert_eq!(count.get(), 5);
    }

    #[test]
    fn a_text_that_takes_too_much_is_a_problem_with_its_place() {
        let text = format!("x = 1\nimport a{}\n", ".a".repeat(10_000));
        let problems = gathered(&text, |_| None).problems();
        assert_eq!(problems.len(), 1);
        let problem = &problems[0];
        assert!(
            problem.message.starts_with("it takes too much to scan: "),
            "{}",
            problem.message
        );
        assert_eq!(problem.line, Some(2));
        assert!(problem.hint.to_string().contains("toolcrib help scan"));
    }
}
