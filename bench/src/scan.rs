//! Reading a tool file's text without running it: what a save costs before anything else happens.

use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use toolcrib_scan::script::Dialect;
use toolcrib_scan::{python, script};

use crate::stats::{Samples, ratio, verdict};

const LINES: usize = 200;
const TIMES: usize = 1_000;
const AIM: Duration = Duration::from_millis(1);

/// A Python file of this many lines, such as people write.
fn python_file() -> String {
    let mut text = String::from(
        "\"\"\"Looks things up.\"\"\"\nimport json\nfrom typing import Optional\n\nfrom toolcrib import Context, tool\n",
    );
    for n in 0.. {
        let tool = format!(
            r#"

@tool(read_only=True, timeout_ms=2000)
async def look_up_{n}(query: str, ctx: Context, limit: int = 10, kind: Optional[str] = None) -> dict:
    """Looks up something by its name.

    Args:
        query: What is looked up.
        limit: How many are given back.
    """
    rows = [row for row in json.loads(TABLE_{n}) if query.lower() in row["name"].lower()]
    if kind is not None:
        rows = [row for row in rows if row.get("kind") == kind]
    await ctx.progress(len(rows) / max(limit, 1), f"{{len(rows)}} rows for {{query!r}}")
    return {{"rows": rows[:limit], "total": len(rows), "more": len(rows) > limit}}


TABLE_{n} = '[{{"name": "first", "kind": "a"}}, {{"name": "second", "kind": "b"}}]'
"#
        );
        if text.lines().count() + tool.lines().count() > LINES {
            break;
        }
        text.push_str(&tool);
    }
    filled(text, "# A line that only says something.\n")
}

/// A TypeScript file of this many lines, such as people write.
fn typescript_file() -> String {
    let mut text = String::from(
        "import { tool, type ToolContext } from \"@toolcrib/plugin\";\nimport { readFile } from \"node:fs/promises\";\n\ninterface Row { name: string; kind?: string }\n",
    );
    for n in 0.. {
        let tool = format!(
            r#"
const table{n}: Row[] = [{{ name: "first", kind: "a" }}, {{ name: "second", kind: "b" }}];

export const lookUp{n} = tool({{
  description: "Looks up something by its name",
  args: {{
    query: tool.schema.string().describe("What is looked up"),
    limit: tool.schema.number().int().min(1).default(10),
    kind: tool.schema.enum(["a", "b"]).optional(),
  }},
  async execute(args, context: ToolContext): Promise<string> {{
    const text = args.kind === "a" ? await readFile(`${{context.directory}}/rows.json`, "utf8") : "[]";
    const more = JSON.parse(text) as Row[];
    const rows = [...table{n}, ...more].filter((row) => row.name.includes(args.query));
    const shown = rows.slice(0, args.limit).map((row, index) => `${{index + 1}}. ${{row.name}} (${{row.kind ?? "?"}})`);
    return shown.join("\n") || `nothing is called ${{args.query}}`;
  }},
}});
"#
        );
        if text.lines().count() + tool.lines().count() > LINES {
            break;
        }
        text.push_str(&tool);
    }
    filled(text, "// A line that only says something.\n")
}

fn filled(mut text: String, line: &str) -> String {
    let missing = LINES - text.lines().count();
    text.push_str(&line.repeat(missing));
    text
}

fn measure(mut work: impl FnMut()) -> Samples {
    let mut samples = Samples::default();
    for round in 0..TIMES + TIMES / 10 {
        let start = Instant::now();
        work();
        // The first rounds warm up.
        if round >= TIMES / 10 {
            samples.push(start.elapsed());
        }
    }
    samples
}

fn report(what: &str, text: &str, read: &dyn Fn(&str) -> usize) {
    let floor = measure(|| {
        std::hint::black_box(Sha256::digest(text));
    });
    let samples = measure(|| {
        std::hint::black_box(read(text));
    });
    let (lines, bytes) = (text.lines().count(), text.len());
    println!(
        "\n{what}, {lines} lines, {bytes} bytes, {} tools ({TIMES} times)",
        read(text)
    );
    println!("  sha256 of the text   {}", floor.line());
    println!("  toolcrib             {}", samples.line());
    let p50 = samples.at(50);
    println!(
        "  ratio at p50         {:.1}; {p50:.1?} (aim < 1 ms): {}",
        ratio(p50, floor.at(50)),
        verdict(p50 < AIM)
    );
}

pub fn run() {
    report("scan of a Python file", &python_file(), &|text| {
        python::read(text).map_or(0, |reading| reading.tools.len())
    });
    let file = typescript_file();
    report("scan of a TypeScript file", &file, &|text| {
        script::read(text, Dialect::Ts).map_or(0, |reading| reading.tools.len())
    });
    report("types stripped from a TypeScript file", &file, &|text| {
        usize::from(script::strip(text, Dialect::Ts, "bench.ts").is_ok())
    });
}
