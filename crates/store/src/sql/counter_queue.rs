//! Counters of a store that is a server: a table, and a task that takes all steps that wait in one transaction.
//!
//! Rows are locked in the order of their keys, so that no two transactions wait for each other, and the server's clock
//! decides. Nothing waits for the server's disk.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use toolcrib_core::counter::{CountVerdict, Counter, CounterSteps, decide};
use toolcrib_core::store::StoreError;

use super::db::Db;
use super::value::values;

/// The longest that a call waits for its count.
const PATIENCE: Duration = Duration::from_secs(3);
const QUEUE: usize = 10_000;
/// So many are taken together.
const BATCH: usize = 200;
/// Every so many transactions counters go that say nothing any more.
const SWEEP_EVERY: u32 = 1_000;

/// Locks the row, which is made where there is none. To write the key again changes nothing.
const LOCK: &str = "INSERT INTO counters (key, state, until_ms) VALUES ($1, '', 0) \
    ON CONFLICT (key) DO UPDATE SET key = excluded.key RETURNING state";
const WRITE: &str = "UPDATE counters SET state = $2, until_ms = $3 WHERE key = $1";
const SWEEP: &str = "DELETE FROM counters WHERE key IN \
    (SELECT key FROM counters WHERE until_ms < $1 ORDER BY key LIMIT 500 FOR UPDATE SKIP LOCKED)";
const NOW: &str = "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) AS now_ms";

pub(super) struct CounterQueue {
    db: Db,
    steps: mpsc::Sender<Asked>,
}

/// Steps that somebody wants, and who waits for them.
struct Asked {
    steps: CounterSteps,
    answer: Option<oneshot::Sender<Result<CountVerdict, StoreError>>>,
}

impl CounterQueue {
    pub fn start(db: Db) -> CounterQueue {
        let (steps, asked) = mpsc::channel(QUEUE);
        tokio::spawn(work(db.clone(), asked));
        CounterQueue { db, steps }
    }

    pub async fn ask(&self, steps: CounterSteps) -> Result<CountVerdict, StoreError> {
        let asked = async {
            let (answer, answered) = oneshot::channel();
            let answer = Some(answer);
            self.steps.send(Asked { steps, answer }).await.ok()?;
            answered.await.ok()
        };
        // What is counted after this is given back, because nobody takes the answer.
        let answered = timeout(PATIENCE, asked).await.ok().flatten();
        answered.unwrap_or_else(|| Err(self.db.place().too_late()))
    }

    pub fn tell(&self, steps: CounterSteps) {
        let answer = None;
        if self.steps.try_send(Asked { steps, answer }).is_err() {
            tracing::warn!("a count was not given back: the store is too slow");
        }
    }
}

async fn work(db: Db, mut asked: mpsc::Receiver<Asked>) {
    let mut batch = Vec::new();
    let mut transactions = 0_u32;
    while asked.recv_many(&mut batch, BATCH).await > 0 {
        batch.retain(|one| one.answer.as_ref().is_none_or(|answer| !answer.is_closed()));
        let mut waits = std::mem::take(&mut batch);
        while !waits.is_empty() {
            transactions = transactions.wrapping_add(1);
            let made = make(&db, &waits, transactions % SWEEP_EVERY == 1).await;
            waits = answer(waits, made);
        }
    }
}

/// Tells who waits. Gives what is to be given back, because nobody took the answer.
fn answer(batch: Vec<Asked>, made: Result<Vec<CountVerdict>, StoreError>) -> Vec<Asked> {
    let mut back = Vec::new();
    let verdicts = match made {
        Ok(verdicts) => verdicts,
        Err(error) => {
            tracing::warn!(%error, "calls can't be counted");
            for answer in batch.into_iter().filter_map(|asked| asked.answer) {
                let _ = answer.send(Err(error.clone()));
            }
            return back;
        }
    };
    for (asked, verdict) in batch.into_iter().zip(verdicts) {
        let Some(answer) = asked.answer else { continue };
        let at_ms = verdict.as_ref().ok().copied();
        if answer.send(Ok(verdict)).is_err()
            && let Some(at_ms) = at_ms
        {
            let undone = asked.steps.iter();
            let undone = undone.filter_map(|(key, step)| Some((key.clone(), step.undone(at_ms)?)));
            back.push(Asked {
                steps: undone.collect(),
                answer: None,
            });
        }
    }
    back
}

async fn make(db: &Db, batch: &[Asked], sweeps: bool) -> Result<Vec<CountVerdict>, StoreError> {
    let keys: BTreeSet<&Arc<str>> = batch
        .iter()
        .flat_map(|asked| asked.steps.iter().map(|(key, _)| key))
        .collect();
    let mut tx = db.begin().await?;
    tx.run("SET LOCAL synchronous_commit = off", values![])
        .await?;
    let mut counters = BTreeMap::new();
    for key in keys {
        let rows = tx.rows(LOCK, values![&**key]).await?;
        let state = rows.first().map(|row| row.text("state")).transpose();
        let state = state.map_err(|error| db.unreadable("counters", error))?;
        counters.insert(key.clone(), Counter::read(&state.unwrap_or_default()));
    }
    // After the locks, or who waited for them would be behind whoever held them.
    let rows = tx.rows(NOW, values![]).await?;
    let now_ms = rows.first().map(|row| row.number("now_ms")).transpose();
    let now_ms = now_ms
        .map_err(|error| db.unreadable("counters", error))?
        .unwrap_or(0);
    let verdicts = batch
        .iter()
        .map(|asked| decide(&asked.steps, now_ms, &mut counters));
    let verdicts = verdicts.collect();
    for (key, counter) in &counters {
        let state = counter.written();
        tx.run(WRITE, values![&**key, &state, counter.ends()])
            .await?;
    }
    if sweeps {
        tx.run(SWEEP, values![now_ms]).await?;
    }
    tx.commit().await?;
    Ok(verdicts)
}
