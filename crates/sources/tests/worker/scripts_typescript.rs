//! TypeScript and JavaScript files as tools, with every runtime that the tests' set-up has installed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_core::{Access, ErrorCode, ErrorType};
use toolcrib_sources::script::Scan;
use toolcrib_sources::worker::Limits;

use crate::world::{World, eventually, limits};

const GREET: &str = r#"
import { tool } from "@opencode-ai/plugin";

type Words = { hello: string };
const words: Words = { hello: "Hello" };

export default tool({
  description: "Greets somebody.",
  args: {
    name: tool.schema.string().describe("Who is greeted"),
    times: tool.schema.number().int().default(1),
  },
  async execute(args, context) {
    context.metadata({ title: `greeting ${args.name}` });
    return Array(args.times).fill(`${words.hello} ${args.name}!`).join(" ");
  },
});
"#;

/// The runtimes that are there: Node from the PATH, the others where `scripts/setup-runtimes` puts them.
fn runtimes() -> Vec<PathBuf> {
    let target = option_env!("CARGO_TARGET_DIR").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"),
        PathBuf::from,
    );
    let installed = target.join("test-tools/runtimes/node_modules");
    let found = ["node/bin/node", ".bin/bun", ".bin/deno"].map(|name| installed.join(name));
    let on_path = ["/usr/local/bin/node", "/usr/bin/node"].map(PathBuf::from);
    let node = on_path.into_iter().find(|path| path.exists());
    let all = node.into_iter().chain(found);
    all.filter_map(|path| path.canonicalize().ok()).collect()
}

/// Tells which runtime a failure is about.
pub fn each() -> impl Iterator<Item = (String, World)> {
    let all = runtimes();
    assert!(!all.is_empty(), "no runtime is installed");
    all.into_iter().map(|program| {
        let name = program.to_string_lossy().into_owned();
        let named = name.clone();
        (
            name,
            World::scripts(move |settings| settings.javascript = Some(named)),
        )
    })
}

#[tokio::test]
async fn exports_are_tools() {
    for (runtime, world) in each() {
        world.write("greet.ts", GREET);
        world.write(
            "math.ts",
            r#"
export const add = { description: "Adds.", args: {}, execute: async () => ({ sum: 3 }) };
export const helper = () => 1;
export const nothing = { description: "No tool" };
"#,
        );
        world.open().await;
        assert_eq!(world.problems(), [""; 0], "{runtime}");
        assert_eq!(world.names(), ["greet", "math_add"], "{runtime}");
        let output = world
            .output("greet", json!({"name": "Ada", "times": 2}))
            .await;
        assert_eq!(output, "Hello Ada! Hello Ada!", "{runtime}");
        let outcome = world.call("math_add", json!({})).await.unwrap();
        assert_eq!(outcome.structured.unwrap(), json!({"sum": 3}), "{runtime}");
        let error = world.refused("greet", json!({"name": 5})).await;
        assert_eq!(error.code, ErrorCode::InvalidArguments, "{runtime}");
        let litter = std::fs::read_dir(world.tools()).unwrap().count();
        assert_eq!(litter, 2, "nothing is written beside the files");
        world.end().await;
    }
}

#[tokio::test]
async fn every_kind_of_module_loads() {
    for (runtime, world) in each() {
        let kinds = [
            (
                "esm.mjs",
                "export default { description: 'E', args: {}, execute: () => 'esm' };",
            ),
            (
                "common.cjs",
                "module.exports = { description: 'C', args: {}, execute: () => __filename };",
            ),
            (
                "old.js",
                "const path = require('node:path'); exports.x = { description: 'O', args: {}, execute: () => path.sep };",
            ),
            (
                "typed.mts",
                "const t: string = 'typed'; export default { description: 'M', args: {}, execute: (): string => t };",
            ),
            (
                "ctyped.cts",
                "const t: string = 'ctyped'; module.exports = { description: 'M', args: {}, execute: (): string => t };",
            ),
            (
                "all.ts",
                r#"
import { word } from "./_lib/words.js";
import data from "./_data.json" with { type: "json" };
enum Level { Low = 1, High }
const late = await Promise.resolve("later");
export default { description: "A", args: {}, execute: () => [word, data.n, Level.High, late].join(" ") };
"#,
            ),
        ];
        world.write("_lib/words.ts", "export const word: string = 'word';\n");
        world.write("_data.json", "{\"n\": 7}");
        for (file, text) in kinds {
            world.write(file, text);
        }
        world.open().await;
        assert_eq!(world.problems(), [""; 0], "{runtime}");
        let path = world.tools().join("common.cjs");
        for (tool, gives) in [
            ("esm", "esm"),
            ("common", path.to_str().unwrap()),
            ("old_x", "/"),
            ("typed", "typed"),
            ("ctyped", "ctyped"),
            ("all", "word 7 2 later"),
        ] {
            assert_eq!(
                world.output(tool, json!({})).await,
                gives,
                "{runtime} {tool}"
            );
        }
        // What it imports belongs to it.
        world.write("_lib/words.ts", "export const word: string = 'changed';\n");
        world.until("all", json!({}), "changed 7 2 later").await;
        world.end().await;
    }
}

/// What lies in the folder that a tool's process starts in could preload code, map names to other files and set variables;
/// a tool that may write the project would choose what its neighbours run.
#[tokio::test]
async fn settings_of_runtimes_in_the_project_are_not_read() {
    for (runtime, world) in each() {
        let preloaded = world.sign("preloaded");
        for folder in ["..", "."] {
            let settings = [
                ("bunfig.toml", "preload = [\"./_evil.ts\"]\n"),
                (".env", "CANARY=evil\n"),
                (".env.local", "CANARY=evil\n"),
                (
                    "tsconfig.json",
                    r#"{"compilerOptions": {"paths": {"words": ["./_evil.ts"]}}}"#,
                ),
                ("deno.json", r#"{"imports": {"words": "./_evil.ts"}}"#),
            ];
            for (name, text) in settings {
                world.write(&format!("{folder}/{name}"), text);
            }
            let evil = format!(
                "require('node:fs').writeFileSync({preloaded:?}, ''); module.exports = 'evil';"
            );
            world.write(&format!("{folder}/_evil.ts"), evil);
        }
        world.write(
            "say.ts",
            "export default { description: 'Says', args: {}, execute: () => process.env.CANARY ?? 'nothing' };",
        );
        world.write(
            "words.ts",
            "import words from 'words';\nexport default { description: 'Says', args: {}, execute: () => words };",
        );
        world.open().await;
        assert_eq!(world.output("say", json!({})).await, "nothing", "{runtime}");
        let problems = world.problems();
        let missing = |one: &&String| one.starts_with("error ImportError words.ts");
        assert_eq!(
            problems.iter().filter(missing).count(),
            1,
            "{runtime}: {problems:?}"
        );
        assert!(!preloaded.exists(), "{runtime}");
        world.end().await;
    }
}

#[tokio::test]
async fn what_a_bad_file_is_told() {
    let cases = [
        ("export default {", "error SyntaxError file.ts:1"),
        (
            "export const a = 1;\nimport 'no-such-package';",
            "error ImportError file.ts",
        ),
        (
            "export const a = 1;\n\nthrow new Error('what now');",
            "error ImportError file.ts:3",
        ),
        (
            "@sealed\nexport class A {}\nfunction sealed(a: any) {}",
            "error SyntaxError file.ts:1",
        ),
        (
            "export const a = 1;\nprocess.exit(3);",
            "error ImportError file.ts",
        ),
    ];
    for (runtime, world) in each() {
        world.write("greet.ts", GREET);
        world.open().await;
        for (text, begins) in cases {
            world.write("file.ts", text);
            world.reload().await;
            let problems = world.problems();
            let errors: Vec<&String> = problems
                .iter()
                .filter(|one| one.starts_with("error"))
                .collect();
            assert_eq!(errors.len(), 1, "{runtime}: {text}: {problems:?}");
            assert!(
                errors[0].starts_with(begins),
                "{runtime}: {text}: {problems:?}"
            );
            let view = world.crib.owners_view();
            assert!(view.problems().iter().all(|one| !one.hint.is_empty()));
            assert_eq!(world.names(), ["greet"], "{runtime}: its neighbour works");
        }
        world.end().await;
    }
}

#[tokio::test]
async fn a_file_that_never_loads_is_given_up() {
    let world = World::with(Limits {
        handshake: Duration::from_secs(2),
        ..limits()
    });
    world.write("file.js", "export default 1;\nfor (;;) {}");
    world.open().await;
    let problems = world.problems();
    assert!(
        problems[0].starts_with("error Timeout file.js"),
        "{problems:?}"
    );
    world.nothing_runs().await;
    world.end().await;
}

#[tokio::test]
async fn what_is_buns_own_needs_bun() {
    for (runtime, world) in each() {
        world.write(
            "file.ts",
            "export default { description: 'B', args: {}, execute: () => Bun.version };",
        );
        world.open().await;
        let outcome = world.call("file", json!({})).await;
        if runtime.contains("bun") {
            assert!(!outcome.unwrap().output.is_empty());
        } else {
            let problem = world.problem();
            assert_eq!(problem.error_type, ErrorType::Import);
            assert!(problem.message.contains("`Bun` in line 1"), "{problem:?}");
        }
        world.end().await;
    }
}

#[tokio::test]
async fn a_broken_save_leaves_the_last_good_version() {
    let world = World::scripts(|_| {});
    world.write("greet.ts", GREET);
    world.open().await;
    for broken in [
        "export default {",
        "export const a = 1;\nthrow new Error('x');",
    ] {
        world.write("greet.ts", broken);
        world.reload().await;
        assert!(
            world.crib.owners_view().get("greet").unwrap().stale,
            "{broken}"
        );
        assert_eq!(
            world.output("greet", json!({"name": "Ada"})).await,
            "Hello Ada!"
        );
        let after = world.restarted().await;
        assert!(after.crib.owners_view().get("greet").unwrap().stale);
        after.end_workers().await;
    }
    world.write("greet.ts", GREET.replace("Hello", "Bye"));
    world
        .until("greet", json!({"name": "Ada"}), "Bye Ada!")
        .await;
    world.end().await;
}

#[tokio::test]
async fn an_untrusted_file_is_only_read() {
    let world = World::scripts(|_| {});
    let mark = world.sign("ran");
    world.write(
        "greet.ts",
        format!("{GREET}\nimport fs from 'node:fs'; fs.writeFileSync({mark:?}, '');"),
    );
    let access = Access::untrusted(world.root.join("project"));
    world.open_as(access, &[]).await;
    let view = world.crib.owners_view();
    let tool = view.get("greet").unwrap();
    assert_eq!(tool.status().as_str(), "untrusted");
    assert_eq!(tool.spec.description, "Greets somebody.");
    assert!(!mark.exists() && world.processes().is_empty());
    world.end().await;
}

#[tokio::test]
async fn the_scan_warns_or_refuses() {
    for (scan, begins) in [(Scan::Warn, "warning "), (Scan::Strict, "error ")] {
        let world = World::scripts(|settings| settings.scan = scan);
        world.write(
            "greet.ts",
            format!("const home = process.env.HOME; eval('1');\n{GREET}"),
        );
        world.open().await;
        let problems = world.problems();
        // What takes a grant is refused by the walls, not by the scan.
        let wanted = ["warning ", begins].map(|begins| format!("{begins}SecurityError greet.ts:1"));
        let found = problems.iter().zip(&wanted);
        assert!(found.clone().count() == 2, "{problems:?}");
        for (problem, wanted) in found {
            assert!(problem.starts_with(wanted), "{problems:?}");
        }
        assert_eq!(world.names().is_empty(), scan == Scan::Strict);
        world.end().await;
    }
}

#[tokio::test]
async fn packages_that_lie_in_a_folder_are_refused_and_what_the_host_stands_for_needs_none() {
    let world = World::scripts(|_| {});
    let text = r#"
import { tool } from "@opencode-ai/plugin";
export default tool({ description: "Says it.", args: {}, execute: async () => "said" });
"#;
    let beside = |dependencies: Value| json!({"dependencies": dependencies}).to_string();
    world.write("say/tool.ts", text);
    world.write(
        "say/package.json",
        beside(json!({"@opencode-ai/plugin": "1.0.0"})),
    );
    world.write("other/tool.ts", text);
    world.write(
        "other/package.json",
        beside(json!({"crib-words": "file:../words"})),
    );
    world.open().await;
    assert_eq!(world.output("say", json!({})).await, "said");
    let problems = world.problems();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("file:../words"), "{problems:?}");
    assert_eq!(world.names(), ["say"]);
    assert!(!world.root.join("cache/environments").exists());
    world.end().await;
}

#[tokio::test]
async fn a_cancelled_call_hears_of_it() {
    for (runtime, world) in each() {
        let (waiting, heard) = (world.sign("waiting"), world.sign("heard"));
        world.write(
            "wait.ts",
            format!(
                r#"
import fs from "node:fs";
export default {{
  description: "Waits until it is told to stop.",
  args: {{}},
  execute: (args: unknown, context: {{ abort: AbortSignal }}) => new Promise((done) => {{
    context.abort.addEventListener("abort", () => {{ fs.writeFileSync({heard:?}, ""); done("stopped"); }});
    fs.writeFileSync({waiting:?}, "");
  }}),
}};
"#
            ),
        );
        world.open().await;
        let call = world.begin("wait", json!({}));
        world.seen("waiting").await;
        call.abort();
        eventually(&format!("{runtime} hears of it"), || heard.exists()).await;
        world.end().await;
    }
}

/// What the crib reads for a script is no more than the script could read: a link or a path that leads out of the
/// project brings nothing in.
#[tokio::test]
async fn an_import_can_not_lead_out() {
    let world = World::scripts(|_| {});
    let outside = world.root.join("other/secret.json");
    std::fs::create_dir(outside.parent().unwrap()).unwrap();
    std::fs::write(&outside, "{\"key\": \"hidden\"}").unwrap();
    std::os::unix::fs::symlink(&outside, world.tools().join("_link.json")).unwrap();
    world.write("_near.json", "{\"key\": \"fine\"}");
    for (name, path) in [
        ("link", "./_link.json"),
        ("far", "../../other/secret.json"),
        ("near", "./_near.json"),
    ] {
        let text = format!(
            "import data from {path:?};\nexport default {{ description: 'Gives it', args: {{}}, execute: () => data.key }};"
        );
        world.write(&format!("{name}.ts"), text);
    }
    world.open().await;
    assert_eq!(world.output("near", json!({})).await, "fine");
    let view = world.crib.owners_view();
    // Without walls, as here, the runtime itself may still load them; but nobody has handed them over.
    let handed = |name: &str| {
        let kept = world.kept(&format!("{name}.ts")).unwrap_or_default();
        String::from_utf8_lossy(&kept).contains("hidden")
    };
    assert!(!handed("link") && !handed("far"), "{:?}", view.problems());
    world.end().await;
}
