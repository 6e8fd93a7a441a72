//! `send-webhook`: tells a server that settings name, signed as Standard Webhooks say.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderValue};
use serde_json::{Value, json};
use sha2::Sha256;
use toolcrib_core::{BoxFuture, Call, CallError, CallResult, Hidden, Outcome, Run, Tool};

use super::visit::{self, Allowed, visit};
use super::{Builtin, Effects, Switch, text, unique};
use crate::Place;
use crate::outbound::{Lookup, system_lookup};
use crate::remotes::{Remotes, Webhook};

const MAX_BODY: usize = 1_000_000;
/// How often a message is sent at most, and how long before each time but the first.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(500);
/// What is shown of an answer.
const MAX_ANSWER: usize = 2_000;
/// What the secret begins with where it is written as the standard writes it.
const PREFIX: &str = "whsec_";

struct SendWebhook {
    place: Arc<Place>,
    lookup: Lookup,
    remotes: Remotes,
    hidden: Hidden,
}

pub(super) fn tool(place: &Arc<Place>, remotes: &Remotes) -> Builtin {
    let none = CallError::unavailable("`send-webhook` is off: no setting names a webhook").hint(
        "write `[webhooks.NAME]` with `url` and `secret = \"secret://NAME\"` into your own ~/.config/toolcrib/config.toml",
    );
    let names: Vec<&str> = remotes.webhooks.keys().map(String::as_str).collect();
    Builtin {
        name: "send-webhook",
        title: "Send webhook",
        description: "Send a signed JSON message to one of the webhooks that the user has set up.",
        parameters: json!({
            "name": match names.is_empty() {
                true => json!({"type": "string", "description": "Which webhook, by its name in the settings."}),
                false => json!({"type": "string", "enum": names, "description": "Which webhook, by its name in the settings."}),
            },
            "body": {"type": "object", "description": "The message, sent as JSON."},
        }),
        required: &["name", "body"],
        effects: Effects::Sends,
        switch: Switch::Set(match names.is_empty() {
            true => Err(none),
            false => Ok(()),
        }),
        run: Arc::new(SendWebhook {
            place: place.clone(),
            lookup: Arc::new(system_lookup),
            remotes: remotes.clone(),
            hidden: Hidden::default(),
        }),
    }
}

impl Run for SendWebhook {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, CallResult> {
        Box::pin(self.send(call))
    }

    fn hidden(&self, _: &Tool) -> Option<Hidden> {
        Some(self.hidden.clone())
    }
}

impl SendWebhook {
    async fn send(&self, call: &Call) -> CallResult {
        let name = text(call, "name").unwrap_or_default();
        let Some(webhook) = self.remotes.webhooks.get(name) else {
            let known: Vec<&str> = self.remotes.webhooks.keys().map(String::as_str).collect();
            return Err(CallError::invalid("there is no such webhook")
                .hint(format!("the settings name {}", known.join(", "))));
        };
        let body = call.arguments.get("body").cloned().unwrap_or(Value::Null);
        if body.to_string().len() > MAX_BODY {
            return Err(
                CallError::invalid(format!("`body` is longer than {MAX_BODY} bytes"))
                    .hint("send less"),
            );
        }
        let secret = self.place.safe.read(&webhook.secret).await;
        let secret = secret.map_err(|unread| unread.into_call_error("send-webhook"))?;
        self.hidden.add([secret.as_str()]);
        let key = key(secret.trim());
        let id = format!("msg_{}", unique());
        let mut attempt = 0;
        loop {
            attempt += 1;
            let sent = self.attempt(webhook, &id, &key, &body).await;
            let again = match &sent {
                Ok((status, _)) => matches!(*status, 408 | 425 | 429 | 500..),
                Err(error) => error.code == toolcrib_core::ErrorCode::Unavailable,
            };
            if again && attempt < ATTEMPTS {
                tokio::time::sleep(PAUSE * 3_u32.pow(attempt - 1)).await;
                continue;
            }
            return sent.map(|(status, answer)| told(name, &id, attempt, status, answer));
        }
    }

    /// Sends the message once; gives the status, and what was answered.
    async fn attempt(
        &self,
        webhook: &Webhook,
        id: &str,
        key: &[u8],
        body: &Value,
    ) -> Result<(u16, String), CallError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let seconds = now.map_or(0, |now| now.as_secs()).to_string();
        let signature = signature(key, id, &seconds, &body.to_string());
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("webhook-id", id),
            ("webhook-timestamp", &seconds),
            ("webhook-signature", &signature),
        ] {
            let value = HeaderValue::from_str(value)
                .map_err(|error| CallError::internal(error.to_string()))?;
            headers.insert(name, value);
        }
        let request = visit::Request {
            method: Method::POST,
            headers,
            body: Some(body),
        };
        let url = webhook.url.clone();
        let answer = visit(&self.place, &self.lookup, &Allowed::Named, url, &request).await?;
        let status = answer.response.status().as_u16();
        // It has been sent, whatever comes back.
        let (bytes, _) = visit::body(answer.response, MAX_ANSWER)
            .await
            .unwrap_or_default();
        Ok((status, String::from_utf8_lossy(&bytes).into_owned()))
    }
}

fn told(name: &str, id: &str, attempts: u32, status: u16, answer: String) -> Outcome {
    let taken = (200..300).contains(&status);
    let mut output = match taken {
        true => format!("`{name}` took the message (status {status})"),
        false => format!("`{name}` did not take the message (status {status})"),
    };
    if !answer.trim().is_empty() {
        output.push_str(&format!("\n\n{answer}"));
    }
    let outcome = Outcome::text(output)
        .title(format!("Webhook {name}"))
        .meta("id", id)
        .meta("status", status)
        .meta("attempts", attempts);
    Outcome {
        is_error: !taken,
        ..outcome
    }
}

/// The key that a secret stands for: base64 behind the standard's prefix, else its own bytes.
fn key(secret: &str) -> Vec<u8> {
    let written = secret
        .strip_prefix(PREFIX)
        .and_then(|text| STANDARD.decode(text).ok());
    written.unwrap_or_else(|| secret.as_bytes().to_vec())
}

/// The signature of a message, in the standard's first version.
fn signature(key: &[u8], id: &str, seconds: &str, body: &str) -> String {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else {
        unreachable!("a key of any length fits");
    };
    for part in [id, ".", seconds, ".", body] {
        mac.update(part.as_bytes());
    }
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_that_of_the_standard() {
        // The example of the standard's own libraries.
        let key = key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let signed = signature(
            &key,
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            "1614265330",
            r#"{"test": 2432232314}"#,
        );
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert_eq!(super::key("plain"), b"plain");
    }
}
