//! Fuzz target: whatever a plugin file says, loading it neither fails nor takes long.

use std::path::Path;
use std::time::{Duration, Instant};

use toolcrib_core::{Access, Scope};
use toolcrib_fuzz::{Fuzz, corpus};

use super::{MAX_FILE, load};
use crate::{Origin, testing};

const SLOWEST: Duration = Duration::from_secs(if cfg!(debug_assertions) { 20 } else { 1 });

fn check(text: &[u8]) {
    let place = testing::place(None);
    for access in [Access::Open, Access::untrusted("/nonexistent")] {
        let origin = Origin {
            file: Path::new("tools/mine.json"),
            scope: Scope::Local,
            access: access.clone(),
            alone: false,
        };
        let loaded = load(text, &origin, &place);
        assert!(loaded.problems.len() <= 101);
        let lines = text.iter().filter(|byte| **byte == b'\n').count() + 1;
        for problem in &loaded.problems {
            assert!(
                problem
                    .line
                    .is_none_or(|line| line >= 1 && line as usize <= lines)
            );
            assert!(!problem.message.is_empty() && !problem.hint.is_empty());
        }
        // No name is there twice, and nothing of an untrusted project can be called.
        let mut names: Vec<&str> = loaded.tools.iter().map(|tool| tool.name()).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        if access != Access::Open {
            assert!(loaded.tools.iter().all(|tool| tool.access != Access::Open));
        }
        if text.len() > MAX_FILE {
            assert!(loaded.tools.is_empty() && loaded.is_broken());
        }
    }
}

#[test]
fn any_text_can_be_loaded_as_a_plugin() {
    let fuzz = Fuzz {
        name: "plugin",
        corpus: corpus(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/plugin")),
        words: &[
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"",
            "\\",
            "\\u0000",
            "\\ud800",
            "null",
            "true",
            "1",
            "-1e999",
            "0.5",
            "{},",
            "\"a\":",
            "\"name\": \"a\",",
            "\"type\": \"string\",",
            "\"$ref\": \"#\",",
            "\"pattern\": \"(a+)+$\",",
            "\"properties\": {",
            "\"handler\": {",
            "\"command\": \"",
            "{{x}}",
            "{{",
            "}}",
            "'",
            "$(",
            "`",
            "|",
            ";",
            "\"url\": \"http://",
            "169.254.169.254",
            "[::1]",
            "@",
            "%2e",
            "../",
            "/",
            "\"allowedHosts\": [\"*\"],",
            "\"secret://A\"",
            "\n",
            "\t",
            "\u{feff}",
            "\u{e9}",
            "\u{202e}",
            "*.",
        ],
        pairs: &[
            ("[", "]"),
            ("{\"a\":", "}"),
            ("\"", "\""),
            ("{\"properties\": {\"x\": ", "}}"),
            ("{\"anyOf\": [", "]}"),
            ("{{", "}}"),
            ("(", ")"),
            ("{\"items\": ", "}"),
            ("{\"not\": ", "}"),
        ],
        longest: MAX_FILE + 100,
        slowest: SLOWEST,
        // Other tests run in this process.
        most: None,
    };
    fuzz.run(check);
}

#[test]
fn a_file_full_of_tools_takes_no_time() {
    let mut text = "{\"name\": \"many\", \"tools\": [".to_owned();
    let mut number = 0;
    while text.len() < MAX_FILE - 200 {
        let comma = if number > 0 { "," } else { "" };
        text.push_str(&format!(
            "{comma}{{\"name\":\"t{number}\",\"description\":\"d\",\"inputSchema\":{{\"type\":\"object\"}},\"handler\":{{\"type\":\"shell\",\"command\":\"a\"}}}}"
        ));
        number += 1;
    }
    text.push_str("]}");
    let origin = Origin {
        file: Path::new("tools/many.json"),
        scope: Scope::Local,
        access: Access::untrusted("/nonexistent"),
        alone: false,
    };
    let begun = Instant::now();
    let loaded = load(text.as_bytes(), &origin, &testing::place(None));
    assert_eq!(loaded.tools.len(), number);
    // Hashing the file for every tool took minutes.
    assert!(begun.elapsed() < 2 * SLOWEST, "{:?}", begun.elapsed());
}
