//! Places at the port: for those who have shown who they are, and fewer for those who have not.
//!
//! Anybody who reaches the port can open connections and say nothing. So a stranger has little time, strangers have
//! places of their own, and the longest silent one leaves when another knocks. Whoever was let in once stays.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// All connections; it stays below the usual limit of 1,024 open files. More wait in the kernel's queue.
pub const MAX_CONNECTIONS: usize = 512;

/// Connections of those who have not shown who they are.
pub const MAX_STRANGERS: usize = 256;

/// How long a stranger may take from one request's head to the next, and from the first byte of a head to its last.
pub const STRANGERS_TIME: Duration = Duration::from_secs(10);

/// A stranger is not sent away sooner than this, so that many who come at once get to show their tokens.
const FIRST_WORDS: Duration = Duration::from_millis(250);

/// Who is there.
#[derive(Clone, Default)]
pub struct Visitors(Arc<Hall>);

#[derive(Default)]
struct Hall {
    book: Mutex<Book>,
    /// A place became free, or a stranger became known.
    changed: Notify,
}

#[derive(Default)]
struct Book {
    last: u64,
    /// All who have a place.
    count: usize,
    strangers: HashMap<u64, Stranger>,
}

struct Stranger {
    /// When it came, or when its latest request did.
    seen: Instant,
    leave: CancellationToken,
}

impl Hall {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When a stranger was last heard of; nothing for whoever is known.
    fn seen(&self, id: u64) -> Option<Instant> {
        self.book().strangers.get(&id).map(|stranger| stranger.seen)
    }
}

impl Book {
    /// A place, where there is one or can be made; else when to look again, if that is known.
    fn place(&mut self, now: Instant) -> Result<(u64, CancellationToken), Option<Instant>> {
        if self.count >= MAX_CONNECTIONS || self.strangers.len() >= MAX_STRANGERS {
            let oldest = self.strangers.iter().min_by_key(|(_, one)| one.seen);
            let (id, seen) = oldest.map(|(id, one)| (*id, one.seen)).ok_or(None)?;
            if now < seen + FIRST_WORDS {
                return Err(Some(seen + FIRST_WORDS));
            }
            if let Some(gone) = self.strangers.remove(&id) {
                gone.leave.cancel();
                self.count -= 1;
            }
        }
        self.last += 1;
        self.count += 1;
        let leave = CancellationToken::new();
        let stranger = Stranger {
            seen: now,
            leave: leave.clone(),
        };
        self.strangers.insert(self.last, stranger);
        Ok((self.last, leave))
    }
}

impl Visitors {
    /// Waits for a place. Nothing is lost where the waiting is given up.
    pub async fn seat(&self) -> Seat {
        loop {
            let changed = self.0.changed.notified();
            let place = self.0.book().place(Instant::now());
            match place {
                Ok((id, leave)) => {
                    return Seat {
                        visitor: Visitor {
                            id,
                            known: Arc::default(),
                            hall: self.0.clone(),
                        },
                        leave,
                    };
                }
                Err(None) => changed.await,
                Err(Some(later)) => {
                    let _ = tokio::time::timeout_at(later, changed).await;
                }
            }
        }
    }
}

/// One connection's place, free again when it is dropped.
pub struct Seat {
    visitor: Visitor,
    leave: CancellationToken,
}

impl Seat {
    pub fn visitor(&self) -> Visitor {
        self.visitor.clone()
    }

    /// Comes back when the connection is to be closed: its place was given away, or it took too long to say who it is.
    pub async fn overstayed(&self) {
        let hall = &self.visitor.hall;
        let mut late = pin!(async {
            while let Some(seen) = hall.seen(self.visitor.id) {
                if Instant::now() >= seen + STRANGERS_TIME {
                    return;
                }
                sleep_until(seen + STRANGERS_TIME).await;
            }
            // Its place was given away, or it is known by now.
            self.leave.cancelled().await;
        });
        let mut leave = pin!(self.leave.cancelled());
        poll_fn(|context| {
            // Asked for every request of everybody, so who is known costs nothing more.
            if self.visitor.is_known() {
                return Poll::Pending;
            }
            match leave.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(()),
                Poll::Pending => late.as_mut().poll(context),
            }
        })
        .await;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        {
            let mut book = self.visitor.hall.book();
            // Whoever was sent away has no place to give back.
            if self.leave.is_cancelled() {
                return;
            }
            book.strangers.remove(&self.visitor.id);
            book.count -= 1;
        }
        self.visitor.hall.changed.notify_one();
    }
}

/// Who sits at a connection, as its requests know it. Cheap to clone.
#[derive(Clone)]
pub struct Visitor {
    id: u64,
    /// It is set once and never taken back, so whoever is known asks for no lock.
    known: Arc<AtomicBool>,
    hall: Arc<Hall>,
}

impl Visitor {
    /// Has it shown a token or a session that counts?
    pub fn is_known(&self) -> bool {
        self.known.load(Ordering::Acquire)
    }

    /// The head of a stranger's request came.
    pub fn asked(&self) {
        if let Some(stranger) = self.hall.book().strangers.get_mut(&self.id) {
            stranger.seen = Instant::now();
        }
    }

    /// It showed a token or a session that counts.
    pub fn let_in(&self) {
        {
            let mut book = self.hall.book();
            // Whoever was sent away meanwhile stays away.
            if book.strangers.remove(&self.id).is_none() {
                return;
            }
            self.known.store(true, Ordering::Release);
        }
        self.hall.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strangers(book: &mut Book, now: Instant, count: usize) -> Vec<(u64, CancellationToken)> {
        (0..count).map(|_| book.place(now).unwrap()).collect()
    }

    #[test]
    fn the_oldest_stranger_leaves_when_another_knocks_and_the_known_stay() {
        let (mut book, now) = (Book::default(), Instant::now());
        for (id, _) in strangers(&mut book, now, 3) {
            book.strangers.remove(&id);
        }
        let crowd = strangers(&mut book, now, MAX_STRANGERS);
        let later = now + FIRST_WORDS;
        for (id, _) in &crowd[1..] {
            book.strangers.get_mut(id).unwrap().seen = later;
        }
        let (_, next) = book.place(later).unwrap();
        assert!(crowd[0].1.is_cancelled() && !next.is_cancelled());
        assert!(crowd[1..].iter().all(|(_, leave)| !leave.is_cancelled()));
        assert_eq!(book.strangers.len(), MAX_STRANGERS);
        assert_eq!(book.count, MAX_STRANGERS + 3);
    }

    #[test]
    fn a_crowd_that_comes_at_once_gets_to_show_its_tokens() {
        let (mut book, now) = (Book::default(), Instant::now());
        let crowd = strangers(&mut book, now, MAX_STRANGERS);
        assert_eq!(book.place(now).err(), Some(Some(now + FIRST_WORDS)));
        book.strangers.remove(&crowd[7].0);
        assert!(book.place(now).is_ok());
        assert!(crowd.iter().all(|(_, leave)| !leave.is_cancelled()));
    }

    #[test]
    fn the_known_may_have_every_place_and_then_others_wait() {
        let (mut book, now) = (Book::default(), Instant::now());
        for _ in 0..MAX_CONNECTIONS {
            let (id, _) = book.place(now).unwrap();
            book.strangers.remove(&id);
        }
        let later = now + STRANGERS_TIME;
        assert_eq!(book.place(later).err(), Some(None));
    }

    #[tokio::test]
    async fn a_place_is_free_again_when_its_connection_ends() {
        let visitors = Visitors::default();
        let (one, other) = (visitors.seat().await, visitors.seat().await);
        other.visitor().let_in();
        assert!(other.visitor().is_known() && !one.visitor().is_known());
        assert_eq!(visitors.0.book().count, 2);
        drop((one, other));
        let book = visitors.0.book();
        assert_eq!((book.count, book.strangers.len()), (0, 0));
    }
}
