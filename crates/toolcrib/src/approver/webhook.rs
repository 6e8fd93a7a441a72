//! Webhooks as Standard Webhooks say: a question that goes out, signed, and a decision that comes in, signed.

use std::sync::OnceLock;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use toolcrib_core::store::Approval;
use toolcrib_core::{CallError, ErrorCode};
use toolcrib_store::{hmac_sha256, is_hmac_sha256};

use crate::now_ms;

/// What a secret begins with.
const PREFIX: &str = "whsec_";
/// So far may the sender's clock be from ours.
const TOLERANCE_S: u64 = 300;
/// How often one is sent, always with the same id.
const ATTEMPTS: u32 = 4;
/// So many are on their way at the same time; the others wait.
static AT_ONCE: Semaphore = Semaphore::const_new(8);
const PATIENCE: Duration = Duration::from_secs(5);

pub const ID: &str = "webhook-id";
pub const TIMESTAMP: &str = "webhook-timestamp";
pub const SIGNATURE: &str = "webhook-signature";

/// The key that both sides share. Nothing prints it.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret(Vec<u8>);

impl std::fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

impl WebhookSecret {
    /// `whsec_` and 24 to 64 bytes in base64.
    pub fn read(text: &str) -> Option<WebhookSecret> {
        let key = STANDARD.decode(text.strip_prefix(PREFIX)?).ok()?;
        (24..=64).contains(&key.len()).then_some(WebhookSecret(key))
    }

    pub fn sign(&self, id: &str, timestamp: u64, body: &[u8]) -> String {
        let mac = hmac_sha256(&self.0, &signed(id, timestamp, body));
        format!("v1,{}", STANDARD.encode(mac))
    }
}

fn signed(id: &str, timestamp: u64, body: &[u8]) -> Vec<u8> {
    let mut text = format!("{id}.{timestamp}.").into_bytes();
    text.extend_from_slice(body);
    text
}

/// What a signed request says. Only [`verify`] makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedCallback {
    pub id: String,
    pub body: Vec<u8>,
}

/// Takes a request that is signed with the secret, now.
pub fn verify(
    secret: &WebhookSecret,
    header: impl Fn(&str) -> Option<String>,
    body: Vec<u8>,
) -> Result<VerifiedCallback, CallError> {
    let no = |why: &str| {
        CallError::new(ErrorCode::Unauthorized, format!("the webhook is refused: {why}"))
            .hint("sign `id.timestamp.body` as Standard Webhooks say, with the secret of `approvals.webhook`")
    };
    let id = header(ID).filter(|id| !id.is_empty() && id.len() <= 256);
    let id = id.ok_or_else(|| no("it has no `webhook-id`"))?;
    // One way to write a number: what is signed is what is read.
    let said = header(TIMESTAMP).unwrap_or_default();
    let timestamp: u64 = said
        .parse()
        .map_err(|_| no("it has no `webhook-timestamp`"))?;
    if said != timestamp.to_string() || timestamp.abs_diff(now_ms() / 1_000) > TOLERANCE_S {
        return Err(no(
            "its `webhook-timestamp` is not within five minutes of now",
        ));
    }
    let signatures = header(SIGNATURE).unwrap_or_default();
    let text = signed(&id, timestamp, &body);
    let fits = |one: &str| {
        let mac = one
            .strip_prefix("v1,")
            .and_then(|one| STANDARD.decode(one).ok());
        mac.is_some_and(|mac| is_hmac_sha256(&secret.0, &text, &mac))
    };
    if !signatures.split(' ').take(16).any(fits) {
        return Err(no("no signature of it fits"));
    }
    Ok(VerifiedCallback { id, body })
}

/// Where questions are sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    pub url: String,
    pub secret: WebhookSecret,
}

impl Webhook {
    /// Tells of a question, in a task of its own. It carries no more than the page shows.
    pub fn send(&self, approval: &Approval, page: Option<String>, callback: Option<String>) {
        let body = body(approval, page, callback).to_string();
        let (webhook, id) = (self.clone(), format!("msg_{}", approval.id));
        tokio::spawn(async move {
            if let Err(why) = webhook.deliver(&id, &body).await {
                tracing::warn!(
                    why,
                    webhook = id,
                    "an approval's webhook could not be delivered"
                );
            }
        });
    }

    async fn deliver(&self, id: &str, body: &str) -> Result<(), String> {
        let client = client().ok_or("no HTTP client could be made")?;
        let _place = AT_ONCE.acquire().await.map_err(|error| error.to_string())?;
        let mut why = String::new();
        for attempt in 0..ATTEMPTS {
            let timestamp = now_ms() / 1_000;
            let sent = client
                .post(&self.url)
                .header("content-type", "application/json")
                .header(ID, id)
                .header(TIMESTAMP, timestamp)
                .header(SIGNATURE, self.secret.sign(id, timestamp, body.as_bytes()))
                .body(body.to_owned())
                .send();
            why = match sent.await {
                Ok(answer) if answer.status().is_success() => return Ok(()),
                Ok(answer) => format!("it answered {}", answer.status()),
                Err(error) => error.without_url().to_string(),
            };
            tokio::time::sleep(Duration::from_secs(1 << attempt)).await;
        }
        Err(why)
    }
}

/// Made once: it reads the system's certificates, which takes longer than all the rest.
fn client() -> Option<&'static reqwest::Client> {
    static CLIENT: OnceLock<Option<reqwest::Client>> = OnceLock::new();
    let made = CLIENT.get_or_init(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
        builder.timeout(PATIENCE).build().ok()
    });
    made.as_ref()
}

fn body(approval: &Approval, page: Option<String>, callback: Option<String>) -> Value {
    let arguments: Value = serde_json::from_str(&approval.shown).unwrap_or_default();
    json!({
        "type": "approval.requested",
        "timestamp": crate::wire::rfc3339(approval.created_ms),
        "data": {
            "id": &*approval.id,
            "tool": &*approval.tool,
            "agent": &*approval.agent,
            "client": &*approval.client,
            "project": approval.project.as_deref(),
            "arguments": arguments,
            "note": approval.note,
            "allowedDecisions": approval.allowed.iter().map(|kind| kind.as_str()).collect::<Vec<_>>(),
            "expiresAt": crate::wire::rfc3339(approval.expires_ms),
            "url": page,
            "callback": callback,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret() -> WebhookSecret {
        WebhookSecret::read("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap()
    }

    #[test]
    fn it_signs_as_the_standard_s_example_does() {
        let body = br#"{"test": 2432232314}"#;
        let signature = secret().sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn what_is_not_signed_now_is_refused() {
        let now = now_ms() / 1_000;
        let (id, body) = ("msg_1", b"{}".to_vec());
        let good = secret().sign(id, now, &body);
        let asked = |id: &str, at: String, signature: &str, body: &[u8]| {
            let headers = [
                (ID, id.to_owned()),
                (TIMESTAMP, at),
                (SIGNATURE, signature.to_owned()),
            ];
            let header = |name: &str| {
                let found = headers.iter().find(|(key, _)| *key == name);
                found.map(|(_, value)| value.clone())
            };
            verify(&secret(), header, body.to_vec()).is_ok()
        };
        assert!(asked(id, now.to_string(), &good, &body));
        assert!(asked(
            id,
            now.to_string(),
            &format!("v1,AAAA v1a,x {good}"),
            &body
        ));
        let other =
            WebhookSecret::read("whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=").unwrap();
        let old = now - TOLERANCE_S - 5;
        for (what, fits) in [
            ("no signature", asked(id, now.to_string(), "", &body)),
            (
                "another's",
                asked(id, now.to_string(), &other.sign(id, now, &body), &body),
            ),
            ("another id", asked("msg_2", now.to_string(), &good, &body)),
            ("another body", asked(id, now.to_string(), &good, b"{ }")),
            (
                "no id",
                asked("", now.to_string(), &secret().sign("", now, &body), &body),
            ),
            (
                "another time",
                asked(id, (now - 1).to_string(), &good, &body),
            ),
            (
                "an old one",
                asked(id, old.to_string(), &secret().sign(id, old, &body), &body),
            ),
            (
                "of tomorrow",
                asked(
                    id,
                    (now + 86_400).to_string(),
                    &secret().sign(id, now + 86_400, &body),
                    &body,
                ),
            ),
            ("an odd number", asked(id, format!("+{now}"), &good, &body)),
            (
                "another version",
                asked(id, now.to_string(), &good.replace("v1,", "v2,"), &body),
            ),
            ("half of it", asked(id, now.to_string(), &good[..20], &body)),
        ] {
            assert!(!fits, "{what}");
        }
        for odd in [
            "",
            "whsec_",
            "whsec_AAAA",
            "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        ] {
            assert!(WebhookSecret::read(odd).is_none(), "{odd}");
        }
    }
}
