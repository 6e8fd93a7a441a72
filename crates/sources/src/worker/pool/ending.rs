//! How the workers of a pool end: where others need their place, and with the crib or the tool.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Member, Pool};

impl Pool {
    /// Its workers: since when each is idle, where it is, and its process.
    pub(in crate::worker) fn workers(&self) -> Vec<(Option<Instant>, u32)> {
        let state = self.state();
        let since = |member: &Member| (member.busy == 0).then_some(member.idle_since);
        let members = state.members.iter();
        members
            .map(|member| (since(member), member.worker.process()))
            .collect()
    }

    /// Ends this worker, if it is still idle. Gives whether it was.
    pub(in crate::worker) fn end_idle(&self, process: u32) -> bool {
        let mut state = self.state();
        let mut members = state.members.iter();
        let at = members.position(|one| one.busy == 0 && one.worker.process() == process);
        if let Some(at) = at {
            state.members.swap_remove(at).worker.end();
        }
        at.is_some()
    }

    /// Takes no new calls, waits `grace` for those in flight, then ends all workers.
    pub(in crate::worker) async fn close(self: &Arc<Pool>, grace: Duration) {
        let deadline = Instant::now() + grace;
        {
            let mut state = self.state();
            state.closed = true;
            state.queue.clear();
        }
        loop {
            let moved = self.moved.notified();
            let busy = {
                let state = self.state();
                !state.starting.is_empty() || state.members.iter().any(|member| member.busy > 0)
            };
            if !busy || tokio::time::timeout_at(deadline, moved).await.is_err() {
                break;
            }
        }
        self.over.send_replace(true);
        let members = std::mem::take(&mut self.state().members);
        let end = |Member { worker, .. }: Member| {
            worker.end();
            worker.ended()
        };
        let ended: Vec<_> = members.into_iter().map(end).collect();
        let limit = self.limits().end_grace + Duration::from_secs(1);
        let _ = tokio::time::timeout(limit, futures_util::future::join_all(ended)).await;
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // Nobody holds the tool any more: the file changed or is gone.
        for member in &self.state().members {
            member.worker.end();
        }
    }
}
