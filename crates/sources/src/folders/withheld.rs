//! What would take something away from the catalog is withheld for a moment: it may be half of a save.
//!
//! Editors empty a file before they write it, remove it before they make it anew, or write it in pieces. Nobody can tell
//! that from a file that is meant so, but by waiting: for a second where tools would go, for less where there would only be a
//! problem. Every further change begins the wait anew, up to a limit.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use toolcrib_core::{Problem, Tool};

use super::draft::Draft;
use super::last_good::may_stand_in;

/// How long a tool stays whose file is gone, empty, or does not have it any more.
const TOOLS_STAY: Duration = Duration::from_secs(1);
/// How long a problem must last to be told.
pub(super) const PROBLEM_LASTS: Duration = Duration::from_millis(300);
/// What changes again and again is withheld no longer than this.
const AT_MOST: Duration = Duration::from_secs(3);

/// What the catalog has of one entry.
pub(super) struct Standing {
    pub tools: Vec<Arc<Tool>>,
    /// What to say of it unless another entry imports it.
    pub without_tools: Option<Box<Problem>>,
    /// The number of the draft that it came of.
    pub number: u64,
}

/// What is new of an entry: a draft, or that it is gone.
pub(super) struct News {
    pub draft: Option<Draft>,
    pub number: u64,
}

impl News {
    /// How long this is withheld, given what the catalog has: nothing where it takes nothing away.
    pub fn pause(&self, standing: Option<&Standing>) -> Option<Duration> {
        let had = standing.map_or(&[][..], |standing| &standing.tools);
        // Who was never asked has not served anybody.
        let mut had = had.iter().filter(|tool| tool.pending.is_none()).peekable();
        let Some(draft) = &self.draft else {
            return had.peek().map(|_| TOOLS_STAY);
        };
        let loaded = draft.description.loaded()?;
        // What the scan refuses ends at once.
        if loaded.is_broken() && !may_stand_in(loaded) {
            return None;
        }
        let first_try = standing.is_some_and(|one| !one.tools.is_empty()) && had.peek().is_none();
        let has = |old: &Tool| loaded.tools.iter().any(|new| new.name() == old.name());
        if had.any(|old| !has(old)) {
            return Some(TOOLS_STAY);
        }
        (loaded.is_broken() && !first_try).then_some(PROBLEM_LASTS)
    }
}

struct Held {
    news: News,
    since: Instant,
    until: Instant,
}

/// What is withheld, by entry.
#[derive(Default)]
pub(super) struct Withheld(BTreeMap<String, Held>);

impl Withheld {
    /// Withholds this for so long, in place of what was; gives it back where that has lasted long enough.
    pub fn put(&mut self, name: &str, news: News, pause: Duration) -> Option<News> {
        let now = Instant::now();
        let since = self.0.get(name).map_or(now, |held| held.since);
        let until = (now + pause).min(since + AT_MOST);
        if until <= now {
            self.0.remove(name);
            return Some(news);
        }
        let held = Held { news, since, until };
        self.0.insert(name.to_owned(), held);
        None
    }

    /// What is older than this draft no longer counts.
    pub fn outdo(&mut self, name: &str, number: u64) {
        self.0
            .retain(|one, held| one != name || held.news.number > number);
    }

    /// When something is due.
    pub fn due(&self) -> Option<Instant> {
        self.0.values().map(|held| held.until).min()
    }

    /// Takes out all that is due, or of which this is true.
    pub fn take(&mut self, also: impl Fn(&str, &News) -> bool) -> Vec<(String, News)> {
        let now = Instant::now();
        let due = |name: &String, held: &mut Held| held.until <= now || also(name, &held.news);
        let taken = self.0.extract_if(.., due);
        taken.map(|(name, held)| (name, held.news)).collect()
    }
}
