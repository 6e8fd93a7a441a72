//! Finds the tools that fit what somebody wants to do, among those that an agent sees: by words, without a model.
//!
//! [`View::search`] is the way in. One index for each profile follows its views: a tool that changes is put in anew, and
//! nothing else is touched. How it ranks, and what was measured: `docs/design/0017-tool-search.md`.

mod document;
mod floor;
mod index;
mod rank;
mod shapes;
mod synonyms;
mod words;

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use self::document::exact_key;
use self::index::{Index, Slot};
use self::rank::{Reading, Scored};

pub use self::rank::Match;
use crate::catalog::Tools;
use crate::tool::MAX_NAME;
use crate::{Access, Tool, View};

/// A longer query is read so far.
const MAX_QUERY: usize = 4_000;

/// What is looked for.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    pub text: &'a str,
    /// At most so many tools.
    pub limit: usize,
    /// Only tools of this module, or of modules below it.
    pub namespace: Option<&'a str>,
}

/// What was found.
#[derive(Debug, Clone)]
pub struct Found {
    /// Best first.
    pub hits: Vec<Hit>,
    /// How many tools hold anything of the query.
    pub total: usize,
    /// Is the best one a good match? If not, there is probably no tool for this.
    pub is_good: bool,
}

/// A tool that was found.
#[derive(Debug, Clone)]
pub struct Hit {
    pub tool: Arc<Tool>,
    /// Orders the hits of one query, and says nothing across queries.
    pub score: f32,
    /// The query names it.
    pub exact: bool,
}

/// Tools of one module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    pub name: String,
    pub tools: usize,
}

/// One index for each profile, kept from view to view.
#[derive(Default)]
pub(crate) struct Indexes(Mutex<HashMap<Arc<str>, Arc<Mutex<SearchIndex>>>>);

impl Indexes {
    fn of(&self, profile: &str) -> Arc<Mutex<SearchIndex>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match all.get(profile) {
            Some(index) => index.clone(),
            None => all.entry(profile.into()).or_default().clone(),
        }
    }
}

impl View {
    /// The tools of this view that fit, best first. Those that wait for trust are not among them.
    pub fn search(&self, query: &Query<'_>) -> Found {
        self.with_index(|index| index.search(query))
    }

    /// How well the best tool fits, for those who calibrate the floor.
    pub fn best_match(&self, text: &str) -> Match {
        self.with_index(|index| index.best_match(text))
    }

    /// How many bytes this view's index takes, about.
    pub fn search_bytes(&self) -> usize {
        self.with_index(|index| index.bytes())
    }

    /// The listed tools of each module, sorted by its name.
    pub fn modules(&self) -> &[Module] {
        struct Modules(Vec<Module>);
        let made = self.derived(|view| {
            let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
            for tool in view.listed() {
                *counts.entry(&tool.module).or_default() += 1;
            }
            let named = counts.into_iter().map(|(name, tools)| Module {
                name: name.to_owned(),
                tools,
            });
            Modules(named.collect())
        });
        &made.0
    }

    fn with_index<T>(&self, ask: impl FnOnce(&SearchIndex) -> T) -> T {
        // Profiles that see everything share one index.
        let key = match self.is_whole() {
            true => "",
            false => self.profile().name(),
        };
        let index = self.state::<Indexes>().of(key);
        let mut index = index.lock().unwrap_or_else(PoisonError::into_inner);
        index.follow(self.all());
        ask(&index)
    }
}

/// The tools of the view that was searched last.
#[derive(Default)]
struct SearchIndex {
    index: Index,
    holds: Arc<Tools>,
}

impl SearchIndex {
    /// Holds these tools afterwards. What did not change costs a comparison of pointers.
    fn follow(&mut self, tools: &Arc<Tools>) {
        if Arc::ptr_eq(&self.holds, tools) {
            return;
        }
        let before = std::mem::replace(&mut self.holds, tools.clone());
        let (mut old, mut new) = (before.values().peekable(), tools.values().peekable());
        loop {
            let order = match (old.peek(), new.peek()) {
                (None, None) => return,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(a), Some(b)) if Arc::ptr_eq(a, b) => {
                    old.next();
                    new.next();
                    continue;
                }
                (Some(a), Some(b)) => a.name().cmp(b.name()),
            };
            let gone = order.is_le().then(|| old.next()).flatten();
            let come = order.is_ge().then(|| new.next()).flatten();
            match come.filter(|tool| is_found(tool)) {
                Some(tool) => self.index.put(tool.clone()),
                None => gone
                    .into_iter()
                    .for_each(|tool| self.index.remove(tool.name())),
            }
        }
    }

    fn search(&self, query: &Query<'_>) -> Found {
        let text = &query.text[..query.text.floor_char_boundary(MAX_QUERY)];
        let seen = |slot: Slot| match query.namespace {
            None => true,
            Some(namespace) => self.is_in(slot, namespace),
        };
        let mut exact = self.named(text);
        exact.retain(|slot| seen(*slot));
        let reading = Reading::of(&self.index, text);
        let (scored, total) = reading.best(&self.index, query.limit, |slot| {
            seen(slot) && !exact.contains(&slot)
        });
        let best = scored.first();
        let good = |best: &Scored| floor::is_good(reading.match_of(&self.index, best.slot));
        let is_good = !exact.is_empty() || best.is_some_and(good);
        let highest = best.map_or(1.0, |best| best.score + 1.0);
        let named = exact.iter().map(|slot| (*slot, highest, true));
        let others = scored.iter().map(|hit| (hit.slot, hit.score, false));
        let hits = named.chain(others).take(query.limit);
        let hit = |(slot, score, exact)| {
            let tool = self.index.tool(slot)?.tool.clone();
            Some(Hit { tool, score, exact })
        };
        Found {
            hits: hits.filter_map(hit).collect(),
            total: total + exact.len(),
            is_good,
        }
    }

    fn best_match(&self, text: &str) -> Match {
        let reading = Reading::of(&self.index, text);
        let (scored, _) = reading.best(&self.index, 1, |_| true);
        let best = scored.first();
        best.map_or_else(Match::default, |best| {
            reading.match_of(&self.index, best.slot)
        })
    }

    fn bytes(&self) -> usize {
        self.index.bytes()
    }

    fn is_in(&self, slot: Slot, namespace: &str) -> bool {
        self.index
            .tool(slot)
            .is_some_and(|held| is_below(&held.tool.module, namespace))
    }

    /// The tools that the query names, however it spells them and whatever a client puts before a name
    /// (`mcp__plugin_x__ask_codex`).
    fn named(&self, text: &str) -> Vec<Slot> {
        let mut found: Vec<Slot> = Vec::new();
        let whole = exact_key(text);
        if whole.len() <= MAX_NAME {
            found.extend(self.index.by_key(&whole));
        }
        let is_name = |c: char| c.is_alphanumeric() || "_-.:/".contains(c);
        for word in text.split(|c| !is_name(c)).take(64) {
            // A plain word may be a tool's name by accident.
            let starts: Vec<usize> = joints(word).collect();
            if starts.len() < 2 {
                continue;
            }
            // The longest rest that is a name, of two words at least.
            let rests = starts[..starts.len() - 1]
                .iter()
                .map(|at| exact_key(&word[*at..]));
            let slots = rests.map(|key| self.index.by_key(&key));
            for slot in slots
                .into_iter()
                .find(|slots| !slots.is_empty())
                .unwrap_or_default()
            {
                if !found.contains(slot) {
                    found.push(*slot);
                }
            }
        }
        found.sort_by_key(|slot| {
            self.index
                .tool(*slot)
                .map(|held| held.tool.name().to_owned())
        });
        found
    }
}

/// Where the parts of an identifier begin.
fn joints(word: &str) -> impl Iterator<Item = usize> + '_ {
    let mut after = true;
    word.char_indices().filter_map(move |(at, c)| {
        let starts = after && c.is_alphanumeric();
        after = !c.is_alphanumeric();
        starts.then_some(at)
    })
}

/// Is this module the namespace, or below it? `github` is `mcp.github` too.
pub fn is_below(module: &str, namespace: &str) -> bool {
    let rest = |of: &str| {
        let rest = of.strip_prefix(namespace);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    rest(module) || module.split_once('.').is_some_and(|(_, own)| rest(own))
}

fn is_found(tool: &Tool) -> bool {
    !matches!(tool.access, Access::Untrusted { .. })
}

#[cfg(test)]
mod tests;
