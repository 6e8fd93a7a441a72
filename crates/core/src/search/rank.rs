//! What a query finds: its terms, what may stand for each, and the sum of what tools hold of them.

use super::index::{Index, Slot, TermId, letters};
use super::{shapes, synonyms, words};

/// What a match of something else than the term itself counts.
const SYNONYM: f32 = 0.4;
const KIN: f32 = 0.6;
const MISSPELLED: f32 = 0.6;
/// What a term counts that only a form in the query stands for.
const SHAPE: f32 = 0.5;

/// Kin begin with this many equal letters at least, and these are so much of both.
const KIN_START: usize = 5;
const KIN_SHARE: f32 = 0.75;

/// Shorter terms are not taken for misspelled, those up to the second length for one slip only.
const MISSPELLED_FROM: usize = 5;
const TWO_SLIPS_FROM: usize = 8;

/// What more tools hold than this, and than every so-manieth, tells none from the others: as a stand-in it is left out.
const COMMON: usize = 100;
const COMMON_SHARE: usize = 8;

/// More terms than this of one query are not looked up.
const MAX_TERMS: usize = 64;
/// More terms than this are not looked for misspellings of: each costs as much as many matches.
const MAX_MISSPELLED: usize = 8;

/// A query as an index understands it.
pub struct Reading {
    terms: Vec<Wanted>,
}

struct Wanted {
    /// How much the term says about a tool: rare ones say more.
    rarity: f32,
    stand_ins: Vec<StandIn>,
}

/// The term itself, or another that may stand for it.
struct StandIn {
    id: TermId,
    /// How near it is to the term, from 0 to 1.
    nearness: f32,
    /// What a tool gains that holds it at weight one.
    gain: f32,
}

/// A tool, and how well it fits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored {
    pub slot: Slot,
    pub score: f32,
}

impl Reading {
    pub fn of(index: &Index, query: &str) -> Reading {
        let mut wanted: Vec<(String, f32)> = Vec::new();
        let said = words::terms(query).into_iter().map(|term| (term, 1.0));
        let meant = shapes::terms(query).into_iter().map(|term| (term, SHAPE));
        for (term, gain) in said.chain(meant) {
            if wanted.len() < MAX_TERMS && !wanted.iter().any(|(other, _)| *other == term) {
                wanted.push((term, gain));
            }
        }
        let mut lookups = MAX_MISSPELLED;
        let wanted = wanted.into_iter();
        Reading {
            terms: wanted
                .map(|(term, gain)| read(index, &term, gain, &mut lookups))
                .collect(),
        }
    }

    /// The tools that hold something of it, best first, at most as many of those that are `seen`; and how many there are.
    pub fn best(
        &self,
        index: &Index,
        limit: usize,
        seen: impl Fn(Slot) -> bool,
    ) -> (Vec<Scored>, usize) {
        let mut scores = vec![0_f32; index.slots()];
        let mut best = vec![0_f32; index.slots()];
        let mut touched: Vec<Slot> = Vec::new();
        for wanted in &self.terms {
            if let [only] = &wanted.stand_ins[..] {
                for posting in &index.term(only.id).postings {
                    scores[posting.slot as usize] += only.gain * posting.weight;
                }
                continue;
            }
            // What several of them say of a tool is counted once.
            for stand_in in &wanted.stand_ins {
                for posting in &index.term(stand_in.id).postings {
                    let known = &mut best[posting.slot as usize];
                    if *known == 0.0 {
                        touched.push(posting.slot);
                    }
                    *known = known.max(stand_in.gain * posting.weight);
                }
            }
            for slot in touched.drain(..) {
                scores[slot as usize] += std::mem::take(&mut best[slot as usize]);
            }
        }
        let scored = (0..).zip(scores).filter(|(_, score)| *score > 0.0);
        let scored = scored.map(|(slot, score)| Scored { slot, score });
        let mut found: Vec<Scored> = scored.filter(|scored| seen(scored.slot)).collect();
        let count = found.len();
        let name = |scored: &Scored| index.tool(scored.slot).map(|held| held.tool.name());
        let order = |a: &Scored, b: &Scored| {
            let by_score = b.score.total_cmp(&a.score);
            by_score.then_with(|| name(a).cmp(&name(b)))
        };
        if limit > 0 && limit < count {
            found.select_nth_unstable_by(limit - 1, order);
        }
        found.truncate(limit);
        found.sort_unstable_by(order);
        (found, count)
    }

    /// How sure it is that this tool is what was asked for: see `floor.rs`.
    pub fn match_of(&self, index: &Index, slot: Slot) -> Match {
        let Some(held) = index.tool(slot) else {
            return Match::default();
        };
        let most = index.rarity(0);
        let (mut asked, mut met) = (0.0, 0.0);
        let mut named: Vec<(TermId, f32)> = Vec::new();
        for wanted in &self.terms {
            let mut best = 0_f32;
            for StandIn { id, nearness, .. } in &wanted.stand_ins {
                if let Ok(place) = held.weights.binary_search_by_key(id, |(id, _)| *id) {
                    best = best.max(nearness * held.weights[place].1.min(1.0));
                }
                if held.name.contains(id) {
                    named.push((*id, *nearness));
                }
            }
            asked += wanted.rarity / most;
            met += best * wanted.rarity / most;
        }
        let rarity = |id: &TermId| index.rarity(index.term(*id).postings.len());
        let (mut name, mut name_met) = (0.0, 0.0);
        for id in &held.name {
            let near = named.iter().filter(|(other, _)| other == id);
            name += rarity(id);
            name_met += rarity(id) * near.map(|(_, nearness)| *nearness).fold(0.0, f32::max);
        }
        Match {
            met: met / f32::max(asked, f32::EPSILON).sqrt(),
            name: name_met / f32::max(name, f32::EPSILON),
        }
    }
}

/// How much of a query a tool meets, and how much of the tool's name stands in the query.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Match {
    /// What the tool holds of the query's terms, rare ones more; less for long queries, which meet something by chance.
    pub met: f32,
    /// The part of the name that the query says, from 0 to 1.
    pub name: f32,
}

fn read(index: &Index, term: &str, weight: f32, lookups: &mut usize) -> Wanted {
    let own = index.id_of(term);
    let mut near: Vec<(TermId, f32)> = own.map(|id| (id, 1.0)).into_iter().collect();
    let mut add = |id: TermId, nearness: f32| match near.iter_mut().find(|(other, _)| *other == id)
    {
        Some((_, known)) => *known = known.max(nearness),
        None => near.push((id, nearness)),
    };
    let common = COMMON.max(index.len() / COMMON_SHARE);
    let tells = |id: &TermId| index.term(*id).postings.len() <= common;
    let synonyms = synonyms::of(term).iter();
    let synonyms = synonyms.filter_map(|synonym| index.id_of(synonym));
    synonyms.filter(tells).for_each(|id| add(id, SYNONYM));
    kin(index, term).filter(tells).for_each(|id| add(id, KIN));
    if near.is_empty() && may_be_misspelled(term) && *lookups > 0 {
        *lookups -= 1;
        let meant = misspelled(index, term).into_iter();
        near.extend(meant.map(|id| (id, MISSPELLED)));
    }
    let rarity_of = |id: TermId| index.rarity(index.term(id).postings.len());
    // What stands for a more common word gains no more than that would.
    let most = own.map_or(f32::INFINITY, rarity_of);
    let stand_in = |(id, nearness): (TermId, f32)| StandIn {
        id,
        nearness,
        gain: weight * nearness * rarity_of(id).min(most),
    };
    Wanted {
        rarity: own.map_or_else(|| index.rarity(0), rarity_of),
        stand_ins: near.into_iter().map(stand_in).collect(),
    }
}

/// Other forms of a word, by how they begin.
fn kin<'a>(index: &'a Index, term: &'a str) -> impl Iterator<Item = TermId> + 'a {
    let start = term.get(..KIN_START).filter(|_| term.is_ascii());
    let near = start.map(|start| index.beginning_with(start));
    near.into_iter().flatten().filter_map(move |(other, id)| {
        let equal = term.bytes().zip(other.bytes()).take_while(|(a, b)| a == b);
        let share = 2.0 * equal.count() as f32 / (term.len() + other.len()) as f32;
        (other != term && share >= KIN_SHARE).then_some(id)
    })
}

fn may_be_misspelled(term: &str) -> bool {
    term.len() >= MISSPELLED_FROM && term.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// The terms that it differs least from, if that is a slip or two.
fn misspelled(index: &Index, term: &str) -> Vec<TermId> {
    let slips = 1 + usize::from(term.len() >= TWO_SLIPS_FROM);
    let own = letters(term);
    let mut nearest = slips;
    let mut found = Vec::new();
    for (other, id) in index.beginning_with(&term[..1]) {
        let differ = (index.term(id).letters ^ own).count_ones() as usize;
        if other.len().abs_diff(term.len()) > slips || other.len() < 4 || differ > 2 * slips {
            continue;
        }
        let distance = strsim::osa_distance(term, other);
        if distance < nearest {
            nearest = distance;
            found.clear();
        }
        if distance == nearest {
            found.push(id);
        }
    }
    found
}
