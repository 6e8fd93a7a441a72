//! MCP in lines, on stdin and stdout and behind the project's socket. Who gets there is the owner, as any agent they like.

use std::io;
use std::sync::Arc;

use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use toolcrib_core::{ListChanges, Seen};

use super::asker::{self, Asker, Hello};
use super::conversation::{Conversation, Outlet, QUEUE};
use super::framing::{Line, Read, refusal};
use super::http::{cancelled, too_many};
use super::message::{self, Id, Incoming, Malformed, Message, Notification, Request};
use super::methods::{Channel, Later, Reply, ready, together};
use super::notices::LIST_CHANGED;
use super::reply::{Answer, notification};
use super::{Mcp, codes};
use crate::serve::auth::Who;
use crate::serve::http::{GRACE, LAST_WORDS};

/// Speaks MCP in lines with this caller until it hangs up. `session` is what its calls have in common. Dropping the future
/// ends all that runs.
pub async fn lines(
    mcp: Arc<Mcp>,
    (who, session): (Who, Arc<str>),
    input: impl AsyncRead + Send + Unpin,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<(), String> {
    lines_until(mcp, (who, session), input, output, std::future::pending()).await
}

/// The same, until `stop` ends. What was answered by then is still written.
pub async fn lines_until(
    mcp: Arc<Mcp>,
    (who, session): (Who, Arc<str>),
    input: impl AsyncRead + Send + Unpin,
    output: impl AsyncWrite + Send + Unpin + 'static,
    stop: impl Future<Output = ()>,
) -> Result<(), String> {
    let (outlet, messages) = mpsc::channel(QUEUE);
    let mut writer = JoinSet::new();
    writer.spawn(write(output, messages));
    let mut client = Client {
        mcp,
        who,
        session,
        outlet,
        conversation: Arc::default(),
        greeted: None,
        changes: None,
        seen: Seen::default(),
        running: JoinSet::new(),
        spoke: false,
    };
    let ended = tokio::select! {
        ended = client.serve(input) => ended,
        () = stop => {
            client.spoke = true;
            // What has ended is answered.
            let ended = async { while client.running.join_next().await.is_some() {} };
            let _ = tokio::time::timeout(LAST_WORDS, ended).await;
            Ok(())
        }
    };
    let spoke = client.spoke;
    // With the last that could send, the writer ends too.
    drop(client);
    let _ = tokio::time::timeout(LAST_WORDS, writer.join_next()).await;
    match ended {
        Err(error) => Err(error.to_string()),
        Ok(()) if !spoke => Err("it hung up without a word".to_owned()),
        Ok(()) => Ok(()),
    }
}

/// Writes messages, one a line, as many at once as there are.
async fn write(
    mut output: impl AsyncWrite + Unpin,
    mut messages: mpsc::Receiver<Vec<u8>>,
) -> io::Result<()> {
    while let Some(message) = messages.recv().await {
        let mut next = Some(message);
        while let Some(mut message) = next {
            message.push(b'\n');
            output.write_all(&message).await?;
            next = messages.try_recv().ok();
        }
        output.flush().await?;
    }
    Ok(())
}

/// The client at the other end.
struct Client {
    mcp: Arc<Mcp>,
    who: Who,
    session: Arc<str>,
    outlet: Outlet,
    conversation: Arc<Conversation>,
    /// Who said `initialize`.
    greeted: Option<Asker>,
    /// What is told by itself to who said hello.
    changes: Option<ListChanges>,
    /// The list that it has seen last.
    seen: Seen,
    running: JoinSet<()>,
    /// It has sent at least one message.
    spoke: bool,
}

impl Client {
    async fn serve(&mut self, input: impl AsyncRead + Send + Unpin) -> io::Result<()> {
        let (mut input, mut line) = (BufReader::new(input), Line::default());
        loop {
            let changes = async {
                match &mut self.changes {
                    Some(changes) => changes.next().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                read = line.read(&mut input) => match read? {
                    Read::Line(line) => self.take(&line).await,
                    Read::TooLong(id) => {
                        self.spoke = true;
                        self.send(refusal(id.as_ref(), "request")).await;
                    }
                    Read::End => break,
                },
                () = changes => {
                    self.send(notification(LIST_CHANGED, None::<&()>)).await;
                }
                Some(_) = self.running.join_next() => {}
            }
        }
        // Who has hung up may still read, and what runs has its grace.
        let ended = async { while self.running.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(GRACE, ended).await;
        Ok(())
    }

    /// A client that is gone is noticed where it is read from.
    async fn send(&self, message: Vec<u8>) {
        let _ = self.outlet.send(message).await;
    }

    async fn take(&mut self, line: &[u8]) {
        let line = line.trim_ascii();
        if line.is_empty() {
            return;
        }
        match message::read(line) {
            Err(Malformed { code, id, reason }) => {
                self.send(Answer::error(id.as_ref(), code, &reason).body)
                    .await;
            }
            Ok(Incoming::Batch(items)) => self.take_batch(&items).await,
            Ok(Incoming::One(message)) => {
                self.spoke = true;
                match self.reply(message) {
                    None => {}
                    Some((_, Reply::Now(answer))) => self.send(answer.body).await,
                    Some((id, Reply::Later(work))) => match self.begin(&id, work) {
                        Ok(work) => {
                            let outlet = self.outlet.clone();
                            self.running.spawn(async move {
                                if let Some(answer) = work.await {
                                    let _ = outlet.send(answer.body).await;
                                }
                            });
                        }
                        Err(answer) => self.send(answer.body).await,
                    },
                }
            }
        }
    }

    /// Several messages at once, which one revision has.
    async fn take_batch(&mut self, items: &[&RawValue]) {
        if !self
            .greeted
            .as_ref()
            .is_some_and(|asker| asker.revision.has_batches())
        {
            let message = "this revision takes one message at a time";
            return self
                .send(Answer::error(None, codes::INVALID_REQUEST, message).body)
                .await;
        }
        let mut answers: Vec<Later> = Vec::new();
        for item in items {
            let reply = match message::read_one(item.get().as_bytes()) {
                Ok(message) => self.reply(message),
                Err(Malformed { code, id, reason }) => {
                    answers.push(ready(Answer::error(id.as_ref(), code, &reason)));
                    continue;
                }
            };
            answers.extend(reply.map(|(id, reply)| match reply {
                Reply::Now(answer) => ready(answer),
                Reply::Later(work) => self.begin(&id, work).unwrap_or_else(ready),
            }));
        }
        let outlet = self.outlet.clone();
        self.running.spawn(async move {
            if let Some(answer) = together(answers).await {
                let _ = outlet.send(answer.body).await;
            }
        });
    }

    /// Notes that work runs, so that it can be cancelled.
    fn begin(&self, id: &Id, work: Later) -> Result<Later, Answer> {
        let running = self.conversation.begin(id).ok_or_else(|| too_many(id))?;
        Ok(Box::pin(async move {
            tokio::select! {
                // The work first: a call that is cancelled at once has begun all the same, and is recorded.
                biased;
                answer = work => answer,
                () = running.cancelled() => None,
            }
        }))
    }

    /// What a message is answered with, if it is.
    fn reply(&mut self, message: Message) -> Option<(Id, Reply)> {
        match message {
            Message::Request(request) => {
                let id = request.id.clone();
                Some((id, self.answer(request)))
            }
            Message::Notification(notification) => {
                self.hear(&notification);
                None
            }
            Message::Response(response) => {
                self.conversation.answered(&response);
                None
            }
        }
    }

    fn answer(&mut self, request: Request) -> Reply {
        if request.method == "initialize" {
            let Some(hello) = Hello::of(&request.params) else {
                let message = "`protocolVersion` must be text";
                return Reply::error(&request, codes::INVALID_PARAMS, message);
            };
            let asker = hello.asker(self.who.clone());
            self.greeted = Some(asker.clone());
            return self.mcp.greet(asker, request.id);
        }
        let asker = match asker::on_lines(&self.who, self.greeted.as_ref(), &request) {
            Ok(asker) => asker.within(&self.session),
            Err(answer) => return Reply::Now(answer),
        };
        let channel = Channel {
            conversation: Some(self.conversation.clone()),
            outlet: Some(self.outlet.clone()),
            seen: self.seen.clone(),
        };
        self.mcp.answer(&asker, channel, request)
    }

    fn hear(&mut self, notification: &Notification) {
        match &*notification.method {
            "notifications/initialized" if self.changes.is_none() => {
                let crib = &self.mcp.served.crib;
                let seen = &self.seen;
                let follow = |asker: &Asker| crib.follow_from(asker.who.agent(), seen.clone());
                self.changes = self.greeted.as_ref().map(follow);
            }
            _ => cancelled(&self.conversation, notification),
        }
    }
}
