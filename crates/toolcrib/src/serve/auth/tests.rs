//! Tokens and cookies at the door, without a server around it.

use axum::http::header::HeaderName;
use toolcrib_store::{NewToken, Store};

use super::*;
use crate::env::Env;

struct World {
    handle: Arc<StoreHandle>,
    store: Store,
    _folder: tempfile::TempDir,
}

impl World {
    async fn new() -> World {
        World::with(&[]).await
    }

    async fn with(vars: &[(&str, &str)]) -> World {
        let folder = tempfile::tempdir().unwrap();
        let env = Env::of(vars, folder.path());
        let handle = Arc::new(StoreHandle::open(&env, folder.path()).await.unwrap());
        let store = handle.ready().unwrap();
        World {
            handle,
            store,
            _folder: folder,
        }
    }

    async fn token(&self, expires_ms: Option<u64>) -> (String, String) {
        let new = NewToken {
            name: "one".to_owned(),
            scopes: vec!["read".to_owned()],
            agent: Some("reviewer".to_owned()),
            expires_ms,
            made_by: None,
        };
        let (token, secret) = self.store.tokens().create(new).await.unwrap();
        (token.id, secret)
    }
}

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let name: HeaderName = name.parse().unwrap();
        headers.append(name, value.parse().unwrap());
    }
    headers
}

const PATIENCE: Duration = Duration::from_secs(30);

async fn until(mut holds: impl AsyncFnMut() -> bool) {
    let waited = tokio::time::timeout(PATIENCE, async {
        while !holds().await {
            // sleeps: how often it is looked at; nothing depends on it.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    waited.await.expect("it came to hold");
}

#[tokio::test]
async fn a_token_says_who_asks() {
    let world = World::new().await;
    let (id, secret) = world.token(None).await;
    let keys = Keys::new(world.handle.clone());
    let who = keys.check(&secret).await.unwrap();
    let caller = who.caller("rest");
    assert_eq!(caller.token.as_deref(), Some(id.as_str()));
    assert_eq!((&*caller.agent, &*caller.client), ("reviewer", "rest"));
    assert!(who.may(Scope::Read) && !who.may(Scope::Call) && !who.may(Scope::Manage));
    assert_eq!(
        who.needs(Scope::Call).unwrap_err().code,
        ErrorCode::Forbidden
    );
    for wrong in [
        "",
        "tcrib_",
        &secret[..69],
        &secret.to_uppercase(),
        &format!("{secret}0"),
    ] {
        assert_eq!(
            keys.check(wrong).await.unwrap_err().code,
            ErrorCode::Unauthorized,
            "{wrong}"
        );
    }
}

#[tokio::test]
async fn a_known_token_counts_while_the_store_is_silent_and_for_its_time_only() {
    let world = World::with(&[("TOOLCRIB_STORE_GRACE", "60000")]).await;
    let (_, secret) = world.token(None).await;
    let keys = Keys::new(world.handle.clone());
    keys.check(&secret).await.unwrap();
    // Whoever just begins to follow changes hears of those before.
    let latest = world.store.revisions().await.unwrap().tokens;
    until(async || keys.revision().1 == Some(latest)).await;
    keys.check(&secret).await.unwrap();
    world.store.close().await;
    for _ in 0..100 {
        keys.check(&secret).await.unwrap();
    }
    let stranger = format!("tcrib_{}", "0".repeat(64));
    let error = keys.check(&stranger).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::Unavailable, "{error}");
    assert!(error.message.contains("store"), "{error}");
    tokio::time::pause();
    tokio::time::advance(Duration::from_millis(60_050)).await;
    let error = keys.check(&secret).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::Unavailable, "{error}");
}

#[tokio::test]
async fn a_token_that_was_revoked_or_has_expired_is_refused() {
    let world = World::new().await;
    let keys = Keys::new(world.handle.clone());
    let (id, secret) = world.token(None).await;
    keys.check(&secret).await.unwrap();
    let ended = tokio::time::timeout(PATIENCE, keys.ended(&id));
    let (ended, ()) = tokio::join!(ended, async {
        assert!(world.store.tokens().revoke(&id).await.unwrap());
        until(async || keys.check(&secret).await.is_err()).await;
        let error = keys.check(&secret).await.unwrap_err();
        assert!(error.message.contains("revoked"), "{error}");
    });
    ended.expect("streams of a revoked token end");

    let soon = crate::now_ms() + 200;
    let (id, secret) = world.token(Some(soon)).await;
    keys.check(&secret).await.unwrap();
    until(async || crate::now_ms() > soon).await;
    let error = keys.check(&secret).await.unwrap_err();
    assert!(error.message.contains("expired"), "{error}");
    keys.ended(&id).await;
}

#[tokio::test]
async fn a_cookie_counts_for_its_own_pages_only() {
    let world = World::new().await;
    let auth = Auth::on(world.handle.clone(), 7717);
    let code = auth.login_code(Approves::No).unwrap().unwrap();
    let cookie = auth.log_in(&code).unwrap();
    assert!(cookie.starts_with("toolcrib_7717="), "{cookie}");
    assert_eq!(
        auth.log_in(&code).unwrap_err().code,
        ErrorCode::Unauthorized
    );
    let door = auth.0.clone().unwrap();
    let ask = async |method: Method, more: &[(&str, &str)]| {
        let pairs = [&[("cookie", cookie.as_str())], more].concat();
        let who = door.identify(&method, &headers(&pairs)).await;
        who.map_err(|error| error.code)
    };
    let origin = ("origin", "http://localhost:7717");
    let fetch = |site| ("sec-fetch-site", site);
    for (method, more, fine) in [
        (Method::GET, vec![], true),
        (Method::GET, vec![fetch("none")], true),
        (Method::GET, vec![fetch("same-origin")], true),
        (Method::GET, vec![fetch("same-site")], false),
        (Method::GET, vec![fetch("cross-site")], false),
        (Method::POST, vec![], false),
        (Method::POST, vec![fetch("none")], false),
        (Method::POST, vec![fetch("same-site"), origin], false),
        (Method::POST, vec![fetch("same-origin")], true),
        (Method::POST, vec![origin], true),
        (Method::DELETE, vec![], false),
    ] {
        let answer = ask(method.clone(), &more).await;
        let expected = if fine {
            None
        } else {
            Some(ErrorCode::Forbidden)
        };
        assert_eq!(answer.err(), expected, "{method} {more:?}");
    }
    // A token that is shown is what counts, not the cookie beside it.
    let both = ask(Method::GET, &[("authorization", "Bearer tcrib_x")]).await;
    assert_eq!(both.unwrap_err(), ErrorCode::Unauthorized);
    let who = ask(Method::GET, &[]).await.unwrap();
    let scopes = Scope::ALL.map(|scope| who.may(scope));
    assert_eq!(scopes, [true, true, true, false]);
    assert_eq!(who.caller("rest").token, None);
    auth.log_out(&who).unwrap();
    let after = ask(Method::GET, &[]).await;
    assert_eq!(after.unwrap_err(), ErrorCode::Unauthorized);
}

#[test]
fn bearers_are_read_as_http_says() {
    for (header, secret) in [
        ("Bearer abc", Some("abc")),
        ("bearer  abc ", Some("abc")),
        ("BEARER abc", Some("abc")),
        ("Bearer", None),
        ("Bearer ", None),
        ("Basic abc", None),
        ("abc", None),
        ("", None),
    ] {
        assert_eq!(bearer(&header.parse().unwrap()), secret, "{header}");
    }
    let many = headers(&[
        ("cookie", "a=1; toolcrib_1=x"),
        ("cookie", "toolcrib_1=y;toolcrib_12=z"),
    ]);
    assert_eq!(cookies(&many, "toolcrib_1").collect::<Vec<_>>(), ["x", "y"]);
}
