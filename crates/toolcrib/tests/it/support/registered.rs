//! Programs to register, and the seed's own registration.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::{TestCrib, World, seed};

/// A program that answers as the protocol wants, says where it is, and can be told to misbehave by its arguments
/// (`crash`, `silent`, `bad-schema`) and its input (`crash`).
pub const WEATHER: &str = r#"
import json, os, sys, time
word = sys.argv[1] if len(sys.argv) > 1 else ""
here = os.path.dirname(os.path.abspath(__file__))
print("starting with " + os.environ.get("API_KEY", "no key"), file=sys.stderr, flush=True)
if word == "crash" or os.path.exists(os.path.join(here, "broken")):
    print("no, not with " + os.environ.get("API_KEY", "no key"), file=sys.stderr, flush=True)
    sys.exit(3)
if word == "silent":
    time.sleep(60)
schema = {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]}
if word == "bad-schema":
    schema = {"type": "nonsense"}
about = {"name": "weather", "description": "Says how the weather is", "version": "2.0.0", "inputSchema": schema}
for line in sys.stdin:
    request = json.loads(line)
    method = request["method"]
    if method == "initialize":
        result = about
    elif method == "health":
        result = {"status": "healthy", "message": "fine with " + os.environ.get("API_KEY", "no key")}
    else:
        location = request["params"]["input"]["location"]
        if location == "crash":
            os._exit(3)
        result = "sunny in " + location + (" with a key" if "API_KEY" in os.environ else "")
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"#;

impl World {
    /// A crib on whose PATH Python is called `python`, as the seed has it.
    pub fn serve_where_python_is_python(&self) -> TestCrib {
        let bin = self.root().join("bin");
        std::fs::create_dir(&bin).unwrap();
        std::os::unix::fs::symlink("/usr/bin/python3", bin.join("python")).unwrap();
        let mut command = self.command(&["serve", "--json", "--no-auth", "--port", "0"]);
        let path = command.get_envs().find(|(name, _)| *name == "PATH");
        let path = path.and_then(|(_, value)| value).unwrap_or_default();
        let path = format!("{}:{}", bin.display(), path.to_string_lossy());
        command.env("PATH", path);
        self.serve_by(command)
    }

    /// Writes the weather program into the project.
    pub fn weather(&self) -> PathBuf {
        self.write("weather/tool.py", WEATHER)
    }
}

/// The least that registers the weather program.
pub fn least(name: &str) -> Value {
    json!({"name": name, "command": "python3", "args": ["./weather/tool.py"]})
}

/// The body of the seed's `curl`, cut out of its text as it stands; where there is no seed, one of the same shape.
pub fn seed_registration() -> Value {
    let body = seed("003").map(|text| {
        let (_, section) = text
            .split_once("### Registration Example")
            .expect("the seed has an example");
        let (_, body) = section.split_once("-d '").expect("with a body");
        body.split_once("'\n```").expect("which ends").0.to_owned()
    });
    let body = body.unwrap_or_else(|| STAND_IN.to_owned());
    serde_json::from_str(&body).unwrap()
}

const STAND_IN: &str = r#"{
  "name": "weather_lookup",
  "description": "Get current weather for a location",
  "command": "python",
  "args": ["./tools/installed/weather/tool.py"],
  "inputSchema": {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]},
  "timeoutMs": 10000,
  "tags": ["weather", "external-api"]
}"#;

impl TestCrib {
    /// Status and JSON of any request below `/api`.
    pub async fn send(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let mut request = self
            .client
            .request(method, format!("{}/api{path}", self.url));
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let body = response.bytes().await.unwrap();
        (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
    }

    pub async fn patch(&self, name: &str, body: Value) -> (u16, Value) {
        self.send("PATCH", &format!("/custom-tools/{name}"), Some(body))
            .await
    }

    pub async fn delete(&self, name: &str) -> u16 {
        self.send("DELETE", &format!("/custom-tools/{name}"), None)
            .await
            .0
    }

    /// Registers a tool that must be taken.
    pub async fn register(&self, body: Value) -> Value {
        let (status, view) = self.post("/custom-tools", body).await;
        assert_eq!(status, 201, "{view}");
        view
    }
}
