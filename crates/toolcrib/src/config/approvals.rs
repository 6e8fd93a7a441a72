//! How people decide on calls that wait: `[approvals]` of the user's file.

use schemars::JsonSchema;
use serde::Deserialize;

use super::ConfigError;
use super::file::ConfigFile;
use super::private::user_config;
use crate::approver::webhook::{Webhook, WebhookSecret};
use crate::env::Env;

/// How people decide on calls that wait.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalsSection {
    /// Whether a person at a terminal decides with `toolcrib approvals` (true). With false only pages, tokens and webhooks
    /// that were set up before decide.
    pub cli: Option<bool>,
    /// The address of this crib's pages as people reach it, such as "https://crib.example.com" (the port it listens on).
    pub url: Option<String>,
    /// Where questions are sent, and the secret that both sides sign with.
    pub webhook: Option<WebhookSection>,
}

/// Where questions are sent.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebhookSection {
    /// Where a question is posted to.
    pub url: String,
    /// `whsec_` and 24 to 64 bytes in base64. Who has it can decide.
    pub secret: String,
}

/// The same as it holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApprovalSettings {
    pub url: Option<String>,
    pub webhook: Option<Webhook>,
}

pub(super) fn approval_settings(user: &ConfigFile) -> Result<ApprovalSettings, ConfigError> {
    let section = user.approvals.clone().unwrap_or_default();
    let refuse = |key: &str, reason: &str, hint: &str| {
        ConfigError::new(format!("setting `{key}`"), reason.to_owned(), hint)
    };
    let is_web = |url: &str| url.starts_with("http://") || url.starts_with("https://");
    if let Some(url) = section.url.as_deref().filter(|url| !is_web(url)) {
        let reason = format!("`{url}` is no address of a page");
        let hint = "write it as \"https://crib.example.com\"";
        return Err(refuse("approvals.url", &reason, hint));
    }
    let webhook = match section.webhook {
        None => None,
        Some(WebhookSection { url, .. }) if !is_web(&url) => {
            let hint = "write it as \"https://example.com/hook\"";
            return Err(refuse(
                "approvals.webhook.url",
                "it is no web address",
                hint,
            ));
        }
        Some(WebhookSection { url, secret }) => {
            let hint = "write `whsec_` and 32 random bytes in base64; `openssl rand -base64 32` prints such bytes";
            let secret = WebhookSecret::read(&secret).ok_or_else(|| {
                refuse(
                    "approvals.webhook.secret",
                    "it is no secret of a webhook",
                    hint,
                )
            })?;
            Some(Webhook { url, secret })
        }
    };
    Ok(ApprovalSettings {
        url: section.url.map(|url| url.trim_end_matches('/').to_owned()),
        webhook,
    })
}

/// May a person at a terminal decide? Not where nobody can read what the user set.
pub fn decides_at_terminal(env: &Env) -> bool {
    user_config(env).is_ok_and(|user| user.approvals.unwrap_or_default().cli.unwrap_or(true))
}
