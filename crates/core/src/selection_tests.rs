//! What patterns and namespaces match, and what they say about what they leave out.

use std::sync::Arc;

use super::*;
use crate::testing::{Nothing, tool};

fn made(name: &str, source: SourceKind, module: &str, tags: &[&str]) -> Tool {
    let mut made = tool(name, Arc::new(Nothing));
    made.source = source;
    made.module = module.to_owned();
    made.spec.tags = tags.iter().map(|&tag| tag.to_owned()).collect();
    made
}

/// One tool of every kind.
fn all() -> Vec<Tool> {
    use SourceKind::{Builtin, Executable, Plugin, Python, Registered};
    vec![
        made("file-reader", Builtin, "builtin", &[]),
        made("git-status", Builtin, "builtin", &["git"]),
        made("build", Python, "local.build", &["slow"]),
        made("build_all", Python, "local.build", &["slow", "web-ui"]),
        made("buildings", Python, "local.buildings", &["web"]),
        made("deploy", Executable, "global.deploy", &["web"]),
        made("water", Plugin, "plugin.garden", &[]),
        made("weather", Registered, "registered", &["web"]),
    ]
}

fn layer(tools: Option<&[&str]>, namespaces: &[&str]) -> SelectionLayer {
    let pattern = |text: &&str| text.parse().unwrap();
    SelectionLayer {
        said_by: SaidBy::User,
        tools: tools.map(|tools| tools.iter().map(pattern).collect()),
        namespaces: namespaces
            .iter()
            .map(|text| text.parse().unwrap())
            .collect(),
    }
}

fn seen(selection: &Selection) -> String {
    let all = all();
    let seen = all.iter().filter(|tool| selection.sees(tool));
    seen.map(Tool::name).collect::<Vec<_>>().join(" ")
}

fn by_tools(tools: &[&str]) -> String {
    seen(&Selection::default().within(layer(Some(tools), &[])))
}

fn by_namespaces(namespaces: &[&str]) -> String {
    seen(&Selection::default().within(layer(None, namespaces)))
}

#[test]
fn patterns_name_tools() {
    let every = "file-reader git-status build build_all buildings deploy water weather";
    assert_eq!(seen(&Selection::default()), every);
    assert_eq!(seen(&Selection::nothing()), "");
    let table: &[(&[&str], &str)] = &[
        (&[], ""),
        (&["*"], every),
        (&["build"], "build"),
        (&["Build"], ""),
        (&["build*"], "build build_all buildings"),
        (&["*build"], "build"),
        (&["?eploy", "w*r"], "deploy water weather"),
        (&["source:builtin"], "file-reader git-status"),
        (
            &["source:python", "deploy"],
            "build build_all buildings deploy",
        ),
        (&["tag:web"], "buildings deploy weather"),
        (&["tag:web*"], "build_all buildings deploy weather"),
        (&["local.build.build"], "build"),
        (&["local.build.*"], "build build_all"),
        (&["local.*"], "build build_all buildings"),
        (&["builtin.git-*"], "git-status"),
        (&["*.deploy"], "deploy"),
        (
            &["plugin.garden.water", "registered.weather"],
            "water weather",
        ),
        // A module of ours is meant as it is: another one has no such tool.
        (&["local.other.build"], ""),
        (&["local.file_reader"], ""),
        // Names of other systems are known by their last part, however it is joined.
        (&["server.app.tools.file_reader"], "file-reader"),
        (
            &["server.app.tools.build-all", "x.git_status"],
            "git-status build_all",
        ),
        (&["server.app.tools.execute_command"], ""),
        // Plain names are what they are.
        (&["file_reader"], ""),
        (&["-build*"], "file-reader git-status deploy water weather"),
        (
            &["*", "-tag:web", "-source:builtin"],
            "build build_all water",
        ),
        (
            &["-server.app.tools.file_reader", "source:builtin"],
            "git-status",
        ),
        (&["build*", "-build_all"], "build buildings"),
        // Whatever is named later.
        (&["-build", "build"], ""),
    ];
    for (patterns, expected) in table {
        assert_eq!(by_tools(patterns), *expected, "{patterns:?}");
    }
}

#[test]
fn namespaces_are_beginnings_of_modules_in_whole_words() {
    let table: &[(&[&str], &str)] = &[
        (&["local"], "build build_all buildings"),
        (&["local.build"], "build build_all"),
        (&["loc"], ""),
        (&["builtin", "registered"], "file-reader git-status weather"),
        (&["plugin"], "water"),
        (&["plugin.garden", "global"], "deploy water"),
        (&["plugin.gardens"], ""),
        // The last part of a dotted name is nothing to a namespace.
        (&["server.app.tools"], ""),
        (&["server.app.tools.file_reader", "custom.tools.build"], ""),
        (&["build"], ""),
    ];
    for (namespaces, expected) in table {
        assert_eq!(by_namespaces(namespaces), *expected, "{namespaces:?}");
    }
}

#[test]
fn every_layer_decides() {
    let user = layer(Some(&["build*", "git-*"]), &["local", "builtin"]);
    let own = SelectionLayer {
        said_by: SaidBy::Project,
        ..layer(Some(&["*", "-build_all"]), &["local"])
    };
    let both = Selection::default().within(user.clone()).within(own);
    assert_eq!(seen(&both), "build buildings");
    let said = |name: &str| {
        let tools = all();
        let tool = tools.iter().find(|tool| tool.name() == name).unwrap();
        both.hiding(tool).map(|hiding| hiding.to_string())
    };
    assert_eq!(said("build"), None);
    assert_eq!(said("file-reader").unwrap(), "`tools` does not name it");
    assert_eq!(
        said("deploy").unwrap(),
        "its module is in no trusted namespace"
    );
    assert_eq!(
        said("build_all").unwrap(),
        "`-build_all` leaves it out, says the project's file"
    );
    assert_eq!(
        said("git-status").unwrap(),
        "its module is in no trusted namespace, says the project's file"
    );
    // A layer that says nothing is none.
    let nothing_said = Selection::default().within(layer(None, &[]));
    assert!(nothing_said.is_everything() && !Selection::nothing().is_everything());
}

#[test]
fn what_can_be_no_pattern_is_refused_with_what_helps() {
    for (text, reason, hint) in [
        ("", "empty", "take it out"),
        ("-", "a name is missing", "write a tool's name"),
        ("two words", "holds ` `", "write a tool's name"),
        ("a/b", "holds `/`", "write a tool's name"),
        ("{a,b}", "holds `{`", "write a tool's name"),
        ("sources:builtin", "`sources:`", "did you mean `source`?"),
        (
            "source:bultin",
            "no source `bultin`",
            "did you mean `builtin`?",
        ),
        ("source:", "no source ``", "use one of"),
        ("tag:", "names no tag", "tag:web"),
        ("local.", "a name is missing", "write a tool's name"),
        ("server.app.tools.*", "no module of a tool here", "builtin"),
        ("a\nb", "no line", "shorten"),
    ] {
        let error = text.parse::<ToolPattern>().unwrap_err();
        assert!(error.reason.contains(reason), "{text}: {error:?}");
        assert!(error.hint.contains(hint), "{text}: {error:?}");
    }
    for text in ["", "local.*", "a..b", ".a", "a.", "-local", "source:x", "?"] {
        assert!(text.parse::<Namespace>().is_err(), "{text}");
    }
    assert!("x".repeat(201).parse::<ToolPattern>().is_err());
}

#[test]
fn a_glob_takes_no_long_time() {
    let glob = Glob::new(&"*a".repeat(90));
    let text = "a".repeat(64) + "b";
    let began = std::time::Instant::now();
    assert!(!glob.matches(&text));
    assert!(began.elapsed() < std::time::Duration::from_secs(1));
    assert!(Glob::new("**").matches("") && !Glob::new("?").matches(""));
    assert!(Glob::new("a*b*c").matches("a.b.b.c") && !Glob::new("a*b*c").matches("acb"));
}
