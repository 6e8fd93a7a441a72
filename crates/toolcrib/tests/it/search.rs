//! Tool search, end to end: the small surface, what goes through it and what never does, and what commands say.

use serde_json::{Value, json};
use toolcrib_core::tokens::estimate;

use crate::support::mcp::{Piped, call, names, request};
use crate::support::plugin::{file, shell};
use crate::support::{World, shell_tool};

const VERBS: [&str; 10] = [
    "list", "create", "delete", "update", "count", "export", "archive", "share", "print", "check",
];
const THINGS: [&str; 50] = [
    "invoices",
    "orders",
    "customers",
    "parcels",
    "trucks",
    "drivers",
    "depots",
    "routes",
    "tariffs",
    "contracts",
    "tickets",
    "meetings",
    "rooms",
    "desks",
    "badges",
    "visitors",
    "parkings",
    "printers",
    "laptops",
    "phones",
    "plants",
    "beds",
    "seeds",
    "harvests",
    "pumps",
    "valves",
    "sensors",
    "alarms",
    "cameras",
    "gates",
    "recipes",
    "menus",
    "tables",
    "bookings",
    "guests",
    "waiters",
    "shifts",
    "payslips",
    "holidays",
    "trainings",
    "books",
    "readers",
    "loans",
    "fines",
    "shelves",
    "branches",
    "songs",
    "albums",
    "concerts",
    "stages",
];

/// A project with 500 tools, of which `list…`, `count…`, `print…`, `check…` only read.
fn five_hundred() -> World {
    let world = World::trusted();
    for verb in VERBS {
        let tools: Vec<Value> = THINGS
            .iter()
            .map(|thing| {
                let properties = json!({
                    "id": {"type": "string", "description": format!("Which of the {thing} is meant, by its number; * for the newest")},
                    "site": {"type": "string", "description": "The site that it belongs to, such as north or harbour"},
                    "limit": {"type": "integer", "description": "How many at most, from 1 to 100", "default": 10},
                });
                let mut tool = shell(&format!("{verb}_{thing}"), &format!("echo {verb} {thing} -- {{{{site}}}}"), properties);
                tool["description"] = format!("{verb}s {thing} of one site of the company, newest first, for the back office").into();
                tool["annotations"] = match verb {
                    "list" | "count" | "print" | "check" => json!({"readOnlyHint": true}),
                    "delete" => json!({"readOnlyHint": true, "destructiveHint": true}),
                    _ => json!({}),
                };
                tool
            })
            .collect();
        let folder = json!({"name": verb, "tools": tools}).to_string();
        world.write_tool(&format!("{verb}.json"), folder);
    }
    world
}

fn settings(world: &World, text: &str) {
    world.write(world.home().join(".config/toolcrib/config.toml"), text);
}

/// The list and the instructions that a client reads.
async fn read(world: &World) -> (Value, String) {
    let crib = world.serve();
    crib.becomes("ready").await;
    let mut piped = Piped::start(world.command(&["mcp"]));
    let hello = piped.ask(&crate::support::mcp::initialize(1, "2025-11-25"));
    let instructions = hello["result"]["instructions"].as_str().unwrap().to_owned();
    let list = piped.ask(&request(2, "tools/list", json!({})));
    piped.hang_up();
    crib.stop();
    (list["result"].clone(), instructions)
}

#[tokio::test]
async fn five_hundred_tools_cost_few_tokens_and_the_list_is_the_same_after_a_restart() {
    let world = five_hundred();
    let (list, instructions) = read(&world).await;
    assert_eq!(
        names(&json!({"result": list})),
        ["call_tool", "call_tool_read", "search_tools"]
    );
    let tools = list["tools"].to_string();
    let small = estimate(&tools) + estimate(&instructions);
    assert!(small <= 1_500, "{small} tokens: {tools} {instructions}");
    assert!(estimate(&tools) <= 400, "{}", estimate(&tools));
    assert!(
        instructions.contains("search") && instructions.contains("plugin.list (50)"),
        "{instructions}"
    );
    assert_eq!(read(&world).await, (list, instructions));

    settings(&world, "[agents.default]\nsurface = \"list\"\n");
    let (whole, _) = read(&world).await;
    let all = whole["tools"].as_array().unwrap();
    assert!(all.len() >= 500, "{}", all.len());
    let tokens: usize = all.iter().map(|tool| estimate(&tool.to_string())).sum();
    assert!(small * 50 <= tokens, "{small} of {tokens} tokens");
    assert_eq!(read(&world).await.0.to_string(), whole.to_string());
}

#[tokio::test]
async fn few_tools_are_listed_and_pins_and_settings_decide() {
    let world = World::trusted();
    world.write_tool("one.json", shell_tool("greet", "echo hi", json!({})));
    let listed = async |world: &World| {
        let (list, _) = read(world).await;
        let list = json!({"result": list});
        names(&list)
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert!(listed(&world).await.contains(&"greet".to_owned()));
    assert!(!listed(&world).await.contains(&"search_tools".to_owned()));
    settings(
        &world,
        "[agents.default]\nsurface = \"search\"\npinned = [\"git-*\", \"-git-diff-summary\"]\n",
    );
    assert_eq!(
        listed(&world).await,
        ["call_tool", "call_tool_read", "git-status", "search_tools"]
    );
}

#[test]
fn a_hidden_tool_is_found_called_and_recorded_under_its_own_name() {
    let world = five_hundred();
    let mut piped = Piped::greeted(world.command(&["mcp"]));
    let mut ask =
        |tool: &str, arguments: Value| piped.ask(&call(7, tool, arguments))["result"].clone();
    let found = ask("search_tools", json!({"query": "list the concerts"}));
    let matches = &found["structuredContent"]["matches"];
    let first: Vec<&str> = (0..5)
        .map(|at| matches[at]["name"].as_str().unwrap())
        .collect();
    assert!(first.contains(&"list_concerts"), "{found}");
    assert!(
        matches[0]["inputSchema"].is_object() && matches[4]["signature"].is_string(),
        "{found}"
    );
    let text: Value = serde_json::from_str(found["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, found["structuredContent"]);
    let tokens = estimate(&text.to_string());
    assert!(tokens < 900, "{tokens}");

    let read = ask(
        "call_tool_read",
        json!({"name": "list_concerts", "arguments": {"site": "north"}}),
    );
    assert_eq!(
        read["content"][0]["text"], "list concerts -- north\n",
        "{read}"
    );
    let wrote = ask(
        "call_tool",
        json!({"name": "create_concerts", "arguments": "{\"site\": \"south\"}"}),
    );
    assert_eq!(
        wrote["content"][0]["text"], "create concerts -- south\n",
        "{wrote}"
    );
    let direct = ask("list_concerts", json!({"site": "east"}));
    assert_eq!(
        direct["content"][0]["text"], "list concerts -- east\n",
        "{direct}"
    );

    let none = ask("search_tools", json!({"query": "knit a woollen scarf"}));
    assert_eq!(none["structuredContent"]["matches"], json!([]), "{none}");
    assert!(
        none["structuredContent"]["message"]
            .as_str()
            .unwrap()
            .starts_with("no good match")
    );
    let selected = ask(
        "search_tools",
        json!({"query": "select:mcp__toolcrib__print_menus, nothing_such"}),
    );
    assert_eq!(
        selected["structuredContent"]["matches"][0]["name"], "print_menus",
        "{selected}"
    );
    assert!(
        selected["structuredContent"]["message"]
            .as_str()
            .unwrap()
            .contains("nothing_such")
    );
    piped.hang_up();

    let calls = world.run(&["logs", "--calls", "--json"]).exits(0).json();
    let told = calls.to_string();
    assert!(
        told.contains("create_concerts") && told.contains("list_concerts"),
        "{told}"
    );
    assert!(!told.contains("call_tool"), "{told}");
}

/// What must not get through, however it is tried, and what is said to it.
fn attempts() -> Vec<(&'static str, Value, &'static str)> {
    vec![
        // call_tool_read reaches nothing that is not known to only read.
        (
            "call_tool_read",
            json!({"name": "create_orders"}),
            "not known to only read",
        ),
        (
            "call_tool_read",
            json!({"name": "delete_orders"}),
            "not known to only read",
        ),
        (
            "call_tool_read",
            json!({"name": "update_orders", "arguments": {"readOnlyHint": true}}),
            "not known to only read",
        ),
        (
            "call_tool_read",
            json!({"name": "call_tool", "arguments": {"name": "create_orders"}}),
            "there is no tool",
        ),
        (
            "call_tool_read",
            json!({"name": "Create_Orders"}),
            "there is no tool",
        ),
        (
            "call_tool_read",
            json!({"name": " create_orders"}),
            "there is no tool",
        ),
        // What the agent does not see is not there for it.
        (
            "call_tool",
            json!({"name": "share_orders"}),
            "there is no tool",
        ),
        (
            "call_tool_read",
            json!({"name": "share_orders"}),
            "there is no tool",
        ),
        ("share_orders", json!({}), "there is no tool"),
    ]
}

/// The same, of what was never granted, of itself, and of arguments that do not fit.
fn further_attempts() -> Vec<(&'static str, Value, &'static str)> {
    vec![
        // What nobody granted is denied.
        (
            "call_tool",
            json!({"name": "fetch_everything"}),
            "hasn't been granted",
        ),
        (
            "call_tool_read",
            json!({"name": "fetch_everything"}),
            "hasn't been granted",
        ),
        // No way through itself.
        (
            "call_tool",
            json!({"name": "call_tool", "arguments": {"name": "list_orders"}}),
            "there is no tool",
        ),
        (
            "call_tool",
            json!({"name": "search_tools", "arguments": {"query": "x"}}),
            "there is no tool",
        ),
        // Arguments are checked as in any call.
        (
            "call_tool",
            json!({"name": "list_orders", "arguments": {"limit": "many"}}),
            "do not fit its schema",
        ),
        (
            "call_tool",
            json!({"name": "list_orders", "arguments": [1]}),
            "must be an object",
        ),
        (
            "call_tool",
            json!({"name": "list_orders", "arguments": "not JSON"}),
            "must be an object",
        ),
        ("call_tool", json!({"name": 3}), "must be the name"),
        ("call_tool", json!({}), "must be the name"),
        ("search_tools", json!({}), "must be text"),
        (
            "search_tools",
            json!({"query": "x", "limit": 0}),
            "from 1 to 20",
        ),
        (
            "search_tools",
            json!({"query": "x", "detail": "all"}),
            "`detail` must be",
        ),
    ]
}

#[test]
fn nothing_gets_around_a_refusal_through_the_small_surface() {
    let world = five_hundred();
    settings(
        &world,
        "[agents.default]\ntools = [\"*\", \"-share_*\"]\nsurface = \"search\"\n",
    );
    // It declares more than anybody granted.
    let mut asking = shell("fetch_everything", "echo fetched", json!({}));
    asking["permissions"] = json!({"canWriteFiles": true});
    asking["annotations"] = json!({"readOnlyHint": true});
    world.write_tool("asking.json", file(&[asking]));
    let mut piped = Piped::greeted(world.command(&["mcp"]));
    for (number, (tool, arguments, said)) in (10..).zip([attempts(), further_attempts()].concat()) {
        let answer = piped.ask(&call(number, tool, arguments.clone()));
        let refused = answer["result"]["isError"] == true || answer["error"].is_object();
        assert!(refused, "{tool} {arguments}: {answer}");
        assert!(
            answer.to_string().contains(said),
            "{tool} {arguments}: {answer}"
        );
    }
    let found = piped.ask(&call(
        99,
        "search_tools",
        json!({"query": "share orders", "limit": 20}),
    ));
    assert!(!found.to_string().contains("share_"), "{found}");
    piped.hang_up();
}

#[tokio::test]
async fn an_endpoint_chooses_its_surface_and_rest_searches() {
    let world = five_hundred();
    let crib = world.serve();
    let (status, found) = crib.get("/search?q=count%20the%20trucks&limit=3").await;
    assert_eq!(
        (status, found["matches"][0]["name"].as_str()),
        (200, Some("count_trucks")),
        "{found}"
    );
    let (status, _) = crib.get("/search?q=x&limit=1000").await;
    assert_eq!(status, 400);
    let (status, _) = crib.get("/search").await;
    assert_eq!(status, 400);
    let (_, within) = crib
        .get("/search?q=orders&namespace=plugin.print&limit=100")
        .await;
    let all = within["matches"].as_array().unwrap();
    assert!(
        !all.is_empty() && all.iter().all(|one| one["module"] == "plugin.print"),
        "{within}"
    );
    for (surface, count) in [("list", 500), ("search", 3)] {
        // Behind a crib that serves, and alone.
        for alone in [&[][..], &["--standalone"][..]] {
            let arguments = [&["mcp", "--surface", surface][..], alone].concat();
            let mut piped = Piped::greeted(world.command(&arguments));
            // A list waits for what is loading.
            let list = piped.ask(&request(2, "tools/list", json!({})));
            assert_eq!(names(&list).len(), count, "{surface} {alone:?}");
            piped.hang_up();
        }
    }
    let claude = world.run(&["connect", "claude", "--print"]).exits(0);
    assert!(claude.stdout.contains("--surface"), "{}", claude.stdout);
    crib.stop();
}

#[test]
fn commands_search_count_and_lint() {
    let world = five_hundred();
    let found = world.run(&["search", "print", "a", "menu"]).exits(0);
    assert!(found.stdout.contains("print_menus"), "{}", found.stdout);
    world.run(&["search", "knit a woollen scarf"]).exits(1);
    let context = world.run(&["context", "--json"]).exits(0).json();
    assert!(context["tokens"].as_u64().unwrap() > 8_000, "{context}");
    assert_eq!(context["autoSearches"], true);
    assert_eq!(context["tools"].as_array().unwrap().len(), 508);
    let shown = world.run(&["context"]).exits(0);
    assert!(
        shown.stdout.contains("plugin.list") && shown.stdout.contains("as a search"),
        "{}",
        shown.stdout
    );

    let text = "{\"name\": \"bad\", \"tools\": [\n {\"name\": \"odd\", \"description\": \" Prints  the odd numbers up to a bound\",\n  \"inputSchema\": {\"type\": \"object\", \"properties\": {\n   \"bound\": {\"type\": \"integer\"}}},\n  \"handler\": {\"type\": \"shell\", \"command\": \"echo 1\"}}]}";
    let path = world.write_tool("bad.json", text);
    let bad = world.run(&["lint", "odd", "--json"]).exits(1).json();
    let told: Vec<(&str, u64)> = bad["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["code"].as_str().unwrap(), one["line"].as_u64().unwrap()))
        .collect();
    assert_eq!(
        told,
        [("description-space", 2), ("parameter-undescribed", 4)]
    );
    world.run(&["lint", path.to_str().unwrap()]).exits(1);
    world.run(&["lint", "odd", "--fix"]).exits(1);
    let fixed = std::fs::read_to_string(&path).unwrap();
    assert_eq!(fixed, text.replace(" Prints  the", "Prints the"));
    world.run(&["lint", "nothing-such"]).exits(3);
    world.run(&["lint", "git-status", "--strict"]).exits(0);
}
