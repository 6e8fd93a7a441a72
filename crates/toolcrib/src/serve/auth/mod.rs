//! Who asks over HTTP, and whether they may: tokens for programs, sessions for browsers, scopes for both.
//!
//! [`Auth`] stands behind the guard and in front of every route of the port. It finds out who asks, and refuses whom it
//! does not know. Each route then asks for its scope ([`Needs`], laid on by the route table). stdio and the project's
//! socket have no door: whoever gets there is the owner.
//!
//! Why: `docs/design/0012-tokens.md`.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE, ORIGIN, WWW_AUTHENTICATE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use toolcrib_core::Surface;
use toolcrib_core::call::DEFAULT_AGENT;
use toolcrib_core::{CallError, Caller, Crib, ErrorCode};

use super::rest::{ErrorResponse, OPEN};
use super::visitors::Visitor;
use crate::store_handle::StoreHandle;

mod decider;
mod keys;
mod late;
mod logins;
mod methods;
mod needs;
mod scope;
mod turned_away;

pub use decider::{Decider, LocalProcess};
use keys::Keys;
pub use logins::{Approves, SESSION_LIFE};
use logins::{Key, Logins};
pub use needs::Needs;
pub use scope::{Scope, Scopes};
pub use turned_away::answer as turned_away;

/// What nobody has to prove more for than that they got here. Deciding on waiting calls is not among it: a login has that
/// where a person at a terminal asked for it, and the owner where the process that asks is such a person's.
const UNPROVEN: [Scope; 3] = [Scope::Read, Scope::Call, Scope::Manage];
/// How often a browser's stream looks whether its session still counts.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Who asks. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Who(Arc<Identity>, Option<Surface>);

#[derive(Debug)]
struct Identity {
    scopes: Scopes,
    agent: Arc<str>,
    /// Is it the only agent that they can be?
    bound: bool,
    /// What the token is called that was shown.
    token_name: Option<Arc<str>>,
    proof: Proof,
}

/// How it is known who asks.
#[derive(Debug, Clone)]
enum Proof {
    /// They got where only the owner gets, with this process.
    Owner(Option<LocalProcess>),
    /// Nobody asks for one.
    None,
    /// The id of the token that they showed.
    Token(Arc<str>),
    Session(Key),
}

impl Who {
    /// Whoever needs no token.
    pub fn owner() -> Who {
        static OWNER: LazyLock<Who> =
            LazyLock::new(|| Who::new(UNPROVEN.into(), DEFAULT_AGENT, Proof::Owner(None)));
        OWNER.clone()
    }

    /// Whoever comes to a port that asks for no token.
    fn anybody() -> Who {
        static ANYBODY: LazyLock<Who> =
            LazyLock::new(|| Who::new(UNPROVEN.into(), DEFAULT_AGENT, Proof::None));
        ANYBODY.clone()
    }

    /// Is it the owner for sure, and not whoever holds a token or came to an open port?
    pub fn is_owner(&self) -> bool {
        matches!(self.0.proof, Proof::Owner(_))
    }

    /// Is it a token that is for one agent? Then nothing outside of what that agent sees is there for it.
    pub fn is_bound(&self) -> bool {
        self.0.bound
    }

    /// Is it somebody who keeps the crib, for all agents?
    pub fn keeps(&self) -> bool {
        !self.is_bound() && self.may(Scope::Manage)
    }

    /// Refuses a token that is for one agent, where something is decided for all of them.
    pub fn for_all_agents(&self) -> Result<(), CallError> {
        if !self.is_bound() {
            return Ok(());
        }
        let message = "this is decided for all agents, and the token is for one of them";
        Err(CallError::new(ErrorCode::Forbidden, message)
            .hint("use the command line, or a token without an agent"))
    }

    /// How it is known who asks, in a word.
    pub fn word(&self) -> &'static str {
        match &self.0.proof {
            Proof::Owner(_) => "owner",
            Proof::None => "anybody",
            Proof::Token(_) => "token",
            Proof::Session(_) => "login",
        }
    }

    /// The id of the token that was shown, if one was.
    pub fn token_id(&self) -> Option<&Arc<str>> {
        match &self.0.proof {
            Proof::Token(id) => Some(id),
            Proof::Owner(_) | Proof::None | Proof::Session(_) => None,
        }
    }

    /// Refuses who may not decide whose code runs and who gets in, whatever else they may: a browser that logged in, and
    /// whoever came to a port that asks for no token.
    pub fn decides(&self) -> Result<(), CallError> {
        match &self.0.proof {
            Proof::Owner(_) | Proof::Token(_) => Ok(()),
            Proof::None | Proof::Session(_) => Err(CallError::new(
                ErrorCode::Forbidden,
                "this is decided at the command line, or with a token that has the scope `manage`",
            )
            .hint("use `toolcrib trust` or `toolcrib token` on this machine")),
        }
    }

    fn token(id: &str, name: &str, agent: Option<&str>, scopes: Scopes) -> Who {
        Who::of(Identity {
            scopes,
            agent: agent.unwrap_or(DEFAULT_AGENT).into(),
            token_name: Some(name.into()),
            bound: agent.is_some(),
            proof: Proof::Token(id.into()),
        })
    }

    fn of(identity: Identity) -> Who {
        Who(Arc::new(identity), None)
    }

    fn session(key: Key, approves: Approves) -> Who {
        let scopes = match approves {
            Approves::No => UNPROVEN.into(),
            Approves::Yes => Scopes::all(),
        };
        Who::new(scopes, DEFAULT_AGENT, Proof::Session(key))
    }

    fn new(scopes: Scopes, agent: &str, proof: Proof) -> Who {
        let agent = agent.into();
        Who::of(Identity {
            scopes,
            agent,
            bound: false,
            token_name: None,
            proof,
        })
    }

    /// The same one as another agent. A token that is for one agent is for no other; everybody else chooses.
    pub fn choose(&self, agent: &str, crib: &Crib) -> Result<Who, CallError> {
        if self.agent() == agent {
            return Ok(self.clone());
        }
        if self.0.bound {
            let own = self.agent();
            let message = format!("this token is for the agent `{own}`, and for no other");
            let hint = "leave the other agent out, or make a token for it: `toolcrib token create NAME --agent AGENT`";
            return Err(CallError::new(ErrorCode::Forbidden, message).hint(hint));
        }
        crib.admits(agent)?;
        let Identity { scopes, proof, .. } = &*self.0;
        Ok(Who::new(*scopes, agent, proof.clone()))
    }

    /// Refuses who has a token for an agent that no caller can be. Nobody becomes another agent because of that.
    fn admitted(self, crib: &Crib) -> Result<Who, CallError> {
        let Err(reason) = crib.admits(self.agent()) else {
            return Ok(self);
        };
        let message = format!("this token is for the agent `{}`: {reason}", self.agent());
        let hint = "`[agents.NAME]` in your config.toml defines an agent; a token without one is for all of them";
        Err(CallError::new(ErrorCode::Forbidden, message).hint(hint))
    }

    pub fn scopes(&self) -> Scopes {
        self.0.scopes
    }

    pub fn may(&self, scope: Scope) -> bool {
        self.0.scopes.has(scope)
    }

    pub fn agent(&self) -> &str {
        &self.0.agent
    }

    /// What their connection wants to be handed of its tools, where it says so.
    pub fn surface(&self) -> Option<Surface> {
        self.1
    }

    #[must_use]
    pub fn with_surface(mut self, surface: Option<Surface>) -> Who {
        self.1 = surface;
        self
    }

    /// Who it is, as text that holds no secret: what one was given, another can't use.
    pub fn identity(&self) -> Cow<'_, str> {
        match &self.0.proof {
            Proof::Owner(_) => "owner".into(),
            Proof::None => "anybody".into(),
            Proof::Token(id) => format!("token {id}").into(),
            Proof::Session(key) => {
                let hex = key.iter().take(16).map(|byte| format!("{byte:02x}"));
                format!("browser {}", hex.collect::<String>()).into()
            }
        }
    }

    /// As the crib knows callers; `client` is the program that asks.
    pub fn caller(&self, client: &str) -> Caller {
        Caller {
            client: client.into(),
            agent: self.0.agent.clone(),
            token: self.token_id().cloned(),
            token_name: self.0.token_name.clone(),
        }
    }

    /// Refuses who lacks a scope.
    pub fn needs(&self, scope: Scope) -> Result<(), CallError> {
        if self.may(scope) {
            return Ok(());
        }
        if scope == Scope::Approve {
            return self.decider().map(|_| ());
        }
        let scope = scope.as_str();
        let message = format!("the token does not have the scope `{scope}`");
        let hint = format!("make one that has: `toolcrib token create NAME --scope {scope}`");
        Err(CallError::new(ErrorCode::Forbidden, message).hint(hint))
    }
}

/// For handlers. Nobody got past the door without one, so it is never missing; if it were, the answer is no.
impl<S: Sync> FromRequestParts<S> for Who {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Who, Response> {
        let who = parts.extensions.get::<Who>();
        who.cloned().ok_or_else(|| refuse(missing(), None))
    }
}

/// The door of the port. Cheap to clone.
#[derive(Clone)]
pub struct Auth(Option<Arc<Door>>);

struct Door {
    keys: Keys,
    logins: Logins,
    /// Browsers send one port's cookies to all ports, so each crib has a name of its own.
    cookie: String,
}

impl Auth {
    /// Everybody who reaches the port is the owner.
    pub fn off() -> Auth {
        Auth(None)
    }

    /// Tokens of this store, and logins of this process; `port` is where it listens.
    pub fn on(store: Arc<StoreHandle>, port: u16) -> Auth {
        Auth(Some(Arc::new(Door {
            keys: Keys::new(store),
            logins: Logins::default(),
            cookie: format!("toolcrib_{port}"),
        })))
    }

    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// A code for `/login`, where there is a login.
    pub fn login_code(&self, approves: Approves) -> Option<std::io::Result<String>> {
        self.0.as_ref().map(|door| door.logins.new_code(approves))
    }

    /// Trades a code for the cookie that a browser is to keep.
    pub fn log_in(&self, code: &str) -> Result<String, CallError> {
        let Some(door) = &self.0 else {
            return Err(no_login());
        };
        match door.logins.redeem(code) {
            Ok(Some(session)) => Ok(format!("{}={session}", door.cookie)),
            Ok(None) => Err(CallError::new(
                ErrorCode::Unauthorized,
                "this login code is not valid: it was used already, it is over ten minutes old, or it never was one",
            )
            .hint("`toolcrib token login` prints a new login URL")),
            Err(error) => Err(CallError::internal(format!("no session could be made: {error}"))),
        }
    }

    /// Ends a browser's session. Gives the cookie's name, to be forgotten.
    pub fn log_out(&self, who: &Who) -> Result<String, CallError> {
        let Some(door) = &self.0 else {
            return Err(no_login());
        };
        if let Proof::Session(key) = &who.0.proof {
            door.logins.log_out(key);
        }
        Ok(door.cookie.clone())
    }
}

impl Door {
    async fn identify(&self, method: &Method, headers: &HeaderMap) -> Result<Who, CallError> {
        let mut shown = headers.get_all(AUTHORIZATION).iter();
        match (shown.next(), shown.next()) {
            (Some(header), None) => {
                let none = || unknown("the Authorization header holds no bearer token");
                self.keys.check(bearer(header).ok_or_else(none)?).await
            }
            (Some(_), Some(_)) => Err(unknown("there is more than one Authorization header")),
            (None, _) => self.by_cookie(method, headers),
        }
    }

    fn by_cookie(&self, method: &Method, headers: &HeaderMap) -> Result<Who, CallError> {
        let mut ours = cookies(headers, &self.cookie).peekable();
        if ours.peek().is_none() {
            return Err(missing());
        }
        let Some(key) = ours.take(8).find_map(|cookie| self.logins.session(cookie)) else {
            return Err(unknown("the login of this browser has ended"));
        };
        // Browsers add cookies to what pages of this machine's other ports ask, too.
        let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
        let foreign = site.is_some_and(|site| site != b"same-origin" && site != b"none");
        let writes = !matches!(*method, Method::GET | Method::HEAD);
        // The guard saw to it that an Origin is ours.
        let known = headers.contains_key(ORIGIN) || site == Some(b"same-origin");
        if foreign || (writes && !known) {
            let message = "a browser's login works only for requests of the crib's own pages";
            return Err(CallError::new(ErrorCode::Forbidden, message)
                .hint("programs send a token: `Authorization: Bearer TOKEN`"));
        }
        Ok(Who::session(key, self.logins.approves(&key)))
    }

    /// Ends when who asked no longer counts.
    async fn ended(self: Arc<Door>, who: Who) {
        match &who.0.proof {
            Proof::Owner(_) | Proof::None => std::future::pending().await,
            Proof::Token(id) => self.keys.ended(id).await,
            Proof::Session(key) => {
                while self.logins.counts(key) {
                    tokio::time::sleep(LOOK_AGAIN).await;
                }
            }
        }
    }
}

/// Lets a request through with who asks written on it, or refuses it.
pub async fn check(
    State((auth, crib)): State<(Auth, Arc<Crib>)>,
    mut request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path();
    if path == "/login" || path == "/logout" {
        request.extensions_mut().insert(auth.clone());
    }
    let visitor = request.extensions_mut().remove::<Visitor>();
    let let_in = || visitor.iter().for_each(Visitor::let_in);
    let Some(door) = auth.0 else {
        let_in();
        request.extensions_mut().insert(Who::anybody());
        return next.run(request).await;
    };
    if OPEN.contains(&request.uri().path()) {
        return next.run(request).await;
    }
    let who = door.identify(request.method(), request.headers()).await;
    let who = match who.and_then(|who| who.admitted(&crib)) {
        Ok(who) => who,
        Err(error) => return turned_away::answer(&request, error),
    };
    let_in();
    request.extensions_mut().insert(who.clone());
    let mut request = late::watched(request, &door, &who);
    // Nobody behind the door needs what was shown at it, and no log can tell what is not there.
    request.headers_mut().remove(AUTHORIZATION);
    request.headers_mut().remove(COOKIE);
    let response = next.run(request).await;
    let streams = response.headers().get(CONTENT_TYPE);
    if streams.is_none_or(|kind| !kind.as_bytes().starts_with(b"text/event-stream")) {
        return response;
    }
    // A stream may go on for days; it ends with the right to it.
    let (parts, body) = response.into_parts();
    let ended = Box::pin(door.ended(who));
    let body = Body::from_stream(body.into_data_stream().take_until(ended));
    Response::from_parts(parts, body)
}

/// The answer that says no, with what HTTP wants said beside it.
pub fn refuse(error: CallError, scope: Option<Scope>) -> Response {
    let challenge = match (error.code, scope) {
        (ErrorCode::Unauthorized, _) if error.message == MISSING => {
            "Bearer realm=\"toolcrib\"".to_owned()
        }
        // Our own words, none of which holds a quote.
        (ErrorCode::Unauthorized, _) => format!(
            "Bearer realm=\"toolcrib\", error=\"invalid_token\", error_description=\"{}\"",
            error.message
        ),
        (_, Some(scope)) => format!(
            "Bearer realm=\"toolcrib\", error=\"insufficient_scope\", scope=\"{}\"",
            scope.as_str()
        ),
        _ => String::new(),
    };
    let mut response = ErrorResponse::from(error).into_response();
    if let Ok(challenge) = HeaderValue::from_str(&challenge)
        && !challenge.is_empty()
    {
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    response
}

const MISSING: &str = "this needs a token";

/// Nobody said who they are.
pub fn missing() -> CallError {
    unknown(MISSING)
}

fn unknown(message: &str) -> CallError {
    CallError::new(ErrorCode::Unauthorized, message).hint(
        "send `Authorization: Bearer TOKEN`, where `toolcrib token create NAME` prints the token; \
         in a browser, open the login URL that `toolcrib serve` printed",
    )
}

pub fn no_login() -> CallError {
    CallError::new(ErrorCode::NotFound, "there is no login here")
        .hint("this crib asks for no token, so every route is open")
}

/// The token in an Authorization header.
fn bearer(header: &HeaderValue) -> Option<&str> {
    let (scheme, secret) = header.to_str().ok()?.split_once(' ')?;
    let secret = secret.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !secret.is_empty()).then_some(secret)
}

/// All values of a cookie; who may set cookies for this host may set several of one name.
fn cookies<'a>(headers: &'a HeaderMap, name: &'a str) -> impl Iterator<Item = &'a str> {
    let lines = headers.get_all(COOKIE).iter();
    let pairs = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'));
    pairs.filter_map(move |pair| {
        let (key, value) = pair.trim().split_once('=')?;
        (key == name).then_some(value)
    })
}

#[cfg(test)]
mod tests;
