//! The client as a call sees it: what it said it can be asked, and asking it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolcrib_core::{BoxFuture, Peer, PeerError, Question};

use super::conversation::{Conversation, OpenQuestion, Outlet};
use super::message::Fields;
use super::reply;

/// What a client said that it can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Questions(u8);

impl Questions {
    /// Out of the capabilities that a client declared.
    pub fn declared(capabilities: &Fields) -> Questions {
        let is_object = |raw: &RawValue| raw.get().starts_with('{');
        let declared = Question::ALL.into_iter().filter(|question| {
            let declared = capabilities.get(wire(*question).0);
            declared.is_some_and(|raw| match question {
                // Without its modes it is a form alone.
                Question::Visit => {
                    let modes: Option<Fields> = serde_json::from_str(raw.get()).ok();
                    modes.is_some_and(|modes| modes.get("url").is_some_and(is_object))
                }
                Question::Elicit | Question::Roots | Question::Sample => is_object(raw),
            })
        });
        Questions(declared.fold(0, |all, question| all | bit(question)))
    }

    /// As a session id keeps them.
    pub fn bits(self) -> u8 {
        self.0
    }

    pub fn of_bits(bits: u8) -> Questions {
        Questions(bits)
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn has(self, question: Question) -> bool {
        self.0 & bit(question) != 0
    }
}

fn bit(question: Question) -> u8 {
    match question {
        Question::Elicit => 1,
        Question::Roots => 2,
        Question::Sample => 4,
        Question::Visit => 8,
    }
}

/// The name of the capability, and the method.
fn wire(question: Question) -> (&'static str, &'static str) {
    match question {
        Question::Elicit | Question::Visit => ("elicitation", "elicitation/create"),
        Question::Roots => ("roots", "roots/list"),
        Question::Sample => ("sampling", "sampling/createMessage"),
    }
}

/// The client of one call.
pub struct Client {
    pub conversation: Arc<Conversation>,
    /// The stream of the request itself.
    pub outlet: Outlet,
    pub questions: Questions,
}

impl Client {
    /// Sends on the request's own stream, or where the client listens once that has gone.
    async fn send(&self, message: Vec<u8>) -> Result<Outlet, PeerError> {
        let message = match self.outlet.send(message).await {
            Ok(()) => return Ok(self.outlet.clone()),
            Err(unsent) => unsent.0,
        };
        let other = self.conversation.newest().ok_or(PeerError::Gone)?;
        other.send(message).await.map_err(|_| PeerError::Gone)?;
        Ok(other)
    }
}

impl Peer for Client {
    fn can(&self, question: Question) -> bool {
        self.questions.has(question)
    }

    fn ask(
        &self,
        question: Question,
        params: Value,
        limit: Duration,
    ) -> BoxFuture<'_, Result<Value, PeerError>> {
        Box::pin(async move {
            if !self.can(question) {
                return Err(PeerError::Unsupported);
            }
            let (open, answer) = self.conversation.question()?;
            let params = if params.is_null() { json!({}) } else { params };
            let message = reply::request(open.id(), wire(question).1, &params);
            let asked = async {
                let outlet = self.send(message).await?;
                let _taken_back = TakenBack { open, outlet };
                answer.await.unwrap_or(Err(PeerError::Gone))
            };
            match tokio::time::timeout(limit, asked).await {
                Ok(answer) => answer,
                Err(_) => Err(PeerError::TimedOut),
            }
        })
    }
}

/// Tells the client that nobody waits for its answer any more, when a question is given up.
struct TakenBack {
    open: OpenQuestion,
    outlet: Outlet,
}

impl Drop for TakenBack {
    fn drop(&mut self) {
        if self.open.is_open() {
            let params =
                json!({"requestId": self.open.id(), "reason": "nobody waits for it any more"});
            let message = reply::notification("notifications/cancelled", Some(&params));
            let _ = self.outlet.try_send(message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_asked_what_it_declared() {
        let questions = |text: &str| Questions::declared(&serde_json::from_str(text).unwrap());
        assert!(questions("{}").is_empty());
        assert!(questions(r#"{"roots":null,"elicitation":true,"tasks":{}}"#).is_empty());
        let some = questions(r#"{"roots":{"listChanged":true},"elicitation":{}}"#);
        assert!(some.has(Question::Elicit) && some.has(Question::Roots));
        assert!(!some.has(Question::Sample) && !some.has(Question::Visit));
        let page = questions(r#"{"elicitation":{"form":{},"url":{}}}"#);
        assert!(page.has(Question::Visit) && page.has(Question::Elicit));
        assert!(!questions(r#"{"elicitation":{"url":true}}"#).has(Question::Visit));
        assert_eq!(Questions::of_bits(some.bits()), some);
    }
    #[tokio::test]
    async fn a_question_goes_where_the_client_listens_once_the_request_has_no_stream() {
        let conversation: Arc<Conversation> = Arc::default();
        let (outlet, gone) = tokio::sync::mpsc::channel(1);
        drop(gone);
        let client = Client {
            conversation: conversation.clone(),
            outlet,
            questions: Questions(bit(Question::Roots)),
        };
        let limit = Duration::from_secs(20);
        let ask = || client.ask(Question::Roots, Value::Null, limit);
        assert_eq!(ask().await, Err(PeerError::Gone));
        let (_open, mut messages) = conversation.open();
        let asking = async {
            let asked: Value = serde_json::from_slice(&messages.recv().await.unwrap()).unwrap();
            assert_eq!(
                (&asked["method"], &asked["params"]),
                (&json!("roots/list"), &json!({}))
            );
            let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": []}});
            let answer = answer.to_string();
            match super::super::message::read_one(answer.as_bytes()) {
                Ok(super::super::message::Message::Response(one)) => conversation.answered(&one),
                other => panic!("{other:?}"),
            }
        };
        let (answered, ()) = tokio::join!(ask(), asking);
        assert_eq!(answered, Ok(json!({"roots": []})));
        // Taken back when nobody waits any more.
        let asked = tokio::time::timeout(Duration::from_millis(1), ask()).await;
        assert!(asked.is_err());
        messages.recv().await.unwrap();
        let told: Value = serde_json::from_slice(&messages.recv().await.unwrap()).unwrap();
        assert_eq!(told["method"], "notifications/cancelled");
    }
}
