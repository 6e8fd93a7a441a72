//! THE TABLE of forgeries: whatever an agent, its client, its shell, a tool or a web page tries, nobody but a person says yes.

mod browsers;
mod commands;
mod requests;
mod stretched;

use reqwest::Method;

use super::scene::ran;
use crate::support::{TestCrib, World};

/// One request that must decide nothing.
pub struct Attempt {
    pub what: &'static str,
    pub method: Method,
    pub path: String,
    pub headers: Vec<(&'static str, String)>,
    pub body: String,
    /// What it may be answered with.
    pub answers: &'static [u16],
}

/// What is tried, and against what.
pub struct Table<'a> {
    pub world: &'a World,
    pub crib: &'a TestCrib,
    /// The approval that must stay undecided.
    pub id: String,
    pub tried: usize,
}

pub const YES: &str = r#"{"decision":"approve"}"#;

impl<'a> Table<'a> {
    pub fn new(world: &'a World, crib: &'a TestCrib, id: &str) -> Table<'a> {
        Table {
            world,
            crib,
            id: id.to_owned(),
            tried: 0,
        }
    }

    pub async fn tries(&mut self, attempt: Attempt) {
        let Attempt {
            what,
            method,
            path,
            headers,
            body,
            answers,
        } = attempt;
        let url = format!("{}{path}", self.crib.url);
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .unwrap();
        let mut request = client.request(method, url).body(body);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let status = request.send().await.unwrap().status().as_u16();
        assert!(answers.contains(&status), "{what}: {status}");
        self.nothing_was_decided(what);
    }

    pub fn nothing_was_decided(&mut self, what: &str) {
        self.tried += 1;
        let shown = self.world.run(&["approvals", "show", &self.id, "--json"]);
        let shown = shown.exits(0).json();
        assert_eq!(shown["state"], "pending", "{what}: {shown}");
        assert!(ran(self.world).is_empty(), "{what}");
    }
}

/// A request that is posted.
pub fn post(
    what: &'static str,
    path: &str,
    headers: Vec<(&'static str, String)>,
    body: &str,
    answers: &'static [u16],
) -> Attempt {
    Attempt {
        what,
        method: Method::POST,
        path: path.to_owned(),
        headers,
        body: body.to_owned(),
        answers,
    }
}

pub fn bearer(token: &str) -> (&'static str, String) {
    ("authorization", format!("Bearer {token}"))
}

pub fn typed() -> (&'static str, String) {
    ("content-type", "application/json".to_owned())
}
