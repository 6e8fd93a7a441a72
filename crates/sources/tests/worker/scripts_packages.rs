//! Python files that need packages: installed once, in the background, for files that were granted it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use std::sync::Arc;

use serde_json::json;
use toolcrib_core::{Access, Binding, ErrorType, Grant, Grants, Permit};

use crate::world::{World, eventually};

/// Writes a wheel of a package `crib_words` that has one constant.
const WHEEL: &str = r#"
import sys, zipfile
name = "crib_words-1.0"
with zipfile.ZipFile(f"{sys.argv[1]}/{name}-py3-none-any.whl", "w") as wheel:
    wheel.writestr("crib_words.py", "HELLO = 'Hello from a package'\n")
    wheel.writestr(f"{name}.dist-info/METADATA", "Metadata-Version: 2.1\nName: crib-words\nVersion: 1.0\n")
    wheel.writestr(f"{name}.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(f"{name}.dist-info/RECORD", "")
"#;

const SAY: &str = r#"
import crib_words
from toolcrib import tool
@tool
def say() -> str:
    "Says it."
    return f"{crib_words.HELLO} {crib_words.__file__}"
"#;

#[expect(clippy::disallowed_methods, reason = "a test makes what it needs")]
fn wheel(folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    let mut python = Command::new("python3");
    let python = python.args(["-c", WHEEL]).arg(folder);
    assert!(python.stdout(Stdio::null()).status().unwrap().success());
}

/// A world whose installers find what lies in this folder and nothing else.
fn world() -> (World, PathBuf) {
    let shop = tempfile::tempdir().unwrap().keep();
    wheel(&shop);
    let links = shop.to_str().unwrap().to_owned();
    let world = World::scripts(move |settings| {
        let vars = [
            ("PIP_NO_INDEX", "1"),
            ("PIP_FIND_LINKS", &links),
            ("UV_NO_INDEX", "1"),
            ("UV_FIND_LINKS", &links),
            ("UV_OFFLINE", "1"),
        ];
        settings.installing = vars.map(|(k, v)| (k.to_owned(), v.to_owned())).to_vec();
    });
    (world, shop)
}

/// Says yes to installing what these tools need.
fn grant(world: &World, tools: &[(&str, &str)]) {
    let grants = tools.iter().map(|(file, tool)| Grant {
        id: String::new(),
        tool: (*tool).to_owned(),
        origin: world.tools().join(file).to_string_lossy().into_owned(),
        binding: Binding::Follow,
        permit: Permit {
            install: true,
            ..Permit::default()
        },
        created_ms: 0,
    });
    let grants = Grants::new(grants);
    world.place.grants.send_replace(Arc::new(grants));
}

/// Waits until nothing is installed any more, and a tool can be called.
async fn installed(world: &World, tool: &str) {
    eventually("its packages are installed", || {
        let view = world.crib.owners_view();
        let known = view.get(tool);
        let warned = view
            .problems()
            .iter()
            .any(|one| one.message.contains("installing"));
        known.is_some_and(|tool| tool.access == Access::Open) && !warned
    })
    .await;
}

/// The environments that were made.
fn environments(world: &World) -> usize {
    let folder = world.root.join("cache/environments");
    let all = std::fs::read_dir(folder).into_iter().flatten().flatten();
    all.filter(|entry| {
        entry
            .path()
            .extension()
            .is_some_and(|end| end == "complete")
    })
    .count()
}

#[tokio::test]
async fn packages_are_installed_once_per_list() {
    let (world, shop) = world();
    let named = format!("# /// script\n# dependencies = [\"crib-words==1.0\"]\n# ///\n{SAY}");
    world.write("say.py", &named);
    grant(&world, &[("say.py", "say"), ("other.py", "say2")]);
    world.open().await;
    installed(&world, "say").await;
    assert_eq!(world.problems(), [""; 0]);
    let said = world.output("say", json!({})).await;
    assert!(
        said.starts_with("Hello from a package ") && said.contains("environments"),
        "{said}"
    );
    assert_eq!(environments(&world), 1);
    // Another file, and a later version of this one, have the same environment.
    std::fs::remove_dir_all(&shop).unwrap();
    world.write("other.py", named.replace("def say", "def say2"));
    world.write("say.py", format!("{named}\n# changed\n"));
    world.reload().await;
    installed(&world, "say2").await;
    assert_eq!(world.problems(), [""; 0]);
    assert_eq!(world.output("say2", json!({})).await, said);
    assert_eq!(environments(&world), 1);
    world.end().await;
}

#[tokio::test]
async fn without_a_grant_nothing_is_installed() {
    let (world, shop) = world();
    world.write(
        "say.py",
        format!("# /// script\n# dependencies = [\"crib-words\"]\n# ///\n{SAY}"),
    );
    world.open().await;
    let view = world.crib.owners_view();
    let say = view.get("say").unwrap();
    assert!(
        matches!(say.access, Access::NeedsGrant(_)),
        "{:?}",
        say.access
    );
    assert!(say.asks.install);
    assert!(
        say.declares
            .iter()
            .any(|words| words.contains("crib-words"))
    );
    assert!(!world.root.join("cache/environments").exists());
    std::fs::remove_dir_all(shop).unwrap();
    world.end().await;
}

#[tokio::test]
async fn a_list_beside_the_file_counts_too() {
    let (world, shop) = world();
    world.write("say/tool.py", SAY);
    world.write("say/requirements.txt", "crib-words\n");
    grant(&world, &[("say/tool.py", "say")]);
    world.open().await;
    installed(&world, "say").await;
    assert_eq!(world.problems(), [""; 0]);
    assert!(
        world
            .output("say", json!({}))
            .await
            .starts_with("Hello from a package")
    );
    std::fs::remove_dir_all(shop).unwrap();
    world.end().await;
}

#[tokio::test]
async fn what_can_not_be_installed_is_told_and_tried_again() {
    let (world, shop) = world();
    let good = wheel_in(&shop);
    std::fs::rename(&good, good.with_extension("away")).unwrap();
    world.write(
        "say.py",
        format!("# /// script\n# dependencies = [\"crib-words\"]\n# ///\n{SAY}"),
    );
    world.write(
        "bad.py",
        "# /// script\n# dependencies = crib\n# ///\n# tool\n",
    );
    grant(&world, &[("say.py", "say")]);
    world.open().await;
    eventually("it has failed", || {
        let view = world.crib.owners_view();
        let mut problems = view.problems().iter();
        problems.any(|one| one.hint.to_string().contains("package index"))
    })
    .await;
    let view = world.crib.owners_view();
    let of = |file: &str| {
        let mut problems = view.problems().iter();
        problems
            .find(|one| one.file.as_ref().is_some_and(|path| path.ends_with(file)))
            .unwrap()
    };
    let problem = of("say.py");
    assert_eq!(problem.error_type, ErrorType::Import);
    assert!(problem.message.contains("crib-words"), "{problem:?}");
    assert!(
        problem.hint.to_string().contains("package index"),
        "{problem:?}"
    );
    assert_eq!(of("bad.py").error_type, ErrorType::Validation);
    assert_eq!(environments(&world), 0);
    std::fs::rename(good.with_extension("away"), &good).unwrap();
    // A reload tries again at once.
    world.reload().await;
    installed(&world, "say").await;
    assert!(
        world
            .output("say", json!({}))
            .await
            .starts_with("Hello from a package")
    );
    std::fs::remove_dir_all(shop).unwrap();
    world.end().await;
}

fn wheel_in(shop: &Path) -> PathBuf {
    shop.join("crib_words-1.0-py3-none-any.whl")
}
