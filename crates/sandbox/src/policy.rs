//! What a process may touch: pure data, made by whoever knows the tool.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::host::HostRule;

/// Files and folders that a yes to what lies around them does not reach, wherever they lie: what is in there is executed
/// later, by other tools or by agents, editors, version control and shells, which ask nobody.
pub const GUARDED: [&str; 61] = [
    ".toolcrib",
    ".git",
    ".hg",
    ".jj",
    ".sl",
    ".husky",
    ".venv",
    "node_modules",
    ".envrc",
    ".claude",
    ".codex",
    ".cursor",
    ".gemini",
    ".opencode",
    "opencode.json",
    "opencode.jsonc",
    ".mcp.json",
    ".amazonq",
    ".continue",
    ".crush.json",
    "crush.json",
    ".factory",
    ".junie",
    ".kilocode",
    ".kiro",
    ".qwen",
    ".roo",
    ".trae",
    ".vscode",
    ".idea",
    ".zed",
    ".helix",
    ".vim",
    ".devcontainer",
    ".devcontainer.json",
    ".aider.conf.yml",
    ".clinerules",
    ".windsurf",
    ".exrc",
    ".nvim.lua",
    ".nvimrc",
    ".vimrc",
    ".yarnrc.yml",
    ".mise.toml",
    "mise.toml",
    ".direnv",
    ".mise",
    ".mise.local.toml",
    "mise.local.toml",
    ".npmrc",
    ".yarnrc",
    ".pnpmfile.cjs",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    ".lefthook.yml",
    ".agents",
    ".amp",
    ".augment",
    ".goose",
    ".openhands",
    ".pi",
];
/// Those of them that are kept from being made at the top of a project.
const HELD: [&str; 2] = [".toolcrib", ".git"];

/// What a process may touch. The system's programs and libraries, and the program itself with what belongs to it, are
/// always readable; a tmp and a home of its own are always writable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Policy {
    /// Files and folders that are its own, as absolute paths. Links in them are followed; what is not there is left out.
    pub read: Vec<PathBuf>,
    /// Files and folders that it was granted to read. Each must be the very place that it names: a link anywhere in it
    /// is a refusal. What is not there is left out.
    pub granted: Vec<PathBuf>,
    /// Files and folders that it may read and write, each the very place that it names. What is not there is made.
    pub write: Vec<PathBuf>,
    /// What stays unwritten inside writable folders, beside all that is [`GUARDED`] in them; where it is not there it is
    /// kept from being made. A path that `write` names itself is written all the same.
    pub protect: Vec<PathBuf>,
    /// The same, where it is there.
    pub keep: Vec<PathBuf>,
    /// What is never written, whatever `write` names.
    pub never: Vec<PathBuf>,
    /// Files that no writable folder may hold: who writes beside them changes what is read in them, as beside a database.
    pub records: Vec<PathBuf>,
    /// What is not even read inside readable folders, but for what `read`, `granted` and `write` name in there.
    pub hide: Vec<PathBuf>,
    /// Paths of `read` that are written as lying in this folder must really lie there: a link can't widen them.
    pub within: Option<PathBuf>,
    pub exec: Exec,
    pub network: Network,
    pub memory_mb: u64,
    /// 100 is one core.
    pub cpu_percent: u32,
    /// Threads count too.
    pub processes: u32,
    /// The largest file that it may write.
    pub file_mb: u64,
    /// The size of its private tmp.
    pub tmp_mb: u64,
}

/// Whether it may execute other programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Exec {
    /// Its own program, once, when it is started. It may still fork.
    Once,
    /// Everything that it may read.
    Allowed,
}

/// Which network it sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Network {
    None,
    /// These hosts, through a proxy of the crib's.
    Hosts(Vec<HostRule>),
    /// The same for hosts that the user's own settings name as indexes of packages: at whatever address they lie, in the
    /// user's network or on this machine too, but for the link's own. No tool's grant gives this.
    Index(Vec<HostRule>),
    /// The machine's own, its loopback included.
    Open,
}

impl Network {
    /// The hosts that may be reached, where they are named.
    pub(crate) fn hosts(&self) -> &[HostRule] {
        match self {
            Network::Hosts(rules) | Network::Index(rules) => rules,
            Network::None | Network::Open => &[],
        }
    }
}

impl Default for Policy {
    /// No file but the system's, no writes, no network, no other programs.
    fn default() -> Policy {
        Policy {
            read: Vec::new(),
            granted: Vec::new(),
            write: Vec::new(),
            protect: Vec::new(),
            keep: Vec::new(),
            never: Vec::new(),
            records: Vec::new(),
            hide: Vec::new(),
            within: None,
            exec: Exec::Once,
            network: Network::None,
            memory_mb: 512,
            cpu_percent: 100,
            processes: 64,
            file_mb: 512,
            tmp_mb: 64,
        }
    }
}

impl Policy {
    /// What every tool gets: it reads its own file or folder and the project, and writes neither.
    pub fn default_for(tool: &Path, project: Option<&Path>) -> Policy {
        let mut policy = Policy {
            read: vec![tool.to_path_buf()],
            ..Policy::default()
        };
        if let Some(project) = project {
            policy.read.push(project.to_path_buf());
            policy.protect = HELD.map(|name| project.join(name)).to_vec();
            policy.within = Some(project.to_path_buf());
        }
        policy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_writes_nothing_and_reaches_nobody() {
        let policy =
            Policy::default_for(Path::new("/p/.toolcrib/tools/a.py"), Some(Path::new("/p")));
        assert_eq!(policy.read.len(), 2);
        assert!(policy.write.is_empty());
        assert_eq!(
            policy.protect,
            [Path::new("/p/.toolcrib"), Path::new("/p/.git")]
        );
        assert_eq!((policy.exec, &policy.network), (Exec::Once, &Network::None));
        assert_eq!(
            (policy.memory_mb, policy.cpu_percent, policy.processes),
            (512, 100, 64)
        );
    }

    #[test]
    fn it_is_data() {
        let mut policy = Policy::default_for(Path::new("/t"), None);
        policy.network = Network::Hosts(vec!["*.example.com".parse().unwrap()]);
        let text = serde_json::to_string(&policy).unwrap();
        assert!(
            text.contains(r#""network":{"hosts":["*.example.com"]}"#),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<Policy>(&text).unwrap(), policy);
        assert!(serde_json::from_str::<Policy>(&text.replace("hide", "hidden")).is_err());
    }
}
