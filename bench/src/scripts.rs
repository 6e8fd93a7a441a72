//! Tool files of a language that has a host: save to new result, and starts with many files, cold and warm.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::calls::{Client, PATIENCE, Running, command};
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

const LANGUAGES: [Language; 1] = [Language {
    name: "Python",
    suffix: "py",
    interpreter: "python3",
    text: python,
    bare: &["-c", "pass"],
    save: Duration::from_millis(120),
    files: 1_000,
    warm: Some(Duration::from_millis(300)),
}];

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
        Running::of(command)
    }
}

pub fn run() {
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
        command.args(language.bare).stdout(Stdio::null());
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
