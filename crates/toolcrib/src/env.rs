//! The environment, read once and in this file only: variables, home, working directory.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// A variable that Toolcrib listens to, for the reference.
pub struct Variable {
    pub name: &'static str,
    pub meaning: &'static str,
}

pub const PROJECT: &str = "TOOLCRIB_PROJECT";
pub const CLAUDE_PROJECT: &str = "CLAUDE_PROJECT_DIR";
pub const CLAUDE_SESSION: &str = "CLAUDE_CODE_SESSION_ID";
pub const TOOLS_DIR: &str = "TOOLCRIB_TOOLS_DIR";
pub const TOOL_DIRS: &str = "TOOLCRIB_TOOL_DIRS";
pub const DEFAULT_TIMEOUT: &str = "TOOLCRIB_DEFAULT_TIMEOUT";
pub const STORE: &str = "TOOLCRIB_STORE";
pub const STORE_GRACE: &str = "TOOLCRIB_STORE_GRACE";
pub const CUSTOM_TOOLS_ENABLED: &str = "TOOLCRIB_CUSTOM_TOOLS_ENABLED";
pub const MAX_POOL_SIZE: &str = "TOOLCRIB_MAX_POOL_SIZE";
pub const MAX_WORKERS: &str = "TOOLCRIB_MAX_WORKERS";
pub const MAX_WORKER_MEMORY: &str = "TOOLCRIB_MAX_WORKER_MEMORY";
pub const WORKER_IDLE: &str = "TOOLCRIB_WORKER_IDLE";
pub const HEALTH_CHECK_INTERVAL: &str = "TOOLCRIB_HEALTH_CHECK_INTERVAL";
pub const LIST_WAIT: &str = "TOOLCRIB_LIST_WAIT";
pub const PYTHON: &str = "TOOLCRIB_PYTHON";
pub const JAVASCRIPT: &str = "TOOLCRIB_JAVASCRIPT";
pub const SANDBOX_ENABLED: &str = "TOOLCRIB_SANDBOX_ENABLED";
pub const SCAN: &str = "TOOLCRIB_SCAN";
pub const MAX_RUNG: &str = "TOOLCRIB_MAX_RUNG";
pub const HOST: &str = "TOOLCRIB_HOST";
pub const PORT: &str = "TOOLCRIB_PORT";
pub const TOKEN: &str = "TOOLCRIB_TOKEN";
pub const LOG: &str = "TOOLCRIB_LOG";
pub const LOG_FORMAT: &str = "TOOLCRIB_LOG_FORMAT";
pub const AUDIT: &str = "TOOLCRIB_AUDIT";

/// Every variable, with what it does.
pub const VARIABLES: &[Variable] = &[
    Variable {
        name: PROJECT,
        meaning: "the project, where `--project` is not given",
    },
    Variable {
        name: CLAUDE_PROJECT,
        meaning: "the project that Claude Code works in; asked after the one above",
    },
    Variable {
        name: CLAUDE_SESSION,
        meaning: "the session id that Claude Code gives the servers it starts; tools called through `mcp` get it",
    },
    Variable {
        name: TOOLS_DIR,
        meaning: "one tools folder that replaces the default ones (setting `tools_dir`)",
    },
    Variable {
        name: TOOL_DIRS,
        meaning: "further tools folders, separated by `:` (setting `tool_dirs`)",
    },
    Variable {
        name: DEFAULT_TIMEOUT,
        meaning: "milliseconds a call may take (setting `default_timeout`)",
    },
    Variable {
        name: STORE,
        meaning: "where registrations, trust, tokens and calls are kept (setting `store`)",
    },
    Variable {
        name: STORE_GRACE,
        meaning: "milliseconds for which known trust, tokens and grants stay valid while the store does not answer (setting `store_grace`)",
    },
    Variable {
        name: AUDIT,
        meaning: "whether a call that can't be recorded runs: `best-effort` or `required` (setting `audit`)",
    },
    Variable {
        name: CUSTOM_TOOLS_ENABLED,
        meaning: "whether programs and registered tools are tools at all (setting `custom_tools_enabled`)",
    },
    Variable {
        name: MAX_POOL_SIZE,
        meaning: "the most workers one tool may have (setting `max_pool_size`)",
    },
    Variable {
        name: MAX_WORKERS,
        meaning: "the most workers that all tools together may have (setting `max_workers`)",
    },
    Variable {
        name: MAX_WORKER_MEMORY,
        meaning: "megabytes of memory that all workers may keep (setting `max_worker_memory`)",
    },
    Variable {
        name: WORKER_IDLE,
        meaning: "milliseconds without a call after which a worker is stopped (setting `worker_idle`)",
    },
    Variable {
        name: HEALTH_CHECK_INTERVAL,
        meaning: "milliseconds between two health checks (setting `health_check_interval`)",
    },
    Variable {
        name: LIST_WAIT,
        meaning: "milliseconds that a list waits for tools that are being loaded (setting `list_wait`)",
    },
    Variable {
        name: PYTHON,
        meaning: "the Python that runs tool files (setting `python`)",
    },
    Variable {
        name: JAVASCRIPT,
        meaning: "what runs TypeScript and JavaScript tool files (setting `javascript`)",
    },
    Variable {
        name: SCAN,
        meaning: "what a finding of the scan means: `warn` or `strict` (setting `scan`)",
    },
    Variable {
        name: SANDBOX_ENABLED,
        meaning: "whether tools are confined (setting `sandbox_enabled`)",
    },
    Variable {
        name: MAX_RUNG,
        meaning: "how much isolation is used at most: `A` (namespaces and Landlock), `C` (namespaces) or `B` (Landlock); for tests",
    },
    Variable {
        name: HOST,
        meaning: "the address `serve` listens on (setting `host`)",
    },
    Variable {
        name: PORT,
        meaning: "the port `serve` listens on (setting `port`)",
    },
    Variable {
        name: TOKEN,
        meaning: "the token that commands with `--host` or `--port` show, where `--token` is not given",
    },
    Variable {
        name: LOG,
        meaning: "what is logged to stderr: error, warn, info, debug, or a filter by module",
    },
    Variable {
        name: LOG_FORMAT,
        meaning: "how it is logged: `json` (a line each; the default of `serve` and `mcp` where stderr is not a terminal) or `text`",
    },
    Variable {
        name: "XDG_CONFIG_HOME",
        meaning: "the folder of `toolcrib/config.toml` and `toolcrib/tools/` (`~/.config`)",
    },
    Variable {
        name: "XDG_DATA_HOME",
        meaning: "the folder for the store, kept outputs and workers' logs (`~/.local/share`)",
    },
    Variable {
        name: "XDG_CACHE_HOME",
        meaning: "the folder for last good versions, descriptions and packages of tools (`~/.cache`)",
    },
];

/// What the process was started with.
#[derive(Debug, Clone)]
pub struct Env {
    vars: BTreeMap<OsString, OsString>,
    pub directory: PathBuf,
    /// The project that the command line names; everybody who looks for the project finds this one.
    pub named_project: Option<PathBuf>,
}

impl Env {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the environment"
    )]
    pub fn read() -> std::io::Result<Env> {
        Ok(Env {
            vars: std::env::vars_os().collect(),
            directory: std::env::current_dir()?,
            named_project: None,
        })
    }

    /// An environment made by hand, for tests.
    pub fn of(vars: &[(&str, &str)], directory: &Path) -> Env {
        let vars = vars
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        Env {
            vars,
            directory: directory.to_path_buf(),
            named_project: None,
        }
    }

    /// A variable's value; one that is set but empty counts as unset.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.vars
            .get(OsStr::new(name))
            .map(OsString::as_os_str)
            .filter(|value| !value.is_empty())
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.to_str()
    }

    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(|value| self.directory.join(value))
    }

    pub fn vars(&self) -> impl Iterator<Item = (OsString, OsString)> {
        self.vars
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
    }

    pub fn home(&self) -> Option<PathBuf> {
        self.get("HOME")
            .map(PathBuf::from)
            .filter(|home| home.is_absolute())
    }

    /// The user's own folder of one kind: the XDG variable (absolute only, as XDG says), else below home.
    fn user_folder(&self, variable: &str, below_home: &str) -> Option<PathBuf> {
        let named = self
            .get(variable)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute());
        let folder = named.or_else(|| Some(self.home()?.join(below_home)))?;
        Some(folder.join("toolcrib"))
    }

    /// The user's own folders: the variable that says where each lies, the folder, and whether it lies where it does
    /// below every home.
    pub fn own_folders(&self) -> Vec<(&'static str, PathBuf, bool)> {
        let kinds = [
            ("XDG_CONFIG_HOME", ".config"),
            ("XDG_DATA_HOME", ".local/share"),
            ("XDG_CACHE_HOME", ".cache"),
        ];
        let mut folders = Vec::new();
        for (variable, below) in kinds {
            let usual = self.home().map(|home| home.join(below).join("toolcrib"));
            if let Some(folder) = self.user_folder(variable, below) {
                let is_usual = Some(&folder) == usual.as_ref();
                let said_by = if is_usual { "HOME" } else { variable };
                folders.push((said_by, folder, is_usual));
            }
        }
        let session = self.get("XDG_RUNTIME_DIR").map(PathBuf::from);
        let session = session.filter(|path| path.is_absolute());
        folders.extend(session.map(|path| ("XDG_RUNTIME_DIR", path.join("toolcrib"), false)));
        folders
    }

    pub fn config_folder(&self) -> Option<PathBuf> {
        self.user_folder("XDG_CONFIG_HOME", ".config")
    }

    /// Where sockets lie: the session's own folder, else the data folder.
    pub fn runtime_folder(&self) -> Option<PathBuf> {
        let session = self.get("XDG_RUNTIME_DIR").map(PathBuf::from);
        let session = session.filter(|path| path.is_absolute());
        let folder = session.map(|folder| folder.join("toolcrib"));
        folder.or_else(|| Some(self.data_folder()?.join("run")))
    }

    /// Where cribs of this user leave word of where they listen. One that was started without a session looks in
    /// another place than one with, so it is both.
    pub fn notice_folders(&self) -> Vec<PathBuf> {
        let always = self.data_folder().map(|folder| folder.join("run"));
        let mut folders: Vec<PathBuf> = self.runtime_folder().into_iter().collect();
        folders.extend(always.filter(|always| !folders.contains(always)));
        folders
    }

    pub fn data_folder(&self) -> Option<PathBuf> {
        self.user_folder("XDG_DATA_HOME", ".local/share")
    }

    pub fn cache_folder(&self) -> Option<PathBuf> {
        self.user_folder("XDG_CACHE_HOME", ".cache")
    }
}
