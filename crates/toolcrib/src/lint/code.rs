//! What a tool's code shows of what it does: imports, and calls that need a permission. By the text alone, line by line.

use std::path::Path;

use super::Report;

/// Libraries that call models.
const MODELS: [&str; 20] = [
    "openai",
    "anthropic",
    "@anthropic-ai/sdk",
    "@anthropic-ai/claude-agent-sdk",
    "claude_agent_sdk",
    "google.generativeai",
    "google.genai",
    "@google/generative-ai",
    "@google/genai",
    "cohere",
    "mistralai",
    "ollama",
    "litellm",
    "groq",
    "together",
    "ai",
    "@ai-sdk",
    "langchain_openai",
    "langchain_anthropic",
    "@langchain/openai",
];
const NETWORK: [&str; 16] = [
    "requests",
    "httpx",
    "aiohttp",
    "urllib.request",
    "urllib3",
    "http.client",
    "socket",
    "ftplib",
    "smtplib",
    "node:http",
    "node:https",
    "node:net",
    "axios",
    "node-fetch",
    "undici",
    "got",
];
const NETWORK_CALLS: [&str; 2] = ["await fetch(", " fetch(\"http"];
const EXEC: [&str; 4] = ["subprocess", "node:child_process", "child_process", "execa"];
const EXEC_CALLS: [&str; 5] = [
    "os.system(",
    "os.popen(",
    "Bun.spawn(",
    "Deno.Command(",
    "create_subprocess_exec(",
];
const WRITE_CALLS: [&str; 14] = [
    ".write_text(",
    ".write_bytes(",
    "shutil.rmtree(",
    "os.remove(",
    "os.unlink(",
    ".unlink(",
    "writeFile(",
    "writeFileSync(",
    "appendFile(",
    "unlinkSync(",
    "rmSync(",
    "Bun.write(",
    "Deno.writeTextFile(",
    "fs.rm(",
];
const OPEN_TO_WRITE: [&str; 6] = ["\"w\"", "'w'", "\"a\"", "'a'", "\"wb\"", "'wb'"];

/// A parameter of such a name bounds what is given.
const BOUNDS: [&str; 16] = [
    "limit", "max", "count", "page", "offset", "cursor", "start", "end", "first", "last", "head",
    "tail", "top", "size", "lines", "number",
];
const ALL: [&str; 6] = ["all ", "every ", "entire ", "whole ", "complete ", "full "];
const MANY: [&str; 14] = [
    "records",
    "rows",
    "entries",
    "lines",
    "files",
    "logs",
    "log",
    "events",
    "messages",
    "results",
    "items",
    "documents",
    "history",
    "table",
];

pub(super) fn look(report: &mut Report<'_>) {
    let tool = report.tool();
    let (permissions, hints) = (&tool.permissions, &tool.annotations);
    let says_reads = hints.read_only_hint == Some(true);
    if says_reads && (permissions.can_write_files || hints.destructive_hint == Some(true)) {
        let message = "it says that it only reads, and asks to write or says that it destroys";
        report.find(
            "permission-contradicts",
            message,
            &["readOnlyHint", "read_only"],
        );
    }
    unbounded(report);
    let Some(text) = report
        .subject
        .text
        .filter(|_| is_code(tool.file.as_deref()))
    else {
        return;
    };
    let (mut net, mut exec, mut write) = (None, None, None);
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.starts_with('#') || line.starts_with("//") || line.starts_with('*') {
            continue;
        }
        let imports =
            |names: &[&'static str]| names.iter().copied().find(|name| is_import(line, name));
        let calls = |names: &[&'static str]| names.iter().copied().find(|call| line.contains(call));
        if let Some(name) = imports(&MODELS) {
            report.find_at("model-import", format!("it imports `{name}`"), Some(number));
        }
        let found = |what: &'static str| (number, what);
        net = net.or(imports(&NETWORK).or(calls(&NETWORK_CALLS)).map(found));
        exec = exec.or(imports(&EXEC).or(calls(&EXEC_CALLS)).map(found));
        let opens = line.contains("open(") && OPEN_TO_WRITE.iter().any(|mode| line.contains(mode));
        write = write.or(calls(&WRITE_CALLS)
            .or(opens.then_some("open(…, \"w\")"))
            .map(found));
    }
    for (found, code, declared) in [
        (net, "permission-network", permissions.can_network),
        (exec, "permission-exec", permissions.can_execute_commands),
        (write, "permission-write", permissions.can_write_files),
    ] {
        if let Some((line, what)) = found.filter(|_| !declared) {
            report.find_at(code, format!("it uses `{what}`"), Some(line));
        }
    }
}

fn is_code(file: Option<&str>) -> bool {
    let ending = file.and_then(|file| Path::new(file).extension()?.to_str());
    ending.is_some_and(|ending| ["py", "ts", "mts", "cts", "js", "mjs", "cjs"].contains(&ending))
}

/// Does this line import this module, or one below it?
fn is_import(line: &str, module: &str) -> bool {
    let below = |rest: &str| rest.is_empty() || rest.starts_with(|c: char| ". ,;/".contains(c));
    let named = |name: &str| name.trim().strip_prefix(module).is_some_and(below);
    let python = match (line.strip_prefix("import "), line.strip_prefix("from ")) {
        (Some(names), _) => names.split(',').any(named),
        (None, Some(rest)) => named(rest),
        (None, None) => false,
    };
    let script = ['"', '\''].iter().any(|quote| {
        let whole = format!("{quote}{module}{quote}");
        let inner = format!("{quote}{module}/");
        let imports =
            line.contains("from ") || line.contains("require(") || line.contains("import");
        imports && (line.contains(&whole) || line.contains(&inner))
    });
    python || script
}

fn unbounded(report: &mut Report<'_>) {
    let tool = report.tool();
    let lower = tool.description.to_lowercase();
    let says_all = ALL
        .iter()
        .find_map(|word| Some(&lower[lower.find(word)? + word.len()..]));
    let many = says_all.is_some_and(|rest| {
        let after = rest.split(|c: char| !c.is_alphanumeric()).take(5);
        after.into_iter().any(|word| MANY.contains(&word))
    });
    let properties = tool.input_schema["properties"].as_object();
    let bounded = properties.into_iter().flatten().any(|(name, _)| {
        let name = name.to_lowercase();
        BOUNDS.iter().any(|bound| name.contains(bound))
    });
    if many && !bounded {
        report.find(
            "output-unbounded",
            "it gives all there is, however much that is",
            &["\"description\"", "description:"],
        );
    }
}
