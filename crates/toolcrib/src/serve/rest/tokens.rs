//! Tokens over REST: made, listed, taken back. Who shows a token has what that token has to give, and no more.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, HeaderValue};
use axum::response::Response;
use toolcrib_core::words::CommandLine;
use toolcrib_core::{CallError, ErrorCode, Hint};
use toolcrib_store::{NewToken, Token, Tokens};

use super::{ErrorResponse, bad_request, body, json, named};
use crate::printer::plain;
use crate::serve::Served;
use crate::serve::auth::{Scope, Scopes, Who};
use crate::store_handle::refused;
use crate::wire::{ErrorView, TokenCreate, TokenCreated, TokenList, TokenRevoked, TokenView};

const MAX_NAME: usize = 64;
/// A hundred years are for ever.
const MAX_SECONDS: u64 = 100 * 365 * 86_400;

fn tokens(served: &Served) -> Result<Tokens, CallError> {
    match &served.store {
        Some(store) => Ok(store.ready().map_err(refused)?.tokens()),
        None => Err(CallError::unavailable("this server keeps no tokens")
            .hint("start one with `toolcrib serve`")),
    }
}

/// What who asks has to give.
enum Authority {
    /// Everything: the owner.
    Owner,
    /// What this token has.
    Token(Token),
}

impl Authority {
    async fn of(who: &Who, tokens: &Tokens) -> Result<Authority, CallError> {
        who.decides()?;
        let Some(id) = who.token_id() else {
            return Ok(Authority::Owner);
        };
        match tokens.get(id).await.map_err(refused)? {
            Some(token) => Ok(Authority::Token(token)),
            None => Err(beyond("the token that was shown is gone")),
        }
    }

    /// Is this a token that could be made with the one that was shown?
    fn holds(&self, scopes: Scopes, agent: Option<&str>, expires_ms: Option<u64>) -> bool {
        let Authority::Token(own) = self else {
            return true;
        };
        let in_time = match (own.expires_ms, expires_ms) {
            (None, _) => true,
            (Some(own), Some(wanted)) => wanted <= own,
            (Some(_), None) => false,
        };
        Scopes::named(&own.scopes).hold(scopes) && own.agent.as_deref() == agent && in_time
    }
}

fn beyond(message: &str) -> CallError {
    CallError::new(ErrorCode::Forbidden, message)
        .hint("use `toolcrib token` on the crib's own machine")
}

/// Lists the tokens, without their secrets.
#[utoipa::path(
    get, path = "/tokens", tag = "tokens", operation_id = "listTokens",
    responses(
        (status = 200, description = "The tokens, without their secrets", body = TokenList),
        (status = 403, description = "`forbidden`: foreign Host or Origin", body = ErrorView),
        (status = 503, description = "`unavailable`: the store can't be used", body = ErrorView),
    )
)]
pub async fn list(State(served): State<Arc<Served>>) -> Result<Response, ErrorResponse> {
    let all = tokens(&served)?.list().await.map_err(refused)?;
    let tokens: Vec<TokenView> = all.into_iter().map(TokenView::from).collect();
    let count = tokens.len();
    Ok(json(StatusCode::OK, &TokenList { tokens, count }))
}

/// Makes a token, and shows it once. It has no scope that the caller's token lacks, is for the same agent, and expires no
/// later. A browser's login is not enough.
#[utoipa::path(
    post, path = "/tokens", tag = "tokens", operation_id = "createToken",
    request_body(content = TokenCreate, description = "At most 10 MB"),
    responses(
        (status = 201, description = "Made; `token` is shown once", body = TokenCreated),
        (status = 400, description = "`bad_request`: a field is wrong", body = ErrorView),
        (status = 403, description = "`forbidden`: more than the token shown has, a browser's login, or foreign Host or Origin", body = ErrorView),
        (status = 404, description = "`not_found`: there is no such agent", body = ErrorView),
        (status = 409, description = "`conflict`: a valid token has this name", body = ErrorView),
        (status = 413, description = "`too_large`: the body is over 10 MB", body = ErrorView),
        (status = 503, description = "`unavailable`: the store can't be used", body = ErrorView),
    )
)]
pub async fn create(
    State(served): State<Arc<Served>>,
    who: Who,
    body: Body,
) -> Result<Response, ErrorResponse> {
    let tokens = tokens(&served)?;
    let authority = Authority::of(&who, &tokens).await?;
    let shape = "send a JSON object such as {\"name\": \"ci\", \"scopes\": [\"read\", \"call\"]}";
    let bytes = body::read(body).await?;
    let wanted: TokenCreate = body::parse(&bytes).map_err(|error| error.hint(shape))?;
    let new = checked(wanted, &authority)?;
    // Whoever decides on calls was let in by a person, and not by the agent whose calls they are.
    if Scopes::named(&new.scopes).has(Scope::Approve) {
        who.needs(Scope::Approve)?;
    }
    if let Some(agent) = &new.agent {
        served.admits(agent)?;
    }
    if let Some(same) = counting(&tokens, &new.name).await?.first() {
        let message = format!("there is a token `{}` already", new.name);
        let revoke = CommandLine::new("toolcrib token revoke").operand(&same.id);
        let hint = Hint::run(revoke).before("take another name, or revoke it: ");
        return Err(CallError::new(ErrorCode::Conflict, message)
            .hint(hint)
            .into());
    }
    let (token, secret) = tokens.create(new).await.map_err(refused)?;
    let created = TokenCreated {
        view: TokenView::from(token),
        token: secret,
    };
    let mut answer = json(StatusCode::CREATED, &created);
    let headers = answer.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(answer)
}

/// Revokes a token, by its id or name. With a token, only one that it could have made. A browser's login is not enough.
#[utoipa::path(
    delete, path = "/tokens/{name}", tag = "tokens", operation_id = "revokeToken",
    params(("name" = String, Path, description = "The token's id, or its name where a valid token has it")),
    responses(
        (status = 200, description = "The token that was revoked", body = TokenRevoked),
        (status = 400, description = "`bad_request`: the name is not UTF-8", body = ErrorView),
        (status = 403, description = "`forbidden`: it has more than the token shown, a browser's login, or foreign Host or Origin", body = ErrorView),
        (status = 404, description = "`not_found`: there is no such valid token", body = ErrorView),
        (status = 409, description = "`conflict`: several have this name", body = ErrorView),
        (status = 503, description = "`unavailable`: the store can't be used", body = ErrorView),
    )
)]
pub async fn remove(
    State(served): State<Arc<Served>>,
    who: Who,
    name: Result<Path<String>, PathRejection>,
) -> Result<Response, ErrorResponse> {
    let name = named(name)?;
    let tokens = tokens(&served)?;
    let authority = Authority::of(&who, &tokens).await?;
    let token = find(&tokens, &name).await?;
    // When it ends does not matter to who ends it.
    let now = Some(0);
    if !authority.holds(Scopes::named(&token.scopes), token.agent.as_deref(), now) {
        let message = "the token may be used for more than the one that was shown";
        return Err(beyond(message).into());
    }
    let new = tokens.revoke(&token.id).await.map_err(refused)?;
    let view = TokenRevoked {
        id: token.id,
        name: token.name,
        revoked: true,
        new,
    };
    Ok(json(StatusCode::OK, &view))
}

/// What is to be made, if who asks has it to give.
fn checked(wanted: TokenCreate, authority: &Authority) -> Result<NewToken, CallError> {
    let agent = wanted.agent.as_deref().map(|agent| label("agent", agent));
    let agent = agent.transpose()?;
    let name = label("name", &wanted.name)?;
    let scopes = match &wanted.scopes {
        Some(words) => scopes(words)?,
        None => Scopes::of([Scope::Read, Scope::Call]),
    };
    let seconds = wanted.expires_in_seconds;
    if seconds == Some(0) {
        return Err(bad_request("`expiresInSeconds` is 0").hint("name at least 1, or leave it out"));
    }
    let ends = |seconds: u64| crate::now_ms().saturating_add(seconds.min(MAX_SECONDS) * 1_000);
    let mut new = NewToken {
        name,
        scopes: scopes.names(),
        agent,
        expires_ms: seconds.map(ends),
        made_by: None,
    };
    if let Authority::Token(own) = authority {
        new.agent = new.agent.or(own.agent.clone());
        new.expires_ms = new.expires_ms.or(own.expires_ms);
        new.made_by = Some(own.id.clone());
    }
    match authority.holds(scopes, new.agent.as_deref(), new.expires_ms) {
        true => Ok(new),
        false => Err(beyond(
            "a token makes none that has more scopes, is for another agent, or ends later",
        )),
    }
}

fn scopes(words: &[String]) -> Result<Scopes, CallError> {
    let known = Scope::ALL.map(Scope::as_str);
    if let Some(word) = words.iter().find(|word| !known.contains(&word.as_str())) {
        let word: String = word.chars().take(64).collect();
        return Err(bad_request(format!("there is no scope `{word}`"))
            .hint(format!("use some of: {}", known.join(", "))));
    }
    match words.is_empty() {
        true => Err(bad_request("`scopes` is empty").hint("a token has at least one scope")),
        false => Ok(Scopes::named(words)),
    }
}

/// The one token that is meant.
async fn find(tokens: &Tokens, name: &str) -> Result<Token, CallError> {
    // No other character is in any id, and not every store takes every character.
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let by_id = match name.chars().all(plain) {
        true => tokens.get(name).await.map_err(refused)?,
        false => None,
    };
    let mut found = match by_id {
        Some(token) => return Ok(token),
        None => counting(tokens, name).await?,
    };
    let shown: String = name.chars().take(MAX_NAME).collect();
    match (found.pop(), found.len()) {
        (Some(token), 0) => Ok(token),
        (Some(last), others) => {
            let ids: Vec<&str> = found
                .iter()
                .chain([&last])
                .map(|token| token.id.as_str())
                .collect();
            let message = format!("{} tokens have the name `{shown}`", others + 1);
            let hint = format!("give an id: {}", ids.join(", "));
            Err(CallError::new(ErrorCode::Conflict, message).hint(hint))
        }
        (None, _) => {
            let message = format!("there is no valid token `{shown}`");
            Err(CallError::new(ErrorCode::NotFound, message)
                .hint("`toolcrib token list` shows them all"))
        }
    }
}

/// Those of this name that count.
async fn counting(tokens: &Tokens, name: &str) -> Result<Vec<Token>, CallError> {
    let mut all = tokens.list().await.map_err(refused)?;
    all.retain(|token| token.name == name && TokenView::from(token.clone()).is_active());
    Ok(all)
}

/// A name that people and lists can show.
fn label(what: &str, text: &str) -> Result<String, CallError> {
    let text = text.trim();
    let fits = (1..=MAX_NAME).contains(&text.chars().count());
    if fits && plain(text) == text && !text.contains(['\n', '\t']) {
        return Ok(text.to_owned());
    }
    let message = format!("the {what} of a token is 1 to {MAX_NAME} characters on one line");
    Err(bad_request(message).hint("use a word such as `ci` or `claude`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_one_plain_line() {
        assert_eq!(label("name", " my ci ").unwrap(), "my ci");
        for text in ["", " ", "a\nb", "a\u{1b}[2J", &"x".repeat(65)] {
            assert!(label("name", text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_token_gives_what_it_has_and_no_more() {
        let own = |scopes: &[&str], agent: Option<&str>, expires_ms: Option<u64>| {
            Authority::Token(Token {
                id: "1".to_owned(),
                name: "own".to_owned(),
                scopes: scopes.iter().map(|&scope| scope.to_owned()).collect(),
                agent: agent.map(str::to_owned),
                expires_ms,
                created_ms: 0,
                last_used_ms: None,
                revoked_ms: None,
                made_by: None,
            })
        };
        let make = |authority: &Authority, scopes: &[&str], agent: Option<&str>, seconds| {
            let wanted = TokenCreate {
                name: "new".to_owned(),
                scopes: Some(scopes.iter().map(|&scope| scope.to_owned()).collect()),
                agent: agent.map(str::to_owned),
                expires_in_seconds: seconds,
            };
            checked(wanted, authority)
        };
        let far = crate::now_ms() + 3_600_000;
        let manager = own(&["read", "manage"], Some("bot"), Some(far));
        // What is not said is taken from the token shown.
        let made = make(&manager, &["read"], None, None).unwrap();
        assert_eq!(
            (made.agent.as_deref(), made.expires_ms),
            (Some("bot"), Some(far))
        );
        assert!(make(&manager, &["manage", "read"], Some("bot"), Some(60)).is_ok());
        assert!(make(&manager, &["call"], None, None).is_err());
        assert!(make(&manager, &["read", "approve"], None, None).is_err());
        assert!(make(&manager, &["read"], Some("default"), None).is_err());
        assert!(make(&manager, &["read"], None, Some(7_200)).is_err());
        let nameless = own(&["manage"], None, None);
        assert!(make(&nameless, &["manage"], None, None).is_ok());
        assert!(make(&nameless, &["manage"], Some("bot"), None).is_err());
        let all = ["read", "call", "manage", "approve"];
        assert!(make(&Authority::Owner, &all, Some("bot"), Some(u64::MAX)).is_ok());
        assert!(make(&Authority::Owner, &[], None, None).is_err());
        assert!(make(&Authority::Owner, &["root"], None, None).is_err());
        assert!(make(&Authority::Owner, &["read"], None, Some(0)).is_err());
    }
}
