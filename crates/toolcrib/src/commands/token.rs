//! `toolcrib token`: what programs show to be let in over HTTP.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use toolcrib_core::ErrorCode;
use toolcrib_core::words::CommandLine;
use toolcrib_store::{NewToken, Token as Recorded, Tokens};

use super::reach::Reach;
use super::{Done, Scene};
use crate::failure::Failure;
use crate::open::data_folder;
use crate::printer::{BOLD, GREEN, plain};
use crate::serve::auth::Scope;
use crate::store_handle::StoreHandle;
use crate::wire::rfc3339;

const MAX_NAME: usize = 64;
const UNITS: [(&str, u64); 5] = [
    ("s", 1),
    ("m", 60),
    ("h", 3_600),
    ("d", 86_400),
    ("w", 7 * 86_400),
];

/// Make, list and take back tokens for programs that use HTTP
#[derive(Debug, Args)]
#[command(
    after_help = "Only hashes of tokens are kept: a token is shown once, when it is made. Commands and agents on this \
    machine reach the crib without one; a token is for HTTP."
)]
pub struct Token {
    #[command(subcommand)]
    pub verb: TokenVerb,
}

#[derive(Debug, Subcommand)]
pub enum TokenVerb {
    Create(Create),
    List(List),
    Revoke(Revoke),
    Login(Login),
}

/// Make a token, and print it this once
#[derive(Debug, Args)]
pub struct Create {
    /// What you will know it by
    pub name: String,
    /// What it may be used for
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "read,call",
        value_name = "SCOPE,…"
    )]
    pub scope: Vec<Scope>,
    /// The agent that its calls are made for
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// How long it counts, such as 30d or 12h; until it is revoked if not given
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub expires: Option<Duration>,
}

/// List the tokens, without their secrets
#[derive(Debug, Args)]
pub struct List {}

/// Take a token back; a server that runs refuses it within a second
#[derive(Debug, Args)]
pub struct Revoke {
    /// Its id or name
    #[arg(value_name = "ID|NAME")]
    pub token: String,
}

/// Print a new login URL for a browser, of the crib that serves this project
#[derive(Debug, Args)]
pub struct Login {}

impl Token {
    pub async fn run(self, scene: &Scene) -> Done {
        if let TokenVerb::Login(_) = self.verb {
            return login(scene).await;
        }
        let memory = StoreHandle::open(&scene.env, &data_folder(&scene.env)?).await?;
        let tokens = memory.store()?.tokens();
        match self.verb {
            TokenVerb::Create(create) => create.run(scene, &tokens).await,
            TokenVerb::List(_) => list(scene, &tokens).await,
            TokenVerb::Revoke(revoke) => revoke.run(scene, &tokens).await,
            TokenVerb::Login(_) => Ok(70),
        }
    }
}

impl Create {
    async fn run(self, scene: &Scene, tokens: &Tokens) -> Done {
        let agent = self.agent.as_deref().map(|agent| label("agent", agent));
        let agent = agent.transpose()?;
        let name = label("name", &self.name)?;
        if let Some(same) = named(tokens, &name).await?.first() {
            let message = format!("there is a token `{name}` already");
            let hint = format!(
                "take another name, or revoke it: `{}`",
                CommandLine::new("toolcrib token revoke").operand(&same.id)
            );
            return Err(Failure::new(ErrorCode::Conflict, message).hint(hint));
        }
        let mut scopes: Vec<String> = Vec::new();
        for scope in Scope::ALL {
            if self.scope.contains(&scope) {
                scopes.push(scope.as_str().to_owned());
            }
        }
        let expires_ms = self.expires.map(|life| {
            let life = u64::try_from(life.as_millis()).unwrap_or(u64::MAX);
            crate::now_ms().saturating_add(life)
        });
        let new = NewToken {
            name,
            scopes,
            agent,
            expires_ms,
        };
        let (token, secret) = tokens.create(new).await?;
        let printer = scene.printer;
        if printer.is_json() {
            let mut view = view(&token);
            view["token"] = secret.into();
            printer.json(&view);
            return Ok(0);
        }
        // The secret alone on stdout, so that a shell can keep it: TOOLCRIB_TOKEN=$(toolcrib token create …).
        printer.text(&secret);
        printer.note(format!(
            "{GREEN}made{GREEN:#} the token {BOLD}{}{BOLD:#} ({}; {}). It is shown this once",
            plain(&token.name),
            token.scopes.join(", "),
            until(&token)
        ));
        Ok(0)
    }
}

async fn list(scene: &Scene, tokens: &Tokens) -> Done {
    let all = tokens.list().await?;
    let printer = scene.printer;
    if printer.is_json() {
        let views: Vec<Value> = all.iter().map(view).collect();
        printer.json(&json!({"tokens": views, "count": views.len()}));
        return Ok(0);
    }
    if all.is_empty() {
        printer.line("there are no tokens");
        printer.hint("`toolcrib token create NAME` makes one");
        return Ok(0);
    }
    let rows = all.iter().map(|token| {
        vec![
            token.name.clone(),
            state(token).to_owned(),
            token.scopes.join(","),
            token.agent.clone().unwrap_or_else(|| "-".to_owned()),
            token.expires_ms.map_or("-".to_owned(), rfc3339),
            token.last_used_ms.map_or("-".to_owned(), rfc3339),
            token.id.clone(),
        ]
    });
    let header = [
        "name",
        "state",
        "scopes",
        "agent",
        "expires",
        "last used",
        "id",
    ];
    printer.table(&header, rows.collect());
    Ok(0)
}

impl Revoke {
    async fn run(self, scene: &Scene, tokens: &Tokens) -> Done {
        let found = match tokens.get(&self.token).await? {
            Some(token) => vec![token],
            None => named(tokens, &self.token).await?,
        };
        let token = match found.as_slice() {
            [token] => token,
            [] => {
                let message = format!("there is no token `{}` that counts", self.token);
                return Err(Failure::new(ErrorCode::NotFound, message)
                    .hint("`toolcrib token list` shows them all"));
            }
            several => {
                let ids: Vec<&str> = several.iter().map(|token| token.id.as_str()).collect();
                let message = format!("{} tokens have the name `{}`", ids.len(), self.token);
                let hint = format!("give an id: {}", ids.join(", "));
                return Err(Failure::new(ErrorCode::Conflict, message).hint(hint));
            }
        };
        let counted = tokens.revoke(&token.id).await?;
        let printer = scene.printer;
        if printer.is_json() {
            printer.json(
                &json!({"id": token.id, "name": token.name, "revoked": true, "new": counted}),
            );
            return Ok(0);
        }
        let word = if counted {
            "revoked"
        } else {
            "was revoked already:"
        };
        printer.line(format!("{GREEN}{word}{GREEN:#} {}", plain(&token.name)));
        Ok(0)
    }
}

async fn login(scene: &Scene) -> Done {
    let url = Reach::login_url(scene).await?;
    match scene.printer.is_json() {
        true => scene.printer.json(&json!({"login": url})),
        false => {
            scene.printer.text(&url);
            scene.printer.note("it counts once, for ten minutes");
        }
    }
    Ok(0)
}

/// Those of this name that count.
async fn named(tokens: &Tokens, name: &str) -> Result<Vec<Recorded>, Failure> {
    let mut all = tokens.list().await?;
    all.retain(|token| token.name == name && state(token) == "active");
    Ok(all)
}

fn state(token: &Recorded) -> &'static str {
    match token {
        token if token.revoked_ms.is_some() => "revoked",
        token if token.expires_ms.is_some_and(|at| at <= crate::now_ms()) => "expired",
        _ => "active",
    }
}

fn until(token: &Recorded) -> String {
    let until = token.expires_ms.map(rfc3339);
    until.map_or("until it is revoked".to_owned(), |at| format!("until {at}"))
}

fn view(token: &Recorded) -> Value {
    json!({
        "id": token.id,
        "name": token.name,
        "state": state(token),
        "scopes": token.scopes,
        "agent": token.agent,
        "expiresAt": token.expires_ms.map(rfc3339),
        "createdAt": rfc3339(token.created_ms),
        "lastUsedAt": token.last_used_ms.map(rfc3339),
    })
}

/// A name that people and lists can show.
fn label(what: &str, text: &str) -> Result<String, Failure> {
    let text = text.trim();
    let fits = (1..=MAX_NAME).contains(&text.chars().count());
    if fits && plain(text) == text && !text.contains(['\n', '\t']) {
        return Ok(text.to_owned());
    }
    let message = format!("the {what} of a token is 1 to {MAX_NAME} characters on one line");
    Err(Failure::new(ErrorCode::BadRequest, message).hint("take a word such as `ci` or `claude`"))
}

/// Reads `30d`, `12h`, `45m`, `90s` or `2w`.
fn span(text: &str) -> Result<Duration, String> {
    let unreadable = || "give a number and a unit: s, m, h, d or w, such as 30d".to_owned();
    let at = text
        .find(|c: char| !c.is_ascii_digit())
        .ok_or_else(unreadable)?;
    let (number, unit) = text.split_at(at);
    let number: u64 = number.parse().map_err(|_| unreadable())?;
    let (_, seconds) = UNITS
        .iter()
        .find(|(name, _)| *name == unit)
        .ok_or_else(unreadable)?;
    match number.checked_mul(*seconds) {
        None | Some(0) => Err(unreadable()),
        // A hundred years are for ever.
        Some(seconds) => Ok(Duration::from_secs(seconds.min(100 * 365 * 86_400))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_a_number_and_a_unit() {
        for (text, seconds) in [
            ("90s", 90),
            ("45m", 2_700),
            ("12h", 43_200),
            ("30d", 2_592_000),
        ] {
            assert_eq!(span(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in [
            "",
            "30",
            "d",
            "0d",
            "-1d",
            "1.5h",
            "1y",
            "99999999999999999999d",
            "1d2h",
            "+1d",
        ] {
            assert!(span(text).is_err(), "{text}");
        }
        assert!(span("999999999w").is_ok());
    }

    #[test]
    fn labels_are_one_plain_line() {
        assert_eq!(label("name", " my ci ").unwrap(), "my ci");
        for text in ["", " ", "a\nb", "a\u{1b}[2J", &"x".repeat(65)] {
            assert!(label("name", text).is_err(), "{text:?}");
        }
    }
}
