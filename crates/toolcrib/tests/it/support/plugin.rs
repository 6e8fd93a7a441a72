//! Plugin files of tests: the seed's example, files of their own making, and files that are none.

use std::path::Path;

use serde_json::{Value, json};

use super::{TestCrib, seed};

/// A plugin file that holds these tools.
pub fn file(tools: &[Value]) -> String {
    json!({"name": "test", "tools": tools}).to_string()
}

/// One tool; a property without a type takes any value.
pub fn tool(name: &str, properties: Value, handler: Value) -> Value {
    json!({
        "name": name,
        "description": "A tool of a test",
        "inputSchema": {"type": "object", "properties": properties},
        "handler": handler,
    })
}

pub fn shell(name: &str, command: &str, properties: Value) -> Value {
    tool(
        name,
        properties,
        json!({"type": "shell", "command": command}),
    )
}

/// A plugin file with one shell tool.
pub fn shell_tool(name: &str, command: &str, properties: Value) -> String {
    json!({
        "name": "test",
        "tools": [{
            "name": name,
            "description": "A tool of a test",
            "inputSchema": {"type": "object", "properties": properties},
            "handler": {"type": "shell", "command": command},
        }],
    })
    .to_string()
}

/// The example of the seed, cut out of its text as it stands; where there is no seed, one of the same shape.
pub fn seed_example() -> String {
    let Some(text) = seed("000") else {
        say("no seed text lies here: a file of the same shape stands in for its example");
        return STAND_IN.to_owned();
    };
    let (_, section) = text
        .split_once("### Plugin JSON Format")
        .expect("the seed describes the format");
    let (_, block) = section.split_once("```json\n").expect("with an example");
    let (example, _) = block.split_once("```").expect("which ends");
    example.to_owned()
}

const STAND_IN: &str = r#"{
  "name": "my-tools",
  "version": "1.0.0",
  "tools": [
    {
      "name": "list-todos",
      "description": "Look for notes to self",
      "inputSchema": {
        "type": "object",
        "properties": {"pattern": {"type": "string"}, "directory": {"type": "string"}}
      },
      "handler": {"type": "shell", "command": "grep -rn '{{pattern}}' {{directory}} || true", "timeout": 10000}
    },
    {
      "name": "check-api",
      "description": "Ask a server how it is",
      "inputSchema": {"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]},
      "handler": {"type": "http", "url": "{{url}}/health", "method": "GET", "timeout": 5000}
    }
  ]
}
"#;

#[expect(
    clippy::print_stderr,
    reason = "whoever reads the test's output must know"
)]
pub fn say(text: &str) {
    eprintln!("{text}");
}

/// Makes a named pipe that nobody writes to.
#[expect(unsafe_code, reason = "the standard library makes no pipes with names")]
pub fn make_fifo(path: &Path) {
    use std::os::unix::ffi::OsStrExt;
    let name = std::ffi::CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: the name is a string that ends in a null byte and outlives the call.
    let made = unsafe { libc::mkfifo(name.as_ptr(), 0o600) };
    assert_eq!(made, 0, "{}", path.display());
}

impl TestCrib {
    /// The output of a call that must go well.
    #[track_caller]
    pub fn output(&self, tool: &str, arguments: Value) -> impl Future<Output = String> + use<'_> {
        let at = std::panic::Location::caller();
        let tool = tool.to_owned();
        async move {
            let (status, outcome) = self.call(&tool, arguments).await;
            assert!(
                status == 200 && outcome["isError"] == false,
                "{at}: {status} {outcome}"
            );
            outcome["output"].as_str().unwrap().to_owned()
        }
    }

    /// The message and hint of a call that must be refused so.
    #[track_caller]
    pub fn refused(
        &self,
        tool: &str,
        arguments: Value,
        status: u16,
        code: &str,
    ) -> impl Future<Output = String> + use<'_> {
        let at = std::panic::Location::caller();
        let (tool, code) = (tool.to_owned(), code.to_owned());
        async move {
            let (got, body) = self.call(&tool, arguments.clone()).await;
            let error = &body["error"];
            let shown: String = arguments.to_string().chars().take(200).collect();
            assert_eq!(
                (got, error["code"].as_str()),
                (status, Some(code.as_str())),
                "{at}: {tool} {shown} gave {body}"
            );
            let said = |key: &str| error[key].as_str().unwrap_or_default().to_owned();
            assert!(!said("message").is_empty(), "{at}: {body}");
            format!("{}\n{}", said("message"), said("hint"))
        }
    }
}
