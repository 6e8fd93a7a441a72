//! THE LIST of templates that `toolcrib new` writes. A new one is a folder in `templates/`, a variant, and its arms.

use clap::ValueEnum;

/// Stands in a template where the tool's name goes; itself a name, so that a template works as it lies there.
const PLACEHOLDER: &str = "TOOL_NAME";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Template {
    /// A function in a Python file, for Python 3.9 or newer
    Python,
    /// An export of a TypeScript file, for Node 20 or newer, Bun or Deno
    #[value(name = "typescript")]
    TypeScript,
    /// A program in JavaScript, for Node 18 or newer
    Node,
    /// A program in Bash; needs jq
    Bash,
    /// A program in Rust without dependencies; built with rustc
    Rust,
    /// A program in Python 3.9 or newer, without packages
    PythonRpc,
    /// A JSON file that says which command to run
    Plugin,
}

/// One file of a template.
pub struct File {
    pub name: &'static str,
    text: &'static str,
    pub executable: bool,
}

impl File {
    /// The file's text for a tool of this name.
    pub fn text(&self, tool: &str) -> String {
        self.text.replace(PLACEHOLDER, tool)
    }
}

/// A program that a template needs, and how one gets it.
pub struct Need {
    pub program: &'static str,
    pub remedy: &'static str,
}

const fn text(name: &'static str, text: &'static str) -> File {
    File {
        name,
        text,
        executable: false,
    }
}

const fn program(name: &'static str, text: &'static str) -> File {
    File {
        name,
        text,
        executable: true,
    }
}

macro_rules! template {
    ($path:literal) => {
        include_str!(concat!("../../../../../templates/", $path))
    };
}

const PYTHON: &[File] = &[text("tool.py", template!("python/tool.py"))];
const TYPESCRIPT: &[File] = &[text("tool.ts", template!("typescript/tool.ts"))];
const NODE: &[File] = &[
    text("tool.json", template!("node/tool.json")),
    program("tool.mjs", template!("node/tool.mjs")),
];
const BASH: &[File] = &[
    text("tool.json", template!("bash/tool.json")),
    program("tool.sh", template!("bash/tool.sh")),
];
const RUST: &[File] = &[
    text("tool.json", template!("rust/tool.json")),
    text("main.rs", template!("rust/main.rs")),
    text("json.rs", template!("rust/json.rs")),
];
const PYTHON_RPC: &[File] = &[
    text("tool.json", template!("python-rpc/tool.json")),
    program("tool.py", template!("python-rpc/tool.py")),
];
const PLUGIN: &[File] = &[text("tool.json", template!("plugin/tool.json"))];

impl Template {
    pub fn files(self) -> &'static [File] {
        match self {
            Template::Python => PYTHON,
            Template::TypeScript => TYPESCRIPT,
            Template::Node => NODE,
            Template::Bash => BASH,
            Template::Rust => RUST,
            Template::PythonRpc => PYTHON_RPC,
            Template::Plugin => PLUGIN,
        }
    }

    /// The entry of the tools folder that a tool of this name becomes: a file, or a folder with the files in it.
    pub fn entry(self, tool: &str) -> String {
        match self {
            Template::Python => format!("{tool}.py"),
            Template::TypeScript => format!("{tool}.ts"),
            Template::Plugin => format!("{tool}.json"),
            _ => tool.to_owned(),
        }
    }

    pub fn is_folder(self) -> bool {
        !matches!(
            self,
            Template::Python | Template::TypeScript | Template::Plugin
        )
    }

    pub fn needs(self) -> &'static [Need] {
        match self {
            Template::TypeScript | Template::Node => &[Need {
                program: "node",
                remedy: "install Node.js, for instance with `apt-get install nodejs`",
            }],
            Template::Bash => &[
                Need {
                    program: "bash",
                    remedy: "install it, for instance with `apt-get install bash`",
                },
                Need {
                    program: "jq",
                    remedy: "install it, for instance with `apt-get install jq`",
                },
            ],
            Template::Rust => &[Need {
                program: "rustc",
                remedy: "install Rust from https://rustup.rs",
            }],
            Template::Python | Template::PythonRpc => &[Need {
                program: "python3",
                remedy: "install Python, for instance with `apt-get install python3`",
            }],
            Template::Plugin => &[],
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Template::Python => "python",
            Template::TypeScript => "typescript",
            Template::Node => "node",
            Template::Bash => "bash",
            Template::Rust => "rust",
            Template::PythonRpc => "python-rpc",
            Template::Plugin => "plugin",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_takes_the_name_and_the_same_parameters() {
        for template in Template::value_variants() {
            let what = template.as_str();
            assert_eq!(
                template.to_possible_value().unwrap().get_name(),
                what,
                "the name on the command line"
            );
            let files = template.files();
            assert!(
                files
                    .iter()
                    .all(|file| !file.text("greet").contains(PLACEHOLDER))
            );
            if !files[0].name.ends_with(".json") {
                // A script says it in its own language; the end-to-end tests ask it.
                continue;
            }
            let spec: serde_json::Value =
                serde_json::from_str(&files[0].text("greet")).expect("JSON");
            let tool = spec.pointer("/tools/0").unwrap_or(&spec);
            assert_eq!(tool["name"], "greet", "{what}");
            assert_eq!(
                tool["inputSchema"]["required"],
                serde_json::json!(["text"]),
                "{what}"
            );
            let first: serde_json::Value = serde_json::from_str(&NODE[0].text("greet")).unwrap();
            assert_eq!(tool["inputSchema"], first["inputSchema"], "{what}");
            assert_eq!(tool["description"], first["description"], "{what}");
        }
    }
}
