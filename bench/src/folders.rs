//! A thousand tools: start to first list, save to announcement, and memory, with the product's own binary.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::calls::{Client, PATIENCE, Running, command};
use crate::stats::{Samples, ratio, verdict};

const TOOLS: usize = 1_000;
const STARTS: usize = 10;
const SAVES: usize = 100;

struct World {
    dir: tempfile::TempDir,
    binary: PathBuf,
}

fn plugin(name: &str, word: &str) -> String {
    serde_json::json!({
        "name": "bench",
        "tools": [{
            "name": name,
            "description": format!("Says {word} and looks up something by its name"),
            "inputSchema": {
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "What is looked up"},
                    "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 10},
                },
                "required": ["query"],
            },
            "handler": {"type": "shell", "command": "echo {{query}} {{limit}}"},
        }],
    })
    .to_string()
}

impl World {
    fn new() -> Option<World> {
        let binary = std::env::current_exe().ok()?.with_file_name("toolcrib");
        let world = World {
            dir: tempfile::tempdir().ok()?,
            binary,
        };
        std::fs::create_dir_all(world.tools()).ok()?;
        for n in 0..TOOLS {
            let name = format!("tool-{n:04}");
            std::fs::write(
                world.tools().join(format!("{name}.json")),
                plugin(&name, "one"),
            )
            .ok()?;
        }
        Some(world)
    }

    /// The user's own folder, which needs no trust.
    fn tools(&self) -> PathBuf {
        self.dir.path().join(".config/toolcrib/tools")
    }

    fn start(&self) -> Option<Running> {
        let mut command = command(&self.binary);
        command
            .args(["serve", "--no-auth", "--json", "--port", "0"])
            .env_clear()
            .env("HOME", self.dir.path())
            .current_dir("/")
            .stderr(Stdio::null());
        Running::of(command)
    }
}

/// The least that any program must do: read every file and parse it.
fn floor(folder: &Path) -> Option<Duration> {
    let start = Instant::now();
    for entry in std::fs::read_dir(folder).ok()? {
        let text = std::fs::read(entry.ok()?.path()).ok()?;
        serde_json::from_slice::<serde_json::Value>(&text).ok()?;
    }
    Some(start.elapsed())
}

fn list(port: u16) -> Option<usize> {
    let mut client = Client::get(port, "/api/tools").ok()?;
    let list: serde_json::Value = serde_json::from_slice(client.ask().ok()?).ok()?;
    Some(list["tools"].as_array()?.len())
}

fn memory_kb(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

pub fn run() {
    if measure().is_none() {
        println!("folders: could not be measured (is `toolcrib` built beside the bench?)");
    }
}

fn measure() -> Option<()> {
    let world = World::new()?;
    let (mut starts, mut floors, mut cold) = (Samples::default(), Samples::default(), None);
    for _ in 0..=STARTS {
        floors.push(floor(&world.tools())?);
        let start = Instant::now();
        let crib = world.start()?;
        let listed = list(crib.port)?;
        let took = start.elapsed();
        assert!(listed >= TOOLS, "only {listed} tools were listed");
        match cold {
            None => cold = Some(took),
            Some(_) => starts.push(took),
        }
    }
    println!("\nstart → first full list with {TOOLS} plugin files ({STARTS} starts)");
    println!("  read and parse them  {}", floors.line());
    println!("  toolcrib             {}", starts.line());
    println!("  first start ever     {:.1?}", cold?);
    let p50 = starts.at(50);
    println!(
        "  ratio at p50         {:.1}; {p50:.1?} (aim ≤ 100 ms): {}",
        ratio(p50, floors.at(50)),
        verdict(p50 <= Duration::from_millis(100))
    );

    let crib = world.start()?;
    list(crib.port)?;
    let lists = crate::mcp::list(crib.port)?;
    println!("\n`tools/list` over MCP with {TOOLS} tools");
    println!("  toolcrib             {}", lists.line());
    let quick = lists.at(50) <= Duration::from_millis(1);
    println!("  aim ≤ 1 ms at p50: {}", verdict(quick));
    let before = memory_kb(crib.id())?;
    let port = crib.port;
    let listen = format!("GET /api/events HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n\r\n");
    let saves = save_to_event(&world, port, &listen, "tools_changed", SAVES)?;
    let listen = crate::mcp::listening(port);
    let told = save_to_event(&world, port, &listen, "tools/list_changed", SAVES / 2)?;
    println!("\nsave → `tools_changed` at a listener, {TOOLS} tools in the folder ({SAVES} saves)");
    println!("  toolcrib             {}", saves.line());
    println!(
        "  aim ≤ 50 ms at p50: {}",
        verdict(saves.at(50) <= Duration::from_millis(50))
    );

    println!(
        "\nsave → `list_changed` at an MCP client ({} saves)",
        SAVES / 2
    );
    println!("  toolcrib             {}", told.line());
    let quick = told.at(50) <= Duration::from_millis(50);
    println!("  aim ≤ 50 ms at p50: {}", verdict(quick));

    let after = memory_kb(crib.id())?;
    println!("\nresident memory with {TOOLS} tools");
    println!(
        "  after the first list {:.1} MB, after {SAVES} saves {:.1} MB",
        before as f64 / 1e3,
        after as f64 / 1e3
    );
    println!("  aim ≤ 40 MB: {}", verdict(before <= 40_000));
    Some(())
}

fn save_to_event(
    world: &World,
    port: u16,
    request: &str,
    event: &str,
    saves: usize,
) -> Option<Samples> {
    use std::io::Write;
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.write_all(request.as_bytes()).ok()?;
    let mut lines = BufReader::new(stream).lines();
    wait_for(&mut lines, str::is_empty)?;
    let mut samples = Samples::default();
    for n in 0..saves {
        // Far enough apart that each save is one of its own, as a person's are.
        std::thread::sleep(Duration::from_millis(300));
        let name = format!("tool-{:04}", n * 7 % TOOLS);
        let (path, draft) = (
            world.tools().join(format!("{name}.json")),
            world.tools().join(".draft"),
        );
        // Unlike all that any series wrote before: a file that reads the same is no news.
        std::fs::write(&draft, plugin(&name, &format!("{event} {n}"))).ok()?;
        let start = Instant::now();
        std::fs::rename(&draft, &path).ok()?;
        wait_for(&mut lines, |line| line.contains(event))?;
        samples.push(start.elapsed());
    }
    Some(samples)
}

/// Reads on to a line of which this is true. Signs of life are lines too, so silence is not all that must end.
fn wait_for(
    lines: &mut impl Iterator<Item = std::io::Result<String>>,
    is: impl Fn(&str) -> bool,
) -> Option<()> {
    let start = Instant::now();
    let mut read = lines.map_while(|line| line.ok().filter(|_| start.elapsed() < PATIENCE));
    read.any(|line| is(&line)).then_some(())
}
