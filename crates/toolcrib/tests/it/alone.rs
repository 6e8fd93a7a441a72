//! In an untrusted project a tool that `toolcrib new` made is trusted by itself: nothing around it becomes part of it.

use std::os::unix::fs::{PermissionsExt, symlink};

use crate::support::{Ran, World};

const TOOL: &str = r#"
from toolcrib import tool
@tool
def mine() -> str:
    "Says what it found."
    return "mine"
"#;

/// An untrusted project with a tool of each language that is trusted by itself, and neighbours that nobody trusts.
fn world() -> World {
    let world = World::new();
    for (name, template) in [("mine", "python"), ("other", "typescript")] {
        world.run(&["new", name, "--template", template]).exits(0);
    }
    let evil = |word: &str| format!("raise SystemExit('{word} ran')\n");
    world.write_tool("neighbour.py", evil("a neighbour"));
    world.write_tool("neighbour.mjs", "throw new Error('a neighbour ran')\n");
    world.write("shadow.py", evil("a module of the project"));
    world.write_tool("shadow.py", evil("a module beside it"));
    for folder in ["node_modules/evil", ".toolcrib/tools/node_modules/evil"] {
        world.write(
            format!("{folder}/package.json"),
            r#"{"name": "evil", "main": "index.js"}"#,
        );
        world.write(
            format!("{folder}/index.js"),
            "module.exports = 'a package of the project ran';\n",
        );
    }
    world
}

fn call(world: &World, tool: &str) -> Ran {
    world.run(&["call", tool, "--json"])
}

/// The file of a tool that is trusted by itself, with another text.
fn rewrite(world: &World, file: &str, text: &str) {
    let path = world.tools_folder().join(file);
    assert!(path.is_file(), "{}", path.display());
    std::fs::write(path, text).unwrap();
}

#[test]
fn a_list_of_packages_beside_it_is_nothing_of_its() {
    let world = world();
    rewrite(&world, "mine.py", TOOL);
    world.write_tool("requirements.txt", "evil-package\n");
    world.write_tool("package.json", r#"{"dependencies": {"evil-package": "1"}}"#);
    let ran = call(&world, "mine").exits(0);
    assert_eq!(ran.json()["output"], "mine");
    let shown = world.run(&["show", "mine", "--json"]).exits(0);
    assert!(!shown.stdout.contains("evil-package"), "{}", shown.stdout);
    let tool = r#"export default { description: "Says", args: {}, execute: () => "other" };"#;
    rewrite(&world, "other.ts", tool);
    assert_eq!(call(&world, "other").exits(0).json()["output"], "other");
}

#[test]
fn modules_around_it_are_not_imported() {
    let world = world();
    for import in [
        "import neighbour",
        "from . import neighbour",
        "import shadow",
        "import importlib; importlib.import_module('.neighbour', __package__)",
        "import importlib; importlib.import_module('shadow')",
    ] {
        rewrite(&world, "mine.py", &format!("{import}\n{TOOL}"));
        let ran = world.run(&["errors"]);
        let told = format!("{import}: {}{}", ran.stdout, ran.stderr);
        assert!(!told.contains(" ran"), "{told}");
        let refused = ["there is no", "cannot import name"];
        assert!(refused.iter().any(|words| told.contains(words)), "{told}");
    }
    for (import, word) in [
        ("import evil from 'evil';", Some("evil")),
        (
            "import './neighbour.mjs'; const evil = '';",
            Some("neighbour"),
        ),
        (
            "const { default: evil } = await import('./neigh' + 'bour.mjs');",
            Some("neighbour"),
        ),
        ("import fs from 'node:fs'; const evil = typeof fs;", None),
    ] {
        let tool = format!(
            "{import}\nexport default {{ description: 'Says', args: {{}}, execute: () => `${{evil}}` }};"
        );
        rewrite(&world, "other.ts", &tool);
        let ran = call(&world, "other");
        let errors = world.run(&["errors"]).stdout;
        let told = format!("{import}: {ran:?} {errors}");
        assert!(!told.contains(" ran"), "{told}");
        let wrong = errors.split("other.ts").nth(1).unwrap_or_default();
        match word {
            Some(word) => assert!(wrong.contains(word), "{told}"),
            None => assert_eq!(wrong, "", "{told}"),
        }
    }
}

#[test]
fn the_same_imports_work_once_the_project_is_trusted() {
    let world = world();
    world.write_tool("neighbour.py", "WORD = 'a neighbour'\n");
    rewrite(
        &world,
        "mine.py",
        &format!(
            "import neighbour\n{}",
            TOOL.replace("\"mine\"", "neighbour.WORD")
        ),
    );
    assert_ne!(call(&world, "mine").code, 0);
    world.run(&["trust"]).exits(0);
    assert_eq!(
        call(&world, "mine").exits(0).json()["output"],
        "a neighbour"
    );
    // What served while the project was trusted does not come back when it is not.
    world.run(&["trust", "--revoke"]).exits(0);
    assert_ne!(call(&world, "mine").code, 0);
}

#[test]
fn a_project_interpreter_does_not_run_it() {
    let mut world = world();
    let canary = world.project().join("canary");
    let fake = format!("#!/bin/sh\ntouch {}\n", canary.display());
    let python = world.write(".venv/bin/python", fake);
    std::fs::set_permissions(python, std::fs::Permissions::from_mode(0o755)).unwrap();
    let venv = world.project().join(".venv");
    world.vars.push(("VIRTUAL_ENV", venv.display().to_string()));
    rewrite(&world, "mine.py", TOOL);
    let ran = call(&world, "mine").exits(0);
    assert_eq!(ran.json()["output"], "mine");
    assert!(!canary.exists());
}

#[test]
fn a_folder_is_trusted_without_what_its_links_lead_to() {
    let world = World::new();
    world.run(&["new", "box", "--template", "bash"]).exits(0);
    let folder = world.tools_folder().join("box");
    assert!(folder.is_dir());
    for entry in std::fs::read_dir(&folder).unwrap().flatten() {
        std::fs::remove_file(entry.path()).unwrap();
    }
    world.write("outside.py", "WORD = 'what lies outside ran'\n");
    std::fs::write(folder.join("inside.py"), "WORD = 'inside'\n").unwrap();
    let text = |module: &str| {
        let text = TOOL
            .replace("\"mine\"", "WORD")
            .replace("def mine", "def boxed");
        format!("from .{module} import WORD\n{text}")
    };
    std::fs::write(folder.join("tool.py"), text("inside")).unwrap();
    assert_eq!(call(&world, "boxed").exits(0).json()["output"], "inside");
    symlink("../../../outside.py", folder.join("link.py")).unwrap();
    let dynamic = format!(
        "import importlib\nWORD = importlib.import_module('.li' + 'nk', __package__).WORD\n{}",
        text("inside").replace("from .inside import WORD\n", "")
    );
    for body in [text("link"), dynamic] {
        std::fs::write(folder.join("tool.py"), body).unwrap();
        // The version before it may stand in for it; what the link leads to is in neither.
        let told = format!(
            "{:?} {}",
            call(&world, "boxed"),
            world.run(&["errors"]).stdout
        );
        assert!(!told.contains("outside ran"), "{told}");
        assert!(told.contains("there is no file link.py"), "{told}");
    }
}

/// A program in Node's language that says what it could load of what lies around it.
const LOOKS_AROUND: &str = r#"#!/usr/bin/env node
const got = [];
for (const name of ["evil", "../neighbour.cjs", "./inside.cjs", "../../../data.cjs"]) {
  try { got.push(require(name)); } catch {}
}
const about = { name: "box", description: "Looks around", version: "1", inputSchema: { type: "object" } };
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method } = JSON.parse(line);
  const result = method === "initialize" ? about : method === "execute" ? { output: got.join() } : { status: "healthy" };
  console.log(JSON.stringify({ jsonrpc: "2.0", id, result }));
});
"#;

/// The project is read, but an interpreter finds nothing there that it would load by itself.
#[test]
fn a_program_finds_no_packages_or_neighbours_to_load() {
    for rung in ["A", "B", "C"] {
        let mut world = world();
        world.vars.push(("TOOLCRIB_MAX_RUNG", rung.to_owned()));
        world.run(&["new", "box", "--template", "bash"]).exits(0);
        let folder = world.tools_folder().join("box");
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            std::fs::remove_file(entry.path()).unwrap();
        }
        world.write(
            "data.cjs",
            "module.exports = 'what it names in the project';\n",
        );
        world.write_tool("neighbour.cjs", "module.exports = 'a neighbour ran';\n");
        std::fs::write(folder.join("inside.cjs"), "module.exports = 'inside';\n").unwrap();
        let program = folder.join("tool.cjs");
        std::fs::write(&program, LOOKS_AROUND).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let ran = call(&world, "box").exits(0).json();
        assert_eq!(
            ran["output"], "inside,what it names in the project",
            "{rung}"
        );
        world.run(&["trust"]).exits(0);
        let ran = call(&world, "box").exits(0).json();
        assert_eq!(
            ran["output"],
            "a package of the project ran,a neighbour ran,inside,what it names in the project",
            "{rung}"
        );
    }
}
