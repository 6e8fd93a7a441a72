//! Ready sets of permissions for tools that run a project's build: what such a program needs, and no more.
//!
//! To add one: a line in [`PRESETS`]. Nothing that holds keys, passwords or logins belongs into one, and nothing that runs
//! by itself later; `docs/guides/build-tools.md` shows what each opens.

use super::{Permit, paths};

/// What programs of one kind need. They may all run other programs.
#[derive(Debug)]
pub struct Preset {
    pub name: &'static str,
    /// Programs that need it.
    pub programs: &'static [&'static str],
    /// Those of them that do nothing without others.
    pub always: &'static [&'static str],
    /// What they say where they lack it, beside what the system says.
    pub signs: &'static [&'static str],
    /// What is read of the user's own: `~/` is the home, `$NAME/` where that variable leads. What is not there is left out.
    read: &'static [&'static str],
    /// What is written of the project.
    write: &'static [&'static str],
    /// Variables that say where things lie.
    env: &'static [&'static str],
    memory_mb: Option<u64>,
    cpu_percent: Option<u32>,
}

/// All of them.
pub const PRESETS: [Preset; 5] = [
    Preset {
        name: "cargo",
        programs: &["cargo", "rustc", "rustup", "clippy-driver"],
        always: &["cargo", "rustup"],
        signs: &[
            "rustup could not choose a version",
            "could not find home directory",
        ],
        // Not all of `~/.cargo`: `credentials.toml` lies there.
        read: &[
            "$RUSTUP_HOME",
            "$CARGO_HOME/bin",
            "$CARGO_HOME/registry",
            "$CARGO_HOME/git",
            "$CARGO_HOME/config.toml",
        ],
        write: &["target"],
        env: &["CARGO_HOME", "RUSTUP_HOME"],
        memory_mb: Some(4_096),
        cpu_percent: Some(400),
    },
    Preset {
        name: "node",
        programs: &[
            "node", "npm", "npx", "yarn", "pnpm", "bun", "deno", "tsc", "vitest", "jest",
        ],
        always: &["npm", "npx", "yarn", "pnpm"],
        signs: &[],
        read: &[
            "~/.nvm/versions",
            "~/.volta/tools",
            "~/.bun/bin",
            "~/.deno/bin",
        ],
        write: &[],
        env: &["NODE_ENV", "CI"],
        memory_mb: Some(2_048),
        cpu_percent: Some(200),
    },
    Preset {
        name: "python",
        programs: &["python", "python3", "pytest", "tox", "uv", "ruff", "mypy"],
        always: &["tox", "uv"],
        signs: &[],
        read: &[
            "$PYENV_ROOT/versions",
            "~/.local/share/uv/python",
            "~/.local/share/uv/tools",
        ],
        write: &[],
        env: &["CI"],
        memory_mb: Some(2_048),
        cpu_percent: Some(200),
    },
    Preset {
        name: "go",
        programs: &["go", "gofmt", "golangci-lint"],
        always: &["go"],
        signs: &["neither gocache nor"],
        read: &["$GOPATH/pkg/mod", "$GOPATH/bin", "$GOROOT"],
        // A build cache of the project's own: the user's builds trust theirs.
        write: &[".gocache"],
        env: &["GOPATH", "GOROOT", "GOCACHE"],
        memory_mb: Some(2_048),
        cpu_percent: Some(400),
    },
    Preset {
        name: "git",
        programs: &["git"],
        always: &[],
        signs: &[],
        // The repository is read as the project is. To write it is to change hooks, which run by themselves.
        read: &[],
        write: &[],
        env: &[
            "GIT_AUTHOR_NAME",
            "GIT_AUTHOR_EMAIL",
            "GIT_COMMITTER_NAME",
            "GIT_COMMITTER_EMAIL",
        ],
        memory_mb: None,
        cpu_percent: None,
    },
];

/// Where variables lead that are not set: `~/` is the home, `./` the project. Programs look there by themselves, but a tool
/// has a home of its own.
const USUAL: [(&str, &str); 5] = [
    ("CARGO_HOME", "~/.cargo"),
    ("RUSTUP_HOME", "~/.rustup"),
    ("PYENV_ROOT", "~/.pyenv"),
    ("GOPATH", "~/go"),
    ("GOCACHE", "./.gocache"),
];

/// Where a variable leads that is not set, if programs agree on that.
pub fn usual(variable: &str, home: Option<&str>, project: Option<&str>) -> Option<String> {
    let (_, place) = USUAL.iter().find(|(name, _)| *name == variable)?;
    let below = |root: Option<&str>, rest: &str| Some(format!("{}/{rest}", root?));
    match place.split_once('/')? {
        ("~", rest) => below(home, rest),
        (_, rest) => below(project, rest),
    }
}

impl Preset {
    pub fn named(name: &str) -> Option<&'static Preset> {
        PRESETS.iter().find(|preset| preset.name == name)
    }

    /// The one that a program needs, by its name or path.
    pub fn of(program: &str) -> Option<&'static Preset> {
        let name = program.rsplit('/').next().unwrap_or(program);
        PRESETS
            .iter()
            .find(|preset| preset.programs.contains(&name))
    }

    /// Does this program of it do nothing without others?
    pub fn always_runs_others(&self, program: &str) -> bool {
        let name = program.rsplit('/').next().unwrap_or(program);
        self.always.contains(&name)
    }

    /// What it opens. `variable` says where a variable leads, `is_there` whether a path is.
    pub fn permit(
        &self,
        home: Option<&str>,
        variable: impl Fn(&str) -> Option<String>,
        is_there: impl Fn(&str) -> bool,
    ) -> Permit {
        let place = |path: &&str| {
            let (root, rest) = path.split_once('/').unwrap_or((path, ""));
            let root = match root.strip_prefix('$') {
                Some(name) => variable(name)?,
                None => home?.to_owned(),
            };
            let place = paths::clean(&format!("{root}/{rest}"));
            (place.starts_with('/') && is_there(&place)).then_some(place)
        };
        let owned = |list: &[&str]| list.iter().map(|one| (*one).to_owned()).collect();
        let permit = Permit {
            read: self.read.iter().filter_map(place).collect(),
            write: owned(self.write),
            exec: true,
            memory_mb: self.memory_mb,
            cpu_percent: self.cpu_percent,
            env: owned(self.env),
            ..Permit::default()
        };
        permit.tidy()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(preset: &Preset) -> Permit {
        let variable = |name: &str| usual(name, Some("/users/me"), Some("/p"));
        preset.permit(Some("/users/me"), variable, |_| true)
    }

    #[test]
    fn none_opens_what_holds_keys_or_runs_by_itself_later() {
        let secret = [
            ".ssh",
            ".aws",
            ".gnupg",
            ".netrc",
            ".npmrc",
            ".pypirc",
            ".docker",
            ".kube",
            ".config",
            ".git-credentials",
            ".gitconfig",
            ".bashrc",
            ".profile",
            "credentials",
            "credentials.toml",
        ];
        for preset in &PRESETS {
            let permit = opened(preset);
            let mut all = permit.read.iter().chain(&permit.write);
            let wide = [
                "/",
                "/users/me",
                "/users/me/.cargo",
                "/users/me/.local",
                ".",
                ".git",
            ];
            let bad = |path: &&String| {
                wide.contains(&path.as_str()) || path.split('/').any(|part| secret.contains(&part))
            };
            assert_eq!(all.find(bad), None, "{}", preset.name);
            assert!(permit.exec && permit.network.is_none() && !permit.install);
            assert!(permit.write.iter().all(|path| !path.starts_with('/')));
            let odd = ["TOKEN", "KEY", "SECRET", "PASS"];
            assert!(
                !permit
                    .env
                    .iter()
                    .any(|name| odd.iter().any(|odd| name.contains(odd)))
            );
        }
    }

    #[test]
    fn what_is_not_there_is_left_out_and_variables_lead_elsewhere() {
        let cargo = Preset::named("cargo").unwrap();
        let permit = opened(cargo);
        assert!(
            permit
                .read
                .contains(&"/users/me/.cargo/registry".to_owned())
        );
        assert!(permit.read.contains(&"/users/me/.rustup".to_owned()));
        let set = |name: &str| (name == "CARGO_HOME").then(|| "/opt/cargo".to_owned());
        let permit = cargo.permit(Some("/users/me"), set, |path| path.ends_with("bin"));
        assert_eq!(permit.read, ["/opt/cargo/bin"]);
        assert_eq!(permit.write, ["target"]);
        assert_eq!(Preset::of("/usr/bin/npm").unwrap().name, "node");
        assert!(Preset::of("sh").is_none() && Preset::named("sh").is_none());
    }
}
