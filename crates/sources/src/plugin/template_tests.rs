//! Tests of command lines: how they are split, what is refused at load, and that no value escapes its token.

use serde_json::json;
use toolcrib_core::ErrorCode;

use super::*;

fn parse(command: &str) -> Result<Template, TemplateError> {
    Template::parse(command, Dashes::Refused)
}

fn arguments(value: Value) -> Object {
    value.as_object().unwrap().clone().into()
}

fn fill(command: &str, value: Value) -> Result<Vec<String>, CallError> {
    parse(command).unwrap().filled(&arguments(value))
}

#[test]
fn commands_are_split_by_posix_quoting() {
    let table: &[(&str, &[&str])] = &[
        ("ls", &["ls"]),
        ("  ls \t -l  ", &["ls", "-l"]),
        ("ls\n", &["ls"]),
        ("echo 'a b' c", &["echo", "a b", "c"]),
        ("echo a'b c'd", &["echo", "ab cd"]),
        ("echo '' \"\"", &["echo", "", ""]),
        (r#"echo "a \"b\" \\ \$x \n""#, &["echo", r#"a "b" \ $x \n"#]),
        (r"echo a\ b \| \; \$", &["echo", "a b", "|", ";", "$"]),
        ("echo a\\\nb", &["echo", "ab"]),
        (
            "echo '$x `y` * ? [ | & ; < > ( ) # ~'",
            &["echo", "$x `y` * ? [ | & ; < > ( ) # ~"],
        ),
        ("echo \"* ? | ;\"", &["echo", "* ? | ;"]),
        (
            "echo a#b a~b x=y ] { } %",
            &["echo", "a#b", "a~b", "x=y", "]", "{", "}", "%"],
        ),
        (
            "docker ps --format '{'{.Names}}",
            &["docker", "ps", "--format", "{{.Names}}"],
        ),
        ("echo 'line\nbreak'", &["echo", "line\nbreak"]),
        ("'A=b' c", &["A=b", "c"]),
        ("env A=b c", &["env", "A=b", "c"]),
        ("grep ü 'é'", &["grep", "ü", "é"]),
    ];
    for (command, expected) in table {
        assert_eq!(fill(command, json!({})).unwrap(), *expected, "{command}");
    }
}

#[test]
fn what_only_a_shell_can_do_is_refused() {
    use TemplateError as E;
    let slot = |text: &str| E::Slot(BadSlot(text.into()));
    let table = [
        ("", E::Empty),
        ("   ", E::Empty),
        ("|| true", E::Empty),
        ("'' a", E::Empty),
        ("a\0b", E::NullByte),
        ("a | b", E::Operator('|')),
        ("a || b", E::Operator('|')),
        ("a || true || true", E::Operator('|')),
        ("a || true x", E::Operator('|')),
        ("a || 'true'", E::Operator('|')),
        ("a && b", E::Operator('&')),
        ("a &", E::Operator('&')),
        ("a;b", E::Operator(';')),
        ("a < b", E::Operator('<')),
        ("a 2>&1", E::Operator('>')),
        ("a (b)", E::Operator('(')),
        ("a )", E::Operator(')')),
        ("a\nb", E::LineBreak),
        ("a\r\nb", E::LineBreak),
        ("a $HOME", E::Expansion('$')),
        ("a \"$(b)\"", E::Expansion('$')),
        ("a `b`", E::Expansion('`')),
        ("a \"`b`\"", E::Expansion('`')),
        ("a *.rs", E::Pattern('*')),
        ("a b?", E::Pattern('?')),
        ("a [b]", E::Pattern('[')),
        ("a # b", E::WordStart('#')),
        ("a ~/b", E::WordStart('~')),
        ("a 'b", E::Unterminated("single quote")),
        ("a \"b", E::Unterminated("double quote")),
        ("a b\\", E::Unterminated("backslash")),
        ("A=b c", E::Assignment("A".into())),
        ("{{a}} b", E::ProgramSlot("a".into())),
        ("x{{a}} b", E::ProgramSlot("a".into())),
        ("'{{a}}'", E::ProgramSlot("a".into())),
        ("a {{.Names}}", slot("{{.Names}}")),
        ("a {{b", slot("{{b")),
        (
            "sh -c 'echo {{a}}'",
            E::Script {
                slot: "a".into(),
                program: "sh".into(),
            },
        ),
        (
            "sh -c -- 'echo {{a}}'",
            E::Script {
                slot: "a".into(),
                program: "sh".into(),
            },
        ),
        (
            "env /bin/bash -ec \"x {{a}} {{b}}\"",
            E::Script {
                slot: "a".into(),
                program: "bash".into(),
            },
        ),
    ];
    for (command, expected) in table {
        let error = parse(command).unwrap_err();
        assert_eq!(error, expected, "{command}");
        assert!(!error.hint().is_empty() && !error.to_string().is_empty());
    }
    assert_eq!(
        parse("{{a}}").unwrap_err().to_string(),
        "lets the placeholder `{{a}}` choose the program"
    );
}

#[test]
fn a_script_may_take_values_as_arguments() {
    let command = "sh -c 'printf %s \"$1\"' sh {{a}}";
    let argv = fill(command, json!({"a": "$(id)"})).unwrap();
    assert_eq!(argv, ["sh", "-c", "printf %s \"$1\"", "sh", "$(id)"]);
    assert_eq!(parse("bash -c {{a}}").unwrap().script_slot(), Some("a"));
    assert_eq!(parse(command).unwrap().script_slot(), None);
}

#[test]
fn only_a_trailing_or_true_is_understood() {
    for command in [
        "a b || true",
        "a b||true",
        "a b ||  true  ",
        "a b || true\n",
    ] {
        let template = parse(command).unwrap();
        assert!(template.failure_is_fine);
        assert_eq!(
            template.filled(&Object::default()).unwrap(),
            ["a", "b"],
            "{command}"
        );
    }
    let quoted = parse("a 'b || true'").unwrap();
    assert!(!quoted.failure_is_fine);
    assert_eq!(
        quoted.filled(&Object::default()).unwrap(),
        ["a", "b || true"]
    );
}

#[test]
fn a_value_never_leaves_its_token() {
    let nasty = [
        "; rm -rf /",
        "a | b",
        "a && b",
        "$(id)",
        "`id`",
        "line\nbreak",
        "it's \"quoted\"",
        "\\",
        "a b  c\t",
        "* ? [x] ~ #",
        "{{other}}",
        "{{v}}",
        "%s ${HOME} $HOME",
        "\u{202e}ü😀",
        "",
        "|| true",
    ];
    for value in nasty {
        let arguments = json!({"v": value, "other": "SECRET"});
        for command in ["p {{v}} end", "p '{{v}}' end", "p \"{{ v }}\" end"] {
            assert_eq!(
                fill(command, arguments.clone()).unwrap(),
                ["p", value, "end"],
                "{command} {value:?}"
            );
        }
        let joined = fill("p --x={{v}}", arguments).unwrap();
        assert_eq!(joined, ["p".to_owned(), format!("--x={value}")]);
    }
}

#[test]
fn values_that_are_no_strings_become_json() {
    let value =
        json!({"n": 3, "f": 1.5, "b": false, "a": ["x y", 1], "o": {"k": "v w"}, "z": "\u{0}"});
    let argv = fill("p {{n}} {{f}} {{b}} {{a}} {{o}}", value).unwrap();
    assert_eq!(
        argv,
        ["p", "3", "1.5", "false", r#"["x y",1]"#, r#"{"k":"v w"}"#]
    );
}

#[test]
fn null_bytes_and_long_values_are_refused() {
    let long = "ä".repeat(10_001);
    for value in ["a\0b", &long] {
        let error = fill("p {{v}}", json!({"v": value})).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArguments);
        assert!(error.message.contains("`v`"), "{}", error.message);
        assert!(error.hint.is_some());
    }
    assert_eq!(
        fill("p {{v}}", json!({"v": "ä".repeat(10_000)})).unwrap()[1]
            .chars()
            .count(),
        10_000
    );
}

#[test]
fn a_leading_dash_needs_a_double_dash_before_it() {
    for (command, value) in [
        ("p {{v}}", json!({"v": "-rf"})),
        ("p '{{v}}'", json!({"v": "--exec=x"})),
        ("p {{v}} --", json!({"v": "-"})),
        ("p {{v}}", json!({"v": -5})),
        ("p {{a}}{{v}}", json!({"a": "", "v": "-x"})),
    ] {
        let error = fill(command, value).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArguments, "{command}");
        assert!(error.message.contains("`v`") && error.hint.unwrap().to_string().contains("--"));
    }
    assert_eq!(
        fill("p -- {{v}}", json!({"v": "-rf"})).unwrap(),
        ["p", "--", "-rf"]
    );
    let template = Template::parse("p {{v}}", Dashes::Allowed).unwrap();
    assert_eq!(
        template.filled(&arguments(json!({"v": "-rf"}))).unwrap(),
        ["p", "-rf"]
    );
    // A `--` that came in as a value guards nothing.
    assert!(fill("p {{a}} {{v}}", json!({"a": "--", "v": "-x"})).is_err());
}

#[test]
fn only_trailing_bare_placeholders_may_be_unset() {
    let command = "grep -rn '{{pattern}}' {{directory}} {{more}} || true";
    assert_eq!(
        fill(command, json!({"pattern": "a|b"})).unwrap(),
        ["grep", "-rn", "a|b"]
    );
    let both = fill(
        command,
        json!({"pattern": "a", "directory": "src", "more": null}),
    )
    .unwrap();
    assert_eq!(both, ["grep", "-rn", "a", "src"]);
    for (command, value, name) in [
        (command, json!({"directory": "src"}), "pattern"),
        (command, json!({"pattern": "a", "more": "x"}), "directory"),
        ("p {{a}} literal", json!({}), "a"),
        ("p --x={{a}}", json!({}), "a"),
        ("p \"{{a}}\"", json!({"a": null}), "a"),
    ] {
        let error = fill(command, value).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArguments);
        assert!(
            error.message.contains(&format!("`{name}`")),
            "{}",
            error.message
        );
    }
}
