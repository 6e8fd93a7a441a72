//! Tool files of a language that has a host: save to new result, and starts with many files, cold and warm.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::calls::{Ask, Client, PATIENCE, Running, command};
use crate::mcp::{legacy, stateless_call, typescript as typescript_sdk};
use crate::stats::{Samples, ratio, verdict};

const SAVES: usize = 50;
const STARTS: usize = 5;
/// A cold start asks every file's process, one after another on each core.
const COLD_LIMIT: Duration = Duration::from_secs(600);

/// A language, and what is aimed at.
struct Language {
    name: &'static str,
    suffix: &'static str,
    /// What must be on the PATH.
    interpreter: &'static str,
    text: fn(&str, &str) -> String,
    /// The least that starting a process of it takes.
    bare: &'static [&'static str],
    save: Duration,
    files: usize,
    warm: Option<Duration>,
}

const LANGUAGES: [Language; 2] = [PYTHON, TYPESCRIPT];

const PYTHON: Language = Language {
    name: "Python",
    suffix: "py",
    interpreter: "python3",
    text: python,
    bare: &["-c", "pass"],
    save: Duration::from_millis(120),
    files: 1_000,
    warm: Some(Duration::from_millis(300)),
};

const TYPESCRIPT: Language = Language {
    name: "TypeScript",
    suffix: "ts",
    interpreter: "node",
    text: typescript,
    bare: &["-e", "0"],
    save: Duration::from_millis(200),
    files: 200,
    warm: None,
};

fn typescript(_: &str, word: &str) -> String {
    format!(
        r#"import {{ tool }} from "@toolcrib/plugin";

export default tool({{
  description: "Looks something up by its name",
  args: {{
    query: tool.schema.string().describe("What is looked up"),
    limit: tool.schema.number().int().default(10).describe("How many are given"),
    order: tool.schema.enum(["up", "down"]).default("up").describe("In which order"),
  }},
  annotations: {{ readOnlyHint: true }},
  async execute(): Promise<string> {{
    return "{word}";
  }},
}});
"#
    )
}

/// The same echo as a TypeScript file of ours, and as a tool of the official SDK's server.
const ECHO: &str = r#"import { tool } from "@toolcrib/plugin";

export default tool({
  description: "Gives back the text",
  args: { text: tool.schema.string() },
  execute: async ({ text }) => text,
});
"#;
const TIMES_SDK: f64 = 4.0;
const CLIENTS: usize = 32;
const ROUNDS: usize = 3;
const BUSY: Duration = Duration::from_secs(2);

fn python(name: &str, word: &str) -> String {
    format!(
        r#"from typing import Literal

from toolcrib import tool


@tool(read_only=True)
def {name}(query: str, limit: int = 10, order: Literal["up", "down"] = "up") -> str:
    """Looks something up by its name.

    Args:
        query: What is looked up.
        limit: How many are given.
        order: In which order.
    """
    return "{word}"
"#
    )
}

struct World {
    dir: tempfile::TempDir,
    binary: PathBuf,
    language: &'static Language,
}

impl World {
    fn new(language: &'static Language, files: usize) -> Option<World> {
        let world = World {
            dir: tempfile::tempdir().ok()?,
            binary: std::env::current_exe().ok()?.with_file_name("toolcrib"),
            language,
        };
        std::fs::create_dir_all(world.tools()).ok()?;
        for n in 0..files {
            world.save(&format!("tool_{n:04}"), "one")?;
        }
        Some(world)
    }

    /// The user's own folder, which needs no trust.
    fn tools(&self) -> PathBuf {
        self.dir.path().join(".config/toolcrib/tools")
    }

    /// Saves a file in one step, as editors do.
    fn save(&self, name: &str, word: &str) -> Option<()> {
        let draft = self.tools().join(".draft");
        std::fs::write(&draft, (self.language.text)(name, word)).ok()?;
        let file = format!("{name}.{}", self.language.suffix);
        std::fs::rename(&draft, self.tools().join(file)).ok()
    }

    fn start(&self) -> Option<Running> {
        let mut command = command(&self.binary);
        command
            .args(["serve", "--no-auth", "--json", "--port", "0"])
            .env_clear()
            .env("HOME", self.dir.path())
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .current_dir("/")
            .stderr(Stdio::null());
        // It says where it listens once it has asked every file.
        Running::within(command, COLD_LIMIT)
    }
}

pub fn run() {
    println!("\nwarm TypeScript echo, {CLIENTS} calls at once, every core free");
    if against_sdk().is_none() {
        println!("  could not be measured: is Node there, and did `make test` install the SDK?");
    }
    for language in &LANGUAGES {
        if measure(language).is_none() {
            let name = language.name;
            println!(
                "\n{name} files: could not be measured (is `toolcrib` built beside the bench, and {} there?)",
                language.interpreter
            );
        }
    }
}

/// Calls a second of our file against the SDK's server, by turns.
fn against_sdk() -> Option<()> {
    let world = World::new(&TYPESCRIPT, 0)?;
    std::fs::write(world.tools().join("echo.ts"), ECHO).ok()?;
    let ours = world.start()?;
    let arguments = r#"{"text":"some text"}"#;
    let (headers, body) = stateless_call("echo", arguments);
    let mine = Ask {
        path: "/mcp",
        headers,
        body,
    };
    let peer = typescript_sdk()?;
    let (headers, body) = legacy("echo", arguments);
    let theirs = Ask {
        path: "/mcp",
        headers,
        body,
    };
    let mut rates = [0.0; 2];
    // The first round warms both.
    for round in 0..=ROUNDS {
        for (rate, (port, ask)) in rates
            .iter_mut()
            .zip([(ours.port, &mine), (peer.port, &theirs)])
        {
            let start = Instant::now();
            let calls = busy(port, ask)?;
            if round > 0 {
                *rate += calls as f64 / start.elapsed().as_secs_f64() / ROUNDS as f64;
            }
        }
    }
    let [mine, theirs] = rates;
    println!("  toolcrib, .ts file   {mine:>7.0} calls/s");
    println!("  TypeScript SDK       {theirs:>7.0} calls/s");
    let times = mine / theirs.max(0.1);
    println!(
        "  {times:.1} times as many (aim ≥ {TIMES_SDK}): {}",
        verdict(times >= TIMES_SDK)
    );
    Some(())
}

/// How many calls were answered while so many clients asked.
fn busy(port: u16, ask: &Ask) -> Option<usize> {
    let begun = Instant::now();
    let one = || {
        let mut client = ask.client(port)?;
        let mut calls = 0;
        while begun.elapsed() < BUSY {
            let answer = client.ask().ok()?;
            answer
                .windows(9)
                .any(|part| part == b"some text")
                .then_some(())?;
            calls += 1;
        }
        Some(calls)
    };
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(one)).collect();
        all.into_iter().map(|one| one.join().ok().flatten()).sum()
    })
}

fn measure(language: &'static Language) -> Option<()> {
    let bare = bare(language)?;
    println!(
        "\n{} files: save → new result ({SAVES} saves)",
        language.name
    );
    let saves = saves(language)?;
    println!("  bare process         {}", bare.line());
    println!("  toolcrib             {}", saves.line());
    let (p50, aim) = (saves.at(50), language.save);
    println!(
        "  ratio at p50         {:.1}; {p50:.1?} (aim ≤ {aim:?}): {}",
        ratio(p50, bare.at(50)),
        verdict(p50 <= aim)
    );
    let files = language.files;
    println!(
        "\n{} files: start → full list with {files} files",
        language.name
    );
    let world = World::new(language, files)?;
    let cold = full_list(&world, files, COLD_LIMIT)?;
    println!(
        "  first start ever     {cold:.1?}, {:.1} times as many bare processes one after another",
        ratio(cold, bare.at(50) * u32::try_from(files).ok()?)
    );
    let mut warm = Samples::default();
    for _ in 0..STARTS {
        warm.push(full_list(&world, files, PATIENCE)?);
    }
    println!("  later starts         {}", warm.line());
    if let Some(aim) = language.warm {
        let p50 = warm.at(50);
        println!("  {p50:.1?} (aim ≤ {aim:?}): {}", verdict(p50 <= aim));
    }
    Some(())
}

/// Starting the interpreter and ending it: what no crib can save.
fn bare(language: &Language) -> Option<Samples> {
    let mut samples = Samples::default();
    for _ in 0..20 {
        let mut command = command(language.interpreter.as_ref());
        command
            .args(language.bare)
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .stdout(Stdio::null());
        let start = Instant::now();
        command.status().ok()?.success().then_some(())?;
        samples.push(start.elapsed());
    }
    Some(samples)
}

fn saves(language: &'static Language) -> Option<Samples> {
    let world = World::new(language, 1)?;
    let crib = world.start()?;
    let body = r#"{"arguments":{"query":"x"}}"#;
    let path = "/api/tools/tool_0000/call";
    let mut client = Client::post(crib.port, path, "", body).ok()?;
    until(&mut client, "one")?;
    let mut samples = Samples::default();
    for n in 0..SAVES {
        std::thread::sleep(Duration::from_millis(200));
        let word = format!("word{n}.");
        let start = Instant::now();
        world.save("tool_0000", &word)?;
        until(&mut client, &word)?;
        samples.push(start.elapsed());
    }
    Some(samples)
}

/// Calls until the answer has this word in it.
fn until(client: &mut Client, word: &str) -> Option<()> {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        let answer = client.ask().ok()?;
        let found = answer
            .windows(word.len())
            .any(|part| part == word.as_bytes());
        if found {
            return Some(());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    None
}

/// How long it takes until everything is listed.
fn full_list(world: &World, files: usize, limit: Duration) -> Option<Duration> {
    let start = Instant::now();
    let crib = world.start()?;
    let mut client = Client::get(crib.port, "/api/tools?limit=1").ok()?;
    while start.elapsed() < limit {
        let list: serde_json::Value = serde_json::from_slice(client.ask().ok()?).ok()?;
        if list["count"].as_u64()? >= files as u64 {
            return Some(start.elapsed());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    None
}
