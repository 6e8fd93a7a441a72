//! A program of a test's own that is a tool, every process of which carries a marker.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::World;
use super::processes::{Process, marked};

/// What the program is: it says what it is told, sleeps, leaves daemons, and notes down when it is asked to end.
pub const PROGRAM: &str = include_str!("tool.py");

/// A number of seconds that no other process of this machine sleeps for.
pub fn marker() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("86400.{:08}{next:04}", std::process::id())
}

/// Takes the walls away that would keep a test's programs from what they are for: to leave marks and daemons behind.
pub fn unconfined(world: &World) {
    let folder = world.home().join(".config/toolcrib");
    let file = folder.join("config.toml");
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    if !text.contains("sandbox_enabled") {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(&file, format!("sandbox_enabled = false\n{text}")).unwrap();
    }
}

/// A tool `name` that runs [`PROGRAM`], unconfined, with further fields of `tool.json` and arguments of the program.
pub fn write_program(world: &World, name: &str, marker: &str, args: &[&str], fields: Value) {
    unconfined(world);
    let told = told(world);
    let mut all = vec!["tool.py", marker, told.to_str().unwrap()];
    all.extend(args);
    let mut tool = json!({
        "name": name, "description": "A tool of a test", "command": python(), "args": all,
        "inputSchema": {"type": "object"}, "retryDelayMs": 20,
    });
    let fields = fields.as_object().unwrap().clone();
    tool.as_object_mut().unwrap().extend(fields);
    let folder = world.tools_folder().join(name);
    std::fs::create_dir_all(&folder).unwrap();
    save_program(world, name, PROGRAM);
    std::fs::write(folder.join("tool.json"), tool.to_string()).unwrap();
}

/// The system's own, which every user may execute and which is no script that looks for another.
pub fn python() -> &'static str {
    let system = "/usr/bin/python3";
    if Path::new(system).exists() {
        system
    } else {
        "python3"
    }
}

/// Saves the program in one step, as editors do.
pub fn save_program(world: &World, name: &str, text: &str) {
    let folder = world.tools_folder().join(name);
    std::fs::write(folder.join(".draft"), text).unwrap();
    std::fs::rename(folder.join(".draft"), folder.join("tool.py")).unwrap();
}

/// The file in which every program notes that it was asked to end.
pub fn told(world: &World) -> PathBuf {
    world.project().join("told")
}

/// How many programs were asked to end.
pub fn asked_to_end(world: &World) -> usize {
    std::fs::read_to_string(told(world)).map_or(0, |text| text.lines().count())
}

/// The programs themselves, without launchers and daemons.
pub fn workers(marker: &str) -> Vec<Process> {
    let all = marked(marker).into_iter();
    all.filter(|process| process.runs("python3") && process.is_tool())
        .collect()
}
