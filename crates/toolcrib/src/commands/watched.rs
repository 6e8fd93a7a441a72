//! A call that somebody watches: how far it is and what it prints are shown while it runs.

use std::time::Duration;

use toolcrib_core::words::line;

use super::logs::read_on;
use super::reach::Reach;
use super::transport::Pieces;
use crate::printer::{DIM, Printer, plain};
use crate::wire::{CallEndView, CallProgressView, CallStartView};

/// How often is looked at what the tool printed.
const LOOK_EVERY: Duration = Duration::from_millis(150);
/// How long is waited for news of a call that has ended.
const LAST_NEWS: Duration = Duration::from_millis(500);
/// The most that is shown of what a tool printed.
const MOST: u64 = 64 * 1_024;

/// Shows what is heard of a call.
pub struct Watched<'a> {
    reach: &'a Reach,
    printer: Printer,
    tool: &'a str,
    events: Option<Pieces>,
    /// What came of an event that is not whole yet.
    begun: String,
    /// The call, once it has begun.
    call: Option<String>,
    /// Up to where the tool's log was read; nothing where it can't be: not every tool has one, and not everybody may.
    read: Option<u64>,
    shown: u64,
}

impl<'a> Watched<'a> {
    /// To be made before the call is.
    pub async fn new(reach: &'a Reach, printer: Printer, tool: &'a str) -> Watched<'a> {
        let quiet = printer.is_json();
        let events = match quiet {
            true => None,
            false => reach.events().await.ok(),
        };
        let read = match quiet {
            true => None,
            false => read_on(reach, tool, 0, Some(0)).await.ok(),
        };
        Watched {
            reach,
            printer,
            tool,
            events,
            begun: String::new(),
            call: None,
            read: read.map(|log| log.end),
            shown: 0,
        }
    }

    /// Waits for a call and shows what is heard of it meanwhile.
    pub async fn during<T>(&mut self, call: impl Future<Output = T>) -> T {
        let mut call = std::pin::pin!(call);
        loop {
            tokio::select! {
                biased;
                ended = &mut call => {
                    // What was told just before the end comes after it.
                    let _ = tokio::time::timeout(LAST_NEWS, async { while self.hear().await {} }).await;
                    return ended;
                }
                going = self.hear(), if self.events.is_some() => {
                    if !going {
                        self.events = None;
                    }
                }
                () = tokio::time::sleep(LOOK_EVERY), if self.read.is_some() => self.look().await,
            }
        }
    }

    /// Up to where what the tool printed has been shown.
    pub fn shown_to(&self) -> Option<u64> {
        self.read
    }

    /// Shows what the tool printed since the last look.
    pub async fn look(&mut self) {
        let Some(from) = self.read.filter(|_| self.shown < MOST) else {
            return;
        };
        let Ok(log) = read_on(self.reach, self.tool, from, Some(MOST)).await else {
            return;
        };
        self.read = Some(log.end);
        self.shown += log.text.len() as u64;
        if !log.text.is_empty() {
            self.printer.note(plain(log.text.trim_end()));
        }
    }

    /// Takes in one piece of news; false once the call has ended, or nothing more will come.
    async fn hear(&mut self) -> bool {
        let Some(events) = &mut self.events else {
            return false;
        };
        let Some(piece) = events.next().await else {
            return false;
        };
        self.begun.push_str(&String::from_utf8_lossy(&piece));
        while let Some((event, rest)) = self.begun.split_once("\n\n") {
            let (event, rest) = (event.to_owned(), rest.to_owned());
            self.begun = rest;
            let field = |name: &str| {
                let mut lines = event.lines();
                lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
            };
            if let (Some(name), Some(data)) = (field("event"), field("data"))
                && !self.take(name, data)
            {
                return false;
            }
        }
        true
    }

    fn take(&mut self, event: &str, data: &str) -> bool {
        match event {
            "tool.start" if self.call.is_none() => {
                let start: Option<CallStartView> = serde_json::from_str(data).ok();
                let own = start.filter(|start| start.tool == self.tool);
                self.call = own.map(|start| start.call_id);
            }
            "tool.progress" => {
                if let Ok(progress) = serde_json::from_str::<CallProgressView>(data)
                    && self.call.as_ref() == Some(&progress.call_id)
                {
                    self.show(&progress);
                }
            }
            "tool.complete" | "tool.failed" => {
                let end: Option<CallEndView> = serde_json::from_str(data).ok();
                return end.is_none_or(|end| self.call.as_ref() != Some(&end.call_id));
            }
            _ => {}
        }
        true
    }

    fn show(&self, told: &CallProgressView) {
        let far = match (told.progress, told.total) {
            (Some(progress), Some(total)) => Some(format!("{progress}/{total}")),
            (Some(progress), None) => Some(progress.to_string()),
            (None, _) => None,
        };
        let words = [far, told.title.clone(), told.message.clone()];
        let words: Vec<String> = words.into_iter().flatten().collect();
        if !words.is_empty() {
            let text = line(&words.join(" "));
            self.printer.note(format!("{DIM}{}{DIM:#}", plain(&text)));
        }
    }
}
