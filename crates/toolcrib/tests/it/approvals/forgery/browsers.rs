//! What web pages, logins that are not for that, and senders of webhooks try.

use reqwest::Method;
use serde_json::json;

use super::{Attempt, Table, YES, post, typed};
use crate::approvals::deciding::{login, now, page, signed};
use crate::approvals::scene::SECRET;

/// What web pages, and logins that are not for that, try.
#[rustfmt::skip]
pub async fn browsers(table: &mut Table<'_>, other: &str) {
    let (world, crib) = (table.world, table.crib);
    let looks = login(world, crib, false).await;
    let decides = login(world, crib, true).await;
    let second = login(world, crib, true).await;
    let (_, mark) = page(crib, &decides, &table.id).await;
    let (_, others_mark) = page(crib, &decides, other).await;
    let (_, second_mark) = page(crib, &second, &table.id).await;
    let (mark, others_mark) = (mark.unwrap(), others_mark.unwrap());
    let path = format!("/approvals/{}", table.id);
    let api = format!("/api{path}");
    let own = || ("origin", crib.url.clone());
    let form = || ("content-type", "application/x-www-form-urlencoded".to_owned());
    let text = || ("content-type", "text/plain".to_owned());
    let cookie = |login: &str| ("cookie", login.to_owned());
    let yes = |mark: &str| format!("mark={mark}&decision=approve");
    let evil = || ("origin", "http://evil.example".to_owned());
    let sent = || vec![cookie(&decides), own(), form()];
    for (what, path, headers, body) in [
        ("a login that only looks", &api, vec![cookie(&looks), own(), typed()], YES.to_owned()),
        ("its form", &path, vec![cookie(&looks), own(), form()], yes(&mark)),
        ("a form without a mark", &path, sent(), "decision=approve".to_owned()),
        ("an empty mark", &path, sent(), yes("")),
        ("the mark of another approval", &path, sent(), yes(&others_mark)),
        ("the mark of another login", &path, sent(), yes(&second_mark.unwrap())),
        ("a cross-site form", &path, vec![cookie(&decides), evil(), form()], yes(&mark)),
        ("a form from nowhere", &path, vec![cookie(&decides), form()], yes(&mark)),
        ("a form of a neighbour", &path, vec![cookie(&decides), own(), form(), ("sec-fetch-site", "same-site".to_owned())], yes(&mark)),
        ("JSON for a form", &path, vec![cookie(&decides), own(), typed()], YES.to_owned()),
        ("plain text for a form", &path, vec![cookie(&decides), own(), text()], yes(&mark)),
        ("JSON of another site", &api, vec![cookie(&decides), evil(), text()], YES.to_owned()),
        ("a form with two decisions", &path, sent(), format!("{}&decision=reject", yes(&mark))),
        ("a form with a field too many", &path, sent(), format!("{}&to=x", yes(&mark))),
    ] {
        table.tries(post(what, path, headers, &body, &[400, 401, 403, 415])).await;
    }
    let path = format!("{path}?{}", yes(&mark));
    let looked = post("a page that is opened with the form's fields", &path, vec![cookie(&decides)], "", &[200]);
    table.tries(Attempt { method: Method::GET, ..looked }).await;
}

/// What somebody sends who saw webhooks, and has not their secret.
#[rustfmt::skip]
pub async fn webhooks(table: &mut Table<'_>, other: &str) {
    let body = json!({"id": table.id, "decision": "approve"}).to_string();
    let others = json!({"id": other, "decision": "reject"}).to_string();
    let wrong = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    let good = signed(SECRET, "msg_1", now(), &others);
    let path = "/webhooks/approvals";
    let with = |secret: &str, at: u64| signed(secret, "msg_1", at, &body).to_vec();
    let mut v2 = with(SECRET, now());
    v2[2].1 = v2[2].1.replace("v1,", "v1a,");
    let mut twice = with(SECRET, now());
    twice.push(("webhook-id", "msg_2".to_owned()));
    for (what, headers, body) in [
        ("an unsigned webhook", vec![], &body),
        ("one signed with another secret", with(wrong, now()), &body),
        ("an old one", with(SECRET, now() - 600), &body),
        ("one of tomorrow", with(SECRET, now() + 86_400), &body),
        ("the signature of another body", good.to_vec(), &body),
        ("the signature of another id", vec![("webhook-id", "msg_2".to_owned()), good[1].clone(), good[2].clone()], &others),
        ("another kind of signature", v2, &body),
        ("two ids", twice, &body),
    ] {
        table.tries(post(what, path, headers, body, &[401])).await;
    }
    // One that was good works once, and says nothing about any other.
    table.tries(post("a good one about another", path, good.to_vec(), &others, &[200])).await;
    table.tries(post("its replay", path, good.to_vec(), &others, &[409])).await;
}
