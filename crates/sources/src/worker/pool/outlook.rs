//! What a pool tells about its workers: what they may touch, what they were kept from, what is hidden in what they say.

use toolcrib_core::Hidden;
use toolcrib_sandbox::{Account, Denial, StartError};

use super::Pool;
use crate::denied::Held;

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

    /// How much memory its workers may use, in megabytes, where they are confined.
    pub(crate) fn memory_mb(&self) -> Option<u64> {
        let policy = self.recipe.confinement.policy();
        policy.map(|policy| policy.memory_mb)
    }

    /// Writes into the tool's log where a call failed, for the person who looks for it. Secrets that were handed out since
    /// are hidden in it, too.
    pub(crate) fn note(&self, text: &str) {
        let mask = self.hidden.mask();
        let masked = mask.text(text);
        let logs = &self.ground.logs;
        logs.append(&self.recipe.name, masked.as_bytes());
    }

    /// Why its program is not there, if so.
    pub(crate) fn missing(&self) -> Option<String> {
        let (recipe, environment) = (&self.recipe, &self.ground.environment);
        let missing = toolcrib_sandbox::missing(&recipe.program, &recipe.dir, environment);
        missing.map(|error| error.to_string())
    }

    /// What holds its workers, where something does.
    pub(crate) fn held(&self) -> Option<Held> {
        self.recipe.held(&self.ground.launcher)
    }

    /// Its next call gets another process: what it may write without namespaces is settled when a process starts.
    pub(crate) fn renew(&self) {
        let mut state = self.state();
        for member in &mut state.members {
            member.leaving = true;
        }
        let (busy, idle) = std::mem::take(&mut state.members)
            .into_iter()
            .partition(|member| member.busy > 0);
        state.members = busy;
        for member in idle {
            member.worker.end();
        }
    }

    /// What enforces that, without starting anything; nothing where they are not confined.
    pub(crate) async fn account(&self) -> Result<Option<Account>, StartError> {
        let ground = &*self.ground;
        let command = self.recipe.command();
        command.account(&ground.launcher, &ground.environment).await
    }
}
