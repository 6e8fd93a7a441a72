//! What a serving crib follows while it runs: trust, grants and settings. Registered tools, tokens and files have
//! followers of their own.

use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::watch;
use toolcrib_sources::{Configuration, Sources};

use super::{Opened, Stamp};
use crate::config::{Settings, local_folders, profiles, say_why, trust_entries};
use crate::store_handle::{StoreState, Trust};

/// How often a running crib looks whether settings changed, or who can change the project. Changes of the store are told.
const FOLLOW_EVERY: Duration = Duration::from_millis(200);
/// How often it is asked what else does not work. The store's troubles are told.
const CHECK_EVERY: Duration = Duration::from_secs(2);

/// Which changes of the store concern the tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct StoreChange {
    trust: bool,
    grants: bool,
}

impl StoreChange {
    fn between(before: StoreState, now: StoreState) -> StoreChange {
        StoreChange {
            trust: before.number(|all| all.trust) != now.number(|all| all.trust),
            grants: before.number(|all| all.grants) != now.number(|all| all.grants),
        }
    }
}

impl Opened {
    /// Follows trust, grants and settings that other processes change, until it is dropped. `tell` hears what is wrong.
    pub async fn follow(&self, sources: &Sources, tell: impl Fn(Vec<String>)) {
        let mut changes = self.store.changes();
        let mut follower = Follower::new(self, sources, *changes.borrow_and_update());
        let mut troubles = self.store.troubles();
        let mut checks = tokio::time::interval(CHECK_EVERY);
        checks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        // The first one is at once, and what is wrong at the start is told already.
        checks.tick().await;
        loop {
            let news = tokio::select! {
                _ = checks.tick() => follower.has_other_trouble().await,
                Ok(()) = troubles.changed() => follower.has_other_trouble().await,
                () = either(&mut changes) => false,
            };
            let state = *changes.borrow_and_update();
            if let Some(reasons) = Box::pin(follower.look(state, news)).await {
                tell(reasons);
            }
        }
    }
}

/// Comes back when the store changed, and now and then in any case.
async fn either(changes: &mut watch::Receiver<StoreState>) {
    tokio::select! {
        () = tokio::time::sleep(FOLLOW_EVERY) => {}
        Ok(()) = changes.changed() => {}
    }
}

/// What is known of all that is followed.
struct Follower<'a> {
    opened: &'a Opened,
    sources: &'a Sources,
    state: StoreState,
    stamp: Stamp,
    trust: Trust,
    configuration: Configuration,
    /// The project's tools folders that settings name: who comes to change one ends its trust, until that is undone.
    decisive: Vec<PathBuf>,
    trouble: Vec<String>,
    /// What was wrong with trust and settings when they were last read.
    unread: Vec<String>,
    /// Does what was read from the store count?
    known: bool,
    /// Settings that changed and wait for a restart.
    waiting: Vec<&'static str>,
}

impl<'a> Follower<'a> {
    fn new(opened: &'a Opened, sources: &'a Sources, state: StoreState) -> Follower<'a> {
        let trouble = opened.store.held().err().map(|error| error.to_string());
        let mut follower = Follower {
            opened,
            sources,
            state,
            stamp: opened.stamp.clone(),
            trust: opened.trust.clone(),
            configuration: Configuration::clone(&sources.configuration()),
            decisive: Vec::new(),
            trouble: trouble.into_iter().collect(),
            unread: Vec::new(),
            known: opened.store.is_known(),
            waiting: Vec::new(),
        };
        follower.note_decisive();
        follower
    }

    /// Asks what does not work.
    async fn has_other_trouble(&mut self) -> bool {
        let now = self.opened.trouble().await;
        let differs = now != self.trouble;
        self.trouble = now;
        differs
    }

    /// Takes up what changed. Gives what is wrong now, where that may be something else.
    async fn look(&mut self, state: StoreState, news: bool) -> Option<Vec<String>> {
        let changed = StoreChange::between(self.state, state);
        self.state = state;
        let env = &self.opened.env;
        let stamp = Stamp::of(env, self.opened.project.as_ref(), &self.decisive);
        // What was known counts no longer, or again.
        let known = self.opened.store.is_known();
        let turned =
            std::mem::replace(&mut self.known, known) != known || (news && !self.unread.is_empty());
        if stamp == self.stamp && !turned && !changed.trust {
            if changed.grants {
                self.sources.regrant(self.opened.store.grants()).await;
            }
            return news.then(|| self.reasons());
        }
        self.stamp = stamp;
        tracing::debug!("trust or settings may have changed; both are read again");
        let trust = self.follow_trust().await;
        let settings = self.follow_settings().await;
        self.unread = trust.into_iter().chain(settings).collect();
        let entries = self.opened.store.entries_of(self.opened.project.as_ref());
        trust_entries(&mut self.configuration.folders, &entries.await);
        say_why(&mut self.configuration.folders, &self.trust);
        self.sources.regrant(self.opened.store.grants()).await;
        self.sources.configure(self.configuration.clone()).await;
        Some(self.reasons())
    }

    fn reasons(&self) -> Vec<String> {
        let mut all = self.trouble.clone();
        for reason in self.unread.iter().filter(|one| !self.trouble.contains(one)) {
            all.push(reason.clone());
        }
        all
    }

    /// Reads whether the project is trusted; gives why nobody knows, if so.
    async fn follow_trust(&mut self) -> Option<String> {
        let opened = self.opened;
        let trust = opened.store.trust_of(&opened.env, opened.project.as_ref());
        let trust = trust.await;
        if trust.is_trusted() && self.trust.is_trusted() && trust != self.trust {
            // Withdrawn and given again between two looks: withdrawn all the same.
            let folders = opened.without_trust(self.configuration.folders.clone());
            let withdrawn = Configuration {
                folders,
                ..self.configuration.clone()
            };
            self.sources.configure(withdrawn).await;
        }
        self.trust = trust;
        self.note_decisive();
        match &self.trust {
            Trust::Unknown(reason) => Some(reason.clone()),
            _ => None,
        }
    }

    /// Reads the settings, and applies those that are followed; gives why they can't be used, if so.
    async fn follow_settings(&mut self) -> Option<String> {
        let opened = self.opened;
        let trusted = self.trust.is_trusted();
        let project = opened.project.as_ref();
        let settings = match Settings::load(&opened.env, &opened.flags, project, trusted) {
            Ok(settings) => settings,
            Err(error) => {
                tracing::warn!(%error, hint = error.hint, "settings can't be used; the last ones stand");
                // Whatever else is wrong: a withdrawn trust is withdrawn.
                if !trusted {
                    let folders = std::mem::take(&mut self.configuration.folders);
                    self.configuration.folders = opened.without_trust(folders);
                }
                return Some(error.to_string());
            }
        };
        self.name_what_waits(opened.settings.changed_at_restart(&settings));
        opened.crib.set_profiles(profiles(&settings));
        self.configuration = super::configuration(&settings);
        opened.place.safe.set(settings.secrets);
        let gate = &opened.place.gate;
        gate.store(settings.gate, std::sync::atomic::Ordering::Relaxed);
        None
    }

    fn name_what_waits(&mut self, changed: Vec<&'static str>) {
        for key in changed.iter().filter(|key| !self.waiting.contains(key)) {
            tracing::warn!(key, "this setting changed; restart the crib to apply it");
        }
        self.waiting = changed;
    }

    fn note_decisive(&mut self) {
        self.decisive = match (&self.trust, &self.opened.project) {
            (Trust::Trusted { .. } | Trust::Lapsed(_), Some(project)) => {
                local_folders(&self.opened.env, project)
            }
            _ => Vec::new(),
        };
    }
}

#[cfg(test)]
mod tests {
    use toolcrib_store::Revisions;

    use super::*;

    #[test]
    fn only_trust_and_grants_are_read_again() {
        let state = |opening, revisions| StoreState { opening, revisions };
        let before = state(1, Some(Revisions::default()));
        let change = |edit: fn(&mut Revisions)| {
            let mut now = Revisions::default();
            edit(&mut now);
            let StoreChange { trust, grants } = StoreChange::between(before, state(1, Some(now)));
            (trust, grants)
        };
        assert_eq!(change(|now| now.tokens += 1), (false, false));
        assert_eq!(change(|now| now.custom_tools += 1), (false, false));
        assert_eq!(change(|now| now.grants += 1), (false, true));
        assert_eq!(change(|now| now.trust += 1), (true, false));
        // Another store may hold anything.
        let other = StoreChange::between(before, state(2, Some(Revisions::default())));
        assert!(other.trust && other.grants);
        let gone = StoreChange::between(before, state(2, None));
        assert!(gone.trust && gone.grants);
    }
}
