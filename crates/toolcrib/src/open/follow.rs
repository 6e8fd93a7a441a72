//! What a serving crib follows while it runs: trust, grants and settings. Registered tools, tokens and files have
//! followers of their own.

use std::path::PathBuf;
use std::time::Duration;

use toolcrib_sources::Sources;
use toolcrib_store::Revisions;

use super::{Opened, Stamp};
use crate::config::{Settings, local_folders, profiles, trust_entries};
use crate::store_handle::Trust;

/// How often a running crib looks whether trust or settings changed.
const FOLLOW_EVERY: Duration = Duration::from_millis(200);
/// After how many of those looks the store itself is asked how it is.
const CHECK_EVERY: u32 = 10;

/// Which changes of the store concern the tools; registered tools and tokens have followers of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct StoreChange {
    trust: bool,
    grants: bool,
}

impl StoreChange {
    fn between(before: Option<Revisions>, now: Option<Revisions>) -> StoreChange {
        let differs = |of: fn(Revisions) -> u64| before.map(of) != now.map(of);
        StoreChange {
            trust: differs(|revisions| revisions.trust),
            grants: differs(|revisions| revisions.grants),
        }
    }
}

impl Opened {
    /// Follows trust, grants and settings that other processes change, until it is dropped. `tell` hears what is wrong.
    pub async fn follow(&self, sources: &Sources, tell: impl Fn(Vec<String>)) {
        let mut seen = self.stamp.clone();
        let mut last = self.trust.clone();
        let mut folders = self.settings.folders.clone();
        let mut opened = self.memory.opened();
        let mut changes = self.memory.store().ok().map(|store| store.watch());
        let mut known = changes.as_mut().map(|changes| *changes.borrow_and_update());
        let mut trouble: Vec<String> = Vec::from_iter(self.memory.store().err())
            .iter()
            .map(ToString::to_string)
            .collect();
        let mut local = self.decisive(&self.trust);
        let mut ticks: u32 = 0;
        let mut waiting = Vec::new();
        loop {
            tokio::time::sleep(FOLLOW_EVERY).await;
            ticks = ticks.wrapping_add(1);
            let mut news = false;
            if ticks.is_multiple_of(CHECK_EVERY) {
                let now = self.trouble().await;
                news = now != trouble;
                trouble = now;
            }
            if changes.is_none() || opened != self.memory.opened() {
                opened = self.memory.opened();
                changes = self.memory.store().ok().map(|store| store.watch());
                news |= changes.is_some();
            }
            let revisions = changes.as_mut().map(|changes| *changes.borrow_and_update());
            let changed = StoreChange::between(known, revisions);
            known = revisions;
            let now = Stamp::of(&self.env, self.project.as_ref(), &local);
            if now == seen && !news && !changed.trust {
                if changed.grants {
                    sources.regrant(self.memory.grants()).await;
                }
                continue;
            }
            seen = now;
            let trust = self.memory.trust_of(&self.env, self.project.as_ref()).await;
            if trust.is_trusted() && last.is_trusted() && trust != last {
                // Withdrawn and given again between two looks: withdrawn all the same.
                sources
                    .set_folders(self.without_trust(folders.clone()))
                    .await;
            }
            last = trust.clone();
            local = self.decisive(&trust);
            let mut reasons = trouble.clone();
            if let Trust::Unknown(reason) = &trust
                && !trouble.contains(reason)
            {
                reasons.push(reason.clone());
            }
            match Settings::load(
                &self.env,
                &self.flags,
                self.project.as_ref(),
                trust.is_trusted(),
            ) {
                Ok(settings) => {
                    let changed = self.settings.changed_at_restart(&settings);
                    if changed != waiting {
                        for key in &changed {
                            tracing::warn!(
                                key,
                                "this setting changed; restart the crib to apply it"
                            );
                        }
                        waiting = changed;
                    }
                    self.crib.set_profiles(profiles(&settings));
                    self.place.safe.set(settings.secrets);
                    sources
                        .enable_registered(settings.custom_tools_enabled)
                        .await;
                    folders = settings.folders;
                }
                Err(error) => {
                    tracing::warn!(%error, hint = error.hint, "settings can't be used; the last ones stand");
                    reasons.push(error.to_string());
                    // Whatever else is wrong: a withdrawn trust is withdrawn.
                    if !trust.is_trusted() {
                        folders = self.without_trust(folders);
                    }
                }
            }
            let entries = self.memory.entries_of(self.project.as_ref()).await;
            trust_entries(&mut folders, &entries);
            tell(reasons);
            sources.regrant(self.memory.grants()).await;
            sources.set_folders(folders.clone()).await;
        }
    }

    /// The project's tools folders that settings name: who comes to change one ends its trust, until that is undone.
    fn decisive(&self, trust: &Trust) -> Vec<PathBuf> {
        match (trust, &self.project) {
            (Trust::Trusted { .. } | Trust::Lapsed(_), Some(project)) => {
                local_folders(&self.env, project)
            }
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_trust_and_grants_are_read_again() {
        let before = Some(Revisions::default());
        let change = |edit: fn(&mut Revisions)| {
            let mut now = Revisions::default();
            edit(&mut now);
            let StoreChange { trust, grants } = StoreChange::between(before, Some(now));
            (trust, grants)
        };
        assert_eq!(change(|now| now.tokens += 1), (false, false));
        assert_eq!(change(|now| now.custom_tools += 1), (false, false));
        assert_eq!(change(|now| now.grants += 1), (false, true));
        assert_eq!(change(|now| now.trust += 1), (true, false));
    }
}
