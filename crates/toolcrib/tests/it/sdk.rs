//! The SDKs as packages: written out, installed without a network, type-checked, and used in tests as the guides have them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::guides::files_of;
use crate::support::{Ran, World};
use crate::tidy::root;

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn wheel() -> String {
    format!("toolcrib-{VERSION}-py3-none-any.whl")
}

fn tarball() -> String {
    format!("toolcrib-plugin-{VERSION}.tgz")
}

/// A program that people have, in the project, with nothing of the real environment but PATH.
#[expect(
    clippy::disallowed_methods,
    reason = "tests start the tools of people who write tools by hand"
)]
fn program(world: &World, program: impl AsRef<OsStr>, arguments: &[&str]) -> Ran {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(world.project())
        .env_clear()
        .env("HOME", world.home())
        .env("PYTHONPATH", ".toolcrib/tools")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PATH", std::env::var_os("PATH").unwrap_or_default());
    world.finish(command)
}

/// What `make test` installs below a folder of the repository.
#[track_caller]
fn installed(path: &str) -> PathBuf {
    let path = root().join(path);
    assert!(path.exists(), "{path:?} is missing: run `make test`");
    path
}

/// A project with the files that a guide has its reader write.
fn as_in_guide(page: &str) -> World {
    let world = World::trusted();
    for (path, text) in files_of(page) {
        world.write(world.project().join(path), text);
    }
    world
}

#[test]
fn the_wheel_installs_without_a_network_and_a_tool_is_called_in_a_test() {
    let world = as_in_guide("python-tool.md");
    world.run(&["sdk", "python", "vendor"]).exits(0);
    program(&world, "python3", &["-m", "venv", ".venv"]).exits(0);
    let (python, file) = (".venv/bin/python", format!("vendor/{}", wheel()));
    let install = ["-m", "pip", "install", "--no-index", &file];
    program(&world, python, &install).exits(0);
    program(&world, python, &["-m", "pip", "check"]).exits(0);
    let ran = program(&world, python, &["-m", "unittest", "tests/test_garden.py"]);
    assert!(ran.stderr.contains("Ran 2 tests"), "{}", ran.stderr);
    ran.exits(0);
    // The crib uses that interpreter now, and the SDK that it brings along itself.
    let site = program(
        &world,
        python,
        &["-c", "import toolcrib; print(toolcrib.__file__)"],
    );
    std::fs::write(site.stdout.trim(), "raise SystemExit('the wrong one')").unwrap();
    let ran = world.run(&["call", "water", "plant=beans", "days=4"]);
    assert_eq!(ran.exits(0).stdout, "beans: water it\n");
}

#[test]
fn the_wheel_has_types() {
    let world = World::trusted();
    world.run(&["sdk", "python"]).exits(0);
    program(&world, "python3", &["-m", "venv", "venv"]).exits(0);
    let install = ["-m", "pip", "install", "--no-index", &wheel()];
    program(&world, "venv/bin/python", &install).exits(0);
    let used = "from toolcrib import Context, noop_context, tool\n\n\n\
        @tool(read_only=True)\ndef twice(text: str, ctx: Context) -> str:\n    return text * 2\n\n\n\
        said: str = twice(\"a\", noop_context())\ntitles: list[str] = noop_context().titles\n";
    world.write(world.project().join("right.py"), used);
    world.write(
        world.project().join("wrong.py"),
        format!("{used}twice(1, noop_context())\n"),
    );
    let mypy = installed("target/test-tools/sdk/bin/mypy");
    let check = |file: &str| {
        let interpreter = "--python-executable=venv/bin/python";
        program(&world, &mypy, &["--strict", interpreter, file])
    };
    let ran = check("right.py");
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    let ran = check("wrong.py");
    assert!(ran.stdout.contains("[arg-type]"), "{}", ran.stdout);
    ran.exits(1);
}

/// Types are checked as each kind of project reads them.
const SETTINGS: [(&str, &str); 4] = [
    ("nodenext", "nodenext"),
    ("node16", "node16"),
    ("preserve", "bundler"),
    ("esnext", "bundler"),
];

#[test]
fn the_tarball_installs_without_a_network_and_a_tool_is_called_in_a_test() {
    let world = as_in_guide("typescript-tool.md");
    world.run(&["sdk", "typescript", "vendor"]).exits(0);
    let file = format!("./vendor/{}", tarball());
    let install = ["install", "--save-dev", "--offline", &file];
    program(&world, "npm", &install).exits(0);
    let packages = std::fs::read_dir(world.project().join("node_modules")).unwrap();
    let names = packages.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
    names.sort();
    assert_eq!(names, ["@toolcrib"], "it depends on nothing");

    let node = installed("target/test-tools/runtimes/node_modules/.bin/node");
    let ran = program(&world, &node, &["--test", "tests/sow.test.ts"]);
    assert!(
        ran.stdout.contains("pass 1"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
    ran.exits(0);
    // On any Node, and for `require` too; Zod's languages come from a file of their own.
    let used = "const { tool, Tool, noopContext, z } = require('@toolcrib/plugin');\n\
        const twice = tool({ description: 'd', args: { text: z.string() }, execute: ({ text }) => text + text });\n\
        console.log(twice.execute({ text: 'a' }, noopContext()), Tool.createNoopContext().agent, typeof z.locales.de());";
    let ran = program(&world, "node", &["-e", used]).exits(0);
    assert_eq!(ran.stdout, "aa test object\n");

    let wrong = "import { noopContext } from \"@toolcrib/plugin\";\nimport sow from \"../.toolcrib/tools/sow.ts\";\n\
        // @ts-expect-error no such plant\nsow.execute({ plant: \"cactus\", indoors: false }, noopContext());\n\
        // @ts-expect-error no such field\nnoopContext().directori;\n";
    world.write(world.project().join("tests/wrong.ts"), wrong);
    for (module, resolution) in SETTINGS {
        type_check(&world, module, resolution);
    }
}

/// As a module and as CommonJS, which `package.json` decides where the settings don't.
fn type_check(world: &World, module: &str, resolution: &str) {
    let sdk = installed("sdk/typescript/node_modules");
    let settings = json!({
        "compilerOptions": {
            "module": module, "moduleResolution": resolution, "target": "es2022", "strict": true, "noEmit": true,
            "allowImportingTsExtensions": true, "types": ["node"], "typeRoots": [sdk.join("@types")],
        },
        "include": ["tests", ".toolcrib/tools/sow.ts"],
    });
    world.write(world.project().join("tsconfig.json"), settings.to_string());
    let compiler = sdk.join("typescript/bin/tsc");
    for kind in ["module", "commonjs"] {
        let set = format!("type={kind}");
        program(world, "npm", &["pkg", "set", &set]).exits(0);
        let ran = program(world, "node", &[compiler.to_str().unwrap(), "-p", "."]);
        assert_eq!(ran.code, 0, "{module} in {kind}: {}", ran.stdout);
    }
}

/// `files` of `package.json` and the tarball name the same files, so `npm publish` gives what `toolcrib sdk` writes.
#[test]
fn npm_packs_the_same_files() {
    let world = World::trusted();
    world.run(&["sdk", "typescript"]).exits(0);
    let listed = program(&world, "tar", &["tzf", &tarball()]).exits(0).stdout;
    let mut listed: Vec<&str> = listed.lines().collect();
    listed.sort_unstable();
    program(&world, "tar", &["xzf", &tarball()]).exits(0);
    let pack = ["pack", "--dry-run", "--json", "--offline", "./package"];
    let packed = program(&world, "npm", &pack).exits(0).json();
    let files = packed[0]["files"].as_array().unwrap();
    let path = |file: &serde_json::Value| format!("package/{}", file["path"].as_str().unwrap());
    let mut files: Vec<String> = files.iter().map(path).collect();
    files.sort_unstable();
    assert_eq!(files, listed);
    assert_eq!(packed[0]["filename"], tarball());
}

#[test]
fn what_is_written_is_told_with_what_to_do_next() {
    let world = World::trusted();
    let file = world.project().join("my packages").join(wheel());
    let next = format!(
        "python3 -m pip install --force-reinstall '{}'",
        file.display()
    );
    let ran = world.run(&["sdk", "python", "./my packages"]).exits(0);
    let told = format!("written  {}\n\nNext:\n  {next}\n", file.display());
    assert_eq!(ran.stdout, told);
    let again = world.run(&["sdk", "python", "my packages", "--json"]);
    assert_eq!(
        again.exits(0).json(),
        json!({
            "language": "python", "package": "toolcrib", "version": VERSION, "file": file,
            "change": "unchanged", "next": next,
        })
    );
    let ran = world.run(&["sdk", "typescript", "--json"]).exits(0).json();
    let file = world.project().join(tarball());
    assert_eq!(ran["package"], "@toolcrib/plugin");
    assert_eq!(ran["file"], json!(file));
    assert_eq!(
        ran["next"],
        json!(format!("npm install --save-dev {}", file.display()))
    );
    assert_eq!(drafts(&world.project()), Vec::<String>::new());
}

fn drafts(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.contains("draft")).collect()
}

#[test]
fn only_its_own_file_is_replaced_unless_forced() {
    let world = World::trusted();
    for (language, name) in [("python", wheel()), ("typescript", tarball())] {
        let file = world.project().join(&name);
        world.run(&["sdk", language]).exits(0);
        let bytes = std::fs::read(&file).unwrap();

        // Another version of Toolcrib wrote it: its head and its end are the same.
        let mut older = bytes.clone();
        let middle = older.len() / 2;
        older[middle] ^= 1;
        std::fs::write(&file, &older).unwrap();
        let ran = world.run(&["sdk", language, "--json"]).exits(0).json();
        assert_eq!(ran["change"], "replaced");
        assert_eq!(std::fs::read(&file).unwrap(), bytes);

        std::fs::write(&file, "somebody's own").unwrap();
        let ran = world.run(&["sdk", language, "."]).exits(3);
        let told = format!(
            "error: `{}` is there already, and Toolcrib did not write it\n\
            hint: `toolcrib sdk {language} . --force` replaces it, or name another folder\n",
            file.display()
        );
        assert_eq!(ran.stderr, told);
        assert_eq!(std::fs::read(&file).unwrap(), b"somebody's own");
        world.run(&["sdk", language, "--force"]).exits(0);
        assert_eq!(std::fs::read(&file).unwrap(), bytes);

        // A link is somebody's own too, wherever it leads; it is replaced, not followed.
        let elsewhere = world.write(world.root().join("elsewhere"), &bytes);
        std::fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &file).unwrap();
        let ran = world.run(&["sdk", language, "--json"]).exits(3).json();
        assert_eq!(ran["error"]["code"], "conflict");
        world.run(&["sdk", language, "--force"]).exits(0);
        assert!(file.symlink_metadata().unwrap().is_file());
        assert_eq!(std::fs::read(&elsewhere).unwrap(), bytes);
    }
    let file = world.write(world.project().join("file"), "");
    let ran = world.run(&["sdk", "python", "file"]).exits(4);
    assert!(ran.stderr.contains("can't write `"), "{}", ran.stderr);
    assert_eq!(std::fs::read(&file).unwrap(), b"");
    world.run(&["sdk", "cobol"]).exits(2);
}
