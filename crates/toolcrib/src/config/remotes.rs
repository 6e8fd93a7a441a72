//! `[web_search]`, `[webhooks.NAME]` and `[email]`: the servers that built-in tools may use. Only the user's own file says so.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use toolcrib_core::permit::secret_name;
use toolcrib_sources::remotes::{Email, Provider, Remotes, Security, WebSearch, Webhook};
use url::{Host, Url};

use super::ConfigError;
use super::file::ConfigFile;

/// A webhook's name is one of a closed list that agents read.
const LONGEST_NAME: usize = 64;
const MAX_WEBHOOKS: usize = 50;

/// Where `web-search` looks.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebSearchSection {
    /// "searxng", "brave" or "tavily".
    pub provider: ProviderName,
    /// The address of your SearXNG, such as "http://localhost:8080"; others have their own.
    pub url: Option<String>,
    /// The key, as a secret: "secret://NAME".
    pub key: Option<String>,
}

/// The search engines that `web-search` knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProviderName {
    Searxng,
    Brave,
    Tavily,
}

/// Whom `send-webhook` tells.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebhookSection {
    /// Where messages go.
    pub url: String,
    /// What they are signed with, as a secret: "secret://NAME".
    pub secret: String,
}

/// Who sends mail for `send-email`, and to whom.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EmailSection {
    /// The mail server: "smtps://HOST" (TLS), "smtp+starttls://HOST" (TLS after a word in the open), or
    /// "smtp://localhost" on this machine; with ":PORT" where it is not the usual one.
    pub smtp: String,
    /// The address that mail comes from.
    pub from: String,
    /// Who logs in (what `from` says).
    pub user: Option<String>,
    /// The password, as a secret: "secret://NAME". Without one nobody logs in.
    pub password: Option<String>,
    /// Who may be written to: addresses, and "*@example.com" for all of a host.
    pub allowed_recipients: Vec<String>,
}

/// The servers that the user's own file names.
pub fn remotes(user: &ConfigFile) -> Result<Remotes, ConfigError> {
    let webhooks: BTreeMap<_, _> = user.webhooks.clone().unwrap_or_default();
    if webhooks.len() > MAX_WEBHOOKS {
        let reason = format!("name more than {MAX_WEBHOOKS}");
        return Err(refusal("webhooks", &reason, "name fewer"));
    }
    let webhooks = webhooks.into_iter().map(|(name, section)| {
        let webhook = webhook(&name, &section)?;
        Ok((name, webhook))
    });
    Ok(Remotes {
        web_search: user.web_search.as_ref().map(web_search).transpose()?,
        webhooks: webhooks.collect::<Result<_, ConfigError>>()?,
        email: user.email.as_ref().map(email).transpose()?,
    })
}

fn refusal(setting: &str, reason: &str, hint: &str) -> ConfigError {
    ConfigError::new(format!("setting `{setting}`"), reason, hint)
}

/// The name of a secret. The value itself has no place in a file of settings.
fn secret(setting: &str, text: &str) -> Result<String, ConfigError> {
    let hint = "write \"secret://NAME\", and in `[secrets.NAME]` where it is stored";
    let name = secret_name(text).ok_or_else(|| refusal(setting, "does not name a secret", hint))?;
    Ok(name.to_owned())
}

fn http(setting: &str, text: &str) -> Result<Url, ConfigError> {
    let hint = "write it like \"https://example.com/path\"";
    let url = Url::parse(text).map_err(|_| refusal(setting, "is not a URL", hint))?;
    let plain = url.username().is_empty() && url.password().is_none();
    match matches!(url.scheme(), "http" | "https") && url.has_host() && plain {
        true => Ok(url),
        false => Err(refusal(
            setting,
            "is not an http or https URL without a password",
            hint,
        )),
    }
}

fn web_search(section: &WebSearchSection) -> Result<WebSearch, ConfigError> {
    let key = section.key.as_deref();
    let url = section.url.as_deref();
    Ok(WebSearch {
        provider: match section.provider {
            ProviderName::Searxng => Provider::Searxng,
            ProviderName::Brave => Provider::Brave,
            ProviderName::Tavily => Provider::Tavily,
        },
        url: url.map(|url| http("web_search.url", url)).transpose()?,
        key: key.map(|key| secret("web_search.key", key)).transpose()?,
    })
}

fn webhook(name: &str, section: &WebhookSection) -> Result<Webhook, ConfigError> {
    let shown: String = name.chars().take(LONGEST_NAME).collect();
    let fits = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(fits) {
        let hint = "take up to 64 letters, digits, `_`, `-` and `.`";
        return Err(refusal(
            &format!("webhooks.{shown}"),
            "can't be a webhook's name",
            hint,
        ));
    }
    Ok(Webhook {
        url: http(&format!("webhooks.{name}.url"), &section.url)?,
        secret: secret(&format!("webhooks.{name}.secret"), &section.secret)?,
    })
}

fn email(section: &EmailSection) -> Result<Email, ConfigError> {
    let hint = "write \"smtps://mail.example.com\", \"smtp+starttls://mail.example.com:587\" or \"smtp://localhost\"";
    let wrong = |reason: &str| refusal("email.smtp", reason, hint);
    let (scheme, rest) = section
        .smtp
        .split_once("://")
        .ok_or_else(|| wrong("names no kind of server"))?;
    let (security, usual) = match scheme {
        "smtps" => (Security::Tls, 465),
        "smtp+starttls" => (Security::StartTls, 587),
        "smtp" => (Security::Open, 25),
        _ => return Err(wrong("names a kind of server that there is not")),
    };
    // Read as a web address, which knows hosts and ports; nothing else may be in it.
    let url = Url::parse(&format!("ws://{rest}")).map_err(|_| wrong("names no host"))?;
    let bare = url.username().is_empty()
        && url.password().is_none()
        && url.path() == "/"
        && url.query().is_none();
    let Some(host) = url.host().filter(|_| bare) else {
        return Err(wrong("holds more than a host and a port"));
    };
    let local = match &host {
        Host::Domain(name) => *name == "localhost",
        Host::Ipv4(ip) => ip.is_loopback(),
        Host::Ipv6(ip) => ip.is_loopback(),
    };
    if security == Security::Open && !local {
        return Err(wrong(
            "would send mail and password in the open; that is for this machine alone",
        ));
    }
    if section.allowed_recipients.is_empty() {
        let hint = "name addresses, or \"*@example.com\" for all of a host";
        return Err(refusal("email.allowed_recipients", "names nobody", hint));
    }
    let one_line = |text: &String| !text.contains(char::is_control);
    if !section.from.contains('@') || !one_line(&section.from) {
        return Err(refusal(
            "email.from",
            "is no address",
            "write it like \"me@example.com\"",
        ));
    }
    let password = section.password.as_deref();
    let port = rest
        .rsplit_once(':')
        .and_then(|(_, port)| port.trim_end_matches('/').parse().ok());
    Ok(Email {
        host: host.to_string(),
        port: port.unwrap_or(usual),
        security,
        from: section.from.clone(),
        user: section.user.clone(),
        password: password
            .map(|text| secret("email.password", text))
            .transpose()?,
        allowed_recipients: section.allowed_recipients.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Remotes, String> {
        let file: ConfigFile = toml::from_str(text).map_err(|error| error.to_string())?;
        remotes(&file).map_err(|error| error.reason)
    }

    #[test]
    fn servers_are_read() {
        let remotes = read(
            "[web_search]\nprovider = \"searxng\"\nurl = \"http://localhost:8080\"\n\
             [webhooks.ops]\nurl = \"https://example.com/x\"\nsecret = \"secret://ops\"\n\
             [email]\nsmtp = \"smtps://mail.example.com\"\nfrom = \"a@example.com\"\npassword = \"secret://mail\"\nallowed_recipients = [\"*@example.com\"]\n",
        )
        .unwrap();
        assert_eq!(remotes.web_search.unwrap().provider, Provider::Searxng);
        assert_eq!(remotes.webhooks["ops"].secret, "ops");
        let email = remotes.email.unwrap();
        assert_eq!(
            (email.port, email.security, email.password.as_deref()),
            (465, Security::Tls, Some("mail"))
        );
        let with = |smtp: &str| {
            let text = format!(
                "[email]\nsmtp = \"{smtp}\"\nfrom = \"a@b\"\nallowed_recipients = [\"a@b\"]\n"
            );
            read(&text).map(|remotes| remotes.email.map(|email| (email.host, email.port)))
        };
        for (smtp, host, port) in [
            ("smtp+starttls://m.example.com", "m.example.com", 587),
            ("smtp://localhost:1025", "localhost", 1025),
            ("smtp://127.0.0.1", "127.0.0.1", 25),
            ("smtps://[::1]:80", "[::1]", 80),
        ] {
            assert_eq!(with(smtp).unwrap(), Some((host.to_owned(), port)), "{smtp}");
        }
        for smtp in [
            "mail.example.com",
            "smtp://mail.example.com",
            "smtp://10.0.0.1",
            "imap://x",
            "smtps://u:p@x",
            "smtps://x/y",
            "smtps://",
        ] {
            assert!(with(smtp).is_err(), "{smtp}");
        }
    }

    #[test]
    fn what_is_no_secret_and_what_is_no_address_is_refused() {
        for text in [
            "[web_search]\nprovider = \"brave\"\nkey = \"plain\"\n",
            "[web_search]\nprovider = \"altavista\"\n",
            "[web_search]\nprovider = \"searxng\"\nurl = \"ftp://x\"\n",
            "[webhooks.a]\nurl = \"https://u:p@x/\"\nsecret = \"secret://a\"\n",
            "[webhooks.a]\nurl = \"https://x/\"\nsecret = \"whsec_abc\"\n",
            "[webhooks.\"a b\"]\nurl = \"https://x/\"\nsecret = \"secret://a\"\n",
            "[email]\nsmtp = \"smtps://x\"\nfrom = \"a@b\"\nallowed_recipients = []\n",
            "[email]\nsmtp = \"smtps://x\"\nfrom = \"a\"\nallowed_recipients = [\"a@b\"]\n",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
