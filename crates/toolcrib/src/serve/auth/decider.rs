//! Who may decide on calls. A [`Decider`] is made of a proof, and each proof by its own door alone.

use std::sync::Arc;

use toolcrib_core::{CallError, ErrorCode};

use super::{Proof, Scope, Who};
use crate::approver::process::ProcessId;
use crate::approver::terminal::{PersonAtTerminal, person_at};
use crate::approver::webhook::VerifiedCallback;
use crate::env::Env;

/// A process of this user that asks at the socket, or right here.
#[derive(Clone)]
pub struct LocalProcess {
    pub id: ProcessId,
    pub env: Arc<Env>,
}

impl std::fmt::Debug for LocalProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "process {}", self.id.pid)
    }
}

/// Somebody who decides, and how it is known that they may. Decisions are taken from nobody else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decider {
    by: String,
    how: &'static str,
}

impl Decider {
    /// Who signed a decision with the secret that only people's programs have.
    pub fn of_webhook(callback: &VerifiedCallback, name: Option<&str>) -> Decider {
        let name: String = name.unwrap_or("webhook").chars().take(100).collect();
        Decider {
            by: format!("{name} ({})", callback.id),
            how: "webhook",
        }
    }

    fn at(person: PersonAtTerminal) -> Decider {
        let PersonAtTerminal { terminal, user } = person;
        Decider {
            by: format!("user {user} at {terminal}"),
            how: "terminal",
        }
    }

    pub fn by(&self) -> &str {
        &self.by
    }

    pub fn how(&self) -> &'static str {
        self.how
    }
}

impl Who {
    /// The owner, who asks with this process.
    pub fn owner_with(process: LocalProcess) -> Who {
        let owner = Who::owner();
        Who::new(owner.scopes(), owner.agent(), Proof::Owner(Some(process)))
    }

    /// The process that the owner asks with, where that is known.
    pub fn process(&self) -> Option<&LocalProcess> {
        match &self.0.proof {
            Proof::Owner(process) => process.as_ref(),
            Proof::None | Proof::Token(_) | Proof::Session(_) => None,
        }
    }

    /// Who they are as one who decides, or why they may not.
    pub fn decider(&self) -> Result<Decider, CallError> {
        match &self.0.proof {
            Proof::Owner(Some(LocalProcess { id, env })) => {
                let person = person_at(*id, env);
                person.map(Decider::at).map_err(|why| why.refusal())
            }
            Proof::Token(id) if self.may(Scope::Approve) => Ok(Decider {
                by: format!("token {id}"),
                how: "rest",
            }),
            Proof::Session(_) if self.may(Scope::Approve) => Ok(Decider {
                by: self.identity().into_owned(),
                how: "login",
            }),
            _ => Err(self.may_not_decide()),
        }
    }

    /// Why whoever asks may not decide.
    fn may_not_decide(&self) -> CallError {
        let (message, hint) = match &self.0.proof {
            Proof::Owner(_) => (
                "only a person decides on calls, and nobody knows which process asks",
                "run `toolcrib approvals` in a terminal of your own",
            ),
            Proof::None => (
                "only a person decides on calls, and this port is open to everybody",
                "run `toolcrib approvals` in a terminal of your own",
            ),
            Proof::Session(_) => (
                "this login may look, and not decide on calls",
                "run `toolcrib token login --approve` in a terminal of your own, and open the URL that it prints",
            ),
            Proof::Token(_) => (
                "the token does not have the scope `approve`",
                "make one that has, in a terminal of your own: `toolcrib token create NAME --scope read,approve`",
            ),
        };
        CallError::new(ErrorCode::Forbidden, message).hint(hint)
    }
}
