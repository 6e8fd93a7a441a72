//! What the text of Python files tells: tools, imports, requirements, errors; and that no text harms the reader.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

use toolcrib_scan::python::{self, PythonReading};
use toolcrib_scan::{Cause, Position, SyntaxError};

fn read(text: &str) -> PythonReading {
    python::read(text).unwrap()
}

/// Name, description and line of every tool.
fn tools(text: &str) -> Vec<(String, Option<String>, u32)> {
    let tools = read(text).tools.into_iter();
    tools
        .map(|tool| (tool.name, tool.description, tool.at.line))
        .collect()
}

fn names(text: &str) -> Vec<String> {
    tools(text).into_iter().map(|(name, ..)| name).collect()
}

#[test]
fn a_tool_has_its_functions_name_and_first_paragraph() {
    let text = "from toolcrib import tool\n\n@tool\ndef greet(name: str) -> str:\n    \"\"\"Greets\n       somebody.\n\n    Args:\n        name: who\n    \"\"\"\n";
    assert_eq!(
        tools(text),
        [("greet".to_owned(), Some("Greets somebody.".to_owned()), 4)]
    );
}

#[test]
fn the_decorators_words_come_first() {
    let text = r#"
from toolcrib import tool as t
import toolcrib as tc
import toolcrib

@t(name="one", description="First " + "one")
async def a(): "ignored"

@tc.tool("two", description=f"{1}")
def b():
    "Second"

@toolcrib.tool(description="a" "b")
@staticmethod
def c(): pass
"#;
    let expected = [
        ("one".to_owned(), Some("First one".to_owned()), 7),
        ("two".to_owned(), Some("Second".to_owned()), 10),
        ("c".to_owned(), Some("ab".to_owned()), 15),
    ];
    assert_eq!(tools(text), expected);
}

#[test]
fn langchains_tools_are_tools() {
    for head in [
        "from langchain_core.tools import tool",
        "from langchain.tools import tool",
        "from langchain_core import tools\ntool = tools.tool",
        "from toolcrib import *",
        "try:\n    from langchain_core.tools import tool\nexcept ImportError:\n    from toolcrib import tool",
    ] {
        let text = format!("{head}\n@tool('x', return_direct=True)\ndef a(): pass\n");
        assert_eq!(names(&text), ["x"], "{head}");
    }
}

#[test]
fn tools_in_branches_of_the_module_count_and_nested_ones_do_not() {
    let text = r#"
from toolcrib import tool
if True:
    @tool
    def a(): pass
else:
    try:
        @tool
        def b(): pass
    finally:
        pass
with open("x") as f:
    @tool
    def c(): pass
def outer():
    @tool
    def inner(): pass
class K:
    @tool
    def method(self): pass
"#;
    assert_eq!(names(text), ["a", "b", "c"]);
}

#[test]
fn other_decorators_make_no_tool() {
    let text = "from other import tool\n@tool\ndef a(): pass\n@x.tool\ndef b(): pass\ndef tool(f): return f\n@tool\ndef c(): pass\n";
    assert_eq!(names(text), [""; 0]);
}

#[test]
fn every_import_is_listed() {
    let text = "import a.b, c as d\nfrom . import e\ndef f():\n    from ..g.h import i as j, k\n    try:\n        from l import *\n    except E: pass\n";
    let imports: Vec<_> = read(text)
        .imports
        .into_iter()
        .map(|one| (one.level, one.module, one.names.join(","), one.at.line))
        .collect();
    let one =
        |level, module: &str, names: &str, line| (level, module.to_owned(), names.to_owned(), line);
    let expected = [
        one(0, "a.b", "", 1),
        one(0, "c", "", 1),
        one(1, "", "e", 2),
        one(2, "g.h", "i,k", 4),
        one(0, "l", "*", 6),
    ];
    assert_eq!(imports, expected);
}

#[test]
fn requirements_are_read() {
    let text = "#!/usr/bin/env python\n# /// script\n# requires-python = \">=3.11\"\n# dependencies = [\n#   \"httpx<1\",\n#\n#   \"rich\",\n# ]\n# ///\nimport httpx\n";
    let metadata = read(text).requirements.unwrap().unwrap();
    assert_eq!(metadata.dependencies, ["httpx<1", "rich"]);
    assert_eq!(metadata.requires_python.as_deref(), Some(">=3.11"));
    let windows = text.replace('\n', "\r\n");
    assert_eq!(read(&windows).requirements, read(text).requirements);
}

#[test]
fn requirements_that_are_wrong_are_told_apart() {
    assert_eq!(read("x = 1\n").requirements, None);
    assert_eq!(
        read("# /// script\n# dependencies = []\n").requirements,
        None
    );
    for (text, line, word) in [
        ("# /// script\n# dependencies = [\n# ///\n", 1, "TOML"),
        (
            "\n# /// script\n# dependencies = \"x\"\n# ///\n",
            2,
            "list of strings",
        ),
        (
            "# /// script\n# dependencies = [1]\n# ///\n",
            1,
            "list of strings",
        ),
        (
            "# /// script\n# requires-python = 3\n# ///\n",
            1,
            "requires-python",
        ),
        ("# /// script\n# ///\n\n# /// script\n# ///\n", 4, "two"),
    ] {
        let error = read(text).requirements.unwrap().unwrap_err();
        assert_eq!(error.at.line, line, "{text}");
        assert!(error.message.contains(word), "{}", error.message);
    }
}

#[test]
fn an_error_has_its_place() {
    let error = python::read("x = 1\ndef f(:\n    pass\n").unwrap_err();
    assert_eq!(error.at, Position { line: 2, column: 7 });
    assert!(!error.message.is_empty());
    assert!(python::read("print 'x'").is_err());
    assert!(python::read("\0").is_err());
}

#[test]
fn a_column_counts_characters() {
    let found = read("\u{feff}größe = 1; eval('x')\r\n  \r\n").findings;
    assert_eq!(found.len(), 1);
    assert_eq!(
        found[0].at,
        Position {
            line: 1,
            column: 12
        }
    );
    assert_eq!(found[0].rule, "banned-call");
    assert_eq!(found[0].message, "uses `eval`");
}

#[test]
fn findings_are_bounded() {
    let text = "eval(1)\n".repeat(250);
    let found = read(&text).findings;
    assert_eq!(found.len(), 101);
    assert_eq!(found[100].message, "150 more places like these");
    assert_eq!(found[100].at.line, 101);
}

#[test]
fn an_empty_file_tells_nothing() {
    let nothing = read("");
    assert!(nothing.tools.is_empty() && nothing.findings.is_empty() && nothing.imports.is_empty());
}

/// Texts that nest or chain without end.
fn hostile() -> Vec<(&'static str, String)> {
    let many = |part: &str| part.repeat(100_000);
    let some = |part: &str| part.repeat(20_000);
    vec![
        ("round brackets", format!("x = {}1{}", many("("), many(")"))),
        ("open brackets", many("[")),
        ("braces", many("{")),
        ("square brackets, some closed in strings", some("[')',")),
        (
            "brackets hidden by strings",
            format!("x = {}1", some("['))'+(")),
        ),
        ("unary", format!("x = {}1", some("-"))),
        ("not", format!("x = {}1", some("not "))),
        ("sum", format!("x = 1{}", some("+1"))),
        ("strings", format!("x = 'a'{}", some("+'a'"))),
        ("power", format!("x = 1{}", some("**1"))),
        ("attributes", format!("import os\nx = os{}", some(".a"))),
        ("calls", format!("x = f{}", some("()"))),
        ("subscripts", format!("x = f{}", some("[0]"))),
        ("lambda", format!("x = {}1", some("lambda: "))),
        ("lambda with two", format!("x = {}1", some("lambda a, b: "))),
        ("conditions", format!("x = {}1", some("1 if 1 else "))),
        ("await", format!("async def f():\n  {}1", some("await "))),
        ("assignments", format!("{}1", some("x = "))),
        ("elif", format!("if 1: pass\n{}", some("elif 1: pass\n"))),
        ("decorators", format!("{}def f(): pass", some("@f\n"))),
        ("f-strings", format!("x = {}", some("f'{"))),
        ("comparisons", format!("x = 1{}", some("<1"))),
        ("one line", some("import a; ")),
        (
            "indented",
            (0..2_000)
                .map(|n| format!("{}if 1:\n", " ".repeat(n)))
                .collect(),
        ),
        (
            "comprehensions",
            format!(
                "x = {}1{}",
                "[".repeat(300),
                " for a in 'abcdefghij']".repeat(300)
            ),
        ),
        (
            "long string used often",
            format!("x = '{}'\n{}", many("a"), some("x.lower()\n")),
        ),
        (
            "list used often",
            format!("x = [{}]\n{}", "'a',".repeat(256), some("''.join(x)\n")),
        ),
        ("nul", many("\0")),
    ]
}

#[test]
fn no_text_harms_the_reader() {
    for (what, text) in hostile() {
        let start = std::time::Instant::now();
        let read = python::read(&text);
        let took = start.elapsed();
        assert!(took.as_secs() < 60, "{what} took {took:?}");
        if let Err(SyntaxError { message, .. }) = read {
            assert!(!message.contains("parser failed"), "{what}: {message}");
        }
    }
}

#[test]
fn deep_brackets_are_refused() {
    let text = format!("x = {}1{}", "(".repeat(100_000), ")".repeat(100_000));
    let error = python::read(&text).unwrap_err();
    assert_eq!(error.cause, Cause::Budget);
    assert!(error.message.contains("more than 200 deep"), "{error}");
    let text = format!(
        "x = 1\ny = 2\nz = {}1{}\n",
        "(".repeat(300),
        ")".repeat(300)
    );
    let error = python::read(&text).unwrap_err();
    assert_eq!(error.at, Position { line: 3, column: 1 });
}

#[test]
fn a_file_that_is_too_large_is_refused() {
    let error = python::read(&"x = 1\n".repeat(1 << 20)).unwrap_err();
    let expected = "the file has 6291456 bytes, and 1048576 are the most that is read; split it";
    assert_eq!(
        (error.cause, error.message.as_str()),
        (Cause::Budget, expected)
    );
}
