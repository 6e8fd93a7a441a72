//! A tool outside of a profile is not there: every route of the OpenAPI document and every method of MCP answers about it as
//! about a tool that never was.

use reqwest::Method;
use serde_json::{Value, json};

use super::{SEEN, world};
use crate::support::mcp::{LEGACY, Piped, STATELESS, initialize, request, stateless};
use crate::support::registered::least;
use crate::support::{TestCrib, World, answer, eventually};
use crate::tidy::root;

/// A tool that never was, with a name as long as that of the one that is hidden.
const GHOST: &str = "nonesuch";

/// Something hidden and something that never was, of the same kind.
struct Pair {
    hidden: String,
    ghost: String,
}

/// What there is to ask about.
struct Things {
    tools: Pair,
    call: Pair,
    output: Pair,
    grant: Pair,
}

/// The same id with another last digit.
fn other_id(id: &str) -> Pair {
    let last = if id.ends_with('0') { "1" } else { "0" };
    Pair {
        hidden: id.to_owned(),
        ghost: format!("{}{last}", &id[..id.len() - 1]),
    }
}

/// Calls the hidden tool and grants it something, so that there is more of it than its name.
async fn things(world: &World, crib: &TestCrib, hidden: &str) -> Things {
    let keeper = world.token(&format!("keeper-{hidden}"), "read,call,manage");
    let get = async |path: &str| {
        let asked = crib.client.get(format!("{}/api{path}", crib.url));
        answer(asked.bearer_auth(&keeper).send().await.unwrap())
            .await
            .1
    };
    let call = crib
        .client
        .post(format!("{}/api/tools/{hidden}/call", crib.url));
    let (_, outcome) = answer(call.bearer_auth(&keeper).send().await.unwrap()).await;
    let output = outcome["metadata"]["outputId"].as_str();
    world.run(&["grant", hidden, "--memory", "1024"]).exits(0);
    let grants = get(&format!("/grants?tool={hidden}")).await;
    let on_record = async || get(&format!("/calls?tool={hidden}")).await;
    eventually("the call is on record", async || {
        on_record().await["calls"][0]["id"].is_string()
    })
    .await;
    let calls = on_record().await;
    Things {
        tools: Pair {
            hidden: hidden.to_owned(),
            ghost: GHOST.to_owned(),
        },
        call: other_id(calls["calls"][0]["id"].as_str().unwrap()),
        output: other_id(output.unwrap_or("01a1e213-3152-76a0-8a1a-ae5fa2f7c32c")),
        grant: other_id(grants["grants"][0]["id"].as_str().unwrap()),
    }
}

/// One way to ask, with everything in it that names something.
#[derive(Debug)]
struct Asked {
    method: Method,
    path: String,
    body: Option<Value>,
}

impl Things {
    fn pick(&self, hidden: bool) -> [&str; 4] {
        match hidden {
            true => [
                &self.tools.hidden,
                &self.call.hidden,
                &self.output.hidden,
                &self.grant.hidden,
            ],
            false => [
                &self.tools.ghost,
                &self.call.ghost,
                &self.output.ghost,
                &self.grant.ghost,
            ],
        }
    }

    /// The requests that an operation of the document takes, about what is hidden or about what never was.
    fn asked(&self, path: &str, method: &str, operation: &Value, hidden: bool) -> Vec<Asked> {
        let [tool, call, output, grant] = self.pick(hidden);
        let id = match path {
            _ if path.contains("/calls/") => call,
            _ if path.contains("/outputs/") => output,
            _ if path.contains("/grants/") => grant,
            _ => tool,
        };
        let path = path.replace("{name}", tool).replace("{id}", id);
        let parameters = operation["parameters"].as_array();
        let queried = parameters.into_iter().flatten();
        let queried = queried.filter(|one| one["in"] == "query");
        let about = |name: &str| ["tool", "q", "query", "name"].contains(&name);
        let queries: Vec<String> = queried
            .map(|one| one["name"].as_str().unwrap())
            .filter(|name| about(name))
            .map(|name| format!("{name}={tool}"))
            .collect();
        let body = match operation["operationId"].as_str().unwrap() {
            _ if operation.get("requestBody").is_none() => None,
            "callTool" => Some(json!({"arguments": {}})),
            "testCustomTool" => Some(json!({"input": {}})),
            "updateCustomTool" => Some(json!({"description": "changed"})),
            "createCustomTool" => Some(json!({"name": tool, "command": "/bin/true"})),
            "createGrant" => Some(json!({"tool": tool, "memory": 2_048})),
            "createToken" => Some(json!({"name": format!("by-{tool}"), "scopes": ["read"]})),
            "trust" => Some(json!({})),
            _ => Some(json!({"tool": tool, "name": tool, "query": tool})),
        };
        let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
        let with_query = format!("{path}?{}", queries.join("&"));
        let mut all = vec![Asked {
            method: method.clone(),
            path: with_query.trim_end_matches('?').to_owned(),
            body: body.clone(),
        }];
        if !queries.is_empty() {
            all.push(Asked { method, path, body });
        }
        all
    }

    /// An answer without the names that were asked for.
    fn without_names(&self, text: &str, hidden: bool) -> String {
        let mut text = text.to_owned();
        for (name, stands_for) in self
            .pick(hidden)
            .into_iter()
            .zip(["TOOL", "CALL", "OUTPUT", "GRANT"])
        {
            text = text.replace(name, stands_for);
        }
        text
    }
}

/// What nobody can be asked the same twice: the time, and ids of what was just made.
fn is_about_the_moment(path: &str) -> bool {
    path == "/api/tokens" || path == "/api/events" || path == "/login" || path == "/logout"
}

#[tokio::test]
async fn no_route_knows_a_tool_outside_of_the_token_s_agent() {
    let world = world();
    world.weather();
    let crib = world.serve_closed();
    let keeper = world.token("registrar", "read,call,manage");
    let mut registered = least("hushwave");
    registered["description"] = "hush: registered".into();
    let made = crib.client.post(format!("{}/api/custom-tools", crib.url));
    let made = made.bearer_auth(&keeper).json(&registered).send().await;
    assert_eq!(made.unwrap().status(), 201);
    let document = serde_json::to_value(toolcrib::serve::rest::openapi()).unwrap();
    let mut count = 0;
    for hidden in ["hushhush", "hushwave"] {
        let things = things(&world, &crib, hidden).await;
        for scopes in ["read,call", "read,call,manage,approve"] {
            let own = world.bound(&format!("{hidden} {scopes}"), "bound", scopes);
            for (path, item) in document["paths"].as_object().unwrap() {
                for (method, operation) in item.as_object().unwrap() {
                    if is_about_the_moment(path) {
                        continue;
                    }
                    let about = |hidden| things.asked(path, method, operation, hidden);
                    for (real, unreal) in about(true).iter().zip(&about(false)) {
                        let real_said = said(&crib, &own, real).await;
                        let unreal_said = said(&crib, &own, unreal).await;
                        let (status, text) =
                            (real_said.0, things.without_names(&real_said.1, true));
                        let expected = (unreal_said.0, things.without_names(&unreal_said.1, false));
                        assert!(
                            !text.contains("hush"),
                            "{real:?} as {scopes}: {status} {text}"
                        );
                        if real.path != unreal.path || real.body != unreal.body {
                            assert_eq!((status, text), expected, "{real:?} as {scopes}");
                        }
                        count += 1;
                    }
                }
            }
        }
        // Nothing of it was changed or taken away.
        let grants = crib
            .client
            .get(format!("{}/api/grants?tool={hidden}", crib.url));
        let (_, grants) = answer(grants.bearer_auth(&keeper).send().await.unwrap()).await;
        assert_eq!(grants["grants"].as_array().unwrap().len(), 1, "{grants}");
        let shown = crib.client.get(format!("{}/api/tools/{hidden}", crib.url));
        let (status, _) = answer(shown.bearer_auth(&keeper).send().await.unwrap()).await;
        assert_eq!(status, 200);
    }
    assert!(count > 100, "{count} requests");
    let own = world.bound("counts", "bound", "read");
    let health = crib.client.get(format!("{}/api/health", crib.url));
    let (_, health) = answer(health.bearer_auth(&own).send().await.unwrap()).await;
    let counts = health["counts"].as_object().unwrap().values();
    let counted: u64 = counts.map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(counted, SEEN.len() as u64);
}

async fn said(crib: &TestCrib, token: &str, asked: &Asked) -> (u16, String) {
    let request = crib
        .client
        .request(asked.method.clone(), format!("{}{}", crib.url, asked.path));
    let request = match &asked.body {
        Some(body) => request.json(body),
        None => request,
    };
    let response = request.bearer_auth(token).send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

/// Every method in THE LIST, found in its text, so that none is forgotten.
fn methods() -> Vec<String> {
    let list = root().join("crates/toolcrib/src/serve/mcp/methods.rs");
    let list = std::fs::read_to_string(list).unwrap();
    let arms = list.split_once("match &*request.method {").unwrap().1;
    let arms = arms.split_once("            other => {").unwrap().0;
    let quoted = arms.split('"').skip(1).step_by(2).map(str::to_owned);
    let mut methods: Vec<String> = quoted.filter(|word| word.contains('/')).collect();
    methods.sort();
    methods.dedup();
    assert!(
        methods.len() >= 8 && methods.contains(&"tools/call".to_owned()),
        "{methods:?}"
    );
    // It never ends by itself; `heard.rs` is about what it tells.
    methods.retain(|method| method != "subscriptions/listen");
    methods
}

/// Parameters that name a thing in every way that any method knows.
fn parameters(things: &Things, hidden: bool) -> Value {
    let [tool, _, output, _] = things.pick(hidden);
    json!({
        "name": tool,
        "arguments": {"id": output},
        "uri": format!("toolcrib://outputs/{output}"),
        "ref": {"type": "ref/prompt", "name": tool},
        "argument": {"name": "tool", "value": tool},
    })
}

#[tokio::test]
async fn no_method_knows_a_tool_outside_of_the_agent() {
    let world = world();
    let mut crib = world.serve_closed();
    let things = things(&world, &crib, "hushhush").await;
    let own = world.bound("own", "bound", "read,call");
    crib.show(Some(&own));
    let mut relayed = Piped::greeted(world.command(&["mcp", "--agent", "bound"]));
    let mut alone = Piped::greeted(world.command(&["mcp", "--agent", "bound", "--standalone"]));
    let compare = |what: &str, real: Value, unreal: Value| {
        let real = things.without_names(&real.to_string(), true);
        let unreal = things.without_names(&unreal.to_string(), false);
        assert!(!real.contains("hush"), "{what}: {real}");
        assert_eq!(real, unreal, "{what}");
    };
    for method in methods() {
        let of = |hidden| request(5, &method, parameters(&things, hidden));
        for agent in [&mut relayed, &mut alone] {
            compare(&method, agent.ask(&of(true)), agent.ask(&of(false)));
        }
        for version in [LEGACY[0], LEGACY[3]] {
            let session = crib.session(version).await;
            let what = format!("{method} {version}");
            compare(
                &what,
                session.ask(&of(true)).await,
                session.ask(&of(false)).await,
            );
            assert!(!session.hello.to_string().contains("hush"));
        }
        let of = |hidden| stateless(5, &method, parameters(&things, hidden));
        // Which header names the thing depends on the method.
        let ask = async |hidden: bool| {
            let message = of(hidden);
            let named = match &*method {
                "tools/call" | "prompts/get" => message["params"]["name"].as_str(),
                "resources/read" => message["params"]["uri"].as_str(),
                _ => None,
            };
            let mut headers = vec![("mcp-protocol-version", STATELESS), ("mcp-method", &method)];
            headers.extend(named.map(|name| ("mcp-name", name)));
            crib.post_mcp(&headers, message.to_string())
                .await
                .answer()
                .await
        };
        compare(&method, ask(true).await, ask(false).await);
    }
    // The tool that reads on is seen, and reads nothing of what it may not.
    for (mut agent, id) in [(relayed, 6), (alone, 7)] {
        let arguments = json!({"id": things.output.hidden});
        let read = agent.ask(&crate::support::mcp::call(id, "read-output", arguments));
        assert_eq!(read["result"]["isError"], true, "{read}");
        assert!(!read.to_string().contains("100000"), "{read}");
    }
    let hello =
        Piped::start(world.command(&["mcp", "--agent", "bound"])).ask(&initialize(1, LEGACY[3]));
    assert!(!hello.to_string().contains("hush"), "{hello}");
}
