//! `git-status`: what is changed, staged and untracked in the project.

use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use toolcrib_core::{BoxFuture, Call, CallResult, Outcome, Run};

use super::git::{NO_SUBMODULES, Repository};
use super::{Builtin, Effects, Switch, project, text};
use crate::{Place, beneath};

struct GitStatus {
    place: Arc<Place>,
}

pub(super) fn tool(place: &Arc<Place>) -> Builtin {
    Builtin {
        name: "git-status",
        title: "Git status",
        description: "List changed, staged and untracked files of the project (`git status --porcelain`).",
        parameters: json!({
            "path": {"type": "string", "description": "Only this subdirectory of the project."},
        }),
        required: &[],
        effects: Effects::Looks,
        switch: Switch::On,
        run: Arc::new(GitStatus {
            place: place.clone(),
        }),
    }
}

impl Run for GitStatus {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, CallResult> {
        Box::pin(self.status(call))
    }
}

impl GitStatus {
    async fn status(&self, call: &Call) -> CallResult {
        let folder = match text(call, "path") {
            None | Some("") => ".".to_owned(),
            Some(path) => {
                let project = project(&self.place)?;
                let inside = if Path::new(path) == project {
                    ".".to_owned()
                } else {
                    beneath::relative_to(project, path)
                };
                beneath::check_folder(project, &inside)?;
                inside
            }
        };
        let repository = Repository::open(&self.place, &call.caller.agent).await?;
        // The flag outranks `status.showUntrackedFiles`, with which a repository could hide what it brought along.
        let args = [
            "status",
            "--porcelain",
            "--untracked-files=normal",
            NO_SUBMODULES,
            "--",
            &folder,
        ];
        let said = repository.run(&args).await?.stdout;
        let title = match said.head.lines().count() {
            0 => "clean".to_owned(),
            _ if !said.is_whole() => "many changes".to_owned(),
            1 => "1 change".to_owned(),
            count => format!("{count} changes"),
        };
        Ok(Outcome::from(said).title(title))
    }
}
