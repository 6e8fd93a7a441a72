//! The task behind the call log: gathers records and writes them, many in one transaction.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use sqlx::AssertSqlSafe;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use toolcrib_core::store::{CallRecord, StoreError, UNFINISHED};

use super::call_log::{Ask, BATCH, Tally};
use super::db::Db;
use super::marks;
use super::value::{Bound, values};

/// How long a record waits for others to be written with.
const GATHER: Duration = Duration::from_millis(200);
/// How long the log waits after a write that failed.
const REST: Duration = Duration::from_millis(500);
/// What a name may take; they come from clients.
const LONGEST: usize = 512;

const COLUMNS: usize = 21;
/// Rows per statement: as many as make the way to the database cheap.
const ROWS: usize = 50;
/// The same statement for one row and for many. What is written stays, but for the beginning of a call whose end comes.
static INSERT: LazyLock<[Arc<str>; 2]> = LazyLock::new(|| [insert(1), insert(ROWS)]);

fn insert(rows: usize) -> Arc<str> {
    let row = |row: usize| {
        let marks: Vec<String> = (1..=COLUMNS)
            .map(|n| format!("${}", row * COLUMNS + n))
            .collect();
        format!("({})", marks.join(", "))
    };
    let rows: Vec<String> = (0..rows).map(row).collect();
    let text = format!(
        "INSERT INTO calls (id, at_ms, client, agent, session, token, tool, tool_version, tool_hash, argument_hash, \
         transport, protocol, outcome, error, duration_us, output_bytes, project, middleware, approver, decided_at, decision) VALUES {} ON CONFLICT (id) DO UPDATE SET \
         argument_hash = excluded.argument_hash, transport = excluded.transport, protocol = excluded.protocol, \
         outcome = excluded.outcome, error = excluded.error, duration_us = excluded.duration_us, \
         output_bytes = excluded.output_bytes, middleware = excluded.middleware, approver = excluded.approver, \
         decided_at = excluded.decided_at, decision = excluded.decision WHERE calls.transport = '{UNFINISHED}'",
        rows.join(", ")
    );
    text.into()
}

pub(super) struct Writer {
    db: Db,
    records: mpsc::Receiver<Box<CallRecord>>,
    asked: mpsc::Receiver<Ask>,
    /// What is written next. What could not be written stays here, and the queue behind it fills.
    batch: Vec<CallRecord>,
    /// When it has to be written.
    due: Option<Instant>,
    tally: Arc<Tally>,
}

impl Writer {
    pub(super) fn new(
        db: Db,
        records: mpsc::Receiver<Box<CallRecord>>,
        asked: mpsc::Receiver<Ask>,
        tally: Arc<Tally>,
    ) -> Writer {
        Writer {
            db,
            records,
            asked,
            batch: Vec::with_capacity(BATCH),
            due: None,
            tally,
        }
    }

    pub(super) async fn run(mut self) {
        loop {
            let tally = self.tally.clone();
            let resting = tally.trouble().is_some();
            // Who waits comes first; what is due goes along with it, so that it is not passed over for ever. While it
            // gathers it does not look at the queue, because each look would have to be woken.
            tokio::select! {
                biased;
                Some(ask) = self.asked.recv() => self.answer(ask).await,
                () = sleep_until(self.due.unwrap_or_else(Instant::now)), if self.due.is_some() => {
                    self.fill();
                    let _ = self.write_with(&[]).await;
                }
                () = tally.full.notified(), if self.due.is_some() && !resting => {
                    self.fill();
                    let _ = self.write_with(&[]).await;
                }
                record = self.records.recv(), if self.due.is_none() => match record {
                    Some(record) => self.take(*record),
                    None => {
                        let _ = self.write_with(&[]).await;
                        break;
                    }
                },
            }
            // Nobody hands in any more, and what is left can't be written.
            if self.records.is_closed() && self.tally.trouble().is_some() {
                break;
            }
        }
        let lost = self.batch.len() + self.records.len();
        self.tally.dropped.fetch_add(lost as u64, Ordering::Relaxed);
    }

    fn take(&mut self, record: CallRecord) {
        self.batch.push(record);
        self.fill();
        let now = Instant::now();
        self.due = Some(match self.batch.len() {
            BATCH.. => now,
            _ => now + GATHER,
        });
    }

    async fn answer(&mut self, ask: Ask) {
        let mut records = Vec::new();
        let mut waiting = Vec::new();
        let mut flush = false;
        let mut next = Some(ask);
        // Whoever else waits already is served by the same transaction.
        while let Some(ask) = next {
            match ask {
                Ask::Write(record, answer) => {
                    records.push(*record);
                    waiting.push(answer);
                }
                Ask::Flush(answer) => {
                    flush = true;
                    waiting.push(answer);
                }
            }
            next = (records.len() < BATCH)
                .then(|| self.asked.try_recv().ok())
                .flatten();
        }
        self.fill();
        let mut written = self.write_with(&records).await;
        if flush && written.is_ok() {
            written = self.flush().await;
        }
        for answer in waiting {
            // Who no longer waits does not need to know.
            let _ = answer.send(written.clone());
        }
    }

    /// Takes what is here already.
    fn fill(&mut self) {
        while self.batch.len() < BATCH
            && let Ok(record) = self.records.try_recv()
        {
            self.batch.push(*record);
        }
    }

    async fn flush(&mut self) -> Result<(), StoreError> {
        // What comes in from now on is not waited for, or this might never end.
        let mut left = self.records.len().div_ceil(BATCH);
        while left > 0 {
            left -= 1;
            self.fill();
            self.write_with(&[]).await?;
        }
        Ok(())
    }

    /// Writes the batch and these in one transaction. Of a failure only the batch is left to be tried again.
    async fn write_with(&mut self, others: &[CallRecord]) -> Result<(), StoreError> {
        let number = others.len() + self.batch.len();
        if number == 0 {
            return Ok(());
        }
        let written = self.insert(others.iter().chain(&self.batch)).await;
        match &written {
            Ok(()) => {
                self.tally
                    .written
                    .fetch_add(number as u64, Ordering::Relaxed);
                self.batch.clear();
                self.due = None;
            }
            // What no store takes is not tried for ever, with all that comes behind it.
            Err(error) if !error.is_trouble() && others.is_empty() => {
                tracing::warn!(%error, number, "calls can't be recorded");
                let lost = self.batch.len() as u64;
                self.tally.dropped.fetch_add(lost, Ordering::Relaxed);
                self.batch.clear();
                self.due = None;
            }
            Err(error) => {
                tracing::warn!(%error, number, "calls could not be recorded yet");
                self.due = (!self.batch.is_empty()).then(|| Instant::now() + REST);
            }
        }
        *self.tally.trouble() = written.clone().err();
        written
    }

    async fn insert(&self, records: impl Iterator<Item = &CallRecord>) -> Result<(), StoreError> {
        // Of two with one id a statement takes only one.
        let mut seen = HashSet::new();
        let once = records.filter(|record| seen.insert(&*record.id));
        let rows: Vec<Row<'_>> = once.map(Row::of).collect();
        let mut tx = self.db.begin().await?;
        let (many, few) = rows.as_chunks::<ROWS>();
        for chunk in many {
            let values: Vec<Bound<'_>> = chunk.iter().flat_map(Row::values).collect();
            tx.run(AssertSqlSafe(INSERT[1].clone()), &values).await?;
        }
        for row in few {
            tx.run(AssertSqlSafe(INSERT[0].clone()), &row.values())
                .await?;
        }
        tx.commit().await
    }
}

/// A record whose texts the store takes, whatever a client put into them: one odd name must not hold up the others.
struct Row<'a> {
    record: &'a CallRecord,
    texts: [Option<Cow<'a, str>>; 12],
}

impl<'a> Row<'a> {
    fn of(record: &'a CallRecord) -> Row<'a> {
        let marks = marks::written(&record.marks);
        let decision = record.decision.as_ref();
        let texts = [
            Some(&*record.client),
            Some(&*record.agent),
            record.session.as_deref(),
            record.token.as_deref(),
            Some(&*record.tool),
            record.tool_version.as_deref(),
            record.transport.as_word(),
            record.protocol.as_word(),
            record.outcome.as_word(),
            decision.map(|decision| &*decision.approver),
            decision.map(|decision| &*decision.how),
        ];
        let [a, b, c, d, e, f, g, h, i, j, k] = texts.map(|text| text.map(tame));
        let marks = marks.map(Cow::Owned);
        Row {
            record,
            texts: [a, b, c, d, e, f, g, h, i, j, k, marks],
        }
    }

    fn values(&self) -> [Bound<'_>; COLUMNS] {
        let record = self.record;
        let [
            client,
            agent,
            session,
            token,
            tool,
            version,
            transport,
            protocol,
            outcome,
            approver,
            how,
            marks,
        ] = self.texts.each_ref().map(Option::as_deref);
        *values![
            &*record.id,
            record.at_ms,
            client,
            agent,
            session,
            token,
            tool,
            version,
            record.tool_hash.as_deref(),
            record.argument_hash.as_deref(),
            transport,
            protocol,
            outcome,
            record.error.map(|code| code.as_str()),
            record.duration_us,
            record.output_bytes,
            record.project.as_deref(),
            marks,
            approver,
            record.decision.as_ref().map(|decision| decision.at_ms),
            how,
        ]
    }
}

fn tame(text: &str) -> Cow<'_, str> {
    let cut = &text[..text.floor_char_boundary(LONGEST)];
    match cut.contains('\0') {
        true => cut.replace('\0', "\u{fffd}").into(),
        false => cut.into(),
    }
}
