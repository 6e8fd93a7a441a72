//! How a worker comes to its end, and who is told why.

use std::sync::Arc;

use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use toolcrib_core::Event;
use toolcrib_sandbox::{Breach, Child, Exit};

use super::{Desk, LAST_BREATH, Waiting, Wish};
use crate::worker::fault::Ending;
use crate::worker::lines::Overflow;

impl Desk {
    /// Stays with the process until it and all below it are gone, then tells everybody who waits.
    pub(super) async fn keep(
        self: Arc<Desk>,
        process: u32,
        mut child: Child,
        mut over: oneshot::Receiver<Option<Overflow>>,
        silent: oneshot::Receiver<()>,
        mut wishes: watch::Receiver<Wish>,
    ) {
        let mut why: Option<(String, bool)> = None;
        let mut reading = true;
        let mut asked = false;
        let mut heard = true;
        let mut end: Option<Instant> = None;
        let exit = loop {
            tokio::select! {
                exit = child.wait() => break exit,
                overflow = &mut over, if reading => {
                    reading = false;
                    match overflow {
                        Ok(Some(overflow)) => {
                            why = Some((format!("was stopped: {overflow}"), true));
                            child.kill();
                        }
                        // One that was asked to end has its own time for it.
                        _ if asked => {}
                        _ => end = Some(Instant::now() + LAST_BREATH),
                    }
                }
                () = tokio::time::sleep_until(end.unwrap_or_else(Instant::now)), if end.is_some() => {
                    end = None;
                    if !reading && !asked && why.is_none() {
                        why = Some(("closed its stdout and was stopped".to_owned(), true));
                    }
                    child.kill();
                }
                wish = wishes.changed(), if heard => {
                    // Whoever could wish is gone: only a process that was asked to end may take its time.
                    heard = wish.is_ok();
                    match *wishes.borrow_and_update() {
                        Wish::Live if heard => {}
                        Wish::End if asked => {}
                        Wish::End => {
                            asked = true;
                            tracing::debug!(tool = self.name, process, "terminate");
                            child.terminate();
                            end = Some(Instant::now() + self.ground.limits.end_grace);
                        }
                        Wish::Live | Wish::Die => {
                            asked = true;
                            tracing::debug!(tool = self.name, process, "terminate");
                            child.kill();
                        }
                    }
                }
            }
        };
        // What it wrote before its end still counts, and its last words belong to the error.
        let last_words = async {
            if reading {
                let _ = over.await;
            }
            let _ = silent.await;
        };
        let _ = tokio::time::timeout(LAST_BREATH, last_words).await;
        let (memory_mb, processes) = self.most;
        let breach = child.breach().map(|breach| match breach {
            Breach::Memory => format!("was stopped: it used more than the {memory_mb} MB of memory that it may use (`toolcrib grant NAME --memory MB` gives it more)"),
            Breach::Processes => format!("was stopped: it started more than the {processes} processes that it may have"),
        });
        let (how, misbehaved) = match (why, &exit) {
            (Some(why), _) => why,
            (None, _) if let Some(breach) = breach => (breach, false),
            (None, _) if asked => match self.blame.get() {
                Some(blame) => ((*blame).to_owned(), true),
                None => ("was stopped".to_owned(), false),
            },
            (None, Ok(Exit::Code(code))) => (format!("ended with exit code {code}"), false),
            (None, Ok(Exit::Signal(signal))) => (format!("was killed by signal {signal}"), false),
            (None, Ok(Exit::Lost) | Err(_)) => ("was killed from outside".to_owned(), false),
        };
        self.finish(
            process,
            Ending {
                how,
                misbehaved,
                stderr: self.ring.tail(),
            },
        );
    }

    fn finish(&self, process: u32, ending: Ending) {
        tracing::info!(
            tool = self.name,
            process,
            reason = ending.how,
            "worker.exit"
        );
        let reason = ending.how.clone();
        let ending = Arc::new(ending);
        let waiting: Vec<Waiting> = {
            let mut inbox = self.inbox();
            self.ended.send_replace(Some(ending.clone()));
            inbox.waiting.drain().map(|(_, waiting)| waiting).collect()
        };
        for one in waiting {
            let _ = one.answer.send(Err(ending.clone()));
        }
        self.ground.events.tell(Event::WorkerExit {
            tool: self.name.clone(),
            process,
            reason,
        });
    }
}
