//! `git-diff-summary`: how much each file of the project changed since the last commit, or since it was staged.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::{BoxFuture, Call, CallResult, Outcome, Run};

use super::git::{NO_SUBMODULES, Repository};
use super::{Builtin, Effects, Switch};
use crate::Place;

struct GitDiffSummary {
    place: Arc<Place>,
}

pub(super) fn tool(place: &Arc<Place>) -> Builtin {
    Builtin {
        name: "git-diff-summary",
        title: "Git diff summary",
        description: "Summarise uncommitted changes of the project, file by file (`git diff --stat`).",
        parameters: json!({
            "staged": {
                "type": "boolean",
                "default": false,
                "description": "Changes that are staged, instead of those that are not.",
            },
        }),
        required: &[],
        effects: Effects::Looks,
        switch: Switch::On,
        run: Arc::new(GitDiffSummary {
            place: place.clone(),
        }),
    }
}

impl Run for GitDiffSummary {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, CallResult> {
        Box::pin(self.summary(call))
    }
}

impl GitDiffSummary {
    async fn summary(&self, call: &Call) -> CallResult {
        let staged = call
            .arguments
            .get("staged")
            .and_then(Value::as_bool)
            .unwrap_or(false);
        let repository = Repository::open(&self.place, &call.caller.agent).await?;
        let mut args = vec![
            "diff",
            "--stat=100",
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
            "--no-relative",
        ];
        args.extend(["--submodule=short", NO_SUBMODULES]);
        if staged {
            args.push("--cached");
        }
        args.extend(["--", "."]);
        let said = repository.run(&args).await?.stdout;
        let title = match (said.head.lines().last(), said.is_whole()) {
            (None, _) => "no changes".to_owned(),
            (Some(totals), true) => totals.trim().to_owned(),
            (Some(_), false) => "many changes".to_owned(),
        };
        Ok(Outcome::from(said).title(title).meta("staged", staged))
    }
}
