//! `toolcrib token`: what programs show to be let in over HTTP.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;

use super::reach::{Reach, segment};
use super::{Done, Scene, Target};
use crate::printer::{BOLD, Column, GREEN, plain};
use crate::serve::auth::{Approves, Scope, Scopes};
use crate::wire::{TokenCreate, TokenCreated, TokenList, TokenRevoked};

const UNITS: [(&str, u64); 5] = [
    ("s", 1),
    ("m", 60),
    ("h", 3_600),
    ("d", 86_400),
    ("w", 7 * 86_400),
];

/// Make, list and revoke tokens for programs that use HTTP
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
pub struct Login {
    /// A login that also decides on calls that wait for approval; needs a terminal of your own
    #[arg(long)]
    pub approve: bool,
}

impl Token {
    pub async fn run(self, scene: &Scene) -> Done {
        if let TokenVerb::Login(Login { approve }) = self.verb {
            return login(scene, approve).await;
        }
        let project = Reach::project(scene);
        let reach = Reach::records(scene, &Target::default(), project.as_ref()).await?;
        match self.verb {
            TokenVerb::Create(create) => create.run(scene, &reach).await,
            TokenVerb::List(_) => list(scene, &reach).await,
            TokenVerb::Revoke(revoke) => revoke.run(scene, &reach).await,
            TokenVerb::Login(_) => Ok(70),
        }
    }
}

impl Create {
    async fn run(self, scene: &Scene, reach: &Reach) -> Done {
        let create = TokenCreate {
            name: self.name,
            scopes: Some(Scopes::of(self.scope).names()),
            agent: self.agent,
            expires_in_seconds: self.expires.map(|life| life.as_secs()),
        };
        let made: TokenCreated = reach.post("/tokens", &create).await?;
        let printer = scene.printer;
        if printer.is_json() {
            printer.json(&made);
            return Ok(0);
        }
        let TokenCreated { view, token } = made;
        // The secret alone on stdout, so that a shell can keep it: TOOLCRIB_TOKEN=$(toolcrib token create …).
        printer.text(&token);
        let until = view.expires_at.map(|at| format!("until {at}"));
        printer.note(format!(
            "{GREEN}made{GREEN:#} the token {BOLD}{}{BOLD:#} ({}; {}). It is shown only once",
            plain(&view.name),
            view.scopes.join(", "),
            until.as_deref().unwrap_or("until it is revoked")
        ));
        Ok(0)
    }
}

async fn list(scene: &Scene, reach: &Reach) -> Done {
    let all: TokenList = reach.get("/tokens").await?;
    let printer = scene.printer;
    if printer.is_json() {
        printer.json(&all);
        return Ok(0);
    }
    if all.tokens.is_empty() {
        printer.line("there are no tokens");
        printer.hint("`toolcrib token create NAME` makes one");
        return Ok(0);
    }
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let rows = all.tokens.into_iter().map(|token| {
        vec![
            token.name,
            token.state,
            token.scopes.join(","),
            or_none(token.agent),
            or_none(token.expires_at),
            or_none(token.last_used_at),
            token.id,
        ]
    });
    let columns = [
        Column::whole("name"),
        Column::whole("state"),
        Column::whole("scopes"),
        Column::spare("agent", 2),
        Column::spare("expires", 4),
        Column::spare("last used", 3),
        Column::spare("id", 1),
    ];
    printer.table(&columns, &rows.collect::<Vec<_>>());
    Ok(0)
}

impl Revoke {
    async fn run(self, scene: &Scene, reach: &Reach) -> Done {
        let path = format!("/tokens/{}", segment(&self.token)?);
        let taken: TokenRevoked = reach.delete(&path).await?;
        let printer = scene.printer;
        if printer.is_json() {
            printer.json(&taken);
            return Ok(0);
        }
        let word = if taken.new {
            "revoked"
        } else {
            "was revoked already:"
        };
        printer.line(format!("{GREEN}{word}{GREEN:#} {}", plain(&taken.name)));
        Ok(0)
    }
}

async fn login(scene: &Scene, approve: bool) -> Done {
    let approves = match approve {
        true => Approves::Yes,
        false => Approves::No,
    };
    let url = Reach::login_url(scene, approves).await?;
    match scene.printer.is_json() {
        true => scene.printer.json(&json!({"login": url})),
        false => {
            scene.printer.text(&url);
            scene
                .printer
                .note("it works once and expires in ten minutes");
        }
    }
    Ok(0)
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
}
