//! What the search finds, and that an index which followed its views is as one made anew.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::testing::{NoOutputs, Nothing, builtins, profiles, spec, tool};
use crate::{Crib, Schema};

fn described(name: &str, module: &str, description: &str, schema: serde_json::Value) -> Tool {
    let mut made = tool(name, Arc::new(Nothing));
    made.spec = spec(name);
    made.spec.description = description.to_owned();
    made.spec.input_schema = Schema::parse(schema).unwrap();
    made.module = module.to_owned();
    made.hash = description.into();
    made
}

fn plain(name: &str, module: &str, description: &str) -> Tool {
    described(name, module, description, json!({"type": "object"}))
}

fn garden() -> Vec<Tool> {
    vec![
        plain(
            "water_bed",
            "local.garden",
            "Waters one bed of the garden for some minutes",
        ),
        plain(
            "plan_beds",
            "local.garden",
            "Plans what grows in which bed next year",
        ),
        plain(
            "github_create_issue",
            "mcp.github",
            "Opens a new issue in a repository",
        ),
        plain(
            "github_list_issues",
            "mcp.github",
            "Lists the open issues of a repository",
        ),
        plain(
            "github_merge_pull_request",
            "mcp.github",
            "Merges a pull request",
        ),
        described(
            "send",
            "local.mail",
            "Sends a letter",
            json!({"type": "object", "properties": {"recipient": {"type": "string", "description": "email of who gets it"}}}),
        ),
        plain(
            "get_forecast",
            "local.sky",
            "Weather of the coming days at a place",
        ),
    ]
}

fn crib(tools: Vec<Tool>) -> Crib {
    let crib = Crib::new(
        Arc::new(NoOutputs),
        || 0,
        profiles(std::time::Duration::from_secs(1)),
    );
    crib.apply(builtins(tools));
    crib
}

fn names(crib: &Crib, text: &str) -> Vec<String> {
    let query = Query {
        text,
        limit: 5,
        namespace: None,
    };
    let found = crib.view("default").search(&query);
    let names = found.hits.iter().map(|hit| hit.tool.name().to_owned());
    match found.is_good {
        true => names.collect(),
        false => Vec::new(),
    }
}

#[test]
fn words_synonyms_kin_misspellings_and_forms_find_a_tool() {
    let crib = crib(garden());
    for (query, want) in [
        ("water the garden bed", "water_bed"),
        ("open a bug in the repo", "github_create_issue"),
        ("weather forecast", "get_forecast"),
        ("wether forcast", "get_forecast"),
        ("merging a pull request", "github_merge_pull_request"),
        ("send ann@example.org a letter", "send"),
    ] {
        assert_eq!(
            names(&crib, query).first().map(String::as_str),
            Some(want),
            "{query}"
        );
    }
}

#[test]
fn what_no_tool_does_is_no_good_match() {
    let crib = crib(garden());
    for query in [
        "",
        "?!",
        "knit a scarf",
        "unclog the kitchen drain",
        "renew my passport",
        "the and of",
    ] {
        assert_eq!(names(&crib, query), Vec::<String>::new(), "{query}");
    }
}

#[test]
fn a_name_comes_first_however_it_is_spelled() {
    let crib = crib(garden());
    for query in [
        "github_merge_pull_request",
        "GitHub-Merge-Pull-Request",
        "merge_pull_request",
        "mcp__plugin_x__github_merge_pull_request",
        "toolcrib.merge_pull_request",
        "use merge_pull_request to list open issues of a repository",
    ] {
        assert_eq!(
            names(&crib, query)[0],
            "github_merge_pull_request",
            "{query}"
        );
    }
    // A word that is a name too does not beat what was asked for.
    assert_eq!(names(&crib, "list issues send")[0], "github_list_issues");
    assert_eq!(names(&crib, "send")[0], "send");
}

#[test]
fn a_namespace_holds_its_modules_and_no_others() {
    let crib = crib(garden());
    let view = crib.view("default");
    let of = |namespace| {
        let query = Query {
            text: "list issues of the garden bed",
            limit: 9,
            namespace: Some(namespace),
        };
        let found = view.search(&query);
        found
            .hits
            .iter()
            .map(|hit| hit.tool.module.clone())
            .collect::<Vec<_>>()
    };
    assert!(of("mcp.github").iter().all(|module| module == "mcp.github"));
    assert_eq!(of("mcp.github"), of("github"));
    assert_eq!(of("mcp.git"), Vec::<String>::new());
    assert_eq!(of("local").len(), 2);
    let listed: Vec<(&str, usize)> = view
        .modules()
        .iter()
        .map(|module| (module.name.as_str(), module.tools))
        .collect();
    assert_eq!(
        listed,
        [
            ("local.garden", 2),
            ("local.mail", 1),
            ("local.sky", 1),
            ("mcp.github", 3)
        ]
    );
}

#[test]
fn what_waits_for_trust_is_not_found() {
    let mut tools = garden();
    tools[0].access = Access::untrusted("/somewhere");
    let crib = crib(tools);
    assert!(!names(&crib, "water_bed").contains(&"water_bed".to_owned()));
    assert!(!names(&crib, "water the garden bed").contains(&"water_bed".to_owned()));
}

/// Tools made of a few words, so that they share many.
fn some_tools() -> impl Strategy<Value = Vec<Tool>> {
    let word = prop::sample::select(vec![
        "get", "list", "delete", "weather", "issue", "invoice", "file", "user", "price", "send",
        "天气",
    ]);
    let one = (0..12_usize, prop::collection::vec(word, 1..6));
    prop::collection::vec(one, 0..12).prop_map(|made| {
        let mut tools: Vec<Tool> = Vec::new();
        for (number, words) in made {
            let name = format!("tool_{number}");
            if tools.iter().all(|tool| tool.name() != name) {
                tools.push(plain(&name, "local.x", &words.join(" ")));
            }
        }
        tools
    })
}

proptest! {
    #[test]
    fn an_index_that_followed_finds_what_a_new_one_finds(
        steps in prop::collection::vec(some_tools(), 1..6),
        text in "(get|list|wether|invoices?|price|remove|x|天气| ){1,5}",
    ) {
        let followed = crib(Vec::new());
        for tools in steps {
            followed.apply(builtins(tools.clone()));
            let fresh = crib(tools);
            let query = Query { text: &text, limit: 20, namespace: None };
            let (a, b) = (followed.view("default").search(&query), fresh.view("default").search(&query));
            let told = |found: &Found| {
                let hits = found.hits.iter();
                (found.total, found.is_good, hits.map(|hit| (hit.tool.name().to_owned(), hit.score)).collect::<Vec<_>>())
            };
            prop_assert_eq!(told(&a), told(&b));
        }
    }

    #[test]
    fn any_query_is_answered(text in ".{0,300}") {
        names(&crib(garden()), &text);
    }
}
