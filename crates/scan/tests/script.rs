//! What the text of TypeScript and JavaScript files tells, what is left when types go, and that no text harms the reader.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::path::Path;

use toolcrib_scan::Cause;
use toolcrib_scan::Position;
use toolcrib_scan::script::{self, Dialect, Format, ImportKind, ScriptReading};

fn read(text: &str) -> ScriptReading {
    script::read(text, Dialect::Ts).unwrap()
}

/// Name, description and line of every tool.
fn tools(reading: &ScriptReading) -> Vec<(&str, Option<&str>, u32)> {
    let tools = reading.tools.iter();
    tools
        .map(|tool| {
            (
                tool.name.as_str(),
                tool.description.as_deref(),
                tool.at.line,
            )
        })
        .collect()
}

#[test]
fn the_suffix_says_the_dialect() {
    let of = |name: &str| Dialect::of(Path::new(name));
    assert_eq!(of("a/b.ts"), Some(Dialect::Ts));
    assert_eq!(of("b.mts"), Some(Dialect::Mts));
    assert_eq!(of("b.cts"), Some(Dialect::Cts));
    assert_eq!(of("b.x.js"), Some(Dialect::Js));
    assert_eq!(of("b.mjs"), Some(Dialect::Mjs));
    assert_eq!(of("b.cjs"), Some(Dialect::Cjs));
    for none in ["b.d.ts", "b.d.mts", "b.tsx", "b.jsx", "ts", "b"] {
        assert_eq!(of(none), None, "{none}");
    }
}

#[test]
fn exports_that_are_tools_are_found() {
    let text = r#"
import { tool } from "@toolcrib/plugin";
import { tool as make } from "@opencode-ai/plugin";
import * as atomic from "@atomic/plugin";
const description = "By name";
const late = { description: "Bare", args: {}, execute: async () => "" };
export default tool({ description: "One", args: {}, async execute() { return "" } });
export const two = make({ description: `Two`, args: {}, execute: () => "" });
export const three = atomic.tool({ description: "Th" + "r" + "ee", args: {}, execute() {} }), no = 4;
export const four = tool(async (init) => ({ description: "?", args: {}, execute() {} }));
export { late as five, hoisted };
var hoisted = tool({ description, args: {}, execute() {} } as any) satisfies unknown;
export const helper = () => 1;
export const other = { description: "x", args: {} };
export function plain() {}
export class Own {}
export type T = string;
const unexported = tool({ description: "x", args: {}, execute() {} });
"#;
    let expected = [
        ("default", Some("One"), 7),
        ("two", Some("Two"), 8),
        ("three", Some("Three"), 9),
        ("four", None, 10),
        ("five", Some("Bare"), 11),
        ("hoisted", Some("By name"), 11),
    ];
    assert_eq!(tools(&read(text)), expected);
}

#[test]
fn a_default_export_may_be_a_name() {
    let text = "import { tool } from '@toolcrib/plugin/tool'\nconst it = tool({description: 'x' + y, args: {}, execute() {}})\nexport default it\nexport { it as default2 }\n";
    assert_eq!(
        tools(&read(text)),
        [("default", None, 3), ("default2", None, 4)]
    );
}

#[test]
fn commonjs_exports_are_found() {
    let head = "const { tool } = require('@toolcrib/plugin');\nconst one = tool({description: 'One', args: {}, execute() {}});\n";
    for (tail, expected) in [
        ("module.exports = one;", vec![("default", Some("One"), 3)]),
        (
            "module.exports = { one, two: one, three: 3 };",
            vec![("one", Some("One"), 3), ("two", Some("One"), 3)],
        ),
        ("exports.x = one;", vec![("x", Some("One"), 3)]),
        ("module.exports.y = one;", vec![("y", Some("One"), 3)]),
        ("exports.x = module.exports.y = 1;", vec![]),
        ("({}).exports = one;", vec![]),
    ] {
        let text = format!("{head}{tail}");
        for dialect in [Dialect::Cjs, Dialect::Js, Dialect::Cts] {
            let reading = script::read(&text, dialect).unwrap();
            assert_eq!(tools(&reading), expected, "{tail}");
            assert_eq!(reading.format, Format::CommonJs);
        }
    }
    let text = "import plugin = require('@toolcrib/plugin');\nexport = plugin.tool({description: 'One', args: {}, execute() {}});\n";
    let reading = script::read(text, Dialect::Cts).unwrap();
    assert_eq!(tools(&reading), [("default", Some("One"), 2)]);
}

#[test]
fn a_tool_of_somebody_else_is_none() {
    let text = "import { tool } from 'ai';\nexport const a = tool({ description: 'x', inputSchema: 1, execute() {} });\n";
    assert_eq!(tools(&read(text)), []);
}

#[test]
fn every_import_is_listed() {
    let text = "import a from './a.ts';\nimport type { B } from './b.ts';\nimport { type C } from './c.ts';\nexport * from './d.ts';\nexport { e } from './e.ts';\nawait import('./f.ts');\nrequire('./g.cjs');\nimport(h);\nexport type { I } from './i.ts';\nimport './j.ts';\n";
    let reading = read(text);
    let imports: Vec<(&str, ImportKind, u32)> = reading
        .imports
        .iter()
        .map(|one| (one.specifier.as_str(), one.kind, one.at.line))
        .collect();
    let expected = [
        ("./a.ts", ImportKind::Static, 1),
        ("./c.ts", ImportKind::Static, 3),
        ("./d.ts", ImportKind::Static, 4),
        ("./e.ts", ImportKind::Static, 5),
        ("./f.ts", ImportKind::Dynamic, 6),
        ("./g.cjs", ImportKind::Require, 7),
        ("./j.ts", ImportKind::Static, 10),
    ];
    assert_eq!(imports, expected);
}

#[test]
fn the_format_is_known() {
    let format = |text: &str, dialect| script::read(text, dialect).unwrap().format;
    for (text, expected) in [
        ("export const a = 1", Format::Module),
        ("import 'a'", Format::Module),
        ("console.log(import.meta.url)", Format::Module),
        ("await 1", Format::Module),
        ("for await (const a of b) {}", Format::Module),
        ("async function f() { await 1 }", Format::CommonJs),
        ("module.exports = 1", Format::CommonJs),
        ("return 1", Format::CommonJs),
        ("with (a) { b }", Format::CommonJs),
        ("import('a')", Format::CommonJs),
        ("", Format::CommonJs),
    ] {
        assert_eq!(format(text, Dialect::Js), expected, "{text}");
    }
    assert_eq!(format("", Dialect::Mjs), Format::Module);
    assert_eq!(format("a = 1", Dialect::Cts), Format::CommonJs);
}

#[test]
fn bun_and_decorators_are_told() {
    let reading = read("export const a = 1;\n  Bun.file('x');\nBun.file('y');\n");
    assert_eq!(reading.bun, Some(Position { line: 2, column: 3 }));
    assert_eq!(read("import { x } from 'bun:sqlite'").bun.unwrap().line, 1);
    assert_eq!(read("typeof Bun === 'undefined'").bun, None);
    assert_eq!(read("const Bun = 1; export default Bun").bun, None);
    let reading = read("class A {\n  @b() c() {}\n}\n");
    assert_eq!(reading.decorators, Some(Position { line: 2, column: 3 }));
    assert_eq!(read("export {}").decorators, None);
}

#[test]
fn an_error_has_its_place() {
    for (text, line, column) in [
        ("export const a = 1;\nconst b = ;\n", 2, 11),
        ("const ä = 'ö'; const x y;\n", 1, 22),
        ("export {};\nconst a = 1;\nconst a = 2;\n", 2, 7),
    ] {
        let error = script::read(text, Dialect::Ts).unwrap_err();
        assert_eq!((error.at.line, error.at.column), (line, column), "{error}");
        assert!(!error.message.is_empty());
    }
    assert!(script::read("const a: number = 1", Dialect::Js).is_err());
    assert!(script::read("await 1", Dialect::Cjs).is_err());
    assert!(script::read("<div/>", Dialect::Ts).is_err());
}

/// The text without types, without its source map.
fn stripped(text: &str) -> String {
    let made = script::strip(text, Dialect::Ts, "x.ts").unwrap().text;
    let (code, map) = made.split_once("//# sourceMappingURL=").unwrap();
    assert!(map.starts_with("data:application/json;"));
    code.to_owned()
}

#[test]
fn types_go_and_the_rest_stays() {
    let code = stripped(
        "import { tool, type ToolContext, Only } from '@toolcrib/plugin';\nimport type { Z } from 'z';\ninterface I { a: string }\nexport const a = <T,>(x: T, y?: Only): T => x!;\nexport class C { #p?: number; constructor(private q: I) {} get v() { return this.q?.a ?? 1 } }\nconst later = await tool({} as any);\nexport type { I };\n",
    );
    for gone in [
        "interface",
        "ToolContext",
        "Only",
        ": T",
        "private",
        "'z'",
        "\"z\"",
        " as ",
    ] {
        assert!(!code.contains(gone), "{gone} is left in {code}");
    }
    for kept in [
        "import { tool }",
        "#p",
        "this.q?.a ?? 1",
        "await tool({})",
        "this.q = q",
    ] {
        assert!(code.contains(kept), "{kept} is missing in {code}");
    }
}

#[test]
fn enums_and_namespaces_are_lowered() {
    let code = stripped(
        "export enum E { A, B = 'x' }\nconst enum F { C = 3 }\nnamespace N { export const a = F.C }\nexport default [E.A, N.a];\n",
    );
    for gone in ["enum ", "namespace "] {
        assert!(!code.contains(gone), "{code}");
    }
    assert!(script::read(&code, Dialect::Mjs).is_ok(), "{code}");
}

#[test]
fn what_is_stripped_can_be_read_as_javascript() {
    let text = "import { tool } from '@toolcrib/plugin';\nexport default tool({ description: 'x' as string, args: {}, async execute(a: { b: number }) { return `${a.b satisfies number}` } });\n";
    let made = script::strip(text, Dialect::Ts, "x.ts").unwrap();
    assert_eq!(made.format, Format::Module);
    let reading = script::read(&made.text, Dialect::Mjs).unwrap();
    assert_eq!(tools(&reading), [("default", Some("x"), 2)]);
}

#[test]
fn commonjs_typescript_is_stripped() {
    let text = "import fs = require('fs');\nfunction f(a: string): void {}\nexport = { f, fs };\n";
    let made = script::strip(text, Dialect::Cts, "x.cts").unwrap();
    assert_eq!(made.format, Format::CommonJs);
    assert!(made.text.contains("require(\"fs\")"), "{}", made.text);
    assert!(made.text.contains("module.exports"), "{}", made.text);
}

#[test]
fn javascript_is_left_as_it_is() {
    let text = "// a\nexport  const a = 1\n";
    let made = script::strip(text, Dialect::Js, "x.js").unwrap();
    assert_eq!((made.text.as_str(), made.format), (text, Format::Module));
}

#[test]
fn decorators_are_refused_with_a_word() {
    let error = script::strip("class A {\n  @b c() {}\n}\n", Dialect::Ts, "x.ts").unwrap_err();
    assert_eq!(error.at.line, 2);
    assert!(error.message.contains("decorators"));
}

#[test]
fn findings_are_bounded() {
    let found = read(&"eval(1);\n".repeat(250)).findings;
    assert_eq!(found.len(), 101);
    assert_eq!(found[100].message, "150 more places like these");
}

/// Texts that nest or chain without end.
fn hostile() -> Vec<(&'static str, String)> {
    let many = |part: &str| part.repeat(100_000);
    let some = |part: &str| part.repeat(5_000);
    vec![
        ("round brackets", format!("x = {}1{}", many("("), many(")"))),
        ("open brackets", many("[")),
        ("braces", many("{")),
        ("templates", many("`${")),
        ("hidden brackets", format!("x = {}1", some("['))'+("))),
        ("not", format!("x = {}1", some("!"))),
        ("minus", format!("x = {}1", some("- "))),
        ("typeof", format!("x = {}1", some("typeof "))),
        (
            "typeof with odd spaces",
            format!("x = {}1", some("typeof\u{a0}")),
        ),
        ("sum", format!("x = 1{}", some("+1"))),
        ("strings", format!("x = 'a'{}", some("+'a'"))),
        ("power", format!("x = 1{}", some("**1"))),
        ("members", format!("x = process{}", some(".a"))),
        ("calls", format!("x = f{}", some("()"))),
        ("elements", format!("x = f{}", some("[0]"))),
        ("arrows", format!("x = {}1", some("a=>"))),
        ("arrows with two", format!("x = {}1", some("(a,b)=>"))),
        ("conditions", format!("x = {}1", some("1?1:"))),
        ("conditions inside", format!("x = {}1", some("1?"))),
        ("assignments", format!("{}1", some("x="))),
        ("if", format!("{};", some("if(1)"))),
        ("else", format!("{};", some("if(1){}else "))),
        ("loops", format!("{};", some("for(;;)"))),
        (
            "labels",
            format!(
                "{};",
                (0..5_000).map(|n| format!("a{n}:")).collect::<String>()
            ),
        ),
        ("new", format!("x = {}a", some("new "))),
        ("await", format!("{}1", some("await "))),
        ("types", format!("type A = {}B", some("keyof "))),
        ("generics", format!("type A = {}", some("B<"))),
        ("assertions", format!("x = {}1", some("<a>"))),
        ("casts", format!("x = 1{}", some(" as any"))),
        (
            "conditional types",
            format!("type A = {}1", some("1 extends 1 ? 1 : ")),
        ),
        ("unions", format!("type A = 1{}", some("|1"))),
        ("functions", some("function f(){")),
        ("classes", some("class A{a=")),
        ("open comment", format!("/*{}", many("("))),
        ("regular expression", format!("x = /{}/", some("(("))),
        ("one line", some("import 'a';")),
        ("decorators", format!("{}class A {{}}", some("@a "))),
        ("logical", format!("x = 1{}", some("&&1"))),
        ("comma", format!("x = (1{})", some(",1"))),
        (
            "long string used often",
            format!(
                "x = '{}';\nconst y = x;\n{}",
                many("a"),
                some("y.trim();\n")
            ),
        ),
        (
            "parentheses that may be parameters",
            format!("x = {}1{}", "(".repeat(900), ")".repeat(900)),
        ),
        (
            "defaults that may be parameters",
            format!("x = {}1{}", "(a=".repeat(900), ")".repeat(900)),
        ),
        (
            "async parentheses",
            format!("x = {}1{}", "async(".repeat(900), ")".repeat(900)),
        ),
        (
            "generic arrows",
            format!("x = {}1{}", "a<b>(".repeat(900), ")".repeat(900)),
        ),
        (
            "conditions that may be arrows",
            format!("x = {}1{}", "a?(b".repeat(40), "):c".repeat(40)),
        ),
        ("nul", many("\0")),
    ]
}

#[test]
fn no_text_harms_the_reader() {
    for (what, text) in hostile() {
        for dialect in [Dialect::Ts, Dialect::Js] {
            let start = std::time::Instant::now();
            let results = [
                script::read(&text, dialect).err(),
                script::strip(&text, dialect, "x").err(),
            ];
            let took = start.elapsed();
            assert!(took.as_secs() < 60, "{what} took {took:?}");
            for error in results.into_iter().flatten() {
                assert!(!error.message.contains("parser failed"), "{what}: {error}");
            }
        }
    }
}

#[test]
fn deep_brackets_are_refused() {
    let error = script::read(&"[".repeat(100_000), Dialect::Js).unwrap_err();
    assert_eq!(error.cause, Cause::Budget);
    assert!(error.message.contains("more than 200 deep"), "{error}");
}
