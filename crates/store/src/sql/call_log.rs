//! Writes calls down, off their path: a bounded queue, and a task that empties it into one transaction at a time.
//!
//! A record is on disk at most a quarter of a second after it came, plus the time of one transaction. When the store
//! is in trouble the queue fills, then records are dropped and counted; a call never waits for its record, unless the
//! owner said that it must ([`CallBook::record_durably`]).

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value};
use sqlx::AssertSqlSafe;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};
use toolcrib_core::BoxFuture;
use toolcrib_core::store::{CallBook, CallRecord, Kept, StoreError};

use super::db::Db;
use super::hash::ArgumentKey;
use super::value::{Bound, values};

const QUEUE: usize = 10_000;
/// How long a record waits for others to be written with.
const GATHER: Duration = Duration::from_millis(200);
const BATCH: usize = 1_000;
/// How long the log waits after a write that failed.
const REST: Duration = Duration::from_millis(500);
/// What a name may take; they come from clients.
const LONGEST: usize = 512;

const COLUMNS: usize = 16;
/// Rows per statement: as many as make the way to the database cheap.
const ROWS: usize = 50;
/// The same statement for one row and for many.
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
         transport, protocol, outcome, error, duration_us, output_bytes) VALUES {} ON CONFLICT (id) DO NOTHING",
        rows.join(", ")
    );
    text.into()
}

type Answer = oneshot::Sender<Result<(), StoreError>>;

enum Message {
    Record(Box<CallRecord>),
    /// Write at once, then answer. With a record, or for what came before.
    Answered(Option<Box<CallRecord>>, Answer),
}

/// How the log is doing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogState {
    pub written: u64,
    /// Lost, because the queue was full or the store refused them.
    pub dropped: u64,
    pub waiting: usize,
    /// Why the last write failed, until one succeeds.
    pub trouble: Option<StoreError>,
}

/// Where calls are handed in. Cheap to clone; the task ends when the last one is dropped and all is written.
#[derive(Clone)]
pub struct CallLog {
    queue: mpsc::Sender<Message>,
    key: ArgumentKey,
    tally: Arc<Tally>,
}

#[derive(Default)]
struct Tally {
    written: AtomicU64,
    dropped: AtomicU64,
    trouble: Mutex<Option<StoreError>>,
}

impl CallLog {
    pub(super) fn start(db: Db, key: ArgumentKey) -> CallLog {
        let (queue, messages) = mpsc::channel(QUEUE);
        let tally = Arc::new(Tally::default());
        let writer = Writer {
            db,
            messages,
            tally: tally.clone(),
        };
        tokio::spawn(writer.run());
        CallLog { queue, key, tally }
    }

    pub fn state(&self) -> LogState {
        let trouble = self.tally.trouble.lock();
        LogState {
            written: self.tally.written.load(Ordering::Relaxed),
            dropped: self.tally.dropped.load(Ordering::Relaxed),
            waiting: self.queue.max_capacity() - self.queue.capacity(),
            trouble: trouble.unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }

    /// Comes back when all that was handed in before is written, or with why it can't be.
    pub async fn flush(&self, longest: Duration) -> Result<(), StoreError> {
        let flushed = timeout(longest, self.answered(None)).await;
        flushed.unwrap_or_else(|_| {
            Err(StoreError::Failed {
                place: "call log".to_owned(),
                why: "it was not written in time".to_owned(),
            })
        })
    }

    async fn answered(&self, record: Option<CallRecord>) -> Result<(), StoreError> {
        let (answer, answered) = oneshot::channel();
        let message = Message::Answered(record.map(Box::new), answer);
        let ended = || StoreError::Failed {
            place: "call log".to_owned(),
            why: "it has ended".to_owned(),
        };
        self.queue.send(message).await.map_err(|_| ended())?;
        answered.await.unwrap_or_else(|_| Err(ended()))
    }
}

impl CallBook for CallLog {
    fn record(&self, record: CallRecord) -> Kept {
        match self.queue.try_send(Message::Record(Box::new(record))) {
            Ok(()) => Kept::Queued,
            Err(_) => {
                self.tally.dropped.fetch_add(1, Ordering::Relaxed);
                Kept::Dropped
            }
        }
    }

    fn record_durably(&self, record: CallRecord) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.answered(Some(record)))
    }

    fn argument_hash(&self, arguments: &Map<String, Value>) -> String {
        self.key.hash(arguments)
    }
}

struct Writer {
    db: Db,
    messages: mpsc::Receiver<Message>,
    tally: Arc<Tally>,
}

impl Writer {
    async fn run(mut self) {
        // What could not be written yet is still here: it may be written later.
        let mut records = Vec::new();
        let mut waiting: Vec<Answer> = Vec::new();
        loop {
            let open = self.gather(&mut records, &mut waiting).await;
            let mut written = Ok(());
            while !records.is_empty() && written.is_ok() {
                let batch = records.len().min(BATCH);
                written = self.write(&records[..batch]).await;
                if written.is_ok() {
                    records.drain(..batch);
                }
            }
            if let Err(error) = &written {
                tracing::warn!(%error, waiting = records.len(), "calls could not be recorded");
            }
            for answer in waiting.drain(..) {
                // Who no longer waits does not need to know.
                let _ = answer.send(written.clone());
            }
            *self
                .tally
                .trouble
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = written.err();
            if !open {
                self.drop_some(records.len());
                return;
            }
        }
    }

    /// Takes what comes until it is time to write. Gives whether more can come.
    async fn gather(&mut self, records: &mut Vec<CallRecord>, waiting: &mut Vec<Answer>) -> bool {
        // Records that are here already are those of a write that failed.
        let failing = !records.is_empty();
        let mut deadline = failing.then(|| Instant::now() + REST);
        while failing || records.len() < BATCH {
            let next = match deadline {
                None => self.messages.recv().await,
                Some(deadline) => match timeout_at(deadline, self.messages.recv()).await {
                    Ok(next) => next,
                    Err(_) => return true,
                },
            };
            let record = match next {
                None => return false,
                Some(Message::Record(record)) => {
                    deadline.get_or_insert_with(|| Instant::now() + GATHER);
                    Some(record)
                }
                Some(Message::Answered(record, answer)) => {
                    waiting.push(answer);
                    // Others that are here already go along; nobody else is waited for.
                    deadline = Some(Instant::now());
                    record
                }
            };
            match record {
                Some(_) if records.len() >= QUEUE => self.drop_some(1),
                record => records.extend(record.map(|record| *record)),
            }
        }
        true
    }

    fn drop_some(&self, number: usize) {
        self.tally
            .dropped
            .fetch_add(number as u64, Ordering::Relaxed);
    }

    async fn write(&self, records: &[CallRecord]) -> Result<(), StoreError> {
        let rows: Vec<Row<'_>> = records.iter().map(Row::of).collect();
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
        tx.commit().await?;
        self.tally
            .written
            .fetch_add(rows.len() as u64, Ordering::Relaxed);
        Ok(())
    }
}

/// A record whose texts the store takes, whatever a client put into them: one odd name must not hold up the others.
struct Row<'a> {
    record: &'a CallRecord,
    texts: [Option<Cow<'a, str>>; 9],
}

impl<'a> Row<'a> {
    fn of(record: &'a CallRecord) -> Row<'a> {
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
        ];
        Row {
            record,
            texts: texts.map(|text| text.map(tame)),
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
