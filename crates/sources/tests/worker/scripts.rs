//! Python files as tools: what they may be, and everything that may be wrong with them.

use std::net::TcpListener;
use std::time::Duration;

use serde_json::json;
use toolcrib_core::{Access, ErrorCode, ErrorType, Severity};
use toolcrib_sources::script::Scan;
use toolcrib_sources::worker::Limits;

use crate::world::{World, limits};

const GREET: &str = r#"
from toolcrib import tool

@tool(read_only=True)
def greet(name: str, times: int = 1) -> str:
    """Greets somebody.

    Args:
        name: Who is greeted.
    """
    return " ".join([f"Hello {name}!"] * times)
"#;

fn world() -> World {
    World::scripts(|_| {})
}

/// A world with one file, opened.
async fn with(text: &str) -> World {
    let world = world();
    world.write("file.py", text);
    world.open().await;
    world
}

#[tokio::test]
async fn a_function_is_a_tool() {
    let world = with(GREET).await;
    assert_eq!(world.problems(), [""; 0]);
    let output = world
        .output("greet", json!({"name": "Ada", "times": 2}))
        .await;
    assert_eq!(output, "Hello Ada! Hello Ada!");
    let error = world.refused("greet", json!({"times": 2})).await;
    assert_eq!(error.code, ErrorCode::InvalidArguments);
    let view = world.crib.owners_view();
    let tool = view.get("greet").unwrap();
    assert_eq!(tool.spec.description, "Greets somebody.");
    assert_eq!(tool.module, "local.file");
    assert!(tool.interpreter.as_ref().unwrap().ends_with("python3"));
    assert_eq!(tool.spec.annotations.read_only_hint, Some(true));
    let schema = tool.spec.input_schema.value();
    assert_eq!(
        schema["properties"]["name"]["description"],
        "Who is greeted."
    );
    let litter = std::fs::read_dir(world.tools()).unwrap().count();
    assert_eq!(litter, 1, "nothing is written beside the file");
    world.end().await;
}

#[tokio::test]
async fn several_tools_share_one_worker() {
    let text = r#"
import os
from toolcrib import tool
@tool
def one() -> str:
    "Gives the process."
    return str(os.getpid())
@tool
def two() -> str:
    "Gives the process."
    return str(os.getpid())
"#;
    let world = with(text).await;
    assert_eq!(world.names(), ["one", "two"]);
    assert_eq!(
        world.output("one", json!({})).await,
        world.output("two", json!({})).await
    );
    world.end().await;
}

#[tokio::test]
async fn what_a_bad_file_is_told() {
    let cases = [
        (
            "def broken(:\n    pass\n# tool",
            "error SyntaxError file.py:1 ",
        ),
        (
            "# tool\nimport no_such_thing",
            "error ImportError file.py:2 ",
        ),
        (
            "# tool\n\nraise ValueError('what now')",
            "error ImportError file.py:3 ",
        ),
        (
            "# tool\nimport sys\nsys.exit(3)",
            "error ImportError file.py:3 ",
        ),
        (
            "# tool\nimport os\nos._exit(3)",
            "error ImportError file.py ",
        ),
    ];
    for (text, begins) in cases {
        let world = world();
        world.write("file.py", text);
        world.write("greet.py", GREET);
        world.open().await;
        let problems = world.problems();
        let errors: Vec<&String> = problems
            .iter()
            .filter(|one| one.starts_with("error"))
            .collect();
        assert_eq!(errors.len(), 1, "{text}: {problems:?}");
        assert!(errors[0].starts_with(begins), "{text}: {problems:?}");
        let view = world.crib.owners_view();
        assert!(view.problems().iter().all(|one| !one.hint.is_empty()));
        assert_eq!(world.names(), ["greet"], "its neighbour works");
        world.end().await;
    }
}

#[tokio::test]
async fn a_file_that_is_no_utf8_is_told_with_its_line() {
    let world = world();
    world.write("file.py", b"# tool\nx = '\xff'\n");
    world.open().await;
    let problem = world.problem();
    assert_eq!(problem.error_type, ErrorType::Syntax);
    assert!(problem.message.contains("UTF-8") && problem.message.contains("line 2"));
    world.end().await;
}

#[tokio::test]
async fn a_module_that_prints_breaks_nothing() {
    let text = r#"
import os, sys
from toolcrib import tool
print("at import")
os.system("echo from a child")
os.write(1, b"{\"jsonrpc\": \"2.0\", \"id\": 1, \"result\": \"forged\"}\n")
@tool
def talk() -> str:
    "Prints and answers."
    print("in a call"); sys.stdout.flush()
    return "answered"
"#;
    let world = with(text).await;
    assert_eq!(world.output("talk", json!({})).await, "answered");
    let said = world.said.text();
    for words in ["at import", "from a child", "in a call", "forged"] {
        assert!(said.contains(words), "{words} in {said}");
    }
    world.end().await;
}

/// A file that is never done with loading is given up after the deadline; what it waits for matters not.
#[tokio::test]
async fn a_file_that_never_loads_is_given_up() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let network =
        format!("# tool\nimport socket\nsocket.create_connection(('127.0.0.1', {port})).recv(1)");
    for text in ["# tool\nwhile True: pass", &network] {
        let world = World::with(Limits {
            handshake: Duration::from_secs(2),
            ..limits()
        });
        world.write("file.py", text);
        world.open().await;
        let errors = world.problems();
        let found = errors.iter().find(|one| one.starts_with("error")).unwrap();
        assert!(found.starts_with("error Timeout file.py"), "{errors:?}");
        world.nothing_runs().await;
        world.end().await;
    }
}

#[tokio::test]
async fn a_bad_tool_leaves_its_neighbours_alone() {
    let text = r#"
from toolcrib import tool
@tool
def bad(*rest):
    "Can't be called by name."
@tool
def odd(thing, count: int = "many") -> str:
    "Takes anything."
    return repr(thing)
@tool
def good() -> str:
    "Works."
    return "fine"
@tool(name="good")
def again() -> str:
    "Has a name that is taken."
    return "never"
"#;
    let world = with(text).await;
    assert_eq!(world.names(), ["good", "odd"]);
    assert_eq!(world.output("good", json!({})).await, "fine");
    assert_eq!(world.output("odd", json!({"thing": [1]})).await, "[1]");
    let view = world.crib.owners_view();
    let told = |name: &str, severity| {
        let mut problems = view.problems().iter();
        problems.any(|one| one.tool_name.as_deref() == Some(name) && one.severity == severity)
    };
    assert!(told("bad", Severity::Error), "{:?}", world.problems());
    assert!(told("odd", Severity::Warning), "{:?}", world.problems());
    assert!(told("good", Severity::Error), "{:?}", world.problems());
    world.end().await;
}

#[tokio::test]
async fn two_files_with_one_name_clash() {
    let world = world();
    world.write("a.py", GREET);
    world.write("b.py", GREET);
    world.open().await;
    assert_eq!(world.names(), ["greet"]);
    let problem = world.problem();
    assert_eq!(problem.error_type, ErrorType::NameClash);
    world.end().await;
}

#[tokio::test]
async fn a_thousand_parameters_are_a_schema() {
    let names: Vec<String> = (0..1_000).map(|n| format!("p{n}: int = {n}")).collect();
    let text = format!(
        "from toolcrib import tool\n@tool\ndef wide({}) -> str:\n    'Takes many.'\n    return str(p999)\n",
        names.join(", ")
    );
    let world = with(&text).await;
    assert_eq!(world.output("wide", json!({"p999": 7})).await, "7");
    assert_eq!(world.output("wide", json!({})).await, "999");
    world.end().await;
}

#[tokio::test]
async fn files_beside_a_script_are_imported() {
    let world = world();
    world.write("_words.py", "HELLO = 'Hello'\n");
    world.write("_deep/__init__.py", "from .inner import BANG\n");
    world.write("_deep/inner.py", "BANG = '!'\n");
    let text = r#"
from toolcrib import tool
from ._words import HELLO
import _deep
@tool
def say() -> str:
    "Says it."
    return HELLO + _deep.BANG
"#;
    world.write("say.py", text);
    world.open().await;
    assert_eq!(world.problems(), [""; 0]);
    assert_eq!(world.output("say", json!({})).await, "Hello!");
    // A change of what it imports is a change of it.
    world.write("_deep/inner.py", "BANG = '?'\n");
    world.until("say", json!({}), "Hello?").await;
    world.write("_words.py", "HELLO = 'Bye'\n");
    world.until("say", json!({}), "Bye?").await;
    world.end().await;
}

#[tokio::test]
async fn a_folder_may_be_a_script() {
    let world = world();
    let text = r#"
import os
from toolcrib import tool
@tool
def where() -> str:
    "Says where it runs."
    return os.getcwd()
"#;
    world.write("mine/tool.py", text);
    world.open().await;
    let here = world.tools().join("mine");
    assert_eq!(
        world.output("where", json!({})).await,
        here.to_str().unwrap()
    );
    world.end().await;
}

#[tokio::test]
async fn an_untrusted_file_is_only_read() {
    let world = world();
    let mark = world.sign("ran");
    let text = format!("open({mark:?}, 'w')\n{GREET}");
    world.write("file.py", text);
    world.write("bad.py", "def x(:");
    let access = Access::untrusted(world.root.join("project"));
    world.open_as(access, &[]).await;
    let view = world.crib.owners_view();
    let tool = view.get("greet").unwrap();
    assert_eq!(tool.status().as_str(), "untrusted");
    assert_eq!(tool.spec.description, "Greets somebody.");
    assert!(
        world
            .problems()
            .iter()
            .any(|one| one.starts_with("error SyntaxError bad.py:1"))
    );
    let error = world.refused("greet", json!({})).await;
    assert_eq!(error.code, ErrorCode::Denied);
    assert!(!mark.exists() && world.processes().is_empty());
    world.end().await;
}

#[tokio::test]
async fn the_scan_warns_or_refuses() {
    let text = format!("import os, subprocess\n{GREET}\ndef run(): subprocess.run(['ls'])\n");
    let world = with(&text).await;
    let problems = world.problems();
    // Nothing holds the tools of this world, so nothing is a mere note.
    let all = |problem: &String| problem.starts_with("warning SecurityError file.py:");
    assert!(
        problems.len() == 3 && problems.iter().all(all),
        "{problems:?}"
    );
    assert_eq!(
        world.output("greet", json!({"name": "Ada"})).await,
        "Hello Ada!"
    );
    world.end().await;

    let world = World::scripts(|settings| settings.scan = Scan::Strict);
    world.write("file.py", GREET);
    world.write("_evil.py", "import subprocess\n");
    world.open().await;
    assert_eq!(world.names(), ["greet"]);
    // A good version does not stand in for what a strict scan refuses.
    world.write("file.py", format!("from . import _evil\n{GREET}"));
    world.reload().await;
    let problems = world.problems();
    assert!(
        problems[0].starts_with("error SecurityError _evil.py:1 "),
        "{problems:?}"
    );
    assert_eq!(world.names(), [""; 0]);
    world.end().await;
}

#[tokio::test]
async fn a_failure_has_the_words_and_the_place() {
    let text = r#"
from toolcrib import tool
def inner(path):
    return open(path).read()
@tool
def fail(path: str) -> str:
    "Reads a file."
    return inner(path)
"#;
    let world = with(text).await;
    let outcome = world
        .call("fail", json!({"path": "/no/such/file"}))
        .await
        .unwrap();
    assert!(
        outcome.is_error && outcome.output.contains("No such file"),
        "{outcome:?}"
    );
    let metadata = serde_json::to_value(&outcome.metadata).unwrap();
    let metadata = &metadata["data"];
    let trace = metadata["traceback"].as_str().unwrap();
    assert!(
        trace.contains("file.py") && trace.contains("line 4"),
        "{trace}"
    );
    assert!(!trace.contains("toolcrib_host"), "{trace}");
    assert_eq!(metadata["errno"], "ENOENT");
    assert_eq!(metadata["path"], "/no/such/file");
    world.end().await;
}

#[tokio::test]
async fn an_interpreter_that_is_not_there_is_told() {
    let world = World::scripts(|settings| settings.python = Some("python-of-nowhere".to_owned()));
    world.write("file.py", GREET);
    world.open().await;
    let problem = world.problem();
    assert!(problem.message.contains("python-of-nowhere"), "{problem:?}");
    assert!(problem.hint.to_string().contains("Python 3.9"));
    world.end().await;
}

#[tokio::test]
async fn a_file_without_tools_is_only_noted() {
    let world = with("def f(): return 1\n").await;
    let note = |file: &str| {
        format!(
            "note ValidationError {file} it has no tool: none of its functions is marked with `@tool`"
        )
    };
    assert_eq!(world.problems(), [note("file.py")]);
    assert_eq!(
        world.events(),
        [""; 0],
        "and no process was needed to see it"
    );
    world.write("other.py", "# here is no tool\nx = 1\n");
    world.reload().await;
    assert_eq!(world.names(), [""; 0]);
    assert_eq!(world.problems(), [note("file.py"), note("other.py")]);
    world.end().await;
}
