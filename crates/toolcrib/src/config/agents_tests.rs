//! What sections of agents mean, what is refused in them, and that a project's file widens nothing.

use std::sync::Arc;

use toolcrib_core::{
    Access, BoxFuture, Call, CallResult, Outcome, Run, Schema, SourceKind, Spec, Tool, ToolName,
};

use super::*;
use crate::config::file;

struct Nothing;

impl Run for Nothing {
    fn run<'a>(&'a self, _: &'a Call) -> BoxFuture<'a, CallResult> {
        Box::pin(async { Ok(Outcome::text("")) })
    }
}

fn tool(name: &str, module: &str) -> Tool {
    let spec = Spec::new(ToolName::new(name).unwrap(), "", Schema::any_object());
    let mut tool = Tool::new(
        spec,
        SourceKind::Python,
        Access::Open,
        "h",
        Arc::new(Nothing),
    );
    tool.module = module.to_owned();
    tool
}

fn read(text: &str) -> Result<ConfigFile, ConfigError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.toml");
    std::fs::write(&path, text).unwrap();
    file::read(&path)
}

fn resolved(user: &str, own: &str) -> Result<Vec<AgentSettings>, ConfigError> {
    let own = read(own).unwrap();
    agents(
        &read(user).unwrap(),
        &own,
        Some(Path::new("/p/config.toml")),
    )
}

/// What this agent sees of a few tools, and how many links its chain has.
fn seen(settings: &[AgentSettings], name: &str) -> (String, usize) {
    let one = settings.iter().find(|one| one.name == name).unwrap();
    let tools = [
        tool("build", "local.build"),
        tool("deploy", "local.deploy"),
        tool("notes", "global.notes"),
    ];
    let seen = tools.iter().filter(|tool| one.sees.sees(tool));
    let seen: Vec<&str> = seen.map(Tool::name).collect();
    (seen.join(" "), one.middleware.len())
}

const PII: &str = "{ name = \"pii\", pii_types = [\"email\"] }";

#[test]
fn the_default_agent_is_always_there_and_first() {
    let all = resolved("", "").unwrap();
    assert_eq!(all.len(), 1);
    assert_eq!((&*all[0].name, all[0].mode), ("default", Mode::Primary));
    assert!(all[0].sees.is_everything() && all[0].middleware.is_empty());
    let text = format!(
        "[agents.a]\ntools = [\"build\"]\n[agents.default]\ntools = [\"notes\"]\nmiddleware = [{PII}]\n\
         [agents.inner]\nmode = \"subagent\"\n"
    );
    let all = resolved(&text, "").unwrap();
    let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["default", "a", "inner"]);
    assert_eq!(seen(&all, "default"), ("notes".to_owned(), 1));
    assert_eq!(seen(&all, "a"), ("build".to_owned(), 0));
    assert_eq!(all[2].mode, Mode::Subagent);
}

#[test]
fn namespaces_hold_for_all_agents_or_for_one() {
    let all = resolved(
        "trusted_tool_namespaces = [\"local\"]\n[agents.a]\ntrusted_tool_namespaces = [\"local.build\", \"global\"]\n",
        "",
    )
    .unwrap();
    assert_eq!(seen(&all, "default").0, "build deploy");
    assert_eq!(seen(&all, "a").0, "build");
}

#[test]
fn a_project_narrows_and_adds() {
    let user = format!("[agents.a]\ntools = [\"build\", \"deploy\"]\nmiddleware = [{PII}]\n");
    let own = format!(
        "trusted_tool_namespaces = [\"local\"]\n[agents.a]\ntools = [\"*\", \"-deploy\"]\nmiddleware = [{PII}]\n\
         mode = \"subagent\"\n[agents.default]\ntools = [\"notes\", \"deploy\"]\n"
    );
    let all = resolved(&user, &own).unwrap();
    assert_eq!(seen(&all, "a"), ("build".to_owned(), 2));
    assert_eq!(seen(&all, "default"), ("deploy".to_owned(), 0));
    assert_eq!(all[1].mode, Mode::Subagent);
    // It can name what it likes: nothing that the user left out comes back.
    let all = resolved(&user, "[agents.a]\ntools = [\"notes\", \"*\"]\n").unwrap();
    assert_eq!(seen(&all, "a"), ("build deploy".to_owned(), 1));
    let all = resolved(&user, "[agents.a]\nmiddleware = []\n").unwrap();
    assert_eq!(seen(&all, "a").1, 1);
}

#[test]
fn a_project_makes_no_agent() {
    let error = resolved("[agents.reviewer]\n", "[agents.reviwer]\ntools = [\"*\"]\n").unwrap_err();
    assert!(error.place.contains("/p/config.toml"), "{error:?}");
    assert_eq!(error.hint, "did you mean `reviewer`?");
    let error = resolved("", "[agents.other]\n").unwrap_err();
    assert!(error.hint.contains("makes none"), "{error:?}");
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    for (text, line, reason, hint) in [
        (
            "port = 1\n[agents.a]\ntools = [\n  \"build\",\n  \"sources:x\",\n]\n",
            5,
            "`sources:` is no kind of pattern",
            "did you mean `source`?",
        ),
        (
            "[agents.a]\n\nmiddleware = [\n  { name = \"pii\", pii_types = [\"email\"] },\n  { name = \"pi\" },\n]\n",
            5,
            "there is no middleware `pi`",
            "did you mean `pii`?",
        ),
        (
            "[[agents.a.middleware]]\nname = \"pii\"\npii_types = [\"email\"]\n\n[[agents.a.middleware]]\nname = \"pii\"\n\
             pii_types = [\"email\"]\nstrateg = \"mask\"\n",
            5,
            "unknown field `strateg`",
            "did you mean `strategy`?",
        ),
        (
            "[agents.a]\nmiddleware = [{ pii_types = [\"email\"] }]\n",
            2,
            "missing field `name`",
            "",
        ),
        (
            "trusted_tool_namespaces = [\"local.*\"]\n",
            1,
            "`local.*` is no namespace",
            "whole words",
        ),
        (
            "[agents.a]\ntool = [\"build\"]\n",
            2,
            "unknown key `tool`",
            "did you mean `tools`?",
        ),
        (
            "[agents.a]\nmode = \"main\"\n",
            2,
            "unknown variant `main`",
            "",
        ),
    ] {
        let error = read(text).unwrap_err();
        let place = format!("line {line}");
        assert!(error.place.ends_with(&place), "{text}: {error:?}");
        assert!(error.reason.contains(reason), "{text}: {error:?}");
        assert!(error.hint.contains(hint), "{text}: {error:?}");
    }
    for text in [
        "[agents.\"a b\"]\n",
        "[agents.\"\"]\n",
        "[agents.default]\nmode = \"subagent\"\n",
    ] {
        assert!(read(text).is_err(), "{text}");
    }
}
