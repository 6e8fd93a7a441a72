//! Events as they go out: numbered, and the latest kept for those who lost their connection and come back.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{self, Receiver, Sender};
use toolcrib_core::{Crib, Event};

use crate::wire::{LaggedView, event_json};

/// How many events are kept, and how many a slow listener may fall behind.
const KEPT: usize = 1_024;

/// One event as it goes out.
#[derive(Debug)]
pub struct SentEvent {
    /// What a listener says to go on behind it.
    pub id: String,
    number: u64,
    pub name: &'static str,
    /// JSON on one line.
    pub data: String,
    /// What was told; nothing where it is about the stream itself.
    pub event: Option<Event>,
}

/// What goes out to all who listen.
pub struct Feed {
    /// Numbers begin anew with every process, so ids name it too.
    process: String,
    sender: Sender<Arc<SentEvent>>,
    kept: Mutex<KeptEvents>,
}

#[derive(Default)]
struct KeptEvents {
    last: u64,
    events: VecDeque<Arc<SentEvent>>,
    /// Somebody hears the crib, so that nothing that happens from now on is missing.
    begun: bool,
}

/// What a new listener gets: what it missed, then what comes.
pub struct Joined {
    pub missed: Vec<Arc<SentEvent>>,
    /// How many events are no longer kept. Nothing where nobody knows, because another process numbered them.
    pub lost: Option<u64>,
    pub coming: Receiver<Arc<SentEvent>>,
}

impl Default for Feed {
    fn default() -> Feed {
        Feed {
            process: uuid::Uuid::now_v7().simple().to_string(),
            sender: broadcast::channel(KEPT).0,
            kept: Mutex::default(),
        }
    }
}

impl Feed {
    /// Listens from now on, or from behind the event of this id.
    pub fn join(self: &Arc<Feed>, crib: &Crib, after: Option<&str>) -> Joined {
        let mut kept = self.kept();
        if !kept.begun {
            kept.begun = true;
            tokio::spawn(hear(self.clone(), crib.changes()));
        }
        let coming = self.sender.subscribe();
        let Some(after) = after else {
            return Joined {
                missed: Vec::new(),
                lost: Some(0),
                coming,
            };
        };
        let number = after
            .split_once('.')
            .filter(|(process, _)| *process == self.process)
            .and_then(|(_, number)| number.parse::<u64>().ok())
            .filter(|number| *number <= kept.last);
        let Some(number) = number else {
            return Joined {
                missed: Vec::new(),
                lost: None,
                coming,
            };
        };
        let missed = kept.events.iter().filter(|event| event.number > number);
        let missed: Vec<_> = missed.cloned().collect();
        let lost = kept.last - number - missed.len() as u64;
        Joined {
            missed,
            lost: Some(lost),
            coming,
        }
    }

    fn tell(&self, name: &'static str, event: Option<Event>, data: serde_json::Result<String>) {
        let data = match data {
            Ok(data) => data,
            Err(error) => {
                tracing::error!(%error, event = name, "an event could not be written as JSON");
                return;
            }
        };
        let mut kept = self.kept();
        kept.last += 1;
        let event = Arc::new(SentEvent {
            id: format!("{}.{}", self.process, kept.last),
            number: kept.last,
            name,
            data,
            event,
        });
        if kept.events.len() == KEPT {
            kept.events.pop_front();
        }
        kept.events.push_back(event.clone());
        // Sent while it is held, so that who joins misses none and gets none twice. Nobody listening is fine.
        let _ = self.sender.send(event);
    }

    fn kept(&self) -> MutexGuard<'_, KeptEvents> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes in what the crib tells, for as long as it does.
async fn hear(feed: Arc<Feed>, mut events: Receiver<Event>) {
    loop {
        match events.recv().await {
            Ok(event) => {
                let data = event_json(&event);
                feed.tell(event.name(), Some(event), data);
            }
            Err(RecvError::Lagged(missed)) => {
                feed.tell(
                    "lagged",
                    None,
                    serde_json::to_string(&LaggedView { missed }),
                );
            }
            Err(RecvError::Closed) => return,
        }
    }
}
