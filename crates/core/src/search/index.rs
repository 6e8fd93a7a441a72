//! The inverted index: which tools hold a term, and how much it weighs there. Tools come and go one by one.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::document::Document;
use crate::Tool;

/// A place in the index; given anew when its tool is gone.
pub type Slot = u32;
pub type TermId = u32;

#[derive(Default)]
pub struct Index {
    /// Sorted, so that terms that begin alike lie together.
    vocabulary: BTreeMap<Arc<str>, TermId>,
    terms: Vec<Term>,
    slots: Vec<Option<Indexed>>,
    free: Vec<Slot>,
    by_key: HashMap<String, Vec<Slot>>,
    by_name: HashMap<Arc<str>, Slot>,
    /// Terms that no tool holds any longer.
    dead: usize,
}

pub struct Term {
    pub text: Arc<str>,
    /// Which letters it has, a bit each: terms whose letters differ much are not misspellings of each other.
    pub letters: u32,
    pub postings: Vec<Posting>,
}

#[derive(Clone, Copy)]
pub struct Posting {
    pub slot: Slot,
    pub weight: f32,
}

/// A tool, and where its terms are.
pub struct Indexed {
    pub tool: Arc<Tool>,
    /// Sorted by term.
    pub weights: Box<[(TermId, f32)]>,
    pub name: Box<[TermId]>,
    keys: Box<[String]>,
}

impl Index {
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// How many slots there are, those that are free too.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    pub fn tool(&self, slot: Slot) -> Option<&Indexed> {
        self.slots.get(slot as usize)?.as_ref()
    }

    pub fn by_key(&self, key: &str) -> &[Slot] {
        self.by_key.get(key).map_or(&[], Vec::as_slice)
    }

    pub fn term(&self, id: TermId) -> &Term {
        &self.terms[id as usize]
    }

    /// The id of a term that some tool holds.
    pub fn id_of(&self, term: &str) -> Option<TermId> {
        let id = *self.vocabulary.get(term)?;
        (!self.term(id).postings.is_empty()).then_some(id)
    }

    /// The terms that some tool holds and that begin so.
    pub fn beginning_with<'a>(
        &'a self,
        start: &'a str,
    ) -> impl Iterator<Item = (&'a str, TermId)> + 'a {
        let from = std::ops::Bound::Included(start);
        self.vocabulary
            .range::<str, _>((from, std::ops::Bound::Unbounded))
            .take_while(move |(term, _)| term.starts_with(start))
            .map(|(term, id)| (&**term, *id))
            .filter(|(_, id)| !self.term(*id).postings.is_empty())
    }

    /// How much it says that a tool holds a term, when `holders` do.
    pub fn rarity(&self, holders: usize) -> f32 {
        let (all, held) = (self.len() as f32, holders as f32);
        (1.0 + (all - held + 0.5) / (held + 0.5)).ln()
    }

    /// Puts this tool in the place of the one of its name, if there is one.
    pub fn put(&mut self, tool: Arc<Tool>) {
        if let Some(slot) = self.by_name.get(tool.name()).copied()
            && let Some(held) = &mut self.slots[slot as usize]
        {
            if reads_alike(&held.tool, &tool) {
                held.tool = tool;
                return;
            }
            self.remove_at(slot);
        }
        self.insert(tool);
    }

    pub fn remove(&mut self, name: &str) {
        if let Some(slot) = self.by_name.get(name).copied() {
            self.remove_at(slot);
        }
        if self.dead > 1_000 && self.dead > self.terms.len() / 2 {
            self.forget_the_dead();
        }
    }

    fn insert(&mut self, tool: Arc<Tool>) {
        let document = Document::of(&tool);
        let slot = self.free.pop().unwrap_or(self.slots.len() as Slot);
        if slot as usize == self.slots.len() {
            self.slots.push(None);
        }
        let mut weights = Vec::with_capacity(document.weights.len());
        for (term, weight) in document.weights {
            let id = self.intern(term);
            let postings = &mut self.terms[id as usize].postings;
            self.dead -= usize::from(postings.is_empty());
            postings.push(Posting { slot, weight });
            weights.push((id, weight));
        }
        weights.sort_unstable_by_key(|(id, _)| *id);
        let name = document.name.into_iter();
        let name: Vec<TermId> = name.filter_map(|term| self.id_of(&term)).collect();
        for key in &document.keys {
            self.by_key.entry(key.clone()).or_default().push(slot);
        }
        self.by_name.insert(tool.spec.name.shared(), slot);
        self.slots[slot as usize] = Some(Indexed {
            tool,
            weights: weights.into(),
            name: name.into(),
            keys: document.keys.into(),
        });
    }

    fn remove_at(&mut self, slot: Slot) {
        let Some(gone) = self.slots[slot as usize].take() else {
            return;
        };
        for (id, _) in &gone.weights {
            let postings = &mut self.terms[*id as usize].postings;
            if let Some(place) = postings.iter().position(|posting| posting.slot == slot) {
                postings.swap_remove(place);
            }
            self.dead += usize::from(postings.is_empty());
        }
        for key in &gone.keys {
            if let Some(slots) = self.by_key.get_mut(key) {
                slots.retain(|other| *other != slot);
                if slots.is_empty() {
                    self.by_key.remove(key);
                }
            }
        }
        self.by_name.remove(gone.tool.name());
        self.free.push(slot);
    }

    fn intern(&mut self, term: String) -> TermId {
        if let Some(id) = self.vocabulary.get(term.as_str()) {
            return *id;
        }
        let id = self.terms.len() as TermId;
        let text: Arc<str> = term.into();
        self.terms.push(Term {
            letters: letters(&text),
            text: text.clone(),
            postings: Vec::new(),
        });
        self.dead += 1;
        self.vocabulary.insert(text, id);
        id
    }

    /// Begins anew with the tools that it has, so that what long-gone tools said takes no room.
    fn forget_the_dead(&mut self) {
        let old = std::mem::take(self);
        for indexed in old.slots.into_iter().flatten() {
            self.insert(indexed.tool);
        }
    }

    /// About how many bytes it takes.
    pub fn bytes(&self) -> usize {
        let postings: usize = self.terms.iter().map(|term| term.postings.capacity()).sum();
        let texts: usize = self.terms.iter().map(|term| term.text.len() + 16).sum();
        let of_slot = |indexed: &Indexed| {
            let keys: usize = indexed.keys.iter().map(|key| 2 * key.len() + 48).sum();
            indexed.weights.len() * 8 + indexed.name.len() * 4 + keys + 64
        };
        let slots: usize = self.slots.iter().flatten().map(of_slot).sum();
        let of_term = size_of::<Term>() + size_of::<(Arc<str>, TermId)>() * 3 / 2;
        postings * size_of::<Posting>()
            + texts
            + self.terms.len() * of_term
            + slots
            + self.slots.len() * size_of::<Option<Indexed>>()
    }
}

/// Does the index hold the same of both?
fn reads_alike(a: &Tool, b: &Tool) -> bool {
    let (one, other) = (&a.spec, &b.spec);
    a.module == b.module
        && a.title() == b.title()
        && one.description == other.description
        && one.input_schema.hash() == other.input_schema.hash()
        && one.tags == other.tags
        && one.aliases == other.aliases
        && one.metadata == other.metadata
}

/// Which letters a text has, a bit each.
pub fn letters(text: &str) -> u32 {
    let bit = |byte: u8| match byte {
        b'a'..=b'z' => 1 << (byte - b'a'),
        b'0'..=b'9' => 1 << 26,
        _ => 1 << 27,
    };
    text.bytes().fold(0, |letters, byte| letters | bit(byte))
}
