//! How the workers of a pool are: asked now and then, or when somebody wants to know.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::time::Instant;
use toolcrib_core::{Health, Standing};

use super::turns::COMPANY_IDLE;
use super::{NO_TOOL, Pool};
use crate::worker::message::RpcError;
use crate::worker::now_ms;
use crate::worker::process::Worker;

/// What a worker's answer to `health` comes to.
type Verdict = (Health, Option<String>);

impl Pool {
    /// A worker answered a call with an error. One that does not know the protocol is not well.
    pub fn answered(&self, tool: &str, error: &RpcError) {
        let foreign = [
            RpcError::PARSE,
            RpcError::INVALID_REQUEST,
            RpcError::METHOD_NOT_FOUND,
        ];
        if foreign.contains(&error.code) {
            let told = format!(
                "it answered `execute` with error {}: {}",
                error.code, error.message
            );
            self.stand(tool, |state| {
                state.standing.health = Health::Unhealthy;
                state.standing.message = Some(told.chars().take(500).collect());
            });
        }
    }

    /// Asks a worker how it is, and starts one if need be.
    pub async fn check(self: &Arc<Pool>, tool: &str) -> Standing {
        match self.worker(tool, None).await {
            Ok(lease) => {
                if let Some(worker) = lease.worker() {
                    self.judge(tool, self.ask(worker).await);
                }
            }
            Err(fault) => {
                let told = fault.message();
                self.stand(tool, |state| {
                    state.standing.checked_ms = Some(now_ms());
                    state.standing.health = Health::Unhealthy;
                    state.standing.message = Some(told);
                });
            }
        }
        self.standing(tool)
    }

    /// What a worker says of its health; nothing where it does not answer in time.
    async fn ask(&self, worker: &Worker) -> Option<Verdict> {
        let asked = worker.request("health", json!({}), None);
        let answer = tokio::time::timeout(self.limits().health, asked).await;
        Some(match answer.ok()? {
            Ok(Ok(answer)) => {
                let said = answer.value().get("status").and_then(Value::as_str);
                let message = answer.value().get("message").and_then(Value::as_str);
                match said.and_then(Health::parse) {
                    Some(health) => (health, message.map(str::to_owned)),
                    None => unhealthy("its answer to `health` has no known `status`".to_owned()),
                }
            }
            Ok(Err(RpcError { code, message, .. })) => {
                unhealthy(format!("it answered `health` with error {code}: {message}"))
            }
            Err(fault) => unhealthy(fault.message()),
        })
    }

    fn judge(&self, tool: &str, verdict: Option<Verdict>) {
        let ms = self.limits().health.as_millis();
        let late = || unhealthy(format!("it did not answer `health` within {ms} ms"));
        let (health, message) = verdict.unwrap_or_else(late);
        let mask = self.hidden.mask();
        let message = message.map(|text| mask.text(&text).into_owned());
        tracing::debug!(
            tool = self.name(),
            health = health.as_str(),
            reason = message,
            "health"
        );
        self.stand(tool, |state| {
            state.standing.checked_ms = Some(now_ms());
            state.standing.health = health;
            state.standing.message = message.map(|text| text.chars().take(500).collect());
            if health == Health::Healthy {
                state.failures.forgive(tool);
            }
        });
    }

    /// Stops what was idle for long, and asks idle workers for their health when it is time.
    pub(in crate::worker) fn attend(self: &Arc<Pool>) {
        let limits = *self.limits();
        let idle = self.ground.places.idle(limits.idle);
        let now = Instant::now();
        let mut asked = None;
        let refused = {
            let mut state = self.state();
            let mut surplus = state.shared().saturating_sub(self.size());
            // The first was there before its company, and stays.
            for at in (0..state.members.len()).rev() {
                let member = &state.members[at];
                let company = surplus > 0 && member.only.is_none();
                let idle = if company {
                    idle.min(COMPANY_IDLE)
                } else {
                    idle
                };
                if member.busy == 0 && now.duration_since(member.idle_since) >= idle {
                    surplus = surplus.saturating_sub(usize::from(company));
                    state.members.remove(at).worker.end();
                }
            }
            if now >= state.next_check {
                state.next_check = now + limits.health_every;
                let idle = state
                    .members
                    .iter()
                    .find(|member| member.busy == 0 && !member.leaving && member.worker.is_alive());
                asked = idle.map(|member| member.worker.clone());
            }
            self.hand_out(&mut state)
        };
        drop(refused);
        let Some(worker) = asked else { return };
        // It holds no lane: a call that comes meanwhile is simply the next line.
        let pool = self.clone();
        tokio::spawn(async move {
            let verdict = pool.ask(&worker).await;
            let unanswered = worker.given_up();
            // Who works on a call has a reason to be silent.
            if verdict.is_none() && pool.is_busy(&worker) {
                return;
            }
            pool.judge(NO_TOOL, verdict);
            if unanswered.is_some() {
                worker.kill();
            }
        });
    }

    fn is_busy(&self, worker: &Arc<Worker>) -> bool {
        let state = self.state();
        let member = state
            .members
            .iter()
            .find(|member| Arc::ptr_eq(&member.worker, worker));
        member.is_some_and(|member| member.busy > 0)
    }
}

fn unhealthy(why: String) -> Verdict {
    (Health::Unhealthy, Some(why))
}
