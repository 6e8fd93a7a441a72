//! Servers elsewhere that the user's own settings name for built-in tools: where to search, whom to tell, who sends mail.
//!
//! Naming one is the user's yes to reaching it: such a server may lie on this machine or in its network. A key is named
//! as a secret and read when it is needed; nothing here holds one.

use std::collections::BTreeMap;

use url::Url;

/// All of them; what is not named is not there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remotes {
    pub web_search: Option<WebSearch>,
    pub webhooks: BTreeMap<String, Webhook>,
    pub email: Option<Email>,
}

/// Where `web-search` looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebSearch {
    pub provider: Provider,
    /// The provider's own address where nothing is said.
    pub url: Option<Url>,
    /// The secret's name.
    pub key: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    Searxng,
    Brave,
    Tavily,
}

/// Whom `send-webhook` tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    pub url: Url,
    /// The name of the secret that messages are signed with.
    pub secret: String,
}

/// Who sends mail, and to whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Email {
    pub host: String,
    pub port: u16,
    pub security: Security,
    pub from: String,
    /// Who logs in; `from` where nothing is said.
    pub user: Option<String>,
    /// The secret's name. Without one nobody logs in.
    pub password: Option<String>,
    /// Addresses, and `*@host` for all of one host.
    pub allowed_recipients: Vec<String>,
}

/// How a mail's way to its server is kept from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Security {
    /// TLS from the first byte.
    Tls,
    /// TLS after a word in the open; nothing is sent without it.
    StartTls,
    /// None, to this machine alone.
    Open,
}
