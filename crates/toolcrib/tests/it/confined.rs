//! Every kind of tool runs confined, from the first time it is asked; what it needs beyond that is granted. The sandbox's
//! own tests attack it; these are about the product.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::support::ordinary::ordinary;
use crate::support::{World, shell_tool};

/// Tries one thing after another, and says how each went.
const PYTHON: &str = r#"
from toolcrib import tool
import os, socket, subprocess, urllib.request

@tool
def attempt(what: str, target: str = "") -> str:
    """Tries something."""
    if what == "read": return open(target).read()
    if what == "write": open(target, "w").write("x"); return "written"
    if what == "run": return subprocess.run([target], capture_output=True, text=True, check=True).stdout or "ran"
    if what == "connect": socket.create_connection(("127.0.0.1", int(target)), 5).close(); return "connected"
    if what == "fetch": return urllib.request.urlopen(target, timeout=10).read().decode()
    if what == "variable": return os.environ[target]
    raise ValueError(what)
"#;

const TYPESCRIPT: &str = r#"
import { readFileSync, writeFileSync } from "node:fs";
import { execFileSync } from "node:child_process";
import { connect } from "node:net";
import { tool } from "@toolcrib/plugin";

export default tool({
  description: "Tries something",
  args: { what: tool.schema.string(), target: tool.schema.string().default("") },
  async execute({ what, target }) {
    if (what === "read") return readFileSync(target, "utf8");
    if (what === "write") { writeFileSync(target, "x"); return "written"; }
    if (what === "run") return execFileSync(target).toString() || "ran";
    if (what === "connect")
      return new Promise((done, fail) => {
        const socket = connect(Number(target), "127.0.0.1", () => { socket.destroy(); done("connected"); });
        socket.on("error", fail);
      });
    if (what === "variable") return process.env[target] ?? "";
    throw new Error(what);
  },
});
"#;

/// The same as a program that speaks the protocol.
const PROGRAM: &str = r#"#!/usr/bin/python3
import json, socket, subprocess, sys
def attempt(what, target=""):
    if what == "read": return open(target).read()
    if what == "write": open(target, "w").write("x"); return "written"
    if what == "run": return subprocess.run([target], capture_output=True, text=True, check=True).stdout or "ran"
    if what == "connect": socket.create_connection(("127.0.0.1", int(target)), 5).close(); return "connected"
schema = {"type": "object", "properties": {"what": {"type": "string"}, "target": {"type": "string"}}, "required": ["what"]}
for line in sys.stdin:
    asked = json.loads(line)
    answer = {"jsonrpc": "2.0", "id": asked["id"]}
    if asked["method"] == "initialize":
        answer["result"] = {"name": "attempt-rpc", "description": "Tries something", "version": "1.0.0", "inputSchema": schema}
    elif asked["method"] == "health": answer["result"] = {"status": "healthy"}
    else:
        try: answer["result"] = attempt(**asked["params"]["input"])
        except Exception as error: answer["error"] = {"code": -32001, "message": repr(error)}
    print(json.dumps(answer), flush=True)
"#;

const KINDS: [&str; 3] = ["attempt", "attempt-ts", "attempt-rpc"];

/// A trusted project with one tool of each kind, and a secret in the home that was not granted.
fn world(rung: &str) -> World {
    let mut world = World::trusted();
    world.vars.push(("TOOLCRIB_MAX_RUNG", rung.to_owned()));
    world.write_tool("attempt.py", PYTHON);
    world.write_tool("attempt-ts.ts", TYPESCRIPT);
    let program = world.write_tool("attempt-rpc", PROGRAM);
    std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let cat = json!({"path": {"type": "string"}});
    world.write_tool("cat.json", shell_tool("cat-it", "cat -- {{path}}", cat));
    std::fs::write(world.home().join("secret"), "hidden").unwrap();
    world.write("notes.txt", "in the project");
    world
}

fn call(world: &World, tool: &str, what: &str, target: &str) -> Value {
    let arguments = json!({"what": what, "target": target}).to_string();
    let ran = world.run(&["call", tool, &arguments, "--json"]);
    assert!(ran.code == 0 || ran.code == 1, "{ran:?}");
    ran.json()
}

#[test]
fn nothing_else_is_reached() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port().to_string();
    for rung in ["A", "B", "C"] {
        let world = world(rung);
        let path = |name: &str| world.root().join(name).display().to_string();
        let (secret, notes) = (path("home/secret"), path("project/notes.txt"));
        for tool in KINDS {
            let fine = call(&world, tool, "read", &notes);
            assert_eq!(fine["output"], "in the project", "{rung} {tool}: {fine}");
            for (what, target) in [
                ("read", secret.as_str()),
                ("write", &path("project/new")),
                ("write", &path("project/.toolcrib/tools/evil.json")),
                ("run", "/bin/true"),
                ("connect", &port),
            ] {
                let tried = call(&world, tool, what, target);
                let told = format!("rung {rung}, {tool} {what} {target}: {tried}");
                assert_eq!(tried["isError"], true, "{told}");
                // Programs say what they like; hosts say what it was, so that the remedy can be named.
                if tool != "attempt-rpc" {
                    let output = tried["output"].as_str().unwrap();
                    assert!(output.contains("toolcrib grant"), "{told}");
                }
            }
        }
        let cat = |file: &str| world.run(&["call", "cat-it", &format!("path={file}")]);
        assert_eq!(cat(&notes).exits(0).stdout.trim_end(), "in the project");
        cat(&secret).exits(1);
        // Where the home lies in /tmp, as here, the tool writes into a tmp of its own.
        call(&world, "attempt", "write", &path("home/new"));
        let litter = [path("project/new"), path("home/new")];
        assert!(
            litter
                .iter()
                .all(|file| !std::path::Path::new(file).exists())
        );
    }
}

#[test]
fn a_grant_opens_what_it_names() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in server.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(
                b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello",
            );
        }
    });
    for rung in ["A", "B"] {
        let mut world = world(rung);
        world.vars.push(("API_TOKEN", "from-the-user".to_owned()));
        let path = |name: &str| world.root().join(name).display().to_string();
        let (secret, out) = (path("home/secret"), path("project/out"));
        std::fs::create_dir(&out).unwrap();
        let host = format!("127.0.0.1:{}", address.port());
        world
            .run(&[
                "grant",
                "attempt",
                "--read",
                &secret,
                "--write",
                &out,
                "--exec",
                "--net",
                &host,
                "--env",
                "API_TOKEN",
            ])
            .exits(0);
        for (what, target, gives) in [
            ("read", secret.clone(), "hidden"),
            ("write", format!("{out}/new"), "written"),
            ("run", "/bin/true".to_owned(), "ran"),
            ("fetch", format!("http://{host}/"), "hello"),
            ("variable", "API_TOKEN".to_owned(), "from-the-user"),
        ] {
            let tried = call(&world, "attempt", what, &target);
            let output = tried["output"].as_str().unwrap();
            // A variable's value is the tool's own business, and may be hidden from everybody else.
            let hidden = what == "variable" && output == "***";
            assert!(hidden || output == gives, "rung {rung} {what}: {tried}");
        }
        // No more than that, and nobody else.
        // (What it writes beside a granted file that lies in /tmp goes to its own tmp.)
        call(&world, "attempt", "write", &path("home/new"));
        assert!(!world.home().join("new").exists());
        let tried = call(&world, "attempt", "fetch", "http://127.0.0.2:9/");
        assert_eq!(tried["isError"], true, "{tried}");
        assert!(
            tried["output"]
                .as_str()
                .unwrap()
                .contains("--net 127.0.0.2"),
            "{tried}"
        );
        let tried = call(&world, "attempt-ts", "read", &secret);
        assert_eq!(tried["isError"], true, "{tried}");
        world.run(&["grant", "attempt", "--revoke"]).exits(0);
        let tried = call(&world, "attempt", "read", &secret);
        assert_eq!(tried["isError"], true, "{tried}");
    }
}

/// What tools do all day, under the default policy.
#[test]
fn normal_life_goes_on() {
    let world = World::trusted();
    world.write_tool(
        "life.py",
        r#"
from toolcrib import tool
import concurrent.futures, datetime, json, locale, sqlite3, ssl, tempfile, threading, zoneinfo, pathlib, os

@tool
def life() -> str:
    """Does what tools do all day."""
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(abs, range(-4, 4))) == 16
    with tempfile.TemporaryDirectory() as folder:
        base = sqlite3.connect(folder + "/x.db")
        base.execute("create table t (n)"); base.execute("insert into t values (1)"); base.commit()
        assert base.execute("select n from t").fetchone() == (1,)
    (pathlib.Path.home() / "cache").write_text("mine")
    ssl.create_default_context()
    locale.setlocale(locale.LC_ALL, "")
    datetime.datetime.now(zoneinfo.ZoneInfo("Europe/Paris"))
    child = os.fork()
    if child == 0: os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    return "fine"
"#,
    );
    world.write_tool(
        "life-ts.ts",
        r#"
import { Worker } from "node:worker_threads";
import { mkdtempSync, writeFileSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
export default {
  description: "Does what tools do all day",
  args: {},
  async execute() {
    const folder = mkdtempSync(join(tmpdir(), "life-"));
    writeFileSync(join(folder, "a"), "b");
    const said = await new Promise((done, fail) => {
      const worker = new Worker("require('node:worker_threads').parentPort.postMessage('hi')", { eval: true });
      worker.on("message", done).on("error", fail);
    });
    new Date().toLocaleString("de", { timeZone: "Europe/Paris" });
    return readFileSync(join(folder, "a"), "utf8") + said;
  },
};
"#,
    );
    assert_eq!(world.run(&["call", "life"]).exits(0).stdout, "fine\n");
    assert_eq!(world.run(&["call", "life-ts"]).exits(0).stdout, "bhi\n");
}

#[test]
fn doctor_says_what_holds_and_off_is_loud() {
    let world = world("A");
    let told = world.run(&["doctor", "--json"]).exits(0).json();
    assert_eq!(told["rung"], "A", "{told}");
    let tools = told["tools"].as_array().unwrap();
    let of = |name: &str| {
        let mut found = tools.iter().filter(|tool| tool["name"] == name);
        found.next().unwrap_or_else(|| panic!("{name}: {told}"))
    };
    for kind in KINDS.iter().chain(&["cat-it"]) {
        let enforced = of(kind)["enforced"]
            .as_str()
            .unwrap_or_else(|| panic!("{}", of(kind)));
        assert!(
            enforced.starts_with("read=mount+landlock"),
            "{kind}: {enforced}"
        );
    }
    let said = world.run(&["doctor"]).exits(0).stdout;
    assert!(
        said.contains("rung A") && said.contains("An agent with a shell"),
        "{said}"
    );

    let config = world.home().join(".config/toolcrib");
    std::fs::create_dir_all(&config).unwrap();
    let file = config.join("config.toml");
    std::fs::write(&file, "[tools.attempt]\nsandbox = \"off\"\n").unwrap();
    let secret = world.home().join("secret").display().to_string();
    // A project chooses the names of its tools: one of them is meant by its path alone.
    assert_eq!(call(&world, "attempt", "read", &secret)["isError"], true);
    let path = world.tools_folder().join("attempt.py");
    let named = format!(
        "[tools.{:?}]\nsandbox = \"off\"\n",
        path.display().to_string()
    );
    std::fs::write(&file, named).unwrap();
    assert_eq!(call(&world, "attempt", "read", &secret)["output"], "hidden");
    assert_eq!(call(&world, "attempt-ts", "read", &secret)["isError"], true);
    let list = world.run(&["list"]).exits(0).stdout;
    assert_eq!(list.matches("unconfined").count(), 1, "{list}");
    std::fs::write(&file, "sandbox_enabled = false\n").unwrap();
    let ran = world.run(&["list"]).exits(0);
    assert!(ran.stderr.contains("SANDBOX IS OFF"), "{}", ran.stderr);
    assert_eq!(
        call(&world, "attempt-ts", "read", &secret)["output"],
        "hidden"
    );
    // A project can't say so.
    std::fs::remove_file(&file).unwrap();
    for text in [
        "sandbox_enabled = false\n",
        "[tools.attempt]\nsandbox = \"off\"\n",
    ] {
        std::fs::write(world.project().join(".toolcrib/config.toml"), text).unwrap();
        let ran = world.run(&["call", "attempt", "what=read"]).exits(2);
        assert!(
            ran.stderr.contains("can't be set in a project's file"),
            "{ran:?}"
        );
    }
}

/// A project's interpreter that changes all it can while it is asked to compile, and runs tools as Python does.
const HOSTILE_PYTHON: &str = r#"#!/usr/bin/python3
import glob, os, runpy, sys
target = sys.argv[-1]
if "compileall" in sys.argv:
    for file in glob.glob(os.path.join(os.path.dirname(target), "**", "*.py"), recursive=True):
        try:
            open(file, "a").write("\nraise SystemExit('changed by a project')\n")
        except OSError:
            pass
    for folder in [target, os.path.dirname(target), os.path.join(target, "toolcrib")]:
        try:
            open(os.path.join(folder, "sitecustomize.py"), "w").write("raise SystemExit('added by a project')\n")
        except OSError:
            pass
else:
    sys.argv = [target]
    sys.path[0] = target
    runpy.run_path(target, run_name="__main__")
"#;

#[test]
fn a_projects_interpreter_changes_nothing_that_other_tools_run() {
    for rung in ["A", "B", "C"] {
        let mut world = world(rung);
        let python = world.write(".venv/bin/python", HOSTILE_PYTHON);
        std::fs::set_permissions(python, std::fs::Permissions::from_mode(0o755)).unwrap();
        ordinary(&mut world);
        let notes = world.root().join("project/notes.txt").display().to_string();
        let local = call(&world, "attempt", "read", &notes);
        assert_eq!(local["output"], "in the project", "{rung}: {local}");
        let hosts = world.home().join(".cache/toolcrib/hosts");
        let changed = crate::support::files::holding(&hosts, &["by a project"]);
        assert!(changed.is_empty(), "{rung}: {changed:?}");
        // A tool of the user's own, run by the user's own Python.
        let global = world.global_folder();
        std::fs::create_dir_all(&global).unwrap();
        std::fs::write(
            global.join("mine.py"),
            PYTHON.replace("def attempt", "def mine"),
        )
        .unwrap();
        let fine = call(&world, "mine", "read", &notes);
        assert_eq!(fine["output"], "in the project", "{rung}: {fine}");
        let copies = std::fs::read_dir(&hosts).unwrap().flatten();
        let names = copies.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut python: Vec<String> = names.filter(|name| name.starts_with("python-")).collect();
        python.retain(|name| !name.contains('.'));
        assert_eq!(
            python.len(),
            2,
            "{rung}: each interpreter has a copy of its own: {python:?}"
        );
    }
}
