//! What a value can do to a command line: be one argument, exactly as it was given, and nothing else.

use crate::support::plugin::{file, shell, tool};
use crate::support::{TestCrib, World};
use serde_json::{Value, json};

/// Prints each of its arguments on its own line between brackets.
const SHOW: &str = r"printf '[%s]\n'";

/// A crib whose tools show what arguments they were started with.
fn showing() -> (World, TestCrib) {
    let world = World::trusted();
    let any = || json!({"a": {}, "b": {}});
    let dashed =
        json!({"type": "shell", "command": format!("{SHOW} {{{{a}}}}"), "allowDashValues": true});
    let tools = [
        shell("two", &format!("{SHOW} {{{{a}}}} {{{{b}}}}"), any()),
        shell(
            "inside",
            &format!("{SHOW} 'x {{{{a}}}} y' --opt={{{{a}}}} \"{{{{b}}}}{{{{a}}}}\""),
            any(),
        ),
        shell(
            "script",
            r#"sh -c 'for one in "$@"; do printf "[%s]\n" "$one"; done' sh {{a}} {{b}}"#,
            any(),
        ),
        shell("after-dashes", &format!("{SHOW} -- {{{{a}}}}"), any()),
        tool("dashes-allowed", any(), dashed),
    ];
    world.write_tool("show.json", file(&tools));
    let crib = world.serve();
    (world, crib)
}

/// Everything in the project, to see whether anything was added.
fn listing(world: &World) -> Vec<String> {
    let entries = std::fs::read_dir(world.project()).unwrap().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn hostile(world: &World) -> Vec<String> {
    let touch = format!("touch {}/canary", world.project().display());
    let injected = [
        "; T",
        ";T;",
        "| T",
        "|| T",
        "& T",
        "&& T",
        "$(T)",
        "`T`",
        "\"$(T)\"",
        "'; T; '",
        "\"; T; \"",
        "\nT\n",
        "\r\nT",
        "x > canary",
        ">canary",
        "<(T)",
        "${IFS}T",
        "\\; T",
        "{T,}",
        "# T",
        "'",
        "\"",
        "\\",
        "''",
        "a'b\"c\\d",
    ];
    let plain = [
        "",
        " ",
        "  two  spaces  ",
        "a b",
        "\t",
        "*",
        "?",
        "[a-z]",
        "~",
        "~root",
        "$HOME",
        "${PATH}",
        "%s%d%n",
        "\\n",
        "{{a}}",
        "{{b}}",
        "{{other}}",
        "}}{{",
        "x=y",
        "!!",
        "ä€😀",
        "\u{202e}",
        "\u{1b}[31m",
        "@/etc/passwd",
    ];
    let injected = injected.iter().map(|text| text.replace('T', &touch));
    injected
        .chain(plain.iter().map(ToString::to_string))
        .collect()
}

#[tokio::test]
async fn every_value_is_one_argument_exactly_as_given() {
    let (world, crib) = showing();
    let before = listing(&world);
    for value in hostile(&world) {
        let both = json!({"a": value, "b": value});
        assert_eq!(
            crib.output("two", both).await,
            format!("[{value}]\n[{value}]\n"),
            "{value:?}"
        );
    }
    assert_eq!(listing(&world), before);
}

#[tokio::test]
async fn a_value_stays_in_its_token_whatever_is_around_it() {
    let (world, crib) = showing();
    let before = listing(&world);
    for value in hostile(&world) {
        let arguments = json!({"a": value, "b": "b "});
        let expected = format!("[x {value} y]\n[--opt={value}]\n[b {value}]\n");
        assert_eq!(
            crib.output("inside", arguments).await,
            expected,
            "{value:?}"
        );
    }
    assert_eq!(listing(&world), before);
}

#[tokio::test]
async fn a_script_gets_values_as_arguments_not_as_text() {
    let (world, crib) = showing();
    let before = listing(&world);
    for value in hostile(&world) {
        let arguments = json!({"a": value, "b": "end"});
        assert_eq!(
            crib.output("script", arguments).await,
            format!("[{value}]\n[end]\n"),
            "{value:?}"
        );
    }
    assert_eq!(listing(&world), before);
}

#[tokio::test]
async fn values_are_never_looked_at_for_placeholders() {
    let (_world, crib) = showing();
    let swapped = json!({"a": "{{b}}", "b": "{{a}}"});
    assert_eq!(crib.output("two", swapped).await, "[{{b}}]\n[{{a}}]\n");
}

#[tokio::test]
async fn a_leading_dash_is_refused_unless_the_author_allowed_it() {
    let (_world, crib) = showing();
    let dashed = [
        json!("-x"),
        json!("--version"),
        json!("-"),
        json!("--"),
        json!("-rf /"),
        json!(-5),
        json!(-0.5),
    ];
    for value in &dashed {
        for tool in ["two", "inside", "script"] {
            let arguments = json!({"a": value, "b": "b"});
            let said = crib
                .refused(tool, arguments, 422, "invalid_arguments")
                .await;
            assert!(
                said.contains("`a` begins with `-`") && said.contains("allowDashValues"),
                "{said}"
            );
        }
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        assert_eq!(
            crib.output("after-dashes", json!({"a": value})).await,
            format!("[--]\n[{text}]\n")
        );
        assert_eq!(
            crib.output("dashes-allowed", json!({"a": value})).await,
            format!("[{text}]\n")
        );
    }
}

#[tokio::test]
async fn null_bytes_are_refused() {
    let (_world, crib) = showing();
    for value in [json!("\0"), json!("a\0b")] {
        for tool in ["two", "inside", "after-dashes", "dashes-allowed"] {
            let arguments = json!({"a": value, "b": "b"});
            let said = crib
                .refused(tool, arguments, 422, "invalid_arguments")
                .await;
            assert!(said.contains("`a` contains a null byte"), "{said}");
        }
    }
}

#[tokio::test]
async fn values_have_at_most_ten_thousand_characters() {
    let (_world, crib) = showing();
    for character in ["x", "ä", "😀"] {
        let longest = character.repeat(10_000);
        let output = crib.output("two", json!({"a": longest})).await;
        assert_eq!(output, format!("[{longest}]\n"));
        let too_long = json!({"a": character.repeat(10_001)});
        let said = crib
            .refused("two", too_long, 422, "invalid_arguments")
            .await;
        assert!(
            said.contains("`a` is longer than 10000 characters"),
            "{said}"
        );
    }
    let list = json!({"a": vec!["x"; 5_000]});
    crib.refused("two", list, 422, "invalid_arguments").await;
}

#[tokio::test]
async fn values_that_are_no_strings_become_json() {
    let (world, crib) = showing();
    let before = listing(&world);
    let table: [(Value, &str); 10] = [
        (json!(5), "5"),
        (json!(1.5), "1.5"),
        (json!(u64::MAX), "18446744073709551615"),
        (json!(true), "true"),
        (json!(false), "false"),
        (json!([]), "[]"),
        (json!([1, "a b", null]), r#"[1,"a b",null]"#),
        (json!({}), "{}"),
        (json!({"k": "; touch canary"}), r#"{"k":"; touch canary"}"#),
        (json!(["$(touch canary)"]), r#"["$(touch canary)"]"#),
    ];
    for (value, text) in table {
        let arguments = json!({"a": value, "b": value});
        assert_eq!(
            crib.output("two", arguments).await,
            format!("[{text}]\n[{text}]\n")
        );
    }
    assert_eq!(listing(&world), before);
}

#[tokio::test]
async fn unset_values_are_dropped_from_the_end_and_nowhere_else() {
    let (_world, crib) = showing();
    for arguments in [json!({"a": "a"}), json!({"a": "a", "b": null})] {
        assert_eq!(crib.output("two", arguments).await, "[a]\n");
    }
    for nothing in [json!({}), json!({"a": null, "b": null})] {
        // `printf` without arguments prints its format once.
        assert_eq!(crib.output("two", nothing).await, "[]\n");
    }
    for hole in [json!({"b": "b"}), json!({"a": null, "b": "b"})] {
        let said = crib.refused("two", hole, 422, "invalid_arguments").await;
        assert!(said.contains("`a` is not set"), "{said}");
    }
    let said = crib
        .refused("inside", json!({"a": "a"}), 422, "invalid_arguments")
        .await;
    assert!(said.contains("`b` is not set"), "{said}");
}

#[tokio::test]
async fn templates_that_need_a_shell_never_load() {
    let world = World::trusted();
    let table = [
        ("echo {{a}} | cat", "ValidationError", "operator `|`"),
        ("echo {{a}} && ls", "ValidationError", "operator `&`"),
        ("echo {{a}}; ls", "ValidationError", "operator `;`"),
        ("echo {{a}} > out", "ValidationError", "operator `>`"),
        ("echo $(id)", "ValidationError", "contains `$`"),
        ("echo `id`", "ValidationError", "contains ``"),
        ("echo \"$HOME\"", "ValidationError", "contains `$`"),
        ("echo {{a}}\nls", "ValidationError", "line break"),
        ("|| true", "ValidationError", "is empty"),
        ("echo a || true || true", "ValidationError", "operator `|`"),
        ("{{a}} --version", "SecurityError", "choose the program"),
        (
            "sh -c 'echo {{a}}'",
            "SecurityError",
            "inside a script for `sh`",
        ),
        (
            "env bash -ec \"echo '{{a}}'\"",
            "SecurityError",
            "inside a script for `bash`",
        ),
        (
            "LD_PRELOAD=x.so ls",
            "ValidationError",
            "sets the variable `LD_PRELOAD`",
        ),
        ("echo 'open", "ValidationError", "never closed"),
    ];
    let tools: Vec<Value> = table
        .iter()
        .enumerate()
        .map(|(index, (command, ..))| shell(&format!("t{index}"), command, json!({"a": {}})))
        .collect();
    world.write_tool("bad.json", file(&tools));
    let crib = world.serve();
    assert_eq!(crib.names().await.len(), 8);
    let (_, problems) = crib.get("/tools/errors").await;
    assert_eq!(problems["count"], table.len());
    for (index, (command, kind, words)) in table.iter().enumerate() {
        let problem = &problems["errors"][index];
        let message = problem["message"].as_str().unwrap();
        assert_eq!(problem["toolName"], format!("t{index}"), "{command}");
        assert_eq!(problem["errorType"], *kind, "{command}");
        let field = format!("`tools[{index}].handler.command`");
        assert!(
            message.starts_with(&field) && message.contains(words),
            "{command}: {message}"
        );
        assert!(!problem["hint"].as_str().unwrap().is_empty());
    }
}
