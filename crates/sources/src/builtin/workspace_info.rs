//! `workspace-info`: where the project lies, which branch is checked out, and where it came from.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::{BoxFuture, Call, CallError, CallResult, ErrorCode, Outcome, Run};

use super::git::{Repository, first_line};
use super::{Builtin, Effects, Switch};
use crate::Place;

struct WorkspaceInfo {
    place: Arc<Place>,
}

pub(super) fn tool(place: &Arc<Place>) -> Builtin {
    Builtin {
        name: "workspace-info",
        title: "Workspace info",
        description: "Tell the project's path, its git branch and commit, and its remote URL.",
        parameters: json!({}),
        required: &[],
        effects: Effects::Looks,
        switch: Switch::On,
        run: Arc::new(WorkspaceInfo {
            place: place.clone(),
        }),
    }
}

impl Run for WorkspaceInfo {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, CallResult> {
        Box::pin(self.info(call))
    }
}

/// What git knows; a thing that is not there is `None`.
#[derive(Default)]
struct Facts {
    branch: Option<String>,
    commit: Option<String>,
    remote: Option<String>,
}

impl WorkspaceInfo {
    async fn info(&self, call: &Call) -> CallResult {
        let project = self
            .place
            .project
            .as_deref()
            .map(|path| path.display().to_string());
        let (facts, missing) = match self.facts(&call.caller.agent).await {
            Ok(facts) => (facts, None),
            // A project without git, or none at all, is still a workspace.
            Err(error) if error.code == ErrorCode::Unavailable => {
                (Facts::default(), Some(error.message))
            }
            Err(error) => return Err(error),
        };
        let outcome = Outcome::structured(json!({
            "projectPath": project,
            "gitBranch": facts.branch,
            "gitCommit": facts.commit,
            "remoteUrl": facts.remote,
        }));
        Ok(match missing {
            None => outcome,
            Some(reason) => outcome.meta("git", Value::from(reason)),
        })
    }

    async fn facts(&self, owner: &str) -> Result<Facts, CallError> {
        let repository = Repository::open(&self.place, owner).await?;
        let (branch, commit, remotes) = tokio::join!(
            // Quiet about a detached head, and content with a branch that has no commit yet.
            repository.capture(&["symbolic-ref", "--quiet", "--short", "HEAD"]),
            repository.capture(&["rev-parse", "--quiet", "--verify", "--short", "HEAD"]),
            repository.capture(&["config", "--null", "--get-regexp", r"^remote\..*\.url$"]),
        );
        let line = |captured: crate::process::Captured| {
            let line = first_line(&captured.stdout.head).to_owned();
            (captured.exit.success() && !line.is_empty()).then_some(line)
        };
        let remotes = remotes?;
        Ok(Facts {
            branch: line(branch?),
            commit: line(commit?),
            remote: choose(&remotes.stdout.head).map(without_secrets),
        })
    }
}

/// The URL of `origin`, or of the first remote, out of `key\nvalue\0` pairs.
fn choose(listed: &str) -> Option<&str> {
    let pairs: Vec<(&str, &str)> = listed
        .split('\0')
        .filter_map(|pair| pair.split_once('\n'))
        .collect();
    let origin = pairs.iter().find(|(key, _)| *key == "remote.origin.url");
    origin
        .or(pairs.first())
        .map(|(_, url)| *url)
        .filter(|url| !url.is_empty())
}

/// Takes user and password out of a URL, and the query, where some hosts take a token. The user of `ssh://git@host`
/// and `git@host:path` stays: it is part of the address and no secret.
fn without_secrets(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        // `user:password@host:path` is no form that git knows, but people try it.
        return match url.split_once('@') {
            Some((user, address)) if user.contains(':') && !user.contains('/') => {
                address.to_owned()
            }
            _ => url.to_owned(),
        };
    };
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (user, host, path) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host, path),
        // A password with a raw `/` in it ends the authority too early: then what looks like a port is none.
        None if authority
            .rsplit_once(':')
            .is_some_and(|(_, port)| port.parse::<u16>().is_err() && !port.ends_with(']')) =>
        {
            let address = rest.rsplit_once('@').map_or("", |(_, address)| address);
            return format!("{scheme}://{address}");
        }
        None => (None, authority, path),
    };
    match user.map(|user| user.split(':').next().unwrap_or_default()) {
        Some(user) if scheme.ends_with("ssh") && !user.is_empty() => {
            format!("{scheme}://{user}@{host}{path}")
        }
        _ => format!("{scheme}://{host}{path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_lose_their_secrets() {
        for (url, shown) in [
            ("https://github.com/a/b.git", "https://github.com/a/b.git"),
            ("https://user:token@host/a/b", "https://host/a/b"),
            ("https://token@host:8443/a", "https://host:8443/a"),
            ("https://host/a?private_token=x", "https://host/a"),
            ("https://user:to/ken@host/a", "https://host/a"),
            (
                "https://us@er:to@ken@host/@scope/a",
                "https://host/@scope/a",
            ),
            ("https://[::1]/a", "https://[::1]/a"),
            ("https://user:pw@host?x@y", "https://host"),
            ("ssh://git@host/a", "ssh://git@host/a"),
            ("ssh://git:pw@host:22/a", "ssh://git@host:22/a"),
            ("git@host:a/b.git", "git@host:a/b.git"),
            ("user:pw@host:a/b.git", "host:a/b.git"),
            ("../other", "../other"),
            ("file:///srv/git/a", "file:///srv/git/a"),
        ] {
            assert_eq!(without_secrets(url), shown, "{url}");
        }
    }

    #[test]
    fn origin_comes_first() {
        assert_eq!(choose("remote.a.url\nA\0remote.origin.url\nO\0"), Some("O"));
        assert_eq!(choose("remote.a.url\nA\0remote.b.url\nB\0"), Some("A"));
        assert_eq!(choose(""), None);
    }
}
