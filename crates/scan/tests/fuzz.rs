//! Fuzz targets: whatever a Python or TypeScript file says, reading it neither fails nor takes more than the budget.

use std::path::Path;
use std::time::Duration;

use toolcrib_fuzz::{Fuzz, corpus};
use toolcrib_scan::script::{self, Dialect};
use toolcrib_scan::{BUDGET, Cause, Finding, Position, SyntaxError, python};

/// A debug build is many times slower.
const SLOWEST: Duration = Duration::from_secs(if cfg!(debug_assertions) { 20 } else { 1 });
/// Both targets run in this process, and frames of a debug build are large.
const MOST: u64 = if cfg!(debug_assertions) {
    1 << 30
} else {
    512 << 20
};

/// A target with the corpus of its name, and without words.
fn target(name: &'static str) -> Fuzz {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    Fuzz {
        name,
        corpus: corpus(&corpora.join(name)),
        words: &[],
        pairs: &[],
        longest: BUDGET.bytes + 100,
        slowest: SLOWEST,
        most: Some(MOST),
    }
}

fn place(at: Position, text: &str) {
    let lines = text.matches(['\n', '\r']).count() + 1;
    assert!(
        at.line >= 1 && at.line as usize <= lines && at.column >= 1,
        "{at:?}"
    );
}

fn findings(found: &[Finding], text: &str) {
    assert!(found.len() <= 101);
    for one in found {
        assert!(one.message.chars().count() <= 301);
        place(one.at, text);
    }
}

fn error(error: &SyntaxError, text: &str) {
    for bad in ["parser failed", "lost its way"] {
        assert!(!error.message.contains(bad), "{error}");
    }
    if error.cause == Cause::Budget {
        assert!(error.message.len() < 400, "{error}");
    }
    place(error.at, text);
}

#[test]
fn any_text_can_be_read_as_python() {
    let fuzz = Fuzz {
        words: &[
            "a",
            ".a",
            "a.",
            "import a",
            "import a.b as c\n",
            "from . import ",
            "(",
            ")",
            "[",
            "]",
            "{",
            "}",
            "'",
            "\"",
            "'''",
            "f'{",
            "f\"",
            "}'",
            "\\\n",
            "\n",
            "\n ",
            "\n\t",
            " ",
            ";",
            ",",
            ":",
            "->",
            "lambda a, b: ",
            "not ",
            "-",
            "+'a'",
            "**1",
            " if 1 else ",
            " for a in 'abc'",
            "await ",
            "async ",
            "yield ",
            "def f():\n ",
            "class A:\n ",
            "if 1:\n ",
            "elif 1:\n ",
            "else:\n ",
            "try:\n ",
            "except A:\n ",
            "match a:\n ",
            "case 1:\n ",
            "with a as b:\n ",
            "@a\n",
            "@tool\n",
            "global a\n",
            "x = ",
            "x += ",
            "*",
            "**",
            ":=",
            "# /// script\n",
            "# ///\n",
            "eval(",
            "''.join(",
            ".split()",
            "list(x)",
            "chr(97)",
            "getattr(",
            "__import__(",
            "\u{a0}",
            "\u{feff}",
            "\u{2028}",
            "\0",
            "\u{e9}",
        ],
        pairs: &[
            ("(", ")"),
            ("[", "]"),
            ("{", "}"),
            ("{1:", "}"),
            ("f'{", "}'"),
            ("f(", ")"),
            ("(lambda: ", ")"),
            ("[", " for a in 'abc']"),
            ("'", "'"),
            ("'''", "'''"),
            ("(a := ", ")"),
            ("not ", ""),
            ("1 if ", " else 1"),
            ("if 1:\n ", "\n"),
            ("f'{a:", "}'"),
        ],
        ..target("python")
    };
    fuzz.run(|text| {
        let text = String::from_utf8_lossy(text);
        match python::read(&text) {
            Ok(reading) => {
                assert!(reading.tools.len() <= BUDGET.tools);
                let parts = reading.imports.iter().map(|one| {
                    assert!(one.module.len() <= BUDGET.module);
                    one.names.len() + one.module.matches('.').count()
                });
                assert!(parts.sum::<usize>() <= BUDGET.imports);
                findings(&reading.findings, &text);
                if text.len() < 2_000 {
                    assert_eq!(python::read(&text).ok(), Some(reading));
                }
            }
            Err(why) => error(&why, &text),
        }
    });
}

#[test]
fn any_text_can_be_read_as_typescript() {
    let fuzz = Fuzz {
        words: &[
            "a",
            ".a",
            "?.a",
            "a.",
            "(",
            ")",
            "[",
            "]",
            "{",
            "}",
            "'",
            "\"",
            "`",
            "${",
            "/",
            "//",
            "/*",
            "*/",
            "\\",
            "\n",
            " ",
            ";",
            ",",
            ":",
            "?",
            "!",
            "=>",
            "a=>",
            "(a)=>",
            "(a):b=>",
            "a?(b):c=>",
            "<",
            ">",
            "a<b,",
            "<T>",
            "=",
            "+",
            "-",
            "++",
            "--",
            "+'a'",
            "**",
            "&&",
            "??",
            "...",
            "if(a)",
            "else ",
            "if(a);else ",
            "for(;;)",
            "for(a of b)",
            "while(a)",
            "with(a)",
            "do ",
            "a:",
            "case 1:",
            "new ",
            "typeof ",
            "await ",
            "yield ",
            "async ",
            "function f(){",
            "class A{",
            "#a",
            "this.#a;",
            "namespace a",
            ".b{",
            "enum A{a}",
            "type A=",
            "a extends b?c:",
            "infer U extends ",
            "keyof ",
            " as a",
            "@a ",
            "import 'a';",
            "import(",
            "require(",
            "export ",
            "export default ",
            "var a;",
            "let a;",
            "const a=",
            "return ",
            "/'/",
            "}/a/",
            "<!--",
            "-->",
            "eval(",
            "x.split('')",
            "['a'].join()",
            "process.env",
            "\u{a0}",
            "\u{feff}",
            "\u{2028}",
            "\0",
            "\u{e9}",
            "\\u0061",
        ],
        pairs: &[
            ("(", ")"),
            ("[", "]"),
            ("{", "}"),
            ("`${", "}`"),
            ("(a=", ")"),
            ("({a=", "})"),
            ("a?(b):c=>(", ")"),
            ("a<", ">"),
            ("a<b>(", ")"),
            ("async(", ")"),
            ("(a:", ")=>b"),
            ("a=>{", "}"),
            ("function f(){", "}"),
            ("class A{a=", "}"),
            ("'", "'"),
            ("/*", "*/"),
            ("if(a){", "}"),
            ("if(a){}else ", ""),
            ("namespace a{", "}"),
            ("type A={a:", "}"),
            ("a?", ":b"),
            ("/", "/"),
        ],
        ..target("script")
    };
    fuzz.run(|text| {
        let text = String::from_utf8_lossy(text);
        // The same text is always read in the same way.
        let dialects = [Dialect::Ts, Dialect::Js, Dialect::Mts, Dialect::Cjs];
        let dialect = dialects[text.len() % dialects.len()];
        match script::read(&text, dialect) {
            Ok(reading) => {
                assert!(reading.tools.len() <= BUDGET.tools);
                assert!(reading.imports.len() <= BUDGET.imports);
                findings(&reading.findings, &text);
                if text.len() < 2_000 {
                    assert_eq!(script::read(&text, dialect).ok(), Some(reading));
                }
            }
            Err(why) => error(&why, &text),
        }
        if let Err(why) = script::strip(&text, dialect, "x.ts") {
            error(&why, &text);
        }
    });
}
