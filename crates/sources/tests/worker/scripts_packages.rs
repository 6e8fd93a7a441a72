//! Python files that need packages: installed once, when the file is described, and never when it is called.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;
use toolcrib_core::ErrorType;

use crate::world::World;

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

/// The environments that were made.
fn environments(world: &World) -> usize {
    let folder = world.root.join("cache/environments");
    let all = std::fs::read_dir(folder).into_iter().flatten().flatten();
    all.filter(|entry| entry.path().join(".complete").exists())
        .count()
}

#[tokio::test]
async fn packages_are_installed_once_per_list() {
    let (world, shop) = world();
    let named = format!("# /// script\n# dependencies = [\"crib-words==1.0\"]\n# ///\n{SAY}");
    world.write("say.py", &named);
    world.open().await;
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
    assert_eq!(world.problems(), [""; 0]);
    assert_eq!(world.output("say2", json!({})).await, said);
    assert_eq!(environments(&world), 1);
    world.end().await;
}

#[tokio::test]
async fn a_list_beside_the_file_counts_too() {
    let (world, shop) = world();
    world.write("say/tool.py", SAY);
    world.write("say/requirements.txt", "crib-words\n");
    world.open().await;
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
    world.open().await;
    let catalog = world.crib.tools();
    let of = |file: &str| {
        let mut problems = catalog.problems().iter();
        problems
            .find(|one| one.file.as_ref().is_some_and(|path| path.ends_with(file)))
            .unwrap()
    };
    let problem = of("say.py");
    assert_eq!(problem.error_type, ErrorType::Import);
    assert!(problem.message.contains("crib-words"), "{problem:?}");
    assert!(problem.hint.contains("package index"), "{problem:?}");
    assert_eq!(of("bad.py").error_type, ErrorType::Validation);
    assert_eq!(environments(&world), 0);
    std::fs::rename(good.with_extension("away"), &good).unwrap();
    world.reload().await;
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
