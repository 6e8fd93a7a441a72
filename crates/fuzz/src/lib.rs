//! Texts that nobody would write, made from those that somebody did: for tests of whatever reads what others wrote.
//!
//! A target is a test that calls [`Fuzz::run`] with a corpus and a check. It runs for ten seconds, or for ten minutes where
//! `TOOLCRIB_SOAK` is set. Every text comes from a seed that is printed; `TOOLCRIB_FUZZ_SEED` sets it. What fails is made
//! smaller, printed and left in the folder for temporary files: put it into the corpus when you have fixed it.

use std::cell::Cell;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};

const SHORT: Duration = Duration::from_secs(10);
const LONG: Duration = Duration::from_secs(600);
/// How many texts are tried at most, so that a fast target ends early.
const FEW: u64 = 20_000;
const MANY: u64 = 20_000_000;

/// What is tried, and what one text may take.
pub struct Fuzz {
    pub name: &'static str,
    /// Where texts begin. Each is tried as it is, too.
    pub corpus: Vec<Vec<u8>>,
    /// Words of the language.
    pub words: &'static [&'static str],
    /// What opens and closes in it.
    pub pairs: &'static [(&'static str, &'static str)],
    /// The longest text that is made.
    pub longest: usize,
    /// How much time of a processor one text may take.
    pub slowest: Duration,
    /// How much memory the process may take on top of what it has at the beginning.
    pub most: Option<u64>,
}

/// The files of a folder and of those in it, in order.
pub fn corpus(folder: &Path) -> Vec<Vec<u8>> {
    let mut texts = Vec::new();
    let mut entries: Vec<PathBuf> = match std::fs::read_dir(folder) {
        Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
        Err(error) => panic!("{}: {error}", folder.display()),
    };
    entries.sort();
    for path in entries {
        match path.is_dir() {
            true => texts.extend(corpus(&path)),
            false => texts.extend(std::fs::read(&path)),
        }
    }
    texts
}

/// One change of a text. Places are fractions of its length.
#[derive(Debug, Clone)]
enum Edit {
    /// A part of another text is put in.
    Splice(u32, u32, u32, u32),
    /// A part is written many times.
    Repeat(u32, u16, u32),
    /// A word is written many times.
    Word(u32, u32, u32),
    /// A part gets brackets around it, many times.
    Nest(u32, u32, u16, u32),
    Truncate(u32),
    Remove(u32, u16),
    Flip(u32, u8),
    Byte(u32, u8),
    /// A word is written with a number that counts, many times.
    Count(u32, u32, u32),
}

/// A text: which of the corpus it begins with, and what is done to it.
type Case = (u32, Vec<Edit>);

fn cases() -> impl Strategy<Value = Case> {
    let place = any::<u32>;
    // Mostly few, which is fast; sometimes as many as fit.
    let times = || {
        let bits = prop_oneof![4 => 0_u32..9, 1 => 9_u32..18];
        (bits, any::<u32>()).prop_map(|(bits, more)| 1 + more % (1 << bits))
    };
    let edit = prop_oneof![
        3 => (place(), place(), place(), place()).prop_map(|(a, b, c, d)| Edit::Splice(a, b, c, d)),
        2 => (place(), any::<u16>(), times()).prop_map(|(a, b, c)| Edit::Repeat(a, b, c)),
        3 => (place(), place(), times()).prop_map(|(a, b, c)| Edit::Word(a, b, c)),
        2 => (place(), place(), any::<u16>(), times()).prop_map(|(a, b, c, d)| Edit::Nest(a, b, c, d)),
        1 => place().prop_map(Edit::Truncate),
        1 => (place(), any::<u16>()).prop_map(|(a, b)| Edit::Remove(a, b)),
        2 => (place(), 0_u8..8).prop_map(|(a, b)| Edit::Flip(a, b)),
        2 => (place(), any::<u8>()).prop_map(|(a, b)| Edit::Byte(a, b)),
        1 => (place(), place(), times()).prop_map(|(a, b, c)| Edit::Count(a, b, c)),
    ];
    (place(), proptest::collection::vec(edit, 1..8))
}

/// A place in something of this length.
fn place(fraction: u32, length: usize) -> usize {
    usize::try_from((u64::from(fraction) * (length as u64 + 1)) >> 32).unwrap_or(0)
}

/// One of several.
fn pick<T>(list: &[T], fraction: u32) -> Option<&T> {
    list.get(place(fraction, list.len().checked_sub(1)?))
}

impl Fuzz {
    fn text(&self, (start, edits): &Case) -> Vec<u8> {
        let mut text = pick(&self.corpus, *start).cloned().unwrap_or_default();
        for edit in edits {
            self.edit(&mut text, edit);
            text.truncate(self.longest);
        }
        text
    }

    fn edit(&self, text: &mut Vec<u8>, edit: &Edit) {
        let length = text.len();
        let at = |fraction: &u32| place(*fraction, length);
        let span = |from: usize, size: u16| from..(from + usize::from(size)).min(length);
        // No more than fits.
        let times = |unit: usize, times: u32| (times as usize).min(self.longest / unit.max(1) + 1);
        match edit {
            Edit::Splice(other, from, to, into) => {
                let other = pick(&self.corpus, *other).map_or(&[][..], Vec::as_slice);
                let (from, to) = (place(*from, other.len()), place(*to, other.len()));
                let into = at(into);
                text.splice(into..into, other[from.min(to)..from.max(to)].to_vec());
            }
            Edit::Repeat(from, size, count) => {
                // Short parts make the deepest texts.
                let range = span(at(from), size % 64);
                let part = text[range.clone()].repeat(times(range.len(), *count));
                text.splice(range, part);
            }
            Edit::Word(word, into, count) => {
                let Some(word) = pick(self.words, *word) else {
                    return;
                };
                let into = at(into);
                let part = word.repeat(times(word.len(), *count));
                text.splice(into..into, part.into_bytes());
            }
            Edit::Nest(pair, from, size, count) => {
                let Some((open, close)) = pick(self.pairs, *pair) else {
                    return;
                };
                let range = span(at(from), *size);
                let count = times(open.len() + close.len(), *count);
                let inside = text[range.clone()].to_vec();
                let whole = [
                    open.repeat(count).into_bytes(),
                    inside,
                    close.repeat(count).into_bytes(),
                ];
                text.splice(range, whole.concat());
            }
            Edit::Truncate(end) => text.truncate(at(end)),
            Edit::Remove(from, size) => drop(text.drain(span(at(from), *size))),
            Edit::Flip(from, bit) => {
                if let Some(byte) = text.get_mut(at(from)) {
                    *byte ^= 1 << bit;
                }
            }
            Edit::Byte(into, byte) => text.insert(at(into), *byte),
            Edit::Count(word, into, count) => {
                let Some(word) = pick(self.words, *word) else {
                    return;
                };
                let mut part = String::new();
                for number in 0..times(word.len() + 2, *count) {
                    let _ = write!(part, "{word}{number} ");
                }
                let into = at(into);
                text.splice(into..into, part.into_bytes());
            }
        }
    }

    /// Tries texts until the time is over. `check` panics where something is wrong.
    #[expect(clippy::panic, reason = "that is how a test fails")]
    pub fn run(self, check: impl Fn(&[u8])) {
        let soak = asked("TOOLCRIB_SOAK").is_some();
        let (time, count) = if soak { (LONG, MANY) } else { (SHORT, FEW) };
        let given = asked("TOOLCRIB_FUZZ_SEED").and_then(|seed| seed.parse().ok());
        let seed: u64 = match (given, soak) {
            (Some(seed), _) => seed,
            (None, false) => 1,
            // A long run sees other texts every time.
            (None, true) => std::time::UNIX_EPOCH
                .elapsed()
                .map_or(1, |now| now.as_secs()),
        };
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let config = Config {
            failure_persistence: None,
            max_shrink_iters: 2_000,
            ..Config::default()
        };
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        let mut runner = TestRunner::new_with_rng(config, rng);
        let begun = Instant::now();
        let memory = peak();
        let strategy = cases();
        for text in &self.corpus {
            self.one(text, memory, &check);
        }
        let mut tried = 0;
        let mut slowest = Duration::ZERO;
        while begun.elapsed() < time && tried < count {
            tried += 1;
            let Ok(tree) = strategy.new_tree(&mut runner) else {
                continue;
            };
            let took = Cell::new(Duration::ZERO);
            let result = runner.run_one(tree, |case| {
                took.set(self.one(&self.text(&case), memory, &check));
                Ok(())
            });
            slowest = slowest.max(took.get());
            if let Err(TestError::Fail(reason, case)) = result {
                let text = self.text(&case);
                let file = std::env::temp_dir().join(format!("toolcrib-fuzz-{}", self.name));
                let _ = std::fs::write(&file, &text);
                let head = text[..text.len().min(1_000)].escape_ascii();
                panic!(
                    "{}: TOOLCRIB_FUZZ_SEED={seed}, text {tried}: {reason}\n{} bytes, in {}:\n{head}",
                    self.name,
                    text.len(),
                    file.display()
                );
            }
        }
        let _ = writeln!(
            std::io::stderr(),
            "{}: TOOLCRIB_FUZZ_SEED={seed}, {tried} texts in {:.1} s, the slowest {:.3} s, {} MB more memory",
            self.name,
            begun.elapsed().as_secs_f64(),
            slowest.as_secs_f64(),
            peak().saturating_sub(memory) >> 20
        );
    }

    fn one(&self, text: &[u8], memory: u64, check: &impl Fn(&[u8])) -> Duration {
        let before = processor_time();
        check(text);
        let took = processor_time().saturating_sub(before);
        assert!(took < self.slowest, "it took {took:?}");
        if let Some(most) = self.most {
            let more = peak().saturating_sub(memory);
            assert!(more < most, "it took {} MB", more >> 20);
        }
        took
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "tests are told by their environment"
)]
fn asked(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// How long this thread has run. Time on the wall says more about the machine.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split(' ').next().and_then(|first| first.parse().ok());
    Duration::from_nanos(first.unwrap_or(0))
}

/// The most memory that this process has had, in bytes.
fn peak() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) << 10
}
