//! What one listener hears of all that happens: what is about tools that it sees, and about calls of its own agent where
//! its token is for one.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use toolcrib_core::View;
use toolcrib_core::event::Subject;

use super::Served;
use super::auth::Who;
use super::feed::SentEvent;
use crate::wire::ChangeView;

pub struct Earshot {
    served: Arc<Served>,
    who: Who,
    /// The tools that it saw when it last heard of a change.
    seen: BTreeSet<String>,
}

impl Earshot {
    pub fn of(served: &Arc<Served>, who: Who) -> Earshot {
        let seen = names(&served.kept(&who));
        Earshot {
            served: served.clone(),
            who,
            seen,
        }
    }

    /// The data of an event that happens now, as it may be heard; nothing where it may not.
    pub fn hear<'a>(&mut self, event: &'a SentEvent) -> Option<Cow<'a, str>> {
        let view = self.served.kept(&self.who);
        if let Some(Subject::Catalog(change)) = event.event.as_ref().map(|told| told.subject())
            && !view.shows_all()
        {
            let now = names(&view);
            let before = std::mem::replace(&mut self.seen, now);
            let of = |all: &BTreeSet<String>, others: &BTreeSet<String>| {
                all.difference(others).cloned().collect::<Vec<_>>()
            };
            let kept = |name: &&String| before.contains(*name) && self.seen.contains(*name);
            let heard = ChangeView {
                version: change.version,
                added: of(&self.seen, &before),
                changed: change.changed.iter().filter(kept).cloned().collect(),
                removed: of(&before, &self.seen),
            };
            return written(&heard, false);
        }
        self.hear_in(&view, event)
    }

    /// The same of one that happened before. Nobody knows what was seen of it then, so of tools that are gone nothing is
    /// said, only that something changed.
    pub fn hear_late<'a>(&self, event: &'a SentEvent) -> Option<Cow<'a, str>> {
        let view = self.served.kept(&self.who);
        if let Some(Subject::Catalog(change)) = event.event.as_ref().map(|told| told.subject())
            && !view.shows_all()
        {
            let seen = |names: &[String]| -> Vec<String> {
                let seen = names.iter().filter(|name| view.get(name).is_some());
                seen.cloned().collect()
            };
            let heard = ChangeView {
                version: change.version,
                added: seen(&change.added),
                changed: seen(&change.changed),
                removed: Vec::new(),
            };
            return written(&heard, !change.removed.is_empty());
        }
        self.hear_in(&view, event)
    }

    fn hear_in<'a>(&self, view: &View, event: &'a SentEvent) -> Option<Cow<'a, str>> {
        let sees = |tool: &str| view.shows_all() || view.get(tool).is_some();
        let heard = match event.event.as_ref().map(|told| told.subject()) {
            None | Some(Subject::Catalog(_)) => true,
            Some(Subject::Problem(problem)) => view.shows(problem),
            Some(Subject::Tool(tool)) => sees(tool),
            Some(Subject::Call { tool, agent }) => {
                sees(tool) && (!self.who.is_bound() || agent == self.who.agent())
            }
        };
        heard.then_some(Cow::Borrowed(event.data.as_str()))
    }
}

fn names(view: &View) -> BTreeSet<String> {
    view.tools().map(|tool| tool.name().to_owned()).collect()
}

/// A change as it is heard; nothing where nothing of it is left, unless it is `told` all the same.
fn written(change: &ChangeView, told: bool) -> Option<Cow<'static, str>> {
    let ChangeView {
        added,
        changed,
        removed,
        ..
    } = change;
    if added.is_empty() && changed.is_empty() && removed.is_empty() && !told {
        return None;
    }
    serde_json::to_string(change).ok().map(Cow::Owned)
}
