//! MCP's own conformance suite, over HTTP, against the product's server with the tools that the suite calls
//! (`examples/conformance.rs`). Every scenario the suite knows is either run or left out for a reason.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::tidy::root;

const RUN: &[&str] = &[
    "caching",
    "completion-complete",
    "dns-rebinding-protection",
    "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums",
    "http-custom-header-server-validation",
    "http-header-validation",
    "input-required-result-unsupported-methods",
    "json-schema-2020-12",
    "ping",
    "resources-list",
    "sep-2164-resource-not-found",
    "server-initialize",
    "server-session-lifecycle",
    "server-sse-multiple-streams",
    "server-stateless",
    "tools-call-audio",
    "tools-call-elicitation",
    "tools-call-embedded-resource",
    "tools-call-error",
    "tools-call-image",
    "tools-call-mixed-content",
    "tools-call-sampling",
    "tools-call-simple-text",
    "tools-call-with-progress",
    "tools-list",
];

/// The beginnings of the names of what isn't run, and why.
const LEFT_OUT: &[(&str, &str)] = &[
    ("input-required-result-basic-", ASKS),
    ("input-required-result-capability-check", ASKS),
    ("input-required-result-ignore-extra-params", ASKS),
    ("input-required-result-missing-input-response", ASKS),
    ("input-required-result-multi", ASKS),
    ("input-required-result-non-tool-request", PROMPTS),
    ("input-required-result-request-state", ASKS),
    ("input-required-result-result-type", ASKS),
    ("input-required-result-tampered-state", ASKS),
    ("input-required-result-validate-input", ASKS),
    ("logging-set-level", LOGS),
    ("prompts-", PROMPTS),
    ("resources-read-", RESOURCES),
    ("resources-subscribe", RESOURCES),
    ("resources-templates-read", RESOURCES),
    ("resources-unsubscribe", RESOURCES),
    ("sep-2640-skills-", "skills are an extension, not offered"),
    ("server-sse-polling", RETRIES),
    ("tasks-", "tasks are an extension, not offered"),
    ("tools-call-with-logging", LOGS),
];

const ASKS: &str =
    "in 2026-07-28 no call ends with a question: no elicitation, no sampling, no roots";
const LOGS: &str = "nothing is logged to clients";
const PROMPTS: &str = "a crib has tools, not prompts";
const RETRIES: &str = "the empty first event it wants makes clients of 2025-06-18 drop the server";
const RESOURCES: &str = "the only resources are kept outputs, none of them `test://`";

/// Single checks of scenarios that are run: what is expected to be unmet, and nothing else may be.
const UNMET: &[(&str, &str)] = &[
    // It wants the lists of all kinds, though another scenario forbids to answer what was not declared.
    ("caching", "sep-2549-prompts-list-caching-hints"),
    // A tool would have to need something of its client, and none does.
    (
        "server-stateless",
        "sep-2575-server-rejects-undeclared-capability",
    ),
    ("server-stateless", "sep-2575-missing-capability-http-400"),
];

/// The checks of a scenario that were not met, with what the suite says.
fn unmet(checks: &[Value]) -> BTreeMap<&str, &Value> {
    let bad = |check: &&Value| ["FAILURE", "WARNING"].contains(&check["status"].as_str().unwrap());
    let bad = checks.iter().filter(bad);
    bad.map(|check| (check["id"].as_str().unwrap(), &check["errorMessage"]))
        .collect()
}

/// The suite as it was installed. It is never skipped: without it nothing is known.
struct Suite {
    folder: PathBuf,
    results: TempDir,
}

impl Suite {
    fn installed() -> Suite {
        let folder = root().join("target/test-tools/conformance");
        assert!(
            folder.join("installed").is_file(),
            "the conformance suite is not installed: run `make test`"
        );
        Suite {
            folder,
            results: tempfile::tempdir().unwrap(),
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "tests start clients of the product by hand"
    )]
    fn run(&self, arguments: &[&str]) -> Output {
        let mut path = self
            .folder
            .join("node/node_modules/node/bin")
            .into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        Command::new(self.folder.join("suite/node_modules/.bin/conformance"))
            .args(arguments)
            .current_dir(&self.results)
            .env_clear()
            .env("HOME", self.results.path())
            .env("PATH", path)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// All the server scenarios and the revisions each is for.
    fn scenarios(&self) -> Vec<(String, String)> {
        let output = self.run(&["list", "--server"]);
        let text = String::from_utf8(output.stdout).unwrap();
        let split = |line: &str| {
            let (name, revisions) = line.strip_prefix("  - ")?.split_once(' ')?;
            Some((name.to_owned(), revisions.to_owned()))
        };
        let scenarios: Vec<_> = text.lines().filter_map(split).collect();
        assert!(scenarios.len() > 50, "the suite's list has changed: {text}");
        scenarios
    }

    /// What the suite found in one scenario.
    fn checks(&self, server: &Server, scenario: &str, revision: &str) -> Vec<Value> {
        let url = format!("http://127.0.0.1:{}/mcp", server.port);
        let options = ["--scenario", scenario, "--spec-version", revision];
        let arguments = ["server", "--url", &url, "-o", scenario];
        let output = self.run(&[&arguments[..], &options].concat());
        let found = checks_file(&self.results.path().join(scenario));
        let Some(text) = found.and_then(|file| std::fs::read(file).ok()) else {
            panic!("{scenario} {revision} left no checks: {output:?}");
        };
        serde_json::from_slice(&text).unwrap()
    }
}

/// The one `checks.json` under this folder, whose own folder is named after the time.
fn checks_file(folder: &Path) -> Option<PathBuf> {
    let run = std::fs::read_dir(folder).ok()?.next()?.ok()?;
    Some(run.path().join("checks.json"))
}

/// `examples/conformance.rs`, until dropped.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests start the product itself, by hand"
    )]
    fn start(arguments: &[&str]) -> Server {
        let binary = Path::new(env!("CARGO_BIN_EXE_toolcrib"));
        let example = binary.with_file_name("examples").join("conformance");
        assert!(
            example.is_file(),
            "the example `conformance` is not built: run `make test`"
        );
        let mut child = Command::new(example)
            .args(arguments)
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let port = line.trim().parse().unwrap();
        Server { child, port }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Two scenarios take any answer for a pass, even that there is no such tool. So the text is looked at.
fn assert_text(scenario: &str, checks: &[Value]) {
    let (text, is_error) = match scenario {
        "tools-call-simple-text" => ("This is a simple text response for testing.", false),
        "tools-call-error" => ("This tool fails, always.", true),
        _ => return,
    };
    let result = &checks[0]["details"]["result"];
    assert_eq!(result["content"][0]["text"], text, "{scenario}");
    let said = result["isError"].as_bool().unwrap_or_default();
    assert_eq!(said, is_error, "{scenario}");
}

fn conforms(revision: &str) {
    let suite = Suite::installed();
    let server = Server::start(&[]);
    let mut failures = Vec::new();
    for (scenario, revisions) in suite.scenarios() {
        if !revisions.contains(revision) || !RUN.contains(&scenario.as_str()) {
            continue;
        }
        let checks = suite.checks(&server, &scenario, revision);
        let expected = UNMET.iter().filter(|(of, _)| *of == scenario);
        let expected: BTreeSet<_> = expected.map(|(_, check)| *check).collect();
        let unmet = unmet(&checks);
        if !unmet.keys().eq(&expected) {
            failures.push(format!("{scenario}: {unmet:#?}, not {expected:?}"));
        }
        assert_text(&scenario, &checks);
    }
    assert!(failures.is_empty(), "{revision}: {}", failures.join("\n"));
}

#[test]
fn revision_2025_06_18() {
    conforms("2025-06-18");
}

#[test]
fn revision_2025_11_25() {
    conforms("2025-11-25");
}

#[test]
fn revision_2026_07_28() {
    conforms("2026-07-28");
}

/// The tool of one scenario gives data of this type, and the suite looks whether what is listed and what is answered are
/// of the revision's own form.
#[test]
fn data_of_every_type_conforms() {
    let suite = Suite::installed();
    let mut failures = Vec::new();
    for shape in [
        "int",
        "list",
        "null",
        "string",
        "bool",
        "nested",
        "large",
        "undeclared",
    ] {
        let server = Server::start(&[shape]);
        for revision in ["2025-06-18", "2026-07-28"] {
            for scenario in ["tools-call-simple-text", "tools-list"] {
                let checks = suite.checks(&server, scenario, revision);
                let result = &checks[0]["details"]["result"];
                let failed = result["isError"].as_bool().unwrap_or_default();
                let unmet = unmet(&checks);
                if failed || !unmet.is_empty() {
                    failures.push(format!(
                        "{shape} {revision} {scenario}: {unmet:#?} {result}"
                    ));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn every_scenario_is_run_or_left_out_for_a_reason() {
    let scenarios = Suite::installed().scenarios();
    for (name, _) in &scenarios {
        let left_out = LEFT_OUT.iter().any(|(start, _)| name.starts_with(start));
        let run = RUN.contains(&name.as_str());
        assert!(
            run != left_out,
            "{name} must be in exactly one of the two lists"
        );
    }
    let known = |start: &str| scenarios.iter().any(|(name, _)| name.starts_with(start));
    for start in RUN.iter().chain(LEFT_OUT.iter().map(|(start, _)| start)) {
        assert!(known(start), "the suite has no scenario {start}");
    }
}
