//! What holds a process: walls, or the user's own word that it needs none. Nothing is started without one of the two.

use crate::policy::Policy;

/// What holds a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Confinement {
    Walled(Box<Policy>),
    /// It may do what the user may.
    ByUser(Consent),
}

/// The user's own word that a process may do what the user may. Settings make it, out of the user's own file or
/// variables; clippy refuses the constructor everywhere else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Consent(());

impl Consent {
    /// Call this only where the user's own settings say so.
    pub fn from_user_settings() -> Consent {
        Consent(())
    }
}

impl Confinement {
    /// The walls; none where the user said so.
    pub fn policy(&self) -> Option<&Policy> {
        match self {
            Confinement::Walled(policy) => Some(policy),
            Confinement::ByUser(_) => None,
        }
    }
}

impl From<Policy> for Confinement {
    fn from(policy: Policy) -> Confinement {
        Confinement::Walled(Box::new(policy))
    }
}

impl From<Consent> for Confinement {
    fn from(consent: Consent) -> Confinement {
        Confinement::ByUser(consent)
    }
}
