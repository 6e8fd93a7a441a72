//! What a pool tells about its workers: what they may touch, what they were kept from, what is hidden in what they say.

use toolcrib_core::Hidden;
use toolcrib_sandbox::{Account, Denial, Policy, StartError};

use super::Pool;

impl Pool {
    /// Hosts that its workers asked for and may not reach, since this was last asked.
    pub(crate) fn denials(&self) -> Vec<Denial> {
        let workers: Vec<_> = {
            let state = self.state();
            let members = state.members.iter();
            members.map(|member| member.worker.clone()).collect()
        };
        workers.iter().flat_map(|worker| worker.denials()).collect()
    }

    /// What must not be seen in what its workers give, where there is anything.
    pub(crate) fn hidden(&self) -> Option<Hidden> {
        self.recipe.hides().then(|| self.hidden.clone())
    }

    /// Writes into the tool's log where a call failed, for the person who looks for it. Secrets that were handed out since
    /// are hidden in it, too.
    pub(crate) fn note(&self, text: &str) {
        let mask = self.hidden.mask();
        let masked = mask.text(text);
        let logs = &self.ground.logs;
        logs.append(&self.recipe.name, masked.as_bytes());
    }

    /// What its workers may touch, where they are confined.
    pub(crate) fn policy(&self) -> Option<&Policy> {
        self.recipe.confinement.policy()
    }

    /// What enforces that, without starting anything; nothing where they are not confined.
    pub(crate) async fn account(&self) -> Result<Option<Account>, StartError> {
        let ground = &*self.ground;
        let command = self.recipe.command();
        command.account(&ground.launcher, &ground.environment).await
    }
}
