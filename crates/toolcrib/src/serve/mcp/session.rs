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

impl Session {
    /// What no other session has. It is no key: whoever knows it has no session.
    pub fn name(&self) -> &Arc<str> {
        &self.nonce
    }
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
            && let Some(Ok(store)) = served.store.as_ref().map(|store| store.ready())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::tests::fixture::TestServer;

    #[tokio::test]
    async fn an_id_says_all_and_counts_for_who_got_it() {
        let server = TestServer::start().await;
        let (served, sessions) = (&server.served, Sessions::default());
        let who = Who::owner();
        let begin = |name: &str| {
            let client = (name, "1.0");
            let questions = Questions::of_bits(5);
            let begun = sessions.begin(served, &who, Revision::V2025_06_18, client, questions);
            begun.unwrap()
        };
        let id = begin("cl\u{e4}ude \"x\"");
        assert!(
            id.bytes().all(|byte| byte.is_ascii_graphic()) && id.len() < 400,
            "{id}"
        );
        let found = sessions.find(served, &who, &id).unwrap();
        assert_eq!(
            (&*found.client, &*found.version),
            ("cl\u{e4}ude \"x\"", "1.0")
        );
        assert_eq!(found.revision, Revision::V2025_06_18);
        assert_eq!(found.questions.bits(), 5);
        assert!(!sessions.is_older(&found) && Sessions::default().is_older(&found));
        let longest = "\u{1F600}".repeat(64);
        assert!(sessions.find(served, &who, &begin(&longest)).is_some());

        for at in 0..id.len() {
            let mut forged = id.clone().into_bytes();
            forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
            let forged = String::from_utf8(forged).unwrap();
            assert!(sessions.find(served, &who, &forged).is_none(), "{at}");
        }
        for odd in [
            "",
            "x",
            &id[1..],
            &id[..id.len() - 2],
            &format!("{id}AA"),
            &"A".repeat(9_000),
        ] {
            assert!(sessions.find(served, &who, odd).is_none(), "{odd}");
        }
        let other = Sessions::default();
        assert!(other.find(served, &who, &id).is_none(), "another key");
    }

    #[tokio::test]
    async fn what_rests_is_not_kept_and_what_ended_is() {
        let server = TestServer::start().await;
        let (served, sessions, who) = (&server.served, Sessions::default(), Who::owner());
        let begin = || {
            let version = Revision::V2025_11_25;
            let begun = sessions.begin(served, &who, version, ("a", ""), Questions::default());
            let id = begun.unwrap();
            let session = sessions.find(served, &who, &id).unwrap();
            (id, session)
        };
        let (id, first) = begin();
        let held = sessions.conversation(&first);
        for _ in 0..2_000 {
            drop(sessions.conversation(&begin().1));
        }
        assert!(lock(&sessions.live).len() < 200);
        assert!(Arc::ptr_eq(&held, &sessions.conversation(&first)));
        sessions.end(&first);
        assert!(sessions.find(served, &who, &id).is_none());
        for _ in 0..MAX_ENDED {
            sessions.end(&begin().1);
        }
        assert_eq!(lock(&sessions.ended).all.len(), MAX_ENDED);
    }
}
