//! `search-code`: lines of the project that hold a text or fit a pattern, as ripgrep finds them.
//!
//! The walk goes by names and follows no link; each file is then opened below the project by the kernel, so whatever
//! was swapped on the way, no line comes from elsewhere.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};
use ignore::overrides::{Override, OverrideBuilder};
use ignore::{DirEntry, WalkBuilder, WalkState};
use serde_json::json;
use toolcrib_core::words::counted;
use toolcrib_core::{BoxFuture, Call, CallError, CallResult, Outcome, Run};

use super::near::near;
use super::{Builtin, Effects, Switch, flag, number, off_the_runtime, project, text};
use crate::{Place, beneath};

mod open;

use open::{Root, Watched};

const DEFAULT_LIMIT: u64 = 10;
const MAX_LIMIT: u64 = 100;
/// Beyond this many matches the answer begins with their number.
const MANY: u64 = 50;
/// What is shown of a line, in bytes, and how much of it before the match.
const LONGEST_LINE: usize = 250;
const BEFORE: usize = 40;
/// The longest line that is searched in, and the largest compiled pattern.
const LINE_LIMIT: usize = 16 * 1_024 * 1_024;
const PATTERN_LIMIT: usize = 10 * 1_024 * 1_024;
const LONGEST_QUERY: usize = 1_000;
/// Threads of one search.
const MAX_THREADS: usize = 8;

struct SearchCode {
    place: Arc<Place>,
}

pub(super) fn tool(place: &Arc<Place>) -> Builtin {
    Builtin {
        name: "search-code",
        title: "Search code",
        description: "Search the project's files for text or a regular expression, skipping what .gitignore names.",
        parameters: json!({
            "query": {"type": "string", "minLength": 1, "maxLength": LONGEST_QUERY, "description": "The text to look for."},
            "path": {"type": "string", "description": "Only in this folder or file of the project."},
            "glob": {"type": "string", "maxLength": 500, "description": "Only files that fit, such as *.rs or !*.min.js."},
            "regex": {"type": "boolean", "default": false, "description": "Read the query as a regular expression."},
            "caseSensitive": {"type": "boolean", "default": false, "description": "Tell capital letters from small ones."},
            "limit": {
                "type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT,
                "description": "How many matching lines to show at most.",
            },
        }),
        required: &["query"],
        effects: Effects::Looks,
        switch: Switch::On,
        run: Arc::new(SearchCode {
            place: place.clone(),
        }),
    }
}

impl Run for SearchCode {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, CallResult> {
        Box::pin(self.search(call))
    }
}

impl SearchCode {
    async fn search(&self, call: &Call) -> CallResult {
        let project = project(&self.place)?.to_path_buf();
        let query = text(call, "query").unwrap_or_default().to_owned();
        let matcher = matcher(&query, flag(call, "regex"), flag(call, "caseSensitive"))?;
        let path = text(call, "path").unwrap_or_default().to_owned();
        let glob = text(call, "glob")
            .filter(|glob| !glob.is_empty())
            .map(str::to_owned);
        let limit = number(call, "limit")
            .unwrap_or(DEFAULT_LIMIT)
            .clamp(1, MAX_LIMIT);
        let (code, cancel) = (self.place.code.clone(), call.context.cancel.clone());
        off_the_runtime(move || {
            let top = within(&project, &path)?;
            let root = Root::open(&project, code.hidden())?;
            let search = Search {
                globs: globs(&project, glob.as_deref())?,
                root,
                matcher,
                limit: limit as usize,
                cancel,
                found: Mutex::default(),
                total: AtomicU64::new(0),
                skipped: AtomicU64::new(0),
                begun: AtomicBool::new(false),
            };
            search.walk(&top);
            search.outcome(&query)
        })
        .await
    }
}

fn matcher(query: &str, regex: bool, case: bool) -> Result<RegexMatcher, CallError> {
    if query.contains('\n') {
        return Err(
            CallError::invalid("`query` goes over several lines").hint("search for one line of it")
        );
    }
    let built = RegexMatcherBuilder::new()
        .case_insensitive(!case)
        .fixed_strings(!regex)
        .line_terminator(Some(b'\n'))
        .size_limit(PATTERN_LIMIT)
        .dfa_size_limit(8 * PATTERN_LIMIT)
        .build(query);
    built.map_err(|error| {
        let error: String = error.to_string().chars().take(500).collect();
        CallError::invalid(format!("`query` is no regular expression: {error}"))
            .hint("correct it, or leave `regex` out to search for the text as it stands")
    })
}

fn globs(project: &Path, glob: Option<&str>) -> Result<Override, CallError> {
    let mut globs = OverrideBuilder::new(project);
    let bad = |error: ignore::Error| {
        CallError::invalid(format!("`glob` can't be read: {error}"))
            .hint("write one such as `*.rs`, `src/**` or `!*.min.js`")
    };
    if let Some(glob) = glob {
        globs.add(glob).map_err(bad)?;
    }
    globs.build().map_err(bad)
}

/// The folder or file to begin with: really in the project.
fn within(project: &Path, path: &str) -> Result<PathBuf, CallError> {
    let real = project
        .canonicalize()
        .map_err(|error| CallError::unavailable(format!("the project can't be read: {error}")))?;
    let inside = beneath::relative_to(project, path);
    if Path::new(path) == project || inside.is_empty() || inside == "." {
        return Ok(real);
    }
    if inside.contains('\0') {
        return Err(CallError::invalid("the path contains a null byte"));
    }
    let outside = || {
        CallError::denied(format!("`{path}` leads out of the project"))
            .hint("name a folder or file of the project")
    };
    match real.join(&inside).canonicalize() {
        Ok(found) if found.starts_with(&real) => Ok(found),
        Ok(_) => Err(outside()),
        Err(_) if inside.starts_with('/') || inside.split('/').any(|part| part == "..") => {
            Err(outside())
        }
        Err(_) => {
            let error = CallError::invalid(format!("there is no `{path}` in the project"));
            Err(match near(project, &inside) {
                Some(near) => error.hint(near),
                None => error,
            })
        }
    }
}

/// One search, shared by its threads.
struct Search {
    root: Root,
    globs: Override,
    matcher: RegexMatcher,
    limit: usize,
    cancel: tokio_util::sync::CancellationToken,
    /// The first lines of the files that come first.
    found: Mutex<BTreeMap<PathBuf, Vec<Line>>>,
    total: AtomicU64,
    /// Files that could not be read to their end.
    skipped: AtomicU64,
    begun: AtomicBool,
}

/// A line that matches.
struct Line {
    number: u64,
    text: String,
}

impl Search {
    fn walk(&self, top: &Path) {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        // A folder whose own list of what to skip would be waited for is not gone into.
        if !top.ancestors().all(open::lists_are_plain) {
            self.skipped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let hidden = self.root.hidden().to_vec();
        let walk = WalkBuilder::new(top)
            .overrides(self.globs.clone())
            .threads(threads.min(MAX_THREADS))
            .filter_entry(move |entry| goes_on(entry, &hidden))
            .build_parallel();
        walk.run(|| {
            let mut searcher = SearcherBuilder::new()
                .binary_detection(BinaryDetection::quit(0))
                .heap_limit(Some(LINE_LIMIT))
                .line_number(true)
                .build();
            Box::new(move |entry| {
                if self.cancel.is_cancelled() {
                    return WalkState::Quit;
                }
                match entry {
                    Ok(entry) if entry.file_type().is_some_and(|kind| kind.is_file()) => {
                        self.file(&mut searcher, entry.path());
                    }
                    Ok(_) => {}
                    Err(_) => _ = self.skipped.fetch_add(1, Ordering::Relaxed),
                }
                WalkState::Continue
            })
        });
    }

    fn file(&self, searcher: &mut Searcher, path: &Path) {
        if self.root.hidden().iter().any(|own| path.starts_with(own)) {
            return;
        }
        self.begun.store(true, Ordering::Relaxed);
        let Some(inside) = self.root.inside(path) else {
            return;
        };
        let Ok(file) = self.root.file(inside) else {
            self.skipped.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let mut lines = Lines {
            search: self,
            kept: Vec::new(),
            count: 0,
        };
        let watched = Watched {
            file,
            cancel: &self.cancel,
        };
        if searcher
            .search_reader(&self.matcher, watched, &mut lines)
            .is_err()
        {
            self.skipped.fetch_add(1, Ordering::Relaxed);
        }
        let Lines { kept, count, .. } = lines;
        if count == 0 {
            return;
        }
        self.total.fetch_add(count, Ordering::Relaxed);
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.insert(inside.to_path_buf(), kept);
        // Whatever comes behind enough lines is not shown.
        let mut held: usize = found.values().map(Vec::len).sum();
        while let Some(last) = found.last_entry() {
            let lines = last.get().len();
            if held - lines < self.limit {
                break;
            }
            held -= lines;
            last.remove();
        }
    }

    fn outcome(self, query: &str) -> CallResult {
        let total = self.total.into_inner();
        let skipped = self.skipped.into_inner();
        let found = self
            .found
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        let lines = found.iter().flat_map(|(path, lines)| {
            let path = path.display();
            lines
                .iter()
                .map(move |line| format!("{path}:{}: {}", line.number, line.text))
        });
        let shown: Vec<String> = lines.take(self.limit).collect();
        let matches = |count| match count {
            1 => "1 match".to_owned(),
            count => format!("{count} matches"),
        };
        let found = format!("Found {} for \"{query}\"", matches(total));
        let mut output = match total {
            0 => format!("No line holds \"{query}\""),
            total if total > MANY => format!(
                "{found}. The first {}:\n\n{}",
                shown.len(),
                shown.join("\n")
            ),
            _ => shown.join("\n"),
        };
        let more = total - shown.len() as u64;
        if more > 0 {
            output.push_str(&format!("\n\n... and {more} more matches"));
        }
        if skipped > 0 {
            let skipped = counted(skipped, "file or folder");
            output.push_str(&format!("\n[{skipped} could not be read to the end]"));
        }
        if total == 0 && !self.begun.into_inner() {
            output.push_str(
                ": no file was searched, because `path` and `glob` or .gitignore leave none",
            );
        }
        Ok(Outcome::text(output)
            .title(format!("Found {}", matches(total)))
            .meta("query", query)
            .meta("totalMatches", total)
            .meta("shown", shown.len()))
    }
}

/// Is this a folder or file to look at? What is the crib's own is not.
fn goes_on(entry: &DirEntry, hidden: &[PathBuf]) -> bool {
    if !entry.file_type().is_some_and(|kind| kind.is_dir()) {
        return true;
    }
    let path = entry.path();
    !hidden.iter().any(|own| path.starts_with(own)) && open::lists_are_plain(path)
}

/// Takes the lines of one file.
struct Lines<'a> {
    search: &'a Search,
    kept: Vec<Line>,
    count: u64,
}

impl Sink for Lines<'_> {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, std::io::Error> {
        self.count += 1;
        if self.kept.len() < self.search.limit {
            self.kept.push(Line {
                number: found.line_number().unwrap_or(0),
                text: shown(found.bytes(), &self.search.matcher),
            });
        }
        Ok(true)
    }
}

/// A line, or the part of a long one around its match.
fn shown(line: &[u8], matcher: &RegexMatcher) -> String {
    use grep_matcher::Matcher;
    let line = line.trim_ascii_end();
    if line.len() <= LONGEST_LINE {
        return printable(line.trim_ascii_start());
    }
    let at = matcher
        .find(line)
        .ok()
        .flatten()
        .map_or(0, |found| found.start());
    let start = at.saturating_sub(BEFORE);
    let end = (start + LONGEST_LINE).min(line.len());
    let (head, tail) = (
        if start > 0 { "…" } else { "" },
        if end < line.len() { "…" } else { "" },
    );
    format!("{head}{}{tail}", printable(&line[start..end]))
}

/// Bytes that are no UTF-8 and characters that steer a terminal become `U+FFFD`.
fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let plain = |c: char| match c.is_control() && c != '\t' {
        true => char::REPLACEMENT_CHARACTER,
        false => c,
    };
    text.chars().map(plain).collect()
}
