//! What took long and failed is put off for a while: every process knows it, so that not each of them tries again.
//!
//! A change of the file tries again, because it is another thing then; `toolcrib reload` does; and so does who names the
//! very tool.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_core::store::Descriptions;
use toolcrib_core::{ErrorType, Problem, SourceKind};

use crate::worker::{Key, now_ms};

/// How long is waited before what failed is tried again: twice as long each time, up to the most.
pub const FIRST_PAUSE: Duration = Duration::from_secs(30);
pub const LONGEST_PAUSE: Duration = Duration::from_secs(3_600);

/// How long is waited after so many tries.
pub fn pause(tries: u32) -> Duration {
    let times = 1_u32 << tries.saturating_sub(1).min(10);
    FIRST_PAUSE.saturating_mul(times).min(LONGEST_PAUSE)
}

/// From when on failures count: those before were forgiven. Every process knows that, too.
#[derive(Default)]
pub struct Forgiven {
    at_ms: AtomicU64,
    file: Option<PathBuf>,
}

impl Forgiven {
    /// Kept in a file of this folder.
    pub fn in_folder(cache: &Path) -> Forgiven {
        Forgiven {
            at_ms: AtomicU64::default(),
            file: Some(cache.join("forgiven")),
        }
    }

    /// Everything may be tried again.
    pub fn all(&self) {
        let now = now_ms();
        self.at_ms.store(now, Ordering::Relaxed);
        if let Some(file) = &self.file
            && let Err(error) = std::fs::write(file, now.to_string())
        {
            tracing::debug!(%error, "other processes do not learn that all may be tried again");
        }
    }

    fn at_ms(&self) -> u64 {
        let text = self
            .file
            .as_ref()
            .and_then(|file| std::fs::read_to_string(file).ok());
        let kept = text.and_then(|text| text.parse().ok()).unwrap_or(0);
        self.at_ms.load(Ordering::Relaxed).max(kept)
    }

    /// Does a failure of this time still count, after so many tries?
    pub fn holds(&self, at_ms: u64, tries: u32) -> bool {
        let until = at_ms.saturating_add(pause(tries).as_millis() as u64);
        // A clock that was set back must not put off for long.
        let now = now_ms();
        at_ms > self.at_ms() && at_ms <= now && now < until
    }
}

fn memory_key(key: &Key) -> String {
    format!("put-off {}", key.0)
}

/// Notes that what has this key failed, and why.
pub fn keep(descriptions: &dyn Descriptions, key: &Key, why: &Problem) {
    let before = descriptions.read(&memory_key(key));
    let tries = before
        .and_then(|before| before["tries"].as_u64())
        .unwrap_or(0);
    let noted = json!({
        "tries": tries.saturating_add(1), "at": now_ms(),
        "message": why.message, "errorType": why.error_type.as_str(),
    });
    descriptions.keep(&memory_key(key), &noted);
}

/// Why what has this key is not asked now, where it is put off.
pub fn read(
    descriptions: &dyn Descriptions,
    key: &Key,
    forgiven: &Forgiven,
    source: SourceKind,
) -> Option<Problem> {
    let noted = descriptions.read(&memory_key(key))?;
    let tries = u32::try_from(noted["tries"].as_u64()?).unwrap_or(u32::MAX);
    if !forgiven.holds(noted["at"].as_u64()?, tries) {
        return None;
    }
    let text = |field: &str| noted.get(field).and_then(Value::as_str);
    let kind = text("errorType").and_then(ErrorType::parse);
    let problem = Problem::error(source, kind.unwrap_or(ErrorType::Timeout), text("message")?);
    let hint = "it is tried again in a while, when you save the file, and after `toolcrib reload`";
    Some(problem.hint(hint))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Mutex;

    use super::*;

    #[derive(Default)]
    struct Memory(Mutex<HashMap<String, Value>>);

    impl Descriptions for Memory {
        fn read(&self, hash: &str) -> Option<Value> {
            self.0.lock().unwrap().get(hash).cloned()
        }

        fn keep(&self, hash: &str, description: &Value) {
            let mut all = self.0.lock().unwrap();
            all.insert(hash.to_owned(), description.clone());
        }
    }

    #[test]
    fn what_failed_waits_twice_as_long_each_time_and_never_too_long() {
        assert_eq!(pause(1), FIRST_PAUSE);
        assert_eq!(pause(2), FIRST_PAUSE * 2);
        assert_eq!(pause(5), FIRST_PAUSE * 16);
        assert_eq!(pause(200), LONGEST_PAUSE);
    }

    #[test]
    fn a_failure_counts_for_a_while_until_it_is_forgiven() {
        let (memory, forgiven) = (Memory::default(), Forgiven::default());
        let (key, source) = (Key("a".into()), SourceKind::Python);
        assert!(read(&memory, &key, &forgiven, source).is_none());
        let why = Problem::error(source, ErrorType::Timeout, "it was not loaded in time");
        keep(&memory, &key, &why);
        let told = read(&memory, &key, &forgiven, source).unwrap();
        assert_eq!(told.message, why.message);
        assert!(read(&memory, &Key("b".into()), &forgiven, source).is_none());
        let cache = tempfile::tempdir().unwrap();
        let here = Forgiven::in_folder(cache.path());
        let there = Forgiven::in_folder(cache.path());
        assert!(read(&memory, &key, &there, source).is_some());
        here.all();
        assert!(read(&memory, &key, &here, source).is_none());
        assert!(read(&memory, &key, &there, source).is_none());
        // Long ago, and in the future.
        let now = now_ms();
        let other = Forgiven::default();
        assert!(!other.holds(now - FIRST_PAUSE.as_millis() as u64 - 1, 1));
        assert!(!other.holds(now + 10_000, 1));
    }
}
