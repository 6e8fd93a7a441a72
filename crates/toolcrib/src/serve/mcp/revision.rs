//! The revisions of MCP that are spoken here, and what differs between them.

/// One revision, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Revision {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
}

impl Revision {
    pub const ALL: [Revision; 5] = [
        Revision::V2024_11_05,
        Revision::V2025_03_26,
        Revision::V2025_06_18,
        Revision::V2025_11_25,
        Revision::V2026_07_28,
    ];
    /// The revision whose requests stand alone.
    pub const STATELESS: Revision = Revision::V2026_07_28;

    pub fn as_str(self) -> &'static str {
        match self {
            Revision::V2024_11_05 => "2024-11-05",
            Revision::V2025_03_26 => "2025-03-26",
            Revision::V2025_06_18 => "2025-06-18",
            Revision::V2025_11_25 => "2025-11-25",
            Revision::V2026_07_28 => "2026-07-28",
        }
    }

    pub fn named(name: &str) -> Option<Revision> {
        Revision::ALL.into_iter().find(|one| one.as_str() == name)
    }

    /// What `initialize` is answered with: what the client wants where it is known and begins that way, else the
    /// newest that does.
    pub fn offered(wanted: &str) -> Revision {
        Revision::named(wanted)
            .filter(|revision| !revision.is_stateless())
            .unwrap_or(Revision::V2025_11_25)
    }

    /// Does every request stand alone, without `initialize` before it?
    pub fn is_stateless(self) -> bool {
        self >= Revision::STATELESS
    }

    /// May several messages come as one array?
    pub fn has_batches(self) -> bool {
        self == Revision::V2025_03_26
    }
}

/// Is this the name of a revision, known or not, whose requests stand alone? Names are dates.
pub fn stands_alone(name: &str) -> bool {
    name >= Revision::STATELESS.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_gets_what_it_wants_where_that_begins_with_initialize() {
        for revision in Revision::ALL {
            assert_eq!(Revision::named(revision.as_str()), Some(revision));
            let offered = Revision::offered(revision.as_str());
            let expected = if revision.is_stateless() {
                Revision::V2025_11_25
            } else {
                revision
            };
            assert_eq!(offered, expected);
            assert_eq!(stands_alone(revision.as_str()), revision.is_stateless());
        }
        for odd in ["", "x", "2031-01-01", "2024-11-04"] {
            assert_eq!(Revision::offered(odd), Revision::V2025_11_25);
        }
    }
}
