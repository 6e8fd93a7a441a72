//! Who is let in over HTTP: tokens, scopes, browsers' logins; and who needs none.

mod crowd;
mod decides;
mod login;
mod mcp;
mod places;
mod secrets;
mod tokens;
mod turned_away;

use reqwest::header::WWW_AUTHENTICATE;
use reqwest::{Method, RequestBuilder, Response};
use serde_json::json;

use crate::support::{TestCrib, World, answer, shell_tool};

/// A trusted project with one tool.
fn world() -> World {
    let world = World::trusted();
    let echo = shell_tool("greet", "echo hi {{n}}", json!({"n": {"type": "integer"}}));
    world.write_tool("a.json", echo);
    world
}

impl World {
    /// A token's secret.
    pub fn token(&self, name: &str, scopes: &str) -> String {
        // Whoever is to decide on calls is let in by a person.
        let args = ["token", "create", name, "--scope", scopes, "--json"];
        let made = match scopes.contains("approve") {
            true => self.person(&args),
            false => self.run(&args),
        };
        made.exits(0).json()["token"].as_str().unwrap().to_owned()
    }
}

/// Checks that an answer refuses in the one shape, and gives its message, hint and challenge.
async fn refused(response: Response, status: u16, code: &str) -> (String, String, String) {
    let challenge = response.headers().get(WWW_AUTHENTICATE);
    let challenge = challenge
        .map_or("", |value| value.to_str().unwrap())
        .to_owned();
    let url = response.url().to_string();
    let (got, body) = answer(response).await;
    assert_eq!(
        (got, &body["error"]["code"]),
        (status, &json!(code)),
        "{url} {body}"
    );
    let text = |field: &str| body["error"][field].as_str().unwrap().to_owned();
    (text("message"), text("hint"), challenge)
}

fn ask(crib: &TestCrib, method: Method, path: &str, token: Option<&str>) -> RequestBuilder {
    let request = crib.client.request(method, format!("{}{path}", crib.url));
    match token {
        Some(token) => request.bearer_auth(token),
        None => request,
    }
}

async fn get(crib: &TestCrib, path: &str, token: Option<&str>) -> Response {
    ask(crib, Method::GET, path, token).send().await.unwrap()
}
