//! Scopes: what a token may be used for.

use clap::ValueEnum;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Scope {
    /// Look: lists, tools, outputs, events, health
    Read,
    /// Call tools
    Call,
    /// Change things: reload, registrations, grants, trust, tokens; read what workers said
    Manage,
    /// Decide on calls that wait for a person
    Approve,
}

impl Scope {
    pub const ALL: [Scope; 4] = [Scope::Read, Scope::Call, Scope::Manage, Scope::Approve];

    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Read => "read",
            Scope::Call => "call",
            Scope::Manage => "manage",
            Scope::Approve => "approve",
        }
    }
}

/// A set of scopes. None follows from another: `manage` alone may not even look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scopes(u8);

impl Scopes {
    pub fn all() -> Scopes {
        Scopes::of(Scope::ALL)
    }

    pub fn of(scopes: impl IntoIterator<Item = Scope>) -> Scopes {
        let bits = scopes.into_iter().map(|scope| 1 << scope as u8);
        Scopes(bits.fold(0, |all, one: u8| all | one))
    }

    /// As the store keeps them. A word that this version does not know gives no right.
    pub fn named(words: &[String]) -> Scopes {
        let known = |word: &String| Scope::ALL.into_iter().find(|scope| scope.as_str() == word);
        Scopes::of(words.iter().filter_map(known))
    }

    pub fn has(self, scope: Scope) -> bool {
        self.0 & (1 << scope as u8) != 0
    }

    /// Is each of these among them?
    pub fn hold(self, others: Scopes) -> bool {
        self.0 & others.0 == others.0
    }

    /// As the store keeps them, always in the same order.
    pub fn names(self) -> Vec<String> {
        let own = Scope::ALL.into_iter().filter(|scope| self.has(*scope));
        own.map(|scope| scope.as_str().to_owned()).collect()
    }
}

impl<const N: usize> From<[Scope; N]> for Scopes {
    fn from(scopes: [Scope; N]) -> Scopes {
        Scopes::of(scopes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_what_they_were_made_of() {
        let some = Scopes::named(&["read".to_owned(), "approve".to_owned(), "root".to_owned()]);
        let has = Scope::ALL.map(|scope| some.has(scope));
        assert_eq!(has, [true, false, false, true]);
        assert_eq!(some, Scopes::of([Scope::Approve, Scope::Read]));
        assert_eq!(some.names(), ["read", "approve"]);
        assert!(some.hold(Scopes::of([Scope::Read])) && some.hold(Scopes::default()));
        assert!(!some.hold(Scopes::of([Scope::Read, Scope::Manage])));
        assert!(Scope::ALL.iter().all(|scope| Scopes::all().has(*scope)));
        assert!(
            Scope::ALL
                .iter()
                .all(|scope| !Scopes::default().has(*scope))
        );
    }
}
