//! Packages are installed only for tools that were granted it, in the background, behind walls, and without running anything
//! of theirs.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::ordinary::ordinary;
use crate::support::{World, eventually};

/// Makes the packages: a wheel of `crib_words`; a source archive of `crib_evil`, whose build would leave canaries at the
/// paths given; a tarball of the npm package `crib-words`, whose scripts would do so too.
const PACKAGES: &str = r#"
import io, json, sys, tarfile, zipfile
out, *canaries = sys.argv[1:]
def wheel(file, name, module, text, more={}):
    with zipfile.ZipFile(file, "w") as made:
        for path, held in more.items():
            made.writestr(path, held)
        made.writestr(f"{module}.py", text)
        made.writestr(f"{name}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {module.replace('_', '-')}\nVersion: 1.0\n")
        made.writestr(f"{name}.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        made.writestr(f"{name}.dist-info/RECORD", "")
wheel(f"{out}/crib_words-1.0-py3-none-any.whl", "crib_words-1.0", "crib_words", "HELLO = 'Hello from a package'\n")
for module, path in ("crib_frame", "data/pyvenv.cfg"), ("crib_python", "scripts/python"):
    name = f"{module}-1.0"
    wheel(f"{out}/{name}-py3-none-any.whl", name, module, "", {f"{name}.data/{path}": "home = /opt/elsewhere/bin\n"})
backend = f'''
import zipfile
CANARIES = {canaries!r}
def attempt():
    done = []
    for canary in CANARIES:
        try:
            open(canary, "w").write("ran")
            done.append(canary)
        except OSError:
            pass
    return done
attempt()
def build_wheel(folder, config_settings=None, metadata_directory=None):
    text = "WROTE = " + repr(attempt())
    name = "crib_evil-1.0"
    with zipfile.ZipFile(folder + "/" + name + "-py3-none-any.whl", "w") as made:
        made.writestr("crib_evil.py", text)
        made.writestr(name + ".dist-info/METADATA", "Metadata-Version: 2.1\\nName: crib-evil\\nVersion: 1.0\\n")
        made.writestr(name + ".dist-info/WHEEL", "Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        made.writestr(name + ".dist-info/RECORD", "")
    return name + "-py3-none-any.whl"
def get_requires_for_build_wheel(config_settings=None):
    return []
'''
def archive(file, files):
    with tarfile.open(file, "w:gz") as made:
        for name, text in files.items():
            one = tarfile.TarInfo(name)
            one.size = len(text.encode())
            made.addfile(one, io.BytesIO(text.encode()))
archive(f"{out}/crib_evil-1.0.tar.gz", {
    "crib_evil-1.0/PKG-INFO": "Metadata-Version: 2.1\nName: crib-evil\nVersion: 1.0\n",
    "crib_evil-1.0/pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "evil"\nbackend-path = ["."]\n[project]\nname = "crib-evil"\nversion = "1.0"\n',
    "crib_evil-1.0/evil.py": backend,
})
touch = " ; ".join(f"touch {canary}" for canary in canaries)
scripts = {name: touch for name in ("preinstall", "install", "postinstall", "prepare")}
archive(f"{out}/crib-words-1.0.0.tgz", {
    "package/package.json": json.dumps({"name": "crib-words", "version": "1.0.0", "main": "index.js", "scripts": scripts}),
    "package/index.js": "module.exports = 'Hello from a package';\n",
})
"#;

/// An index of packages on loopback, as both kinds of installers ask for it.
struct Shop {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
    folder: tempfile::TempDir,
}

impl Shop {
    #[expect(clippy::disallowed_methods, reason = "a test makes what it needs")]
    fn open(canaries: &[PathBuf]) -> Shop {
        let folder = tempfile::tempdir().unwrap();
        let mut python = Command::new("python3");
        let python = python.args(["-c", PACKAGES]).arg(folder.path());
        let made = python.args(canaries).stdout(Stdio::null()).status();
        assert!(made.unwrap().success());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let file = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
        let mut pages: HashMap<String, (&str, Vec<u8>)> = HashMap::new();
        for (name, held) in [
            ("crib-words", "crib_words-1.0-py3-none-any.whl"),
            ("crib-evil", "crib_evil-1.0.tar.gz"),
            ("crib-frame", "crib_frame-1.0-py3-none-any.whl"),
            ("crib-python", "crib_python-1.0-py3-none-any.whl"),
        ] {
            let page = format!(
                "<!DOCTYPE html><html><body><a href=\"/files/{held}\">{held}</a></body></html>"
            );
            pages.insert(format!("/simple/{name}/"), ("text/html", page.into()));
            pages.insert(
                format!("/files/{held}"),
                ("application/octet-stream", file(held)),
            );
        }
        let tarball = format!("http://127.0.0.1:{port}/files/crib-words-1.0.0.tgz");
        let version = json!({"name": "crib-words", "version": "1.0.0", "dist": {"tarball": tarball},
            "hasInstallScript": true});
        let package = json!({"name": "crib-words", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}});
        pages.insert(
            "/crib-words".to_owned(),
            ("application/json", package.to_string().into()),
        );
        pages.insert(
            "/files/crib-words-1.0.0.tgz".to_owned(),
            ("application/octet-stream", file("crib-words-1.0.0.tgz")),
        );
        let asked = Arc::new(Mutex::new(Vec::new()));
        let heard = asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut lines = BufReader::new(&stream).lines();
                let first = lines.next().and_then(Result::ok).unwrap_or_default();
                while lines
                    .next()
                    .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
                {}
                let path = first.split(' ').nth(1).unwrap_or_default();
                let path = path.split('?').next().unwrap_or_default().to_owned();
                heard.lock().unwrap().push(path.clone());
                let missing = ("text/plain", b"not here".to_vec());
                let (status, (kind, body)) = match pages.get(&path) {
                    Some(page) => ("200 OK", page),
                    None => ("404 Not Found", &missing),
                };
                let head = format!(
                    "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    body.len()
                );
                let mut stream = &stream;
                let _ = stream.write_all(head.as_bytes());
                let _ = stream.write_all(body);
            }
        });
        Shop {
            port,
            asked,
            folder,
        }
    }

    fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

/// A trusted project on this rung whose installers ask the shop, and the places where packages would leave canaries.
fn world(rung: &str) -> (World, Shop, Vec<PathBuf>) {
    let mut world = World::trusted();
    let canaries = vec![
        world.home().join("canary"),
        world.project().join("canary"),
        world.home().join(".cache/toolcrib/canary"),
        world.home().join(".cache/toolcrib/environments/canary"),
    ];
    let shop = Shop::open(&canaries);
    let own = format!("http://127.0.0.1:{}", shop.port);
    world.vars.extend([
        ("TOOLCRIB_MAX_RUNG", rung.to_owned()),
        ("PIP_INDEX_URL", format!("{own}/simple")),
        ("UV_INDEX_URL", format!("{own}/simple")),
        ("NPM_CONFIG_REGISTRY", format!("{own}/")),
    ]);
    ordinary(&mut world);
    (world, shop, canaries)
}

fn python(package: &str, body: &str) -> String {
    let module = package.replace('-', "_");
    format!(
        "# /// script\n# dependencies = [\"{package}\"]\n# ///\nimport {module}\nfrom toolcrib import tool\n\
         @tool\ndef say(loud: bool = False) -> str:\n    \"Says it.\"\n    return {body}\n"
    )
}

fn environments(world: &World) -> usize {
    let folder = world.home().join(".cache/toolcrib/environments");
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.ends_with(".complete")).count()
}

fn no_canary(canaries: &[PathBuf], told: &str) {
    for canary in canaries {
        assert!(!canary.exists(), "{told}: {}", canary.display());
    }
}

#[test]
fn nothing_is_installed_before_it_is_granted_and_then_for_a_call() {
    for rung in ["A", "B", "C"] {
        let (world, shop, canaries) = world(rung);
        world.write_tool("say.py", python("crib-words", "crib_words.HELLO"));
        let listed = world.run(&["list", "--json"]).exits(0).json();
        let tools = listed["tools"].as_array().unwrap();
        let say = tools.iter().find(|tool| tool["name"] == "say").unwrap();
        assert_eq!(say["description"], "Says it.", "{rung}");
        let denied = world.run(&["call", "say"]);
        assert_ne!(denied.code, 0);
        assert!(
            denied.stderr.contains("--install"),
            "{rung}: {}",
            denied.stderr
        );
        let shown = world.run(&["show", "say"]).exits(0).stdout;
        assert!(shown.contains("crib-words"), "{rung}: {shown}");
        assert_eq!((shop.asked(), environments(&world)), (0, 0), "{rung}");

        world.run(&["grant", "say", "--install"]).exits(0);
        // A list does not install either: it would have to wait.
        world.run(&["list"]).exits(0);
        assert_eq!((shop.asked(), environments(&world)), (0, 0), "{rung}");
        let said = world.run(&["call", "say", "--json"]);
        assert_eq!(said.code, 0, "{rung}: {said:?}");
        assert_eq!(said.json()["output"], "Hello from a package", "{rung}");
        assert_eq!(environments(&world), 1, "{rung}");
        let schema = world.run(&["show", "say", "--json"]).exits(0).json();
        assert!(
            schema["inputSchema"]["properties"]["loud"].is_object(),
            "{rung}"
        );

        // Another text is another tool: the yes was to this one.
        let asked = shop.asked();
        world.write_tool("say.py", python("crib-evil", "crib_evil.WROTE"));
        assert_ne!(world.run(&["call", "say"]).code, 0);
        assert_eq!(shop.asked(), asked, "{rung}");
        no_canary(&canaries, rung);
    }
}

const PROGRAM: &str = r#"
import json, sys, crib_words
for line in sys.stdin:
    asked = json.loads(line)
    result = {"status": "healthy"}
    if asked["method"] == "initialize":
        result = {"name": "words", "description": "Says it", "version": "1", "inputSchema": {"type": "object"}}
    if asked["method"] == "execute":
        result = crib_words.HELLO
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"#;

#[test]
fn a_program_has_the_packages_that_its_folder_names() {
    // With all that has to be known in `tool.json`, and with a program that has to be asked.
    for schema in [json!({"type": "object"}), Value::Null] {
        for rung in ["A", "B", "C"] {
            let (world, shop, canaries) = world(rung);
            let mut manifest = json!({"name": "words", "description": "Says it", "command": "python3",
                "args": ["tool.py"]});
            if schema.is_object() {
                manifest["inputSchema"] = schema.clone();
            }
            world.write(".toolcrib/tools/words/tool.json", manifest.to_string());
            world.write(".toolcrib/tools/words/tool.py", PROGRAM);
            world.write(".toolcrib/tools/words/requirements.txt", "crib-words\n");
            let denied = world.run(&["call", "words"]).exits(3).stderr;
            assert!(denied.contains("--install"), "{rung}: {denied}");
            let shown = world.run(&["show", "words"]).exits(0).stdout;
            assert!(
                shown.contains("needs the packages crib-words"),
                "{rung}: {shown}"
            );
            world.run(&["grant", "words", "--all"]).exits(0);
            assert_eq!((shop.asked(), environments(&world)), (0, 0), "{rung}");
            let said = world.run(&["call", "words"]).exits(0).stdout;
            assert_eq!(said.trim(), "Hello from a package", "{rung}");
            world.run(&["call", "words"]).exits(0);
            world.run(&["list"]).exits(0);
            assert_eq!(environments(&world), 1, "{rung}");
            no_canary(&canaries, rung);
        }
    }
    let (world, _, _) = world("A");
    let manifest = json!({"name": "words", "description": "Says it", "command": "python3",
        "args": ["tool.py"], "inputSchema": {"type": "object"}});
    world.write(".toolcrib/tools/words/tool.json", manifest.to_string());
    world.write(".toolcrib/tools/words/tool.py", PROGRAM);
    world.write(".toolcrib/tools/words/requirements.txt", "-r other.txt\n");
    let told = world.run(&["errors"]).exits(1).stdout;
    assert!(
        told.contains("`requirements.txt` can't be taken: line 1"),
        "{told}"
    );
}

#[test]
fn nothing_of_a_package_runs_while_it_is_installed() {
    for rung in ["A", "B", "C"] {
        let (world, _shop, canaries) = world(rung);
        world.write_tool("say.py", python("crib-evil", "repr(crib_evil.WROTE)"));
        world.run(&["grant", "say", "--install"]).exits(0);
        let ran = world.run(&["call", "say"]);
        assert_ne!(ran.code, 0, "{rung}: {ran:?}");
        let errors = world.run(&["errors"]).stdout;
        assert!(
            errors.contains("could not be installed"),
            "{rung}: {errors}"
        );
        no_canary(&canaries, rung);
        // Built where that was granted besides, behind the same walls.
        world.run(&["grant", "say", "--install", "--exec"]).exits(0);
        let ran = world.run(&["call", "say", "--json"]);
        assert_eq!(ran.code, 0, "{rung}: {ran:?}");
        // What it wrote into a tmp of its own is nobody's.
        let wrote = ran.json()["output"].to_string();
        assert!(!wrote.contains("project/canary"), "{rung}: {wrote}");
        no_canary(&canaries, rung);
    }
}

/// What an environment names as its interpreter is opened to the tool: no package says what that is.
#[test]
fn a_package_does_not_replace_what_its_environment_is_made_of() {
    let (world, _shop, _) = world("A");
    for package in ["crib-frame", "crib-python"] {
        world.write_tool("say.py", python(package, "'it runs'"));
        world.run(&["grant", "say", "--install"]).exits(0);
        let ran = world.run(&["call", "say"]);
        assert_ne!(ran.code, 0, "{package}: {ran:?}");
        let said = ran.stdout + &ran.stderr;
        assert!(said.contains("is made of (pyvenv.cfg"), "{package}: {said}");
        assert_eq!(environments(&world), 0, "{package}");
    }
}

#[test]
fn npm_runs_no_scripts_and_asks_the_registry_alone() {
    for rung in ["A", "B", "C"] {
        let (world, shop, canaries) = world(rung);
        let text = "import words from 'crib-words';\nexport default { description: 'Says', args: {}, execute: () => words };";
        world.write(".toolcrib/tools/say/tool.mjs", text);
        world.write(
            ".toolcrib/tools/say/package.json",
            r#"{"dependencies": {"crib-words": "^1.0.0"}}"#,
        );
        assert_ne!(world.run(&["call", "say"]).code, 0, "{rung}");
        assert_eq!(shop.asked(), 0, "{rung}");
        world.run(&["grant", "say", "--install"]).exits(0);
        let ran = world.run(&["call", "say", "--json"]);
        assert_eq!(ran.code, 0, "{rung}: {ran:?}");
        assert_eq!(ran.json()["output"], "Hello from a package", "{rung}");
        no_canary(&canaries, rung);
    }
}

#[test]
fn lists_that_would_do_more_than_name_packages_are_refused() {
    let (world, shop, canaries) = world("A");
    for line in [
        "--index-url http://127.0.0.1:1/simple",
        "-r ../../notes.txt",
        "-e .",
        "crib-evil @ http://127.0.0.1:1/crib_evil-1.0.tar.gz",
        "git+https://host.invalid/x",
        "./crib_evil",
    ] {
        world.write(
            ".toolcrib/tools/say/tool.py",
            python("crib-words", "crib_words.HELLO").replace("# dependencies", "# ignored"),
        );
        world.write(
            ".toolcrib/tools/say/requirements.txt",
            format!("crib-words\n{line}\n"),
        );
        let errors = world.run(&["errors"]).stdout;
        assert!(errors.contains("line 2"), "{line}: {errors}");
        assert_ne!(world.run(&["call", "say"]).code, 0, "{line}");
    }
    for range in [
        "git+https://host.invalid/x",
        "file:../evil",
        "link:../evil",
        "user/repo",
    ] {
        world.write(
            ".toolcrib/tools/node/tool.mjs",
            "export default { description: 'Says', args: {}, execute: () => '' };",
        );
        world.write(
            ".toolcrib/tools/node/package.json",
            json!({"dependencies": {"evil": range}}).to_string(),
        );
        let errors = world.run(&["errors"]).stdout;
        assert!(errors.contains("registry"), "{range}: {errors}");
    }
    assert_eq!(shop.asked(), 0);
    no_canary(&canaries, "");
}

#[tokio::test]
async fn a_crib_that_serves_installs_in_the_background_and_tells_when_it_is_done() {
    let (world, shop, _canaries) = world("A");
    let crib = world.serve();
    world.write_tool("say.py", python("crib-words", "crib_words.HELLO"));
    eventually("the tool is listed", || async {
        crib.status_of("say").await.is_some()
    })
    .await;
    let (_, denied) = crib.call("say", json!({})).await;
    assert!(denied.to_string().contains("--install"), "{denied}");
    assert_eq!(shop.asked(), 0);
    world.run(&["grant", "say", "--install"]).exits(0);
    eventually("its schema is known", || async {
        let (_, tool) = crib.get("/tools/say").await;
        tool["inputSchema"]["properties"]["loud"].is_object()
    })
    .await;
    let (_, said) = crib.call("say", json!({})).await;
    assert_eq!(said["output"], "Hello from a package", "{said}");
    let (_, problems) = crib.get("/tools/errors").await;
    assert!(!problems.to_string().contains("installing"), "{problems}");
}

#[tokio::test]
async fn nobody_waits_for_an_index_that_does_not_answer() {
    let (mut world, _shop, _canaries) = world("A");
    // It takes connections and never says a word.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let own = format!("http://127.0.0.1:{port}/simple");
    world.vars.retain(|(name, _)| !name.ends_with("INDEX_URL"));
    world
        .vars
        .extend([("PIP_INDEX_URL", own.clone()), ("UV_INDEX_URL", own)]);
    world.write_tool("say.py", python("crib-words", "crib_words.HELLO"));
    world.run(&["grant", "say", "--install"]).exits(0);
    let crib = world.serve();
    let (_, tools) = crib.get("/tools").await;
    assert!(tools.to_string().contains("\"say\""), "{tools}");
    eventually("it is being installed", || async {
        let (_, problems) = crib.get("/tools/errors").await;
        problems
            .to_string()
            .contains("installing packages: crib-words")
    })
    .await;
    let (_, answer): (u16, Value) = crib.call("say", json!({})).await;
    assert!(
        answer.to_string().contains("can't be called yet"),
        "{answer}"
    );
    let (status, _) = crib.post("/tools/reload", json!({})).await;
    assert_eq!(status, 200);
}

#[test]
fn what_failed_is_told_and_tried_again() {
    let (world, shop, _canaries) = world("A");
    world.write_tool("say.py", python("crib-none", "crib_none.HELLO"));
    world.run(&["grant", "say", "--install"]).exits(0);
    let ran = world.run(&["call", "say"]);
    assert_ne!(ran.code, 0);
    assert!(shop.asked() > 0);
    assert_eq!(environments(&world), 0);
    assert!(shop.folder.path().exists());
}
