//! The one way to run git: it reads a repository that may be hostile, and runs nothing that the repository names.
//!
//! A `.git/config` can name programs in many places. Each is closed here, most of them twice:
//!
//! * Keys with a fixed name are overridden ([`OVERRIDES`]); hooks point nowhere, the fsmonitor is off.
//! * `filter.<name>.*` has free names and no switch. So the keys are listed first, with includes followed just as
//!   git will follow them, and each is overridden by name. Names that we could misread are refused.
//! * A missing object of a partial clone would be fetched, with transports the config chooses: no lazy fetch, and no
//!   transport is allowed ([`VARIABLES`]).
//! * Git would run itself inside submodules, under *their* config: callers pass [`NO_SUBMODULES`].
//! * External diffs and textconv are off by flag, where a diff is made.
//!
//! Nothing is written: without optional locks git does not even refresh the index. `core.worktree` may not lead
//! elsewhere, and every question is bound to the project by a pathspec, because an ancestor is a legal work tree.
//!
//! Why: `docs/design/0005-git-without-config.md`.

use std::collections::BTreeSet;
use std::path::Path;

use toolcrib_core::{CallError, ErrorCode};
use toolcrib_sandbox::{Command, Policy};

use super::git_files;
use crate::process::{Captured, capture};
use crate::{Place, builtin};

/// For every command that compares: git starts no git of its own inside a submodule.
pub const NO_SUBMODULES: &str = "--ignore-submodules=dirty";

/// More filters and hooks than this is no honest configuration.
const MAX_NAMES: usize = 200;
/// How much of git's own words goes into a message.
const MAX_REASON: usize = 500;

/// On every command line, literally.
const FLAGS: [&str; 7] = [
    "--no-optional-locks",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "--no-pager",
    "--literal-pathspecs",
];

/// What the repository may not choose. `safe.bareRepository` keeps git out of a bare repository that was put into
/// the project as ordinary files.
const OVERRIDES: [(&str, &str); 17] = [
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.attributesFile", "/dev/null"),
    ("core.pager", "cat"),
    ("core.editor", "false"),
    ("core.askPass", ""),
    ("core.sshCommand", "false"),
    ("core.virtualFilesystem", ""),
    ("credential.helper", ""),
    ("protocol.allow", "never"),
    ("safe.bareRepository", "explicit"),
    ("status.submoduleSummary", "false"),
    ("submodule.recurse", "false"),
    ("diff.autoRefreshIndex", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("color.ui", "false"),
];

const VARIABLES: [(&str, &str); 9] = [
    ("LC_ALL", "C"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_LITERAL_PATHSPECS", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "false"),
    ("GIT_SSH_COMMAND", "false"),
    ("GIT_NO_LAZY_FETCH", "1"),
    // An empty list allows none, and outranks every `protocol.<name>.allow`.
    ("GIT_ALLOW_PROTOCOL", ""),
];

/// The repository that the project lies in, looked at and made harmless.
pub struct Repository<'a> {
    place: &'a Place,
    owner: &'a str,
    project: &'a Path,
    disarmed: Vec<(String, &'static str)>,
}

impl<'a> Repository<'a> {
    /// Finds the repository and lists what must be disarmed in it. Neither step reads the index or the work tree.
    pub async fn open(place: &'a Place, owner: &'a str) -> Result<Repository<'a>, CallError> {
        let project = builtin::project(place)?;
        let mut repository = Repository {
            place,
            owner,
            project,
            disarmed: Vec::new(),
        };
        let folders = repository.folders().map(Path::to_path_buf).collect();
        // Whatever git waits for, what it was found to wait for is said at once.
        let (top, names, ()) = tokio::try_join!(
            repository.capture(&["rev-parse", "--show-toplevel"]),
            repository.capture(&[
                "config",
                "--null",
                "--name-only",
                "--get-regexp",
                r"^(filter|hook)\."
            ]),
            git_files::check(folders),
        )?;
        let top = repository.succeeded(top)?;
        // Only the newline that git adds: a path may hold others.
        check_top(
            project,
            top.stdout.head.strip_suffix('\n').unwrap_or_default(),
        )?;
        // 1 means: no such key.
        if names.exit != toolcrib_sandbox::Exit::Code(1) {
            let names = repository.succeeded(names)?;
            if !names.stdout.is_whole() {
                return Err(too_many());
            }
            repository.disarmed = disarm(&names.stdout.head)?;
        }
        Ok(repository)
    }

    /// Runs git to its end; an exit other than 0 is an error in git's own words.
    pub async fn run(&self, args: &[&str]) -> Result<Captured, CallError> {
        let captured = self.capture(args).await?;
        self.succeeded(captured)
    }

    /// Runs git to its end, however that may be.
    pub async fn capture(&self, args: &[&str]) -> Result<Captured, CallError> {
        let holding = self.place.holding(self.policy());
        let mut command = Command::new("git", self.project, holding)
            .args(FLAGS)
            .args(args.iter().copied());
        for (name, value) in VARIABLES {
            command = command.var(name, value);
        }
        // Variables, not `-c`: they take any name without quoting.
        let disarmed = self
            .disarmed
            .iter()
            .map(|(key, value)| (key.as_str(), *value));
        let mut count = 0;
        for (key, value) in OVERRIDES.into_iter().chain(disarmed) {
            command = command.var(format!("GIT_CONFIG_KEY_{count}"), key);
            command = command.var(format!("GIT_CONFIG_VALUE_{count}"), value);
            count += 1;
        }
        command = command.var("GIT_CONFIG_COUNT", count.to_string());
        // Its home is its own, so it is told where the user's settings are: they may say whom to trust.
        let home = self.place.environment.get("HOME").map(Path::new);
        if let Some(settings) = home
            .map(|home| home.join(".gitconfig"))
            .filter(|path| path.is_file())
        {
            command = command.var("GIT_CONFIG_GLOBAL", settings);
        }
        capture(command, self.place, self.owner)
            .await
            .map_err(not_started)
    }

    /// The root of the repository, and the project in it.
    fn folders(&self) -> impl Iterator<Item = &'a Path> {
        let mut above = self.project.ancestors();
        let root = above.find(|folder| folder.join(".git").exists());
        let root = root.filter(|root| *root != self.project);
        [self.project].into_iter().chain(root)
    }

    /// Git reads the repository, which may begin above the project, and the user's own settings. It writes nothing.
    fn policy(&self) -> Policy {
        let home = self.place.environment.get("HOME").map(Path::new);
        let settings = home.map(|home| home.join(".gitconfig"));
        let settings = settings.filter(|path| path.is_file());
        Policy {
            read: self
                .folders()
                .map(Path::to_path_buf)
                .chain(settings)
                .collect(),
            ..Policy::default()
        }
    }

    fn succeeded(&self, captured: Captured) -> Result<Captured, CallError> {
        if captured.exit.success() {
            return Ok(captured);
        }
        let said: String = captured.stderr.trim().chars().take(MAX_REASON).collect();
        // Git is confined to the repository, and does not even get there.
        if let Some((_, rest)) = said.split_once("cannot chdir to '") {
            return Err(elsewhere(rest.split('\'').next().unwrap_or_default()));
        }
        if said.contains("not a git repository") {
            let project = self.project.display();
            return Err(CallError::unavailable(format!(
                "the project `{project}` is not in a git repository"
            ))
            .hint("run `git init` there, or work without git"));
        }
        if said.contains("dubious ownership") {
            return Err(CallError::unavailable(
                "git does not read this repository, because it belongs to another user",
            )
            .hint(
                "if you trust it, add it with `git config --global --add safe.directory <folder>`",
            ));
        }
        let why = if said.is_empty() {
            format!("it ended with {:?}", captured.exit)
        } else {
            said
        };
        Err(CallError::unavailable(format!("git failed: {why}"))
            .hint("run the same git command in a shell to see more"))
    }
}

/// The first line of what git printed.
pub fn first_line(text: &str) -> &str {
    text.split_once('\n').map_or(text, |(line, _)| line)
}

fn not_started(error: CallError) -> CallError {
    if error.code == ErrorCode::Unavailable && error.message.starts_with("program ") {
        return error.hint("install git, so that it is found on PATH");
    }
    error
}

/// A work tree is the project itself, lies in it, or holds it. Anything else was chosen by `core.worktree`.
fn check_top(project: &Path, top: &str) -> Result<(), CallError> {
    let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let (project, top) = (canonical(project), canonical(Path::new(top)));
    // Every path starts with the empty one, so it is no answer.
    if top.is_absolute() && (project.starts_with(&top) || top.starts_with(&project)) {
        return Ok(());
    }
    Err(elsewhere(&top.display().to_string()))
}

fn elsewhere(top: &str) -> CallError {
    CallError::denied(format!(
        "the repository's work tree `{top}` is outside the project"
    ))
    .hint("remove `core.worktree` from the repository's `.git/config`")
}

/// Overrides for every filter and hook among the listed keys.
fn disarm(listed: &str) -> Result<Vec<(String, &'static str)>, CallError> {
    if listed.contains(char::REPLACEMENT_CHARACTER) || listed.contains('\n') {
        // What we can't spell exactly we can't override either.
        return Err(CallError::denied(
            "the repository's git configuration has a filter or hook with an unreadable name",
        )
        .hint("look for `[filter` and `[hook` in `.git/config` and rename or remove what is odd"));
    }
    let named = |key: &str| Some(key.rsplit_once('.')?.0.to_owned());
    // `filter.x` without a name in between is no filter.
    let names: BTreeSet<String> = listed
        .split('\0')
        .filter_map(named)
        .filter(|section| section.contains('.'))
        .collect();
    if names.len() > MAX_NAMES {
        return Err(too_many());
    }
    let mut overrides = Vec::new();
    for section in names {
        if section.starts_with("hook.") {
            overrides.push((format!("{section}.enabled"), "false"));
        } else {
            for key in ["clean", "smudge", "process"] {
                overrides.push((format!("{section}.{key}"), ""));
            }
            overrides.push((format!("{section}.required"), "false"));
        }
    }
    Ok(overrides)
}

fn too_many() -> CallError {
    CallError::denied(format!(
        "the repository's git configuration has more than {MAX_NAMES} filters and hooks"
    ))
    .hint("look for `[filter` and `[hook` in `.git/config` and remove what is not needed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_disarmed_whatever_their_name() {
        let listed = "filter.lfs.clean\0filter.lfs.process\0filter.a.b=c.clean\0filter..clean\0filter.x\0hook.h.command\0";
        let keys: Vec<String> = disarm(listed)
            .unwrap()
            .into_iter()
            .map(|(key, _)| key)
            .collect();
        for key in [
            "filter.lfs.clean",
            "filter.lfs.required",
            "filter.a.b=c.process",
            "filter..smudge",
            "hook.h.enabled",
        ] {
            assert!(keys.iter().any(|k| k == key), "{key} in {keys:?}");
        }
        assert_eq!(keys.len(), 3 * 4 + 1);
    }

    #[test]
    fn names_that_can_be_misread_are_refused() {
        for listed in ["filter.a\u{fffd}.clean\0", "filter.a\nb.clean\0"] {
            assert_eq!(disarm(listed).unwrap_err().code, ErrorCode::Denied);
        }
        let many: String = (0..=MAX_NAMES)
            .map(|i| format!("filter.f{i}.clean\0"))
            .collect();
        assert_eq!(disarm(&many).unwrap_err().code, ErrorCode::Denied);
    }

    #[test]
    fn a_work_tree_stays_with_the_project() {
        let project = Path::new("/none/project");
        for top in ["/none/project", "/none", "/none/project/sub"] {
            assert!(check_top(project, top).is_ok(), "{top}");
        }
        for top in ["/none/other", "/none/project2", "relative", ""] {
            assert!(check_top(project, top).is_err(), "{top:?}");
        }
    }
}
