//! What MCP tells by itself: how far a call is, and that the tool list changed.

use tokio::sync::broadcast::error::RecvError;
use toolcrib_core::{Crib, Event};

/// The tools are others than they were.
pub const LIST_CHANGED: &str = "notifications/tools/list_changed";

/// How far a call is, as the protocol wants it: a number that grows with every step, also from tools that give none.
#[derive(Default)]
pub struct Steps {
    last: Option<f64>,
    numbered: bool,
}

impl Steps {
    pub fn next(&mut self, given: Option<f64>) -> f64 {
        let given = given.filter(|number| number.is_finite());
        self.numbered |= given.is_some();
        let step = match (given, self.last) {
            (Some(given), None) => given,
            (Some(given), Some(last)) if given > last => given,
            (None, None) => 1.0,
            (None, Some(last)) if !self.numbered => last + 1.0,
            // Only words are new: it grows, but says nothing that the tool did not say.
            (_, Some(last)) => last.next_up(),
        };
        self.last = Some(step);
        step
    }
}

/// Changes of the tool list, however far behind one is.
pub struct Changes {
    events: tokio::sync::broadcast::Receiver<Event>,
}

impl Changes {
    pub fn of(crib: &Crib) -> Changes {
        Changes {
            events: crib.changes(),
        }
    }

    pub async fn next(&mut self) {
        loop {
            match self.events.recv().await {
                // Who lost events must look again.
                Ok(Event::ToolsChanged(_)) | Err(RecvError::Lagged(_)) => return,
                Ok(_) => {}
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}
