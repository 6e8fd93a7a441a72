//! Every template's program, as `toolcrib new` writes it, against every rule of the worker protocol.

use serde_json::{Value, json};

use crate::support::World;
use crate::support::program::{Program, new_tool};
use crate::tidy::root;

/// A tool of this template, with the name `greet`, and the world that it lies in.
fn made(template: &str) -> World {
    let world = World::new();
    new_tool(&world, &["new", "greet", "--template", template]).exits(0);
    let linted = world.run(&["lint", "greet", "--strict"]);
    assert_eq!(linted.code, 0, "{template}: {}", linted.stdout);
    world
}

fn start(world: &World) -> Program {
    Program::start(&world.tools_folder().join("greet"), &[])
}

#[test]
fn node_keeps_the_protocol() {
    keeps_the_protocol("node");
}

#[test]
fn bash_keeps_the_protocol() {
    keeps_the_protocol("bash");
}

#[test]
fn rust_keeps_the_protocol() {
    keeps_the_protocol("rust");
}

#[test]
fn python_keeps_the_protocol() {
    keeps_the_protocol("python-rpc");
}

fn keeps_the_protocol(template: &str) {
    let world = made(template);
    describes_itself(&mut start(&world));
    refuses(&mut start(&world));
    gives_back_what_it_was_given(&mut start(&world));
    ends_with_its_stdin(start(&world));
    let folder = world.tools_folder().join("greet");
    let mut tool = Program::start(&folder, &[("LC_ALL", "C.UTF-8".as_ref())]);
    let large = "ä \" ".repeat(500_000);
    let result = tool.execute(json!({"text": large}))["result"].take();
    assert!(result == format!("{large}\n"), "a large message");
}

/// What a person changes of a template is its own part and tool.json: with other parameters the rest stays as it is.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a person builds the Rust template anew"
)]
fn a_template_takes_other_parameters_without_a_change_of_its_protocol() {
    for (template, file, own, other) in [
        (
            "python-rpc",
            "tool.py",
            "def run(text, times=1):",
            "def run(city, times=1):\n    text = city",
        ),
        (
            "node",
            "tool.mjs",
            "run({ text, times = 1 })",
            "run({ city: text, times = 1 })",
        ),
        ("bash", "tool.sh", "jq -r .text <<<", "jq -r .city <<<"),
        (
            "rust",
            "main.rs",
            "input.get(\"text\")",
            "input.get(\"city\")",
        ),
    ] {
        let world = made(template);
        let folder = world.tools_folder().join("greet");
        for (file, own, other) in [(file, own, other), ("tool.json", "\"text\"", "\"city\"")] {
            let path = folder.join(file);
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(text.contains(own), "{template} {file}");
            std::fs::write(&path, text.replace(own, other)).unwrap();
        }
        if template == "rust" {
            let mut rustc = std::process::Command::new("rustc");
            rustc.args(["--edition", "2021", "-o", "tool", "main.rs"]);
            assert!(rustc.current_dir(&folder).status().unwrap().success());
        }
        let mut tool = start(&world);
        assert_eq!(
            tool.execute(json!({"city": "Oslo"}))["result"],
            "Oslo\n",
            "{template}"
        );
        let refused = tool.execute(json!({"text": "Oslo"}));
        assert_eq!(refused["error"]["code"], -32602, "{template}: {refused}");
        assert!(
            refused["error"]["message"]
                .as_str()
                .unwrap()
                .contains("`city`"),
            "{template}: {refused}"
        );
    }
}

fn describes_itself(tool: &mut Program) {
    let hello = json!({"protocolVersion": "1.0", "supported": ["1.0", "1.1"]});
    let spec = tool.ask(json!(1), "initialize", hello)["result"].take();
    assert_eq!(spec["name"], "greet");
    assert_eq!(spec["version"], "1.0.0");
    assert!(spec["description"].as_str().unwrap().len() > 10);
    assert_eq!(spec["inputSchema"]["required"], json!(["text"]));
    assert!(spec["inputSchema"]["properties"]["times"].is_object());
    let health = tool.ask(json!("h"), "health", json!({}));
    assert_eq!(health["result"]["status"], "healthy");
    assert_eq!(tool.execute(json!({"text": "hi"}))["result"], "hi\n");
}

fn refuses(tool: &mut Program) {
    fn code(answer: &Value) -> i64 {
        assert!(answer.get("result").is_none(), "{answer}");
        assert!(!answer["error"]["message"].as_str().unwrap().is_empty());
        answer["error"]["code"].as_i64().unwrap()
    }
    assert_eq!(code(&tool.ask(json!(1), "nonsense", json!({}))), -32601);
    assert_eq!(code(&tool.execute(json!({}))), -32602);
    assert_eq!(code(&tool.execute(json!({"times": 2}))), -32602);
    for params in [json!({}), json!({"input": []}), json!([]), Value::Null] {
        let answer = tool.ask(json!(2), "execute", params.clone());
        assert_eq!(code(&answer), -32602, "{params}");
    }
    // The tool's own no, and what it can't work with.
    let failed = tool.execute(json!({"text": "x", "times": 101}));
    assert_eq!(code(&failed), -32001);
    let message = failed["error"]["message"].as_str().unwrap();
    assert!(message.contains("a hundred times is enough"), "{message}");
    for line in [
        "nonsense",
        "{",
        "{} {}",
        "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"health\"",
        "{\"a\": \"\u{1}\"}",
    ] {
        tool.send(line);
        let answer = tool.answer();
        assert_eq!(
            (code(&answer), &answer["id"]),
            (-32700, &Value::Null),
            "{line}"
        );
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    tool.send(deep);
    let refused = code(&tool.answer());
    assert!(refused == -32700 || refused == -32600, "{refused}");
    for (line, id) in [
        ("[]", Value::Null),
        ("5", Value::Null),
        ("null", Value::Null),
        ("{}", Value::Null),
        ("{\"id\": 1, \"method\": \"health\"}", json!(1)),
        (
            "{\"jsonrpc\": \"1.0\", \"id\": \"a\", \"method\": \"health\"}",
            json!("a"),
        ),
        ("{\"jsonrpc\": \"2.0\", \"id\": 2}", json!(2)),
        ("{\"jsonrpc\": \"2.0\", \"id\": 3, \"method\": 4}", json!(3)),
    ] {
        tool.send(line);
        let answer = tool.answer();
        assert_eq!((code(&answer), &answer["id"]), (-32600, &id), "{line}");
    }
    // Nobody waits for an answer to a notification, and blank lines are none.
    tool.send("{\"jsonrpc\": \"2.0\", \"method\": \"cancel\", \"params\": {\"id\": 1}}\n\n  ");
    // After all that it works as before.
    assert_eq!(tool.execute(json!({"text": "on"}))["result"], "on\n");
}

fn gives_back_what_it_was_given(tool: &mut Program) {
    let controls: String = (0..0x20).chain([0x7f]).map(char::from).collect();
    let long = "lang \"ä\\ ".repeat(40_000);
    for text in [
        "",
        " ",
        "\"quoted\" and 'quoted' and `quoted`",
        "back\\slash \\n \\u0041 \\\\",
        "line\nline\r\nline\n\n",
        "$(touch /tmp/no) ${HOME} %s %n ; | & > < * ?",
        "ä ß 漢字 עברית 🦀 👩‍👩‍👧 \u{10ffff} \u{feff}",
        "\u{2028}\u{2029}\u{85}\u{a0}",
        "-n -e --",
        "{{name}} TOOL_NAME </script>",
        &controls,
        &long,
    ] {
        let shown: String = text.chars().take(60).collect();
        let result = tool.execute(json!({"text": text}))["result"].take();
        assert!(result == format!("{text}\n"), "{shown:?}");
        let result = tool.execute(json!({"text": text, "times": 3}))["result"].take();
        assert!(result == format!("{text}\n").repeat(3), "{shown:?}");
    }
    // Every escape that a sender may choose, surrogate pairs among them.
    let escaped = r#""\u0041\u00e4\ud83e\udd80\"\\\/\b\f\n\r\t\u0000""#;
    tool.send(format!(
        r#"{{"jsonrpc":"2.0","id":"x","method":"execute","params":{{"input":{{"text":{escaped}}}}}}}"#
    ));
    let expected: String = serde_json::from_str(escaped).unwrap();
    assert_eq!(tool.answer()["result"], format!("{expected}\n"));
    // Ids come back as they are.
    for id in [
        json!(0),
        json!(-5),
        json!(9_007_199_254_740_991_i64),
        json!("a\"\\\n😀"),
        json!("7"),
    ] {
        tool.ask(id, "health", json!({}));
    }
    // Hostile names, too.
    let name = "\"\n\\ 😀";
    let answer = tool.ask(json!(1), name, json!({}));
    assert_eq!(answer["error"]["code"], -32601);
}

fn ends_with_its_stdin(mut tool: Program) {
    tool.execute(json!({"text": "x", "times": 2}));
    tool.send_last(r#"{"jsonrpc":"2.0","id":9,"method":"health"}"#);
    assert_eq!(tool.answer()["id"], 9, "the last line needs no newline");
    let (code, log) = tool.end();
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(log, "times: 2\n", "stderr is for the tool's own words");
}

/// Arithmetic in Bash runs what stands in a text.
#[test]
fn bash_does_not_run_its_arguments() {
    let world = made("bash");
    let mut tool = start(&world);
    let marker = world.root().join("ran");
    let trap = format!("a[$(touch {})]", marker.display());
    for times in [json!(trap), json!(1e300), json!("1; id"), json!(-1)] {
        tool.execute(json!({"text": "x", "times": times}));
    }
    assert!(!marker.exists());
}

#[test]
fn bash_says_that_jq_is_missing() {
    let world = made("bash");
    let bin = world.root().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let bash = ["/bin/bash", "/usr/bin/bash"]
        .iter()
        .find(|p| std::path::Path::new(p).exists());
    std::os::unix::fs::symlink(bash.expect("a bash"), bin.join("bash")).unwrap();
    let mut tool = Program::start(&world.tools_folder().join("greet"), &[("PATH", &bin)]);
    tool.send(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#);
    let answer = tool.answer();
    assert_eq!(answer["id"], Value::Null);
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("jq is not on PATH: install it"),
        "{message}"
    );
    let (code, log) = tool.end();
    assert_eq!(code, Some(1));
    assert!(
        log.contains("greet needs jq") && log.contains("apt-get install jq"),
        "{log}"
    );
}

/// The program of the reference page says, line by line, what the page says that it says.
#[test]
fn the_example_of_the_protocols_page_is_true() {
    let page = root().join("docs/reference/worker-protocol.md");
    let page = std::fs::read_to_string(page).unwrap();
    let block = |kind: &str| {
        let (_, rest) = page.split_once(&format!("```{kind}\n")).unwrap();
        rest.split_once("```").unwrap().0.to_owned()
    };
    let world = World::new();
    let folder = world.tools_folder().join("example");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("tool.py"), block("python")).unwrap();
    let spec = json!({"command": "python3", "args": ["tool.py"]});
    std::fs::write(folder.join("tool.json"), spec.to_string()).unwrap();
    let mut tool = Program::start(&folder, &[]);
    let mut answers = 0;
    for line in block("text").lines() {
        match line.split_at(2) {
            ("> ", message) => tool.send(message),
            (_, message) => {
                let expected: Value = serde_json::from_str(message).unwrap();
                assert_eq!(tool.answer(), expected);
                answers += 1;
            }
        }
    }
    assert_eq!(answers, 6);
    assert_eq!(tool.end(), (Some(0), String::new()));
    // What is not run is at least JSON, one message a line.
    let rest = page.split_once("The same with two tools").unwrap().1;
    let lines = rest
        .lines()
        .filter_map(|line| line.strip_prefix("> ").or(line.strip_prefix("< ")));
    for line in lines {
        let message: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        assert_eq!(message["jsonrpc"], "2.0");
    }
}
