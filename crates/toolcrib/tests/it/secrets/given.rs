//! Who gets a secret, from where, and what is told where it can't be had.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{SECRET, Scene, VARIABLE, forms, mine, nowhere_in, scene, write_blab};
use crate::support::eventually;
use crate::support::files::holding;
use crate::support::tool::python;

fn unavailable(body: &Value) -> String {
    assert_eq!(body["error"]["code"], "unavailable", "{body}");
    format!("{} {}", body["error"]["message"], body["error"]["hint"])
}

#[tokio::test]
async fn what_cant_be_read_makes_the_call_unavailable_and_is_taken_up_once_it_can() {
    let Scene { world, kept } = scene();
    write_blab(&world, "blab", &mine("api"));
    write_blab(&world, "lost", &mine("nothing"));
    world.run(&["trust"]).exits(0);
    let file = kept.path().join("api");
    let mode =
        |mode: u32| std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
    mode(0o644);
    let crib = world.serve();
    let matches = |said: &str| crib.call("blab", json!({"how": "matches", "said": said}));
    // However often: nothing was started, so nothing has to rest.
    for _ in 0..4 {
        let (status, body) = matches("x").await;
        assert_eq!(status, 503, "{body}");
        let told = unavailable(&body);
        assert!(
            told.contains("0644") && told.contains("chmod 600"),
            "{told}"
        );
    }
    assert!(!crib.log().contains("worker.spawn"), "{}", crib.log());
    mode(0o600);
    assert_eq!(matches(SECRET).await.1["output"], "yes");
    let (status, body) = crib.call("lost", json!({"how": "matches"})).await;
    assert_eq!(status, 503, "{body}");
    let told = unavailable(&body);
    assert!(
        told.contains("[secrets.nothing]") && told.contains("config.toml"),
        "{told}"
    );

    // A changed secret counts at the next start, and the old one stays hidden meanwhile.
    std::fs::write(&file, "another-value").unwrap();
    assert_eq!(matches(SECRET).await.1["output"], "yes");
    let (status, _) = crib.call("blab", json!({"how": "crash"})).await;
    assert_eq!(status, 502);
    assert_eq!(matches("another-value").await.1["output"], "yes");
    let (_, outcome) = crib.call("blab", json!({"how": "stdout"})).await;
    assert_eq!(outcome["output"], "printed *** ***", "{outcome}");

    // So does where it is stored.
    let config = world.home().join(".config/toolcrib/config.toml");
    world.write(config, "[secrets.nothing]\nenv = \"GRANTED\"\n");
    eventually("the setting is taken up", || async {
        let said = json!({"how": "matches", "said": VARIABLE});
        crib.call("lost", said).await.1["output"] == "yes"
    })
    .await;
}

#[test]
fn a_secret_is_given_only_where_a_person_said_so() {
    let Scene { world, kept: _kept } = scene();
    world.run(&["trust"]).exits(0);
    write_blab(&world, "blab", &mine("api"));
    let said = format!("said={SECRET}");
    let matches = ["call", "blab", "how=matches", &said];
    let denied = world.run(&matches).exits(3);
    assert!(denied.stderr.contains("--env secret://api"), "{denied:?}");
    let other = ["grant", "blab", "--env", "secret://other"];
    world.run(&other).exits(0);
    world.run(&matches).exits(3);
    world
        .run(&["grant", "blab", "--env", "secret://api"])
        .exits(0);
    assert_eq!(world.run(&matches).exits(0).stdout.trim(), "yes");
    // Asked how it is, a tool that lost its grant does not get it either.
    world.run(&["grant", "blab", "--revoke"]).exits(0);
    world.run(&matches).exits(3);

    let world = scene().world;
    write_blab(&world, "blab", &mine("api"));
    let untrusted = world.run(&["call", "blab"]).exits(3);
    assert!(untrusted.stderr.contains("toolcrib trust"), "{untrusted:?}");
    let shown = world.run(&["show", "blab"]).exits(0).stdout;
    assert!(shown.contains("the secret `api`"), "{shown}");
    let bare = world.run(&["trust", "--no-grants"]).exits(0);
    assert!(
        bare.stdout.contains("asks to be given the secret `api`"),
        "{bare:?}"
    );
    world.run(&["call", "blab"]).exits(3);
}

#[test]
fn a_project_says_nothing_about_where_secrets_lie() {
    let Scene { world, kept: _kept } = scene();
    world.run(&["trust"]).exits(0);
    world.write(
        ".toolcrib/config.toml",
        "[secrets.api]\nenv = \"GRANTED\"\n",
    );
    let refused = world.run(&["list"]).exits(2);
    assert!(
        refused
            .stderr
            .contains("`secrets` can't be set in a project's file"),
        "{refused:?}"
    );
    assert!(
        refused.stderr.contains("which of your secrets"),
        "{refused:?}"
    );
}

#[test]
fn references_that_are_none_are_told_of_at_load() {
    let Scene { world, kept: _kept } = scene();
    let env = json!({"API_KEY": "Bearer secret://api", "MODE": "x"});
    write_blab(&world, "blab", &env);
    world.run(&["trust"]).exits(0);
    let errors = world.run(&["errors"]).stdout;
    assert!(
        errors.contains("env.API_KEY") && errors.contains("secret://NAME"),
        "{errors}"
    );
}

#[tokio::test]
async fn a_registered_tool_gets_what_it_names() {
    let Scene { world, kept: _kept } = scene();
    world.weather();
    let crib = world.serve();
    let command = json!({"command": python(), "args": ["./weather/tool.py"]});
    let with = |name: &str, secret: &str| {
        let mut body = command.clone();
        body["name"] = name.into();
        body["env"] = json!({"API_KEY": format!("secret://{secret}")});
        body
    };
    let (status, refused) = crib.post("/custom-tools", with("lost", "nothing")).await;
    assert_eq!(status, 400, "{refused}");
    assert!(
        refused
            .to_string()
            .contains("the secret `nothing` can't be read"),
        "{refused}"
    );
    let view = crib.register(with("weather", "api")).await;
    assert_eq!(view["env"]["API_KEY"], "***", "{view}");
    let (status, outcome) = crib.call("weather", json!({"location": "x"})).await;
    assert_eq!(
        (status, &outcome["output"]),
        (200, &json!("sunny in x with a key"))
    );
    let (_, health) = crib.get("/custom-tools/weather/health?check=true").await;
    assert_eq!(health["message"], "fine with ***", "{health}");
    nowhere_in("the log", &crib.log());
    crib.stop();
    let logs = world.run(&["logs", "weather"]).exits(0).stdout;
    assert!(logs.contains("starting with ***"), "{logs}");
    let forms = forms();
    let forms: Vec<&str> = forms.iter().map(String::as_str).collect();
    assert_eq!(holding(&world.root(), &forms), Vec::<String>::new());
}

#[test]
fn a_keyring_is_asked_through_its_own_program() {
    let Scene { mut world, kept } = scene();
    write_blab(&world, "blab", &mine("ring"));
    let config = world.home().join(".config/toolcrib/config.toml");
    world.write(config, "[secrets.ring]\nkeyring = true\n");
    world.run(&["trust"]).exits(0);
    let matches = ["call", "blab", "how=matches", "said=from-the-ring"];
    let missing = world.run(&matches).exits(4);
    assert!(missing.stderr.contains("secret-tool"), "{missing:?}");
    let program = kept.path().join("secret-tool");
    std::fs::write(
        &program,
        "#!/bin/sh\n[ \"$*\" = 'lookup toolcrib ring' ] && printf from-the-ring\n",
    )
    .unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let path: PathBuf = kept.path().into();
    world.vars.push((
        "PATH",
        format!("{}:/usr/local/bin:/usr/bin:/bin", path.display()),
    ));
    assert_eq!(world.run(&matches).exits(0).stdout.trim(), "yes");
    std::fs::write(&program, "#!/bin/sh\nexit 1\n").unwrap();
    let refused = world.run(&matches).exits(4);
    assert!(refused.stderr.contains("secret-tool store"), "{refused:?}");
}
