//! A language made up for a test, to show that another one is this file and its line in the table.

use std::path::Path;

use serde_json::{Map, Value, json};
use toolcrib_core::{ErrorType, SourceKind};
use toolcrib_hosts::Host;
use toolcrib_scan::{Cause, Declared, Position, SyntaxError};

use super::interpreter::Interpreter;
use super::language::{CannotLaunch, Language, Launch, Launching, Outline};
use super::texts::Script;

/// Files of lines `tool NAME TEXT`: a tool of this name that answers with the text.
#[derive(Debug)]
pub struct MadeUp;

static HOST: Host = Host::new("made-up", &[("host.py", HOST_TEXT.as_bytes())]);

const HOST_TEXT: &str = r#"
import json, sys
said = {}
def tool(name): return {"name": name, "description": "Says a text", "inputSchema": {"type": "object"}}
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message: continue
    params, result = message["params"], {"status": "healthy"}
    if message["method"] == "initialize":
        said = dict(one.split(" ", 2)[1:] for one in params["script"]["lines"])
        result = {"version": "1.0.0", "tools": [tool(name) for name in said]}
    elif message["method"] == "execute":
        result = said[params["tool"]]
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

impl Language for MadeUp {
    fn source(&self) -> SourceKind {
        SourceKind::Executable
    }

    fn name(&self) -> &'static str {
        "Made up"
    }

    fn takes(&self, _stem: &str, suffix: &str) -> bool {
        suffix == "madeup"
    }

    fn host(&self) -> Result<&'static Host, &'static str> {
        Ok(&HOST)
    }

    fn host_program(&self) -> &'static str {
        "host.py"
    }

    fn packages_folder(&self) -> &'static str {
        "made_up_packages"
    }

    fn requirements_file(&self) -> &'static str {
        "made-up.txt"
    }

    fn tool_name(&self, declared: &Declared, _stem: &str) -> String {
        declared.name.clone()
    }

    fn word(&self) -> &'static str {
        "tool"
    }

    fn without_tools(&self) -> (&'static str, &'static str) {
        ("it has no tool", "write one")
    }

    fn outline(&self, text: &str, _file: &Path, _root: &Path) -> Result<Outline, SyntaxError> {
        let mut outline = Outline::default();
        for (number, line) in text.lines().enumerate() {
            let at = Position {
                line: number as u32 + 1,
                column: 1,
            };
            let mut words = line.splitn(3, ' ');
            let (Some("tool"), Some(name), Some(text)) = (words.next(), words.next(), words.next())
            else {
                return Err(SyntaxError {
                    cause: Cause::Language,
                    message: "a line is `tool NAME TEXT`".to_owned(),
                    at,
                });
            };
            outline.tools.push(Declared {
                name: name.to_owned(),
                description: Some(format!("Says {text}")),
                at,
            });
        }
        Ok(outline)
    }

    fn launch(&self, wanted: &Launching) -> Result<Launch, CannotLaunch> {
        let found = Interpreter::on_path("python3", wanted.place, wanted.own);
        let interpreter = found.ok_or_else(|| {
            let message = "there is no `python3` on the PATH".to_owned();
            CannotLaunch::new(ErrorType::Io, message, "install Python")
        })?;
        Ok(Launch {
            program: interpreter.program,
            identity: interpreter.identity,
            flags: vec!["-I".into()],
            environment: None,
        })
    }

    fn load_request(&self, script: &Script, _environment: Option<&Path>) -> Map<String, Value> {
        let lines = script.texts().flat_map(|(_, text)| text.lines());
        let lines: Vec<&str> = lines.collect();
        Map::from_iter([("lines".to_owned(), json!(lines))])
    }
}

mod tests {
    use std::sync::Arc;

    use toolcrib_core::{Access, Caller, Context, Crib, Loading, Request, Scope};

    use super::*;
    use crate::testing::{NothingKept, crib, running_place};
    use crate::{Configuration, Folder, FolderSource, Follow, open};

    /// A crib with this file in its one tools folder.
    async fn opened(root: &Path, access: Access, text: &str) -> Arc<Crib> {
        let tools = root.join("project/tools");
        std::fs::create_dir_all(&tools).unwrap();
        std::fs::write(tools.join("greetings.madeup"), text).unwrap();
        let (crib, place) = (
            crib(),
            running_place(&root.join("project"), &root.join("cache")),
        );
        let folder = Folder {
            path: tools,
            scope: Scope::Local,
            rank: 0,
            access,
            trusted: Vec::new(),
            programs: true,
        };
        let configuration = Configuration {
            folders: vec![folder],
            ..Configuration::default()
        };
        let source = FolderSource::new(place.clone(), Arc::new(NothingKept));
        let list = vec![Box::new(source) as Box<dyn crate::source::Source>];
        let _sources = open(crib.clone(), place, list, configuration, Follow::Nothing).await;
        crib.loaded(Loading::Done).await;
        crib
    }

    async fn call(crib: &Crib, tool: &str) -> String {
        let request = Request {
            tool: tool.to_owned(),
            arguments: Default::default(),
            caller: Caller::new("test"),
            context: Context::noop(),
        };
        let view = crib.view(&request.caller.agent);
        view.call(request).await.unwrap().outcome.output
    }

    #[tokio::test]
    async fn files_of_another_language_are_tools() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let crib = opened(
            &root,
            Access::Open,
            "tool hello good day\ntool bye so long\n",
        )
        .await;
        assert_eq!(crib.owners_view().problems(), []);
        assert_eq!(call(&crib, "hello").await, "good day");
        assert_eq!(call(&crib, "bye").await, "so long");
    }

    #[tokio::test]
    async fn of_an_untrusted_project_its_text_is_read_and_nothing_runs() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let access = Access::untrusted(root.join("project"));
        let crib = opened(&root, access.clone(), "tool hello good day\n").await;
        let view = crib.owners_view();
        let tool = view.get("hello").unwrap();
        assert_eq!(tool.spec.description, "Says good day");
        assert_eq!(tool.access, access);
        assert!(!root.join("cache").exists(), "no host was laid out");
    }

    #[tokio::test]
    async fn a_broken_line_is_a_problem_with_its_place() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let crib = opened(&root, Access::Open, "tool hello good day\nnonsense\n").await;
        let view = crib.owners_view();
        let problem = &view.problems()[0];
        let wrong = "it is not valid Made up: a line is `tool NAME TEXT`";
        assert_eq!((problem.line, problem.message.as_str()), (Some(2), wrong));
    }
}
