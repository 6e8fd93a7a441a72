//! What a built-in tool does to the world, as its annotations say it.

use toolcrib_core::Annotations;

/// What a call may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effects {
    /// Nothing: it looks at this machine.
    Looks,
    /// Nothing: it looks at other machines.
    LooksElsewhere,
    /// Files.
    Writes,
    /// A note of the crib's own, which a later call replaces.
    Notes,
    /// It sends something to others, which nobody takes back.
    Sends,
}

impl Effects {
    pub fn annotations(self, title: &str) -> Annotations {
        let reads = matches!(self, Effects::Looks | Effects::LooksElsewhere);
        Annotations {
            title: Some(title.to_owned()),
            read_only_hint: Some(reads),
            idempotent_hint: Some(reads || self == Effects::Notes),
            destructive_hint: Some(self == Effects::Writes),
            open_world_hint: Some(matches!(self, Effects::LooksElsewhere | Effects::Sends)),
        }
    }
}
