//! No text costs more than the budget: what would take a parser or the walk long is refused with a word, at the size at
//! which it would cost most.

use std::time::{Duration, Instant};

use toolcrib_scan::script::{self, Dialect};
use toolcrib_scan::{BUDGET, Cause, SyntaxError, python};

/// A debug build on a busy machine is slow; what the budget keeps away takes minutes there.
const LONG: Duration = Duration::from_secs(20);

/// A text of about this many bytes.
fn filled(before: &str, unit: &str, after: &str, bytes: usize) -> String {
    let times = (bytes - before.len() - after.len()) / unit.len();
    format!("{before}{}{after}", unit.repeat(times))
}

/// A text that counts on.
fn numbered(before: &str, unit: &str, after: &str, bytes: usize) -> String {
    let mut text = before.to_owned();
    let mut number = 0;
    while text.len() < bytes {
        text.push_str(&unit.replace('#', &number.to_string()));
        number += 1;
    }
    text + after
}

fn check<T>(what: &str, read: impl FnOnce() -> Result<T, SyntaxError>) -> Option<SyntaxError> {
    let begun = Instant::now();
    let error = read().err();
    let took = begun.elapsed();
    assert!(took < LONG, "{what} took {took:?}");
    error
}

/// It must be refused as too much.
fn refuse<T>(what: &str, read: impl FnOnce() -> Result<T, SyntaxError>) {
    let error = check(what, read).unwrap_or_else(|| panic!("{what} was read"));
    assert_eq!(error.cause, Cause::Budget, "{what}: {error}");
}

const FULL: usize = BUDGET.bytes - 100;

#[test]
fn python_that_would_cost_too_much_is_refused() {
    let long = "a".repeat(4_000);
    for (what, text) in [
        ("parts", filled("import a", ".a", "", FULL)),
        ("parts of from", filled("from a", ".a", " import b", FULL)),
        ("ten thousand parts", filled("import a", ".a", "", 20_000)),
        ("names", filled("from a import b", ",b", "", FULL)),
        ("imports", filled("", "import a\n", "", FULL)),
        ("signs", filled("x=", "-", "1", FULL)),
        ("sum", filled("x=1", "+1", "", FULL)),
        ("attributes", filled("x=a", ".a", "", FULL)),
        ("lambda", filled("x=", "lambda a, b: ", "1", FULL)),
        ("f-strings", filled("x=", "f'{", "", FULL)),
        (
            "tools",
            filled(
                "from toolcrib import tool\n",
                "@tool\ndef f(): pass\n",
                "",
                FULL,
            ),
        ),
        (
            "lists",
            numbered(&format!("x='{long}'\n"), "y#=list(x);", "", 500_000),
        ),
        (
            "parts of strings",
            numbered(&format!("x='{long}'\n"), "y#=x.split('a');", "", 500_000),
        ),
        (
            "joins",
            filled(&format!("x='{long}'\n"), "x.join(x);", "", 500_000),
        ),
        ("dense", filled("x=[", "1,", "]", FULL)),
        (
            "scopes",
            (0..100)
                .map(|depth| format!("{}def f():\n", " ".repeat(depth)))
                .chain([filled(&" ".repeat(100), "name;", "", 500_000)])
                .collect(),
        ),
        (
            "blocks",
            (0..120)
                .map(|depth| format!("{}if 1:\n", " ".repeat(depth)))
                .collect(),
        ),
    ] {
        refuse(what, || python::read(&text));
    }
    let block = filled(
        "# /// script\n# dependencies = [",
        "'a',",
        "]\n# ///\n",
        FULL,
    );
    let reading = python::read(&block).unwrap();
    let error = reading.requirements.unwrap().unwrap_err();
    assert!(error.message.contains("65536 are the most"), "{error}");
}

#[test]
fn scripts_that_would_cost_too_much_are_refused() {
    let long = "a".repeat(4_000);
    for (what, text) in [
        ("namespace", filled("namespace a", ".a", "{}", FULL)),
        (
            "ten thousand of a namespace",
            filled("namespace a", ".a", "{}", 20_000),
        ),
        ("with", filled("", "with(a)", ";", FULL)),
        ("labels", numbered("", "a#:", ";", FULL)),
        ("loops", filled("", "for(a of b)", ";", FULL)),
        ("else", filled("", "if(a);else ", ";", FULL)),
        ("await", filled("", "await ", "a", FULL)),
        ("signs", filled("x=", "!", "1", FULL)),
        ("members", filled("x=a", "?.a", "", FULL)),
        ("templates", filled("x=", "`${", "", FULL)),
        ("arrows", filled("x=", "(a):b=>", "c", 200_000)),
        ("types or not", filled("x=", "a<b,", "c", 64_000)),
        (
            "conditional types",
            filled("type A=", "a extends b?c:", "d", FULL),
        ),
        (
            "parameters or not",
            format!("{}1{};", "x=(a=".repeat(99), ")".repeat(99)).repeat(400),
        ),
        (
            "functions or not",
            format!("{}1{};", "a?(b):c=>(".repeat(99), ")".repeat(99)).repeat(200),
        ),
        ("parameters", filled("function f(", "a,", "){}", 200_000)),
        (
            "var",
            numbered(
                &format!("{}{{", "for(;;)".repeat(200)),
                "var a#;",
                "}",
                250_000,
            ),
        ),
        ("private", filled("class A{f(){", "this.#a;", "}}", 500_000)),
        ("imports", filled("", "import 'a';", "", FULL)),
        (
            "one long name",
            filled(&format!("const x='./{long}';"), "require(x);", "", 500_000),
        ),
        (
            "exports",
            numbered(
                "const x={description:'a',args:1,execute:1};",
                "exports.a#=x;",
                "",
                100_000,
            ),
        ),
        (
            "lists",
            numbered(
                &format!("const x='{long}';"),
                "const a#=x.split('');",
                "",
                500_000,
            ),
        ),
        ("dense", filled("x=[", "1,", "]", FULL)),
    ] {
        refuse(what, || script::read(&text, Dialect::Ts));
        refuse(what, || match what {
            // What the walk refuses, nothing else does.
            "imports" | "one long name" | "exports" | "lists" => {
                script::read(&text, Dialect::Cts).map(|_| ())
            }
            _ => script::strip(&text, Dialect::Ts, "x.ts").map(|_| ()),
        });
    }
}

#[test]
fn ordinary_texts_are_far_from_the_budget() {
    let function = "\n@tool\ndef f#(a: int, b: list[str] | None = None) -> dict[str, int]:\n    \"\"\"Says (something.\"\"\"\n    return {\"a\": [g(a + 1, *b), -2], \"b\": lambda c: c.d.e(f\"{a!r:>{b}}\")}\n";
    let python = numbered(
        "from toolcrib import tool\nimport json\n",
        function,
        "",
        60_000,
    );
    assert!(python::read(&python).unwrap().tools.len() > 200);
    let part = "\nexport const a# = tool({\n  description: 'it (is',\n  args: { b: z.string().optional() },\n  execute: async ({ b }: { b?: string }) => {\n    const c = [1, 2].map((d) => d < 2 ? /['\"`(]/.test(`${b} {`) : d / 2)\n    if (b) return c\n    else return []\n  },\n})\n";
    let script = numbered(
        "import { tool } from '@toolcrib/plugin'\n",
        part,
        "",
        80_000,
    );
    assert!(script::read(&script, Dialect::Ts).unwrap().tools.len() > 200);
    assert!(script::strip(&script, Dialect::Ts, "x.ts").is_ok());
}
