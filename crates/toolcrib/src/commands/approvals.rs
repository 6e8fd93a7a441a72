//! `toolcrib approvals`: a person's yes or no to calls that wait.

use std::io::{BufRead, IsTerminal, Write};

use clap::{Args, Subcommand};
use toolcrib_core::{ErrorCode, Object};

use super::reach::{Reach, segment};
use super::{Done, Scene, Target};
use crate::failure::Failure;
use crate::printer::{BOLD, Column, DIM, GREEN, plain};
use crate::wire::{ApprovalDecision, ApprovalList, ApprovalView, readable, visible};

/// How often is looked for new ones.
const LOOK_EVERY: std::time::Duration = std::time::Duration::from_millis(500);

/// List calls that wait for your approval, and decide on them
#[derive(Debug, Args)]
#[command(
    after_help = "A decision needs a terminal of your own: it is refused to agents, to what they start, and to tools. \
    An approved call runs once, when the agent makes it again or still waits for it.\n\n  \
    toolcrib approvals --watch\n  toolcrib approvals approve ID\n  toolcrib approvals reject ID 'not on Fridays'"
)]
pub struct Approvals {
    #[command(subcommand)]
    pub verb: Option<ApprovalsVerb>,
    /// Go on listing: each new one as it comes
    #[arg(long)]
    pub watch: bool,
    #[command(flatten)]
    pub target: Target,
}

#[derive(Debug, Subcommand)]
pub enum ApprovalsVerb {
    /// List those that wait, or all
    List(List),
    /// Show one with its whole arguments
    Show(One),
    /// Let the call run, once
    Approve(Yes),
    /// Let it run with other arguments
    Edit(Edit),
    /// Refuse it; the agent is told not to repeat it
    Reject(Reject),
    /// Answer in the tool's place
    Respond(Respond),
}

#[derive(Debug, Args)]
pub struct List {
    /// Also those that were decided, and of all projects
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, Args)]
pub struct One {
    /// Its id, or the end of it
    pub id: String,
}

#[derive(Debug, Args)]
pub struct Yes {
    /// Its id, or the end of it
    pub id: String,
    /// Do not ask once more
    #[arg(long)]
    pub yes: bool,
}

#[derive(Debug, Args)]
pub struct Edit {
    /// Its id, or the end of it
    pub id: String,
    /// All the arguments that it is to run with, as a JSON object
    #[arg(long, value_name = "JSON")]
    pub arguments: String,
    /// Do not ask once more
    #[arg(long)]
    pub yes: bool,
}

#[derive(Debug, Args)]
pub struct Reject {
    /// Its id, or the end of it
    pub id: String,
    /// Why; the agent reads it
    pub reason: Option<String>,
}

#[derive(Debug, Args)]
pub struct Respond {
    /// Its id, or the end of it
    pub id: String,
    /// What the agent gets as the tool's result
    pub text: String,
}

impl Approvals {
    pub async fn run(self, scene: &Scene) -> Done {
        // An edit is checked by its tool, which is loaded for that.
        let reach = match &self.verb {
            Some(ApprovalsVerb::Edit(_)) => Reach::open(scene, &self.target).await?,
            _ => {
                let project = Reach::project(scene);
                Reach::records(scene, &self.target, project.as_ref()).await?
            }
        };
        let done = match self.verb {
            None if self.watch => watch(scene, &reach).await,
            None => list(scene, &reach, false).await,
            Some(ApprovalsVerb::List(_)) if self.watch => watch(scene, &reach).await,
            Some(ApprovalsVerb::List(List { all })) => list(scene, &reach, all).await,
            Some(ApprovalsVerb::Show(one)) => show(scene, &reach, &one.id).await,
            Some(ApprovalsVerb::Approve(yes)) => {
                let decision = decision("approve");
                decide(scene, &reach, &yes.id, decision, asks(yes.yes)).await
            }
            Some(ApprovalsVerb::Edit(edit)) => {
                let arguments = Object::parse(&edit.arguments).map_err(|error| {
                    let message = format!("the arguments are not a JSON object: {error}");
                    Failure::new(ErrorCode::BadRequest, message)
                        .hint("write all of them, such as --arguments '{\"to\": \"ada\"}'")
                })?;
                let decision = ApprovalDecision {
                    arguments: Some(arguments),
                    ..decision("edit")
                };
                decide(scene, &reach, &edit.id, decision, asks(edit.yes)).await
            }
            Some(ApprovalsVerb::Reject(reject)) => {
                let decision = ApprovalDecision {
                    reason: reject.reason,
                    ..decision("reject")
                };
                decide(scene, &reach, &reject.id, decision, Asks::Nothing).await
            }
            Some(ApprovalsVerb::Respond(respond)) => {
                let decision = ApprovalDecision {
                    text: Some(respond.text),
                    ..decision("respond")
                };
                decide(scene, &reach, &respond.id, decision, Asks::Nothing).await
            }
        };
        reach.close().await;
        done
    }
}

/// Is the person asked once more, with the whole call before their eyes?
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asks {
    OnceMore,
    Nothing,
}

fn asks(is_sure: bool) -> Asks {
    match is_sure {
        true => Asks::Nothing,
        false => Asks::OnceMore,
    }
}

fn decision(word: &str) -> ApprovalDecision {
    ApprovalDecision {
        decision: word.to_owned(),
        ..ApprovalDecision::default()
    }
}

async fn pending(reach: &Reach) -> Result<ApprovalList, Failure> {
    let query = [("state", "pending".to_owned()), ("project", "*".to_owned())];
    reach.ask("/approvals", &query).await
}

async fn list(scene: &Scene, reach: &Reach, all: bool) -> Done {
    let list = match all {
        true => {
            reach
                .ask("/approvals", &[("project", "*".to_owned())])
                .await?
        }
        false => pending(reach).await?,
    };
    let printer = scene.printer;
    if printer.is_json() {
        printer.json(&list);
        return Ok(0);
    }
    if list.approvals.is_empty() {
        printer.line("nothing waits for your approval");
        return Ok(0);
    }
    let rows = list.approvals.iter().map(|one| {
        vec![
            one.state.clone(),
            one.tool.clone(),
            visible(one.arguments.json().compact().as_ref()),
            one.client.clone(),
            one.created_at.clone(),
            one.id.clone(),
        ]
    });
    let columns = [
        Column::whole("state"),
        Column::whole("tool"),
        Column::cut("arguments"),
        Column::spare("client", 3),
        Column::spare("asked", 4),
        Column::whole("id"),
    ];
    printer.table(&columns, &rows.collect::<Vec<_>>());
    printer.hint("`toolcrib approvals show ID` shows all of one, `toolcrib approvals approve ID` lets it run once");
    Ok(0)
}

/// Lists each one that waits as it comes, until it is stopped.
async fn watch(scene: &Scene, reach: &Reach) -> Done {
    let mut seen = std::collections::HashSet::new();
    loop {
        let list = pending(reach).await?;
        for one in list.approvals.iter().rev() {
            if seen.insert(one.id.clone()) {
                match scene.printer.is_json() {
                    true => scene.printer.json_line(one),
                    false => print(scene, one, None),
                }
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn show(scene: &Scene, reach: &Reach, id: &str) -> Done {
    let one = find(reach, id).await?;
    match scene.printer.is_json() {
        true => scene.printer.json(&one),
        false => print(scene, &one, one.edited.as_ref()),
    }
    Ok(0)
}

/// The approval with this id, or the only one that waits and ends so.
async fn find(reach: &Reach, id: &str) -> Result<ApprovalView, Failure> {
    let whole = reach.get(&format!("/approvals/{}", segment(id)?)).await;
    let Err(failure) = whole else { return whole };
    if failure.code != ErrorCode::NotFound || id.len() < 4 {
        return Err(failure);
    }
    let mut fits = pending(reach).await?.approvals;
    fits.retain(|one| one.id.ends_with(id));
    match (fits.pop(), fits.len()) {
        (Some(one), 0) => Ok(one),
        _ => Err(failure),
    }
}

fn print(scene: &Scene, one: &ApprovalView, edited: Option<&Object>) {
    let printer = scene.printer;
    printer.line(format!(
        "{BOLD}{}{BOLD:#} {} {DIM}{}{DIM:#}",
        plain(&one.tool),
        plain(&one.state),
        plain(&one.id)
    ));
    let project = one.project.as_deref().unwrap_or("none");
    let rows = [
        ("asked by", format!("{} (agent {})", one.client, one.agent)),
        ("project", project.to_owned()),
        ("asked", one.created_at.clone()),
        ("until", one.expires_at.clone()),
        ("why", one.note.clone().unwrap_or_default()),
        ("decided by", one.decided_by.clone().unwrap_or_default()),
        ("said", one.words.clone().unwrap_or_default()),
        ("page", one.url.clone().unwrap_or_default()),
    ];
    for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
        printer.line(format!(
            "  {name:<10} {}",
            plain(&visible(value).replace('\n', " "))
        ));
    }
    let asked = readable(&one.arguments);
    match edited {
        None => printer.line(&asked),
        Some(edited) => printer.line(difference(&asked, &readable(edited))),
    }
}

/// Both texts, line by line: what goes, what comes, and what stays.
fn difference(before: &str, after: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    // Of large ones each is shown as a whole: to compare all lines with all takes too long.
    if old.len() * new.len() > 4_000_000 {
        let each = old.iter().map(|line| format!("- {line}"));
        let all: Vec<String> = each
            .chain(new.iter().map(|line| format!("+ {line}")))
            .collect();
        return all.join("\n");
    }
    let mut longest = vec![vec![0_u32; new.len() + 1]; old.len() + 1];
    for (i, one) in old.iter().enumerate().rev() {
        for (j, other) in new.iter().enumerate().rev() {
            longest[i][j] = match one == other {
                true => longest[i + 1][j + 1] + 1,
                false => longest[i + 1][j].max(longest[i][j + 1]),
            };
        }
    }
    let (mut i, mut j, mut lines) = (0, 0, Vec::new());
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            lines.push(format!("  {}", old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j >= new.len() || (i < old.len() && longest[i + 1][j] >= longest[i][j + 1]) {
            lines.push(format!("- {}", old[i]));
            i += 1;
        } else {
            lines.push(format!("+ {}", new[j]));
            j += 1;
        }
    }
    lines.join("\n")
}

async fn decide(
    scene: &Scene,
    reach: &Reach,
    id: &str,
    decision: ApprovalDecision,
    asks: Asks,
) -> Done {
    let one = find(reach, id).await?;
    let printer = scene.printer;
    if asks == Asks::OnceMore && std::io::stdin().is_terminal() && !printer.is_json() {
        print(scene, &one, decision.arguments.as_ref());
        printer.note("let it run once? [y/N]");
        let _ = std::io::stdout().flush();
        let mut answer = String::new();
        let read = tokio::task::spawn_blocking(move || {
            let read = std::io::stdin().lock().read_line(&mut answer);
            read.map(|_| answer)
        });
        let answer = read.await.ok().and_then(Result::ok).unwrap_or_default();
        if !matches!(answer.trim(), "y" | "Y" | "yes") {
            printer.line("nothing was decided");
            return Ok(1);
        }
    }
    let path = format!("/approvals/{}", segment(&one.id)?);
    let decided: ApprovalView = reach.post(&path, &decision).await?;
    if printer.is_json() {
        printer.json(&decided);
        return Ok(0);
    }
    printer.line(format!(
        "{GREEN}{}{GREEN:#} {}",
        plain(&decided.state),
        plain(&decided.tool)
    ));
    match decided.state.as_str() {
        "approved" | "edited" => printer.hint(
            "if the agent waits no longer, tell it to make the same call again: it runs once",
        ),
        _ => {}
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_and_what_comes_is_marked() {
        let text = |value: serde_json::Value| readable(&Object::parse(&value.to_string()).unwrap());
        let before = text(serde_json::json!({"to": "ada", "n": 1}));
        let after = text(serde_json::json!({"to": "bob", "n": 1}));
        let shown = difference(&before, &after);
        assert_eq!(
            shown,
            "  {\n-   \"to\": \"ada\",\n+   \"to\": \"bob\",\n    \"n\": 1\n  }"
        );
    }
}
