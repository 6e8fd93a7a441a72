//! What people said yes to, and tokens.

use std::path::Path;

use toolcrib_core::store::{StoreError, Todos};
use toolcrib_core::{Binding, Network, NewGrant, Permit};
use toolcrib_store::{NewToken, TrustBook, TrustKind, Verdict};

use crate::opening::by_hand;
use crate::support::Site;

pub async fn grants_come_and_go(site: Site) {
    let store = site.open().await;
    let grants = store.grants();
    let new = |tool: &str, origin: &str, binding| NewGrant {
        tool: tool.to_owned(),
        origin: origin.to_owned(),
        binding,
        permit: Permit {
            write: vec!["/tmp/x".to_owned()],
            network: Network::Hosts(vec!["a.test".to_owned()]),
            exec: true,
            ..Permit::default()
        },
    };
    let content = || Binding::Content("h".to_owned());
    let (bound, is_new) = grants.add(new("b", "/p/b", content())).await.unwrap();
    assert!(is_new);
    let before = store.revisions().await.unwrap().grants;
    // The same, word for word, is the same grant, and nobody has to hear of it.
    let again = grants.add(new("b", "/p/b", content())).await.unwrap();
    assert_eq!(again, (bound.clone(), false));
    assert_eq!(store.revisions().await.unwrap().grants, before);
    let others = vec![
        new("a", "registered", Binding::Follow),
        new("b", "/p/b/x", Binding::Follow),
        new("b", "/pb", content()),
    ];
    let others = grants.add_all(others).await.unwrap();
    assert_eq!(others.len(), 3);
    let all = grants.list(None).await.unwrap();
    let by_name = [&others[0], &bound, &others[1], &others[2]].map(Clone::clone);
    assert_eq!(all, by_name);
    assert_eq!(grants.list(Some("b")).await.unwrap(), by_name[1..]);
    assert!(grants.revoke(&bound.id).await.unwrap());
    assert!(!grants.revoke(&bound.id).await.unwrap());
    // One tool, and not those of its name elsewhere.
    assert_eq!(grants.revoke_tool("a", "/p/b").await.unwrap(), 0);
    assert_eq!(grants.revoke_tool("a", "registered").await.unwrap(), 1);
    assert_eq!(grants.revoke_tool("a", "registered").await.unwrap(), 0);
    // A folder, and not what only begins as it does.
    assert_eq!(grants.revoke_below(Path::new("/p")).await.unwrap(), 1);
    assert_eq!(grants.revoke_below(Path::new("/p")).await.unwrap(), 0);
    assert_eq!(grants.list(None).await.unwrap(), others[2..]);
}

pub async fn trust_comes_and_goes_and_is_imported_once(site: Site) {
    let store = site.open().await;
    let trusted = store.trusted();
    let (a, b) = (Path::new("/p/a"), Path::new("/p/b"));
    let book = TrustBook::in_folder(&site.folder.path().join("book"));
    book.trust(a, 5).unwrap();
    book.trust(b, 6).unwrap();
    assert!(trusted.trust(b, TrustKind::Entry, &[]).await.unwrap());
    assert!(!trusted.trust(b, TrustKind::Project, &[]).await.unwrap());
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
        trusted.trust(odd, TrustKind::Entry, &[]).await,
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
        made_by: None,
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

/// Who takes a token back takes back what was made with it, however far down; and nothing is made with it any more.
pub async fn what_a_token_made_ends_with_it(site: Site) {
    let store = site.open().await;
    let tokens = store.tokens();
    let new = |name: &str, maker: Option<&str>| NewToken {
        name: name.to_owned(),
        scopes: vec!["manage".to_owned()],
        agent: None,
        expires_ms: None,
        made_by: maker.map(str::to_owned),
    };
    let (lead, _) = tokens.create(new("lead", None)).await.unwrap();
    let (other, other_secret) = tokens.create(new("other", None)).await.unwrap();
    let (child, child_secret) = tokens.create(new("child", Some(&lead.id))).await.unwrap();
    let (_, grandchild) = tokens
        .create(new("grandchild", Some(&child.id)))
        .await
        .unwrap();
    assert_eq!(child.made_by.as_deref(), Some(lead.id.as_str()));
    assert!(tokens.revoke(&lead.id).await.unwrap());
    for secret in [&child_secret, &grandchild] {
        assert_eq!(tokens.verify(secret).await.unwrap(), Verdict::Revoked);
    }
    assert_eq!(
        tokens.verify(&other_secret).await.unwrap(),
        Verdict::Valid(other)
    );
    let late = tokens
        .create(new("late", Some(&lead.id)))
        .await
        .unwrap_err();
    assert!(matches!(late, StoreError::Missing { .. }), "{late:?}");
}

pub async fn a_todo_list_is_one_threads_and_replaced(site: Site) {
    let store = site.open().await;
    let todos = store.todos();
    assert_eq!(todos.replace("a", "[1]").await.unwrap(), None);
    assert_eq!(todos.replace("b", "[]").await.unwrap(), None);
    let second = site.open().await;
    let other = second.todos();
    assert_eq!(
        other.replace("a", "[2]").await.unwrap().as_deref(),
        Some("[1]")
    );
    assert_eq!(
        todos.replace("a", "[3]").await.unwrap().as_deref(),
        Some("[2]")
    );
    // What nobody touched for a month is forgotten by whoever writes next.
    by_hand(&site, "UPDATE todos SET updated_at = 1 WHERE thread = 'a'").await;
    todos.replace("c", "[]").await.unwrap();
    assert_eq!(todos.replace("a", "[]").await.unwrap(), None);
}
