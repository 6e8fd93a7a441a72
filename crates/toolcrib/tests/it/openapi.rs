//! `/openapi.json` as others read it: a validator finds nothing, and clients that generators make of it compile and call.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::plugin::{file, shell};
use crate::support::{Ran, World};
use crate::tidy::root;

/// What scripts/setup-openapi installs. It is never skipped: without it nothing is known about generated clients.
#[track_caller]
fn installed(path: &str) -> PathBuf {
    let tools = root().join("target/test-tools/openapi");
    assert!(
        tools.join("stamp").is_file(),
        "the generators of clients are not installed: run `make test`"
    );
    tools.join(path)
}

/// One of the installed programs, in this folder and with nothing of the real environment but PATH.
#[expect(
    clippy::disallowed_methods,
    reason = "tests start clients of the product by hand"
)]
fn program(world: &World, program: &str, folder: &Path, arguments: &[&str]) -> Ran {
    let mut command = Command::new(installed(program));
    command
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .env("HOME", world.home())
        .env("PYTHONPATH", folder)
        .env("PATH", std::env::var_os("PATH").unwrap_or_default());
    world.finish(command)
}

fn test_file(name: &str) -> String {
    let path = root().join("tests/openapi").join(name);
    path.to_str().unwrap().to_owned()
}

/// What both clients saw is what is there.
#[track_caller]
fn is_right(saw: &Value) {
    assert_eq!(saw["output"], "hello\n", "{saw}");
    assert_eq!(saw["refused"], "invalid_arguments", "{saw}");
    assert_eq!(saw["version"], env!("CARGO_PKG_VERSION"), "{saw}");
    assert_eq!(saw["description"], "A tool of a test", "{saw}");
    let tools = saw["tools"].as_array().unwrap();
    assert!(tools.contains(&json!("say")), "{saw}");
}

#[tokio::test]
async fn it_is_valid_and_generated_clients_compile_and_call() {
    let world = World::trusted();
    let say = shell("say", "echo {{word}}", json!({"word": {"type": "string"}}));
    world.write_tool("say.json", file(&[say]));
    let mut crib = world.serve_closed();
    let token = world.token("clients", "read,call");
    crib.show(Some(&token));
    let document = crib.client.get(format!("{}/openapi.json", crib.url));
    let document = document.send().await.unwrap().text().await.unwrap();
    let folder = world.root().join("clients");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("openapi.json"), document).unwrap();
    let run = |name: &str, arguments: &[&str]| program(&world, name, &folder, arguments);

    let validator = ["-m", "openapi_spec_validator", "openapi.json"];
    run("python/bin/python", &validator).exits(0);

    let generate = ["generate", "--path", "openapi.json", "--meta", "none"];
    let settings = test_file("generator.yml");
    let more = [
        "--config",
        &settings,
        "--output-path",
        "toolcrib_client",
        "--fail-on-warning",
    ];
    run(
        "python/bin/openapi-python-client",
        &[&generate[..], &more].concat(),
    )
    .exits(0);
    let client = test_file("client.py");
    let saw = run("python/bin/python", &[&client, &crib.url, &token, "say"]);
    is_right(&saw.exits(0).json());

    let types = ["openapi.json", "-o", "api.d.ts"];
    run("npm/node_modules/.bin/openapi-typescript", &types).exits(0);
    std::os::unix::fs::symlink(installed("npm/node_modules"), folder.join("node_modules")).unwrap();
    std::fs::copy(test_file("client.ts"), folder.join("client.ts")).unwrap();
    std::fs::write(folder.join("package.json"), r#"{"type": "module"}"#).unwrap();
    let strict = [
        "--strict",
        "--target",
        "es2022",
        "--module",
        "nodenext",
        "--types",
        "node",
        "client.ts",
    ];
    run("npm/node_modules/.bin/tsc", &strict).exits(0);
    let compiled = folder.join("client.js");
    let arguments = [compiled.to_str().unwrap(), &crib.url, &token, "say"];
    let mut node = crate::mcp_clients::client(&world, crate::mcp_clients::NODE, &arguments);
    node.current_dir(&folder);
    let saw = world.finish(node).exits(0).json();
    is_right(&saw);
    assert_eq!(saw["exitCode"], 0, "{saw}");
}
