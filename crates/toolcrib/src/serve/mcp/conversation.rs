//! What one client has under way: requests that run, questions that it was asked, streams that are open to it.
//!
//! A connection of lines has one of these for as long as it lasts. A session over HTTP has one only while something of it
//! runs or listens, so that a session that rests costs nothing.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use toolcrib_core::PeerError;

use super::message::{Id, Response};

/// Where messages to the client go, one at a time.
pub type Outlet = mpsc::Sender<Vec<u8>>;
/// Messages that wait for a client to read them.
pub const QUEUE: usize = 64;
/// Requests of one client that run at the same time.
pub const MAX_RUNNING: usize = 256;
/// Questions that a client has not answered.
const MAX_QUESTIONS: usize = 64;
/// Streams that are open to one client; the oldest goes when there are more.
const MAX_STREAMS: usize = 8;

type Answered = Result<Value, PeerError>;

#[derive(Default)]
pub struct Conversation {
    running: Mutex<Vec<(u64, Id, CancellationToken)>>,
    questions: Mutex<Vec<(String, oneshot::Sender<Answered>)>>,
    streams: Mutex<Vec<(u64, Outlet)>>,
    count: AtomicU64,
}

impl Conversation {
    /// Notes that a request runs, until the returned guard is dropped. None when too many do.
    pub fn begin(self: &Arc<Self>, id: &Id) -> Option<RunningRequest> {
        let mut running = lock(&self.running);
        if running.len() >= MAX_RUNNING {
            return None;
        }
        let (number, cancelled) = (self.number(), CancellationToken::new());
        running.push((number, id.clone(), cancelled.clone()));
        Some(RunningRequest {
            of: self.clone(),
            number,
            cancelled,
        })
    }

    /// Cancels a request. One that has ended or never was is no matter: clients cancel what is done already.
    pub fn cancel(&self, id: &Id) {
        let running = lock(&self.running);
        for (_, of, cancelled) in running.iter() {
            if of == id {
                cancelled.cancel();
            }
        }
    }

    /// Opens a stream to the client.
    pub fn open(self: &Arc<Self>) -> (OpenStream, mpsc::Receiver<Vec<u8>>) {
        let (outlet, messages) = mpsc::channel(QUEUE);
        let number = self.number();
        let mut streams = lock(&self.streams);
        if streams.len() >= MAX_STREAMS {
            streams.remove(0);
        }
        streams.push((number, outlet));
        let of = self.clone();
        (OpenStream { of, number }, messages)
    }

    /// The stream that was opened last: of several, it is the one most likely read.
    pub fn newest(&self) -> Option<Outlet> {
        let streams = lock(&self.streams);
        streams.last().map(|(_, outlet)| outlet.clone())
    }

    /// Notes a question. Gives its id and where its answer comes.
    pub fn question(
        self: &Arc<Self>,
    ) -> Result<(OpenQuestion, oneshot::Receiver<Answered>), PeerError> {
        let mut questions = lock(&self.questions);
        if questions.len() >= MAX_QUESTIONS {
            return Err(PeerError::Busy);
        }
        // One that no other process of ours gives either: an answer may come late, and after a restart.
        let id = format!("toolcrib-{}", uuid::Uuid::now_v7().simple());
        let (sender, answer) = oneshot::channel();
        questions.push((id.clone(), sender));
        let of = self.clone();
        Ok((OpenQuestion { of, id }, answer))
    }

    /// Hands an answer to who asked. What nobody asked is passed over.
    pub fn answered(&self, response: &Response) {
        let Some(id) = &response.id else { return };
        let mut questions = lock(&self.questions);
        let asked = |(open, _): &(String, _)| id.as_json().trim_matches('"') == open;
        let Some(at) = questions.iter().position(asked) else {
            return;
        };
        let (_, sender) = questions.swap_remove(at);
        drop(questions);
        let _ = sender.send(read(response.result));
    }

    /// Ends what listens and what waits for an answer. Requests that run go on.
    pub fn close(&self) {
        lock(&self.streams).clear();
        lock(&self.questions).clear();
    }

    fn number(&self) -> u64 {
        self.count.fetch_add(1, Ordering::Relaxed)
    }
}

/// An answer of the client's, read.
fn read(result: Result<&RawValue, &RawValue>) -> Answered {
    match result {
        Ok(result) => serde_json::from_str(result.get()).map_err(|error| PeerError::Refused {
            code: 0,
            message: error.to_string(),
        }),
        Err(error) => {
            let error: Value = serde_json::from_str(error.get()).unwrap_or_default();
            let message = error["message"].as_str().unwrap_or("it gave no reason");
            Err(PeerError::Refused {
                code: error["code"].as_i64().unwrap_or(0),
                message: message.chars().take(1_000).collect(),
            })
        }
    }
}

/// A request that runs.
pub struct RunningRequest {
    of: Arc<Conversation>,
    number: u64,
    cancelled: CancellationToken,
}

impl RunningRequest {
    /// Ends when the client cancels the request.
    pub async fn cancelled(&self) {
        self.cancelled.cancelled().await;
    }
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        lock(&self.of.running).retain(|(number, ..)| *number != self.number);
    }
}

/// A stream that is open to the client.
pub struct OpenStream {
    of: Arc<Conversation>,
    number: u64,
}

impl OpenStream {
    /// Is it the one on which the client is told things?
    pub fn is_newest(&self) -> bool {
        let streams = lock(&self.of.streams);
        streams
            .last()
            .is_some_and(|(number, _)| *number == self.number)
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        lock(&self.of.streams).retain(|(number, _)| *number != self.number);
    }
}

/// A question that waits for its answer.
pub struct OpenQuestion {
    of: Arc<Conversation>,
    id: String,
}

impl OpenQuestion {
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Does nobody have answered it yet?
    pub fn is_open(&self) -> bool {
        lock(&self.of.questions)
            .iter()
            .any(|(id, _)| *id == self.id)
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        lock(&self.of.questions).retain(|(id, _)| *id != self.id);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
