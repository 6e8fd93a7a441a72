//! Secrets by reference: a tool gets the value, and nobody else ever sees it.

mod given;
mod hidden;
mod scripts;

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::support::World;
use crate::support::tool::python;

/// Holds what every form of escaping changes.
const SECRET: &str = "s3cr\"t/ke y+7ö-fromfile";
const VARIABLE: &str = "gr4nted-variable-value";
const LITERAL: &str = "l1teral-manifest-value";

/// The values, and the forms in which they might come out.
fn forms() -> Vec<String> {
    let mut forms = vec![SECRET.to_owned(), VARIABLE.to_owned(), LITERAL.to_owned()];
    forms.push(r#"s3cr\"t/ke y+7ö"#.to_owned());
    forms.push(r#"s3cr\"t/ke y+7\u00f6"#.to_owned());
    forms.push(r#"s3cr\\\"t"#.to_owned());
    forms.push("s3cr%22t".to_owned());
    // The middle of its base64.
    forms.push("czNjciJ0L2tlIHkrN8O2LWZyb21maWxl".to_owned());
    // What is left where only a part was hidden.
    forms.extend(["s3cr", "-fromfile", "gr4nted", "l1teral"].map(str::to_owned));
    forms
}

#[track_caller]
fn nowhere_in(what: &str, text: &str) {
    for form in forms() {
        if let Some(at) = text.find(&form) {
            let from = text.floor_char_boundary(at.saturating_sub(200));
            let to = text.ceil_char_boundary((at + 200).min(text.len()));
            panic!("{form} is in {what}: {}", &text[from..to]);
        }
    }
}

/// Tells its secret in every way that there is.
const BLAB: &str = r#"
import base64, json, os, sys, urllib.parse
key = os.environ.get("API_KEY", "no key")
literal = os.environ["MODE"]
both = key + " " + literal
escaped = "".join("\\u%04x" % ord(c) for c in both)
def say(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    id, method = request["id"], request["method"]
    if method == "initialize":
        about = {"protocolVersion": "1.1", "name": "blab", "version": "1 " + both}
        say(id=id, result=about)
        continue
    if method == "health":
        say(id=id, result={"status": "degraded", "message": "with " + both})
        continue
    how = request["params"]["input"].get("how")
    said = request["params"]["input"].get("said")
    if how == "matches":
        say(id=id, result="yes" if said in (key, literal) else "no")
    elif how == "stdout":
        print("noise " + both, flush=True)
        say(id=id, result="printed " + both)
    elif how == "stderr":
        sys.stderr.write("part " + key[:5]); sys.stderr.flush()
        sys.stderr.write(key[5:] + " whole " + both + "\n"); sys.stderr.flush()
        say(id=id, result="printed")
    elif how == "log":
        say(method="log", params={"level": "warn " + both, "message": "log " + both})
        say(method="strange " + both, params={})
        say(id=id, result="logged")
    elif how == "error":
        say(id=id, error={"code": -32001, "message": "no: " + both, "data": {key: [both]}})
    elif how == "refusal":
        say(id=id, error={"code": -32602, "message": "no: " + both, "data": {key: [both]}})
    elif how == "foreign":
        say(id=id, error={"code": -32601, "message": "no: " + both})
    elif how == "crash":
        print("last words " + both, file=sys.stderr, flush=True)
        os._exit(3)
    elif how == "progress":
        say(method="progress", params={"id": id, "title": "t " + both, "message": "m " + both,
            "progress": 1, "total": 2, "data": {key: [both]}})
        say(id=id, result="done")
    elif how == "structured":
        say(id=id, result={"a": both, key: [key, {"deep": literal}], "n": 1})
    elif how == "contract":
        say(id=id, result={"output": "o " + both, "title": "t " + both, "metadata": {key: both},
            "extra " + key: both, "structured": {"s": both}, "attachments": [
            {"type": "text", "mimeType": "text/plain", "text": both, "name": both},
            {"type": "file", "mimeType": "a/b", "data": base64.b64encode(both.encode()).decode()}]})
    elif how == "escaped":
        print('{"jsonrpc": "2.0", "method": "progress", "params": {"id": "%s", "title": "%s", "data": {"%s": ["%s"]}}}'
            % (id, escaped, escaped, escaped), flush=True)
        print('{"jsonrpc": "2.0", "id": "%s", "result": {"a": "%s", "a": ["%s"], "%s": 1}}'
            % (id, escaped, escaped, escaped), flush=True)
    elif how == "escaped-error":
        print('{"jsonrpc": "2.0", "id": "%s", "error": {"code": -32001, "message": "%s", "data": {"%s": "%s"}}}'
            % (id, escaped, escaped, escaped), flush=True)
    elif how == "own":
        data = base64.b64encode(both.encode()).decode()
        print(('{"jsonrpc": "2.0", "id": "%s", "result": {"content": ['
            '{"type": "text", "text": "S", "annotations": {"audience": ["user"], "lastModified": "S"}, "_meta": {"S": "S"}},'
            '{"type": "image", "data": "D", "mimeType": "S"}, {"type": "audio", "d\\u0061ta": "D", "mimeType": "a/b"},'
            '{"type": "resource", "resource": {"uri": "a:S", "text": "S"}},'
            '{"type": "resource", "resource": {"uri": "a:b", "blob": "D"}},'
            '{"type": "resource_link", "uri": "a:S", "name": "S", "description": "S"}],'
            '"structuredContent": {"S": "S"}, "_meta": {"S": {"a": "S"}}}}' % id)
            .replace("S", escaped).replace("D", data), flush=True)
    elif how == "forms":
        say(id=id, result="\n".join([json.dumps(key), json.dumps(json.dumps(key)), urllib.parse.quote(key),
            urllib.parse.quote_plus(key), urllib.parse.quote(key, safe=""),
            base64.b64encode(key.encode()).decode(), base64.urlsafe_b64encode(("user:" + key).encode()).decode()]))
    elif how == "big":
        say(id=id, result="\n".join(f"{n} {both}" for n in range(5000)))
"#;

struct Scene {
    world: World,
    /// Holds the secret itself, apart from all that is searched.
    kept: tempfile::TempDir,
}

fn scene() -> Scene {
    let mut world = World::new();
    let kept = tempfile::tempdir().unwrap();
    let file = kept.path().join("api");
    std::fs::write(&file, format!("{SECRET}\n")).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    let config = world.home().join(".config/toolcrib/config.toml");
    let from_file = format!("[secrets.api]\nfile = {:?}\n", file.to_str().unwrap());
    let from_variable = "[secrets.other]\nenv = \"GRANTED\"\n";
    world.write(config, from_file + from_variable);
    world.vars.push(("GRANTED", VARIABLE.to_owned()));
    Scene { world, kept }
}

/// Writes the program with a complete `tool.json`, so that nothing has to be asked.
fn write_blab(world: &World, name: &str, env: &Value) {
    let folder = world.tools_folder().join(name);
    world.write(folder.join("tool.py"), BLAB);
    let manifest = json!({
        "name": name, "description": "Tells what it knows", "command": python(), "args": ["./tool.py"],
        "inputSchema": {"type": "object", "properties": {"how": {"type": "string"}, "said": {"type": "string"}}},
        "env": env, "retryDelayMs": 0,
    });
    world.write(folder.join("tool.json"), manifest.to_string());
}

fn mine(secret: &str) -> Value {
    json!({"API_KEY": format!("secret://{secret}"), "MODE": "plain-mode"})
}
