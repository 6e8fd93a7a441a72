//! `send-email`: a mail from the user's own address, to recipients whom settings allow.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use lettre::Address;
use lettre::message::{Mailbox, Message, MultiPart, SinglePart};
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{AsyncSmtpConnection, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use serde_json::{Value, json};
use toolcrib_core::words::counted;
use toolcrib_core::{BoxFuture, Call, CallError, CallResult, Hidden, Outcome, Run, Tool};
use url::Url;

use super::{Builtin, Effects, Switch, text};
use crate::Place;
use crate::outbound::{Lookup, addresses, system_lookup};
use crate::remotes::{Email, Remotes, Security};

const MAX_RECIPIENTS: usize = 20;
const LONGEST_SUBJECT: usize = 500;
const MAX_TEXT: usize = 1_000_000;
/// How long the server may take for one answer.
const PATIENCE: Duration = Duration::from_secs(20);

struct SendEmail {
    place: Arc<Place>,
    lookup: Lookup,
    settings: Option<Email>,
    hidden: Hidden,
}

pub(super) fn tool(place: &Arc<Place>, remotes: &Remotes) -> Builtin {
    let none = CallError::unavailable("`send-email` is off: no setting names a mail server").hint(
        "write `[email]` with `smtp = \"smtps://mail.example.com\"`, `from`, `password = \"secret://NAME\"` and `allowed_recipients` into your own ~/.config/toolcrib/config.toml",
    );
    let list = |what: &str| {
        json!({
            "type": "array", "maxItems": MAX_RECIPIENTS, "description": what,
            "items": {"type": "string", "maxLength": 320},
        })
    };
    Builtin {
        name: "send-email",
        title: "Send e-mail",
        description: "Send an e-mail from the user's address to recipients whom the settings allow.",
        parameters: json!({
            "to": list("The recipients, such as ada@example.com."),
            "subject": {"type": "string", "minLength": 1, "maxLength": LONGEST_SUBJECT, "description": "The subject, one line."},
            "text": {"type": "string", "maxLength": MAX_TEXT, "description": "The message as plain text."},
            "html": {"type": "string", "maxLength": MAX_TEXT, "description": "The message as HTML, beside or instead of the text."},
            "cc": list("Who gets a copy."),
            "bcc": list("Who gets a copy that nobody else sees."),
            "replyTo": {"type": "string", "maxLength": 320, "description": "Where answers are to go."},
        }),
        required: &["to", "subject"],
        effects: Effects::Sends,
        switch: Switch::Set(match &remotes.email {
            None => Err(none),
            Some(_) => Ok(()),
        }),
        run: Arc::new(SendEmail {
            place: place.clone(),
            lookup: Arc::new(system_lookup),
            settings: remotes.email.clone(),
            hidden: Hidden::default(),
        }),
    }
}

impl Run for SendEmail {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, CallResult> {
        Box::pin(self.send(call))
    }

    fn hidden(&self, _: &Tool) -> Option<Hidden> {
        Some(self.hidden.clone())
    }
}

impl SendEmail {
    async fn send(&self, call: &Call) -> CallResult {
        let Some(settings) = &self.settings else {
            return Err(CallError::unavailable("no setting names a mail server"));
        };
        let [to, cc, bcc] = ["to", "cc", "bcc"].map(|field| recipients(call, field, settings));
        let (to, cc, bcc) = (to?, cc?, bcc?);
        let count = to.len() + cc.len() + bcc.len();
        if to.is_empty() || count > MAX_RECIPIENTS {
            return Err(CallError::invalid(format!(
                "a mail has from 1 to {MAX_RECIPIENTS} recipients, and one in `to`"
            ))
            .hint("name them in `to`, `cc` and `bcc`"));
        }
        let message = message(call, settings, &to, &cc, &bcc)?;
        let envelope = message.envelope().clone();
        let addresses = self.addresses(settings).await?;
        let mut connection = self.connect(settings, &addresses).await?;
        let sent = connection.send(&envelope, &message.formatted()).await;
        let answer = sent.map_err(|error| failed("the server did not take the mail", &error))?;
        // It has been taken, whatever comes of saying goodbye.
        let _ = tokio::time::timeout(PATIENCE, connection.quit()).await;
        let answer: String = answer
            .message()
            .collect::<Vec<_>>()
            .join(" ")
            .chars()
            .take(200)
            .collect();
        Ok(Outcome::text(format!(
            "The server took the mail for {}",
            counted(count, "recipient")
        ))
        .title("E-mail sent")
        .meta("recipients", count)
        .meta("answer", answer))
    }

    /// The server's addresses, judged like those of any other.
    async fn addresses(&self, settings: &Email) -> Result<Vec<SocketAddr>, CallError> {
        let Email { host, port, .. } = settings;
        let url = Url::parse(&format!("http://{host}:{port}/"));
        let url = url.map_err(|_| {
            CallError::unavailable("`smtp` names no host").hint("check `[email]` in your settings")
        })?;
        let mut found = addresses(&self.place, &self.lookup, &url).await?;
        for address in &mut found {
            address.set_port(*port);
        }
        if settings.security == Security::Open
            && !found.iter().all(|address| address.ip().is_loopback())
        {
            return Err(CallError::denied(format!(
                "`{host}` is not this machine, and mail goes there with TLS alone"
            ))
            .hint("write `smtp = \"smtps://HOST\"`, or `smtp+starttls://HOST`"));
        }
        Ok(found)
    }

    async fn connect(
        &self,
        settings: &Email,
        addresses: &[SocketAddr],
    ) -> Result<AsyncSmtpConnection, CallError> {
        let hello = ClientId::default();
        let tls = || {
            TlsParameters::new_rustls(settings.host.clone())
                .map_err(|error| failed("TLS could not be set up", &error))
        };
        let first = match settings.security {
            Security::Tls => Some(tls()?),
            Security::StartTls | Security::Open => None,
        };
        let connected =
            AsyncSmtpConnection::connect_tokio1(addresses, Some(PATIENCE), &hello, first, None);
        let mut connection = connected
            .await
            .map_err(|error| failed("the mail server could not be reached", &error))?;
        if settings.security == Security::StartTls {
            let begun = connection.starttls(tls()?, &hello).await;
            begun.map_err(|error| {
                failed(
                    "the server does not begin TLS, and nothing is sent without",
                    &error,
                )
            })?;
        }
        if let Some(secret) = &settings.password {
            let read = self.place.safe.read(secret).await;
            let password = read.map_err(|unread| unread.into_call_error("send-email"))?;
            self.hidden.add([password.as_str()]);
            let user = settings
                .user
                .clone()
                .unwrap_or_else(|| settings.from.clone());
            let credentials =
                Credentials::new(user, password.trim_end_matches(['\r', '\n']).to_owned());
            let logged_in = connection
                .auth(&[Mechanism::Plain, Mechanism::Login], &credentials)
                .await;
            logged_in.map_err(|error| failed("the server did not let us log in", &error))?;
        }
        Ok(connection)
    }
}

fn failed(what: &str, error: &lettre::transport::smtp::Error) -> CallError {
    let reason: String = error
        .to_string()
        .chars()
        .filter(|c| !c.is_control())
        .take(300)
        .collect();
    CallError::unavailable(format!("{what}: {reason}"))
        .hint("check `[email]` in your settings and the recipients, then call again")
}

/// The recipients of one kind, each of whom settings allow.
fn recipients(call: &Call, field: &str, settings: &Email) -> Result<Vec<Mailbox>, CallError> {
    let given = call.arguments.get(field);
    let list = given
        .as_ref()
        .and_then(|value| value.as_array().cloned())
        .unwrap_or_default();
    let texts = list.iter().filter_map(Value::as_str);
    let mailboxes = texts.map(|text| {
        let mailbox = mailbox(field, text)?;
        match is_allowed(&mailbox.email, &settings.allowed_recipients) {
            true => Ok(mailbox),
            false => Err(CallError::denied(format!(
                "`{}` is not among the recipients that the settings allow",
                mailbox.email
            ))
            .hint("the user can add it to `allowed_recipients` of `[email]`")),
        }
    });
    mailboxes.collect()
}

fn mailbox(field: &str, text: &str) -> Result<Mailbox, CallError> {
    let parsed = (!text.contains(char::is_control)).then(|| text.trim().parse::<Mailbox>());
    match parsed {
        Some(Ok(mailbox)) => Ok(mailbox),
        _ => Err(
            CallError::invalid(format!("`{field}` holds what is no address"))
                .hint("write one such as ada@example.com, or Ada <ada@example.com>"),
        ),
    }
}

/// Is this address in the list, itself or by its host? Capital letters do not matter.
fn is_allowed(address: &Address, allowed: &[String]) -> bool {
    let whole = address.to_string().to_ascii_lowercase();
    allowed.iter().any(|entry| {
        let entry = entry.to_ascii_lowercase();
        match entry.strip_prefix("*@") {
            Some(host) => address.domain().eq_ignore_ascii_case(host),
            None => entry == whole,
        }
    })
}

fn message(
    call: &Call,
    settings: &Email,
    to: &[Mailbox],
    cc: &[Mailbox],
    bcc: &[Mailbox],
) -> Result<Message, CallError> {
    let subject = text(call, "subject").unwrap_or_default();
    if subject.contains(char::is_control) {
        return Err(
            CallError::invalid("`subject` is not one line").hint("write it without line breaks")
        );
    }
    let from = mailbox("from", &settings.from).map_err(|_| {
        CallError::unavailable("`from` of `[email]` is no address")
            .hint("correct it in your settings")
    })?;
    let mut builder = Message::builder().from(from).subject(subject);
    for mailbox in to {
        builder = builder.to(mailbox.clone());
    }
    for mailbox in cc {
        builder = builder.cc(mailbox.clone());
    }
    for mailbox in bcc {
        builder = builder.bcc(mailbox.clone());
    }
    if let Some(reply_to) = text(call, "replyTo") {
        builder = builder.reply_to(mailbox("replyTo", reply_to)?);
    }
    let (plain, html) = (text(call, "text"), text(call, "html"));
    let built = match (plain, html) {
        (Some(plain), Some(html)) => builder.multipart(MultiPart::alternative_plain_html(
            plain.to_owned(),
            html.to_owned(),
        )),
        (None, Some(html)) => builder.singlepart(SinglePart::html(html.to_owned())),
        (Some(plain), None) => builder.singlepart(SinglePart::plain(plain.to_owned())),
        (None, None) => {
            return Err(
                CallError::invalid("there is neither `text` nor `html`").hint("write the message")
            );
        }
    };
    built.map_err(|error| CallError::invalid(format!("the mail can't be written: {error}")))
}
