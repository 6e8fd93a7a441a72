//! Sessions over HTTP: all that is known of one stands in its id, signed, so any process of ours takes it up.
//!
//! No table of sessions is kept. What is in memory is only what runs or listens now, and which sessions were ended.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use toolcrib_store::Signer;

use super::conversation::Conversation;
use super::peer::Questions;
use super::revision::Revision;
use crate::serve::Served;
use crate::serve::auth::Who;

/// What the key signs; it is another one for another purpose.
const PURPOSE: &str = "mcp sessions";
/// Ended sessions that are remembered; the oldest are forgotten first.
const MAX_ENDED: usize = 10_000;
/// No id of ours is longer.
const MAX_ID: usize = 2_048;

/// What the client of a session said of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    pub revision: Revision,
    pub client: Arc<str>,
    pub version: Arc<str>,
    pub questions: Questions,
    nonce: Arc<str>,
}

/// What is signed. Names are short because every request carries them.
#[derive(Serialize, Deserialize)]
struct Claims<'a> {
    /// What no other session has; it begins with the time.
    #[serde(borrow, rename = "n")]
    nonce: Cow<'a, str>,
    /// Who must show it.
    #[serde(borrow, rename = "w")]
    who: Cow<'a, str>,
    #[serde(borrow, rename = "a")]
    agent: Cow<'a, str>,
    #[serde(borrow, rename = "r")]
    revision: Cow<'a, str>,
    #[serde(borrow, rename = "c")]
    client: Cow<'a, str>,
    #[serde(borrow, rename = "v")]
    version: Cow<'a, str>,
    #[serde(rename = "q")]
    questions: u8,
}

/// The sessions of one server.
pub struct Sessions {
    /// For as long as there is no store.
    own: Option<Signer>,
    /// The key that all processes on the store share.
    shared: OnceLock<Signer>,
    live: Mutex<HashMap<Arc<str>, Weak<Conversation>>>,
    ended: Mutex<Ended>,
    /// When this process began, as ids begin.
    since: String,
}

impl Default for Sessions {
    fn default() -> Sessions {
        Sessions {
            own: Signer::random().ok(),
            shared: OnceLock::new(),
            live: Mutex::default(),
            ended: Mutex::default(),
            since: uuid::Uuid::now_v7().simple().to_string(),
        }
    }
}

impl Sessions {
    /// Begins a session. None where no key can be made.
    pub fn begin(
        &self,
        served: &Served,
        who: &Who,
        revision: Revision,
        client: (&str, &str),
        questions: Questions,
    ) -> Option<String> {
        let nonce = uuid::Uuid::now_v7().simple().to_string();
        let claims = Claims {
            nonce: nonce.into(),
            who: who.identity(),
            agent: who.agent().into(),
            revision: revision.as_str().into(),
            client: client.0.into(),
            version: client.1.into(),
            questions: questions.bits(),
        };
        let mut signed = serde_json::to_vec(&claims).ok()?;
        let signature = self.shared(served).or(self.own.as_ref())?.sign(&signed);
        signed.extend_from_slice(&signature);
        Some(BASE64_URL_SAFE_NO_PAD.encode(signed))
    }

    /// The session of that id, if we gave it out, to them, and it has not ended.
    pub fn find(&self, served: &Served, who: &Who, id: &str) -> Option<Session> {
        if id.len() > MAX_ID {
            return None;
        }
        let signed = BASE64_URL_SAFE_NO_PAD.decode(id).ok()?;
        let (text, signature) = signed.split_last_chunk::<{ Signer::LENGTH }>()?;
        let keys = self.shared(served).into_iter().chain(self.own.as_ref());
        if !keys.into_iter().any(|key| key.verify(text, signature)) {
            return None;
        }
        let claims: Claims = serde_json::from_slice(text).ok()?;
        if claims.who != who.identity() || claims.agent != who.agent() {
            return None;
        }
        let session = Session {
            revision: Revision::named(&claims.revision)?,
            client: claims.client.into(),
            version: claims.version.into(),
            questions: Questions::of_bits(claims.questions),
            nonce: claims.nonce.into(),
        };
        let ended = lock(&self.ended).all.contains(&session.nonce);
        (!ended).then_some(session)
    }

    /// Was it begun before this process was?
    pub fn is_older(&self, session: &Session) -> bool {
        *session.nonce < *self.since
    }

    /// What the session has under way; made when there is nothing.
    pub fn conversation(&self, session: &Session) -> Arc<Conversation> {
        let mut live = lock(&self.live);
        if let Some(known) = live.get(&session.nonce).and_then(Weak::upgrade) {
            return known;
        }
        if live.len() == live.capacity() {
            live.retain(|_, conversation| conversation.strong_count() > 0);
        }
        let new = Arc::new(Conversation::default());
        live.insert(session.nonce.clone(), Arc::downgrade(&new));
        new
    }

    /// What the session has under way, if anything.
    pub fn under_way(&self, session: &Session) -> Option<Arc<Conversation>> {
        lock(&self.live).get(&session.nonce)?.upgrade()
    }

    pub fn end(&self, session: &Session) {
        lock(&self.ended).add(session.nonce.clone());
        if let Some(conversation) = self.under_way(session) {
            conversation.close();
        }
    }

    fn shared(&self, served: &Served) -> Option<&Signer> {
        if self.shared.get().is_none()
            && let Some(Ok(store)) = served.memory.as_ref().map(|memory| memory.store())
        {
            let _ = self.shared.set(store.signer(PURPOSE));
        }
        self.shared.get()
    }
}

/// Sessions that were ended.
#[derive(Default)]
struct Ended {
    all: HashSet<Arc<str>>,
    order: VecDeque<Arc<str>>,
}

impl Ended {
    fn add(&mut self, nonce: Arc<str>) {
        if !self.all.insert(nonce.clone()) {
            return;
        }
        self.order.push_back(nonce);
        if self.order.len() > MAX_ENDED
            && let Some(oldest) = self.order.pop_front()
        {
            self.all.remove(&oldest);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
