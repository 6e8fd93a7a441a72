//! What people said yes to, tokens, and what is kept beside.

use std::path::Path;

use serde_json::{Value, json};
use toolcrib_core::store::StoreError;
use toolcrib_store::{Binding, IndexedOutput, NewToken, TrustBook, TrustKind, Verdict};

use crate::support::Site;

pub async fn grants_come_and_go(site: Site) {
    let store = site.open().await;
    let grants = store.grants();
    let what = json!({"net": ["example.com"], "write": ["/tmp/x"]});
    let bound = grants
        .add("b", Binding::Content("h".to_owned()), what)
        .await
        .unwrap();
    let free = grants
        .add("a", Binding::Follow, json!({"all": true}))
        .await
        .unwrap();
    assert_eq!(
        grants.list(None).await.unwrap(),
        [free.clone(), bound.clone()]
    );
    assert_eq!(
        grants.list(Some("b")).await.unwrap(),
        std::slice::from_ref(&bound)
    );
    assert!(grants.revoke(&bound.id).await.unwrap());
    assert!(!grants.revoke(&bound.id).await.unwrap());
    grants.add("a", Binding::Follow, Value::Null).await.unwrap();
    assert_eq!(grants.revoke_tool("a").await.unwrap(), 2);
    assert_eq!(grants.revoke_tool("a").await.unwrap(), 0);
    assert!(grants.list(None).await.unwrap().is_empty());
}

pub async fn trust_comes_and_goes_and_is_imported_once(site: Site) {
    let store = site.open().await;
    let trusted = store.trusted();
    let (a, b) = (Path::new("/p/a"), Path::new("/p/b"));
    let book = TrustBook::in_folder(&site.folder.path().join("book"));
    book.trust(a, 5).unwrap();
    book.trust(b, 6).unwrap();
    assert!(trusted.trust(b, TrustKind::Entry).await.unwrap());
    assert!(!trusted.trust(b, TrustKind::Project).await.unwrap());
    assert_eq!(trusted.import(&book).await.unwrap(), 1);
    assert_eq!(trusted.get(a).await.unwrap().unwrap().since_ms, 5);
    assert_eq!(
        trusted.get(b).await.unwrap().unwrap().kind,
        TrustKind::Entry
    );
    assert!(trusted.revoke(a).await.unwrap());
    assert!(!trusted.revoke(a).await.unwrap());
    // What was taken back does not come back.
    assert_eq!(trusted.import(&book).await.unwrap(), 0);
    let left = trusted.list().await.unwrap();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].path, "/p/b");
    assert_eq!(trusted.get(a).await.unwrap(), None);
    use std::os::unix::ffi::OsStrExt;
    let odd = Path::new(std::ffi::OsStr::from_bytes(b"/p/\xff"));
    assert!(matches!(
        trusted.trust(odd, TrustKind::Entry).await,
        Err(StoreError::Unfit { .. })
    ));
    assert_eq!(trusted.get(odd).await.unwrap(), None);
}

pub async fn tokens_are_known_by_their_hash(site: Site) {
    let store = site.open().await;
    let tokens = store.tokens();
    let new = |name: &str, expires_ms| NewToken {
        name: name.to_owned(),
        scopes: vec!["read".to_owned(), "call".to_owned()],
        agent: Some("reviewer".to_owned()),
        expires_ms,
    };
    let (token, secret) = tokens.create(new("b", Some(u64::MAX / 4))).await.unwrap();
    assert!(secret.starts_with("tcrib_") && secret.len() == 70);
    assert_eq!(
        tokens.verify(&secret).await.unwrap(),
        Verdict::Valid(token.clone())
    );
    for wrong in ["", "tcrib_", &secret[..69], &format!("{secret}0")] {
        assert_eq!(tokens.verify(wrong).await.unwrap(), Verdict::Unknown);
    }
    let (_, expired) = tokens.create(new("a", Some(1))).await.unwrap();
    assert_eq!(tokens.verify(&expired).await.unwrap(), Verdict::Expired);
    tokens.touch(&token).await.unwrap();
    let used = tokens.get(&token.id).await.unwrap().unwrap().last_used_ms;
    assert!(used.is_some());
    tokens.touch(&token).await.unwrap();
    assert_eq!(
        tokens.get(&token.id).await.unwrap().unwrap().last_used_ms,
        used
    );
    assert!(tokens.revoke(&token.id).await.unwrap());
    assert!(!tokens.revoke(&token.id).await.unwrap());
    assert_eq!(tokens.verify(&secret).await.unwrap(), Verdict::Revoked);
    let names: Vec<String> = tokens
        .list()
        .await
        .unwrap()
        .into_iter()
        .map(|token| token.name)
        .collect();
    assert_eq!(names, ["a", "b"]);
    if site.is_sqlite() {
        store.close().await;
        let file = std::fs::read(site.file()).unwrap();
        let holds = |text: &str| file.windows(text.len()).any(|part| part == text.as_bytes());
        assert!(holds(&token.id) && !holds(&secret) && !holds(&secret[6..]));
    }
}

pub async fn outputs_and_descriptions_are_kept(site: Site) {
    let store = site.open().await;
    let outputs = store.outputs();
    let output = |id: &str, created_ms| IndexedOutput {
        id: id.to_owned(),
        owner: "default".to_owned(),
        bytes: 5_000_000_000,
        lines: 3,
        created_ms,
    };
    assert_eq!(outputs.total_bytes().await.unwrap(), 0);
    outputs.put(&output("x", 9)).await.unwrap();
    outputs.put(&output("y", 4)).await.unwrap();
    outputs.put(&output("x", 8)).await.unwrap();
    assert_eq!(outputs.total_bytes().await.unwrap(), 10_000_000_000);
    assert_eq!(
        outputs.get("default", "x").await.unwrap(),
        Some(output("x", 8))
    );
    assert_eq!(outputs.get("other", "x").await.unwrap(), None);
    assert_eq!(outputs.oldest(1).await.unwrap(), [output("y", 4)]);
    assert!(outputs.remove("y").await.unwrap());
    assert!(!outputs.remove("y").await.unwrap());

    let descriptions = store.descriptions();
    assert_eq!(descriptions.get("k").await.unwrap(), None);
    descriptions
        .put("k", &json!({"b": 1, "a": [2]}))
        .await
        .unwrap();
    descriptions
        .put("k", &json!({"b": 2, "a": [2]}))
        .await
        .unwrap();
    assert_eq!(
        descriptions.get("k").await.unwrap(),
        Some(json!({"b": 2, "a": [2]}))
    );
    assert_eq!(descriptions.forget_before(5).await.unwrap(), 0);
    assert_eq!(descriptions.forget_before(u64::MAX).await.unwrap(), 1);
}
