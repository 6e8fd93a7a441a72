//! `toolcrib doctor`: what this machine offers to confine tools, what enforces what for each of them, and what is wrong.

use clap::Args;
use serde_json::{Value, json};
use toolcrib_core::{Tool, Walled};
use toolcrib_sandbox::{Feature, Survey};
use toolcrib_sources::Follow;

use super::list::heading;
use super::{Done, Scene};
use crate::config::Flags;
use crate::failure::Failure;
use crate::open::Opened;
use crate::printer::{DIM, GREEN, RED, YELLOW, plain};

/// Say how tools are confined here, and what is wrong
#[derive(Debug, Args)]
#[command(
    after_help = "Exits 1 when a tool can't be confined here, and so does not run. An agent with a shell of your user \
    can act as you: the sandbox is around tools, not around agents."
)]
pub struct Doctor {}

impl Doctor {
    pub async fn run(self, scene: &Scene) -> Done {
        let flag = scene.globals.project.as_deref();
        let opened = Opened::wire(scene.env.clone(), Flags::default(), flag).await?;
        let survey = opened.place.launcher.survey().await.map_err(|error| {
            Failure::new(
                toolcrib_core::ErrorCode::Internal,
                "this machine could not be looked over",
            )
            .cause(error)
        })?;
        let _sources = opened.load(Follow::Nothing).await;
        let view = opened.crib.owners_view();
        let mut tools = Vec::new();
        for tool in view.tools() {
            tools.push((tool.clone(), tool.run.walled(tool).await));
        }
        let trouble = opened.trouble().await;
        opened.close().await;
        let refused = tools
            .iter()
            .any(|(_, walled)| matches!(walled, Walled::Refused(_)));
        let exit = u8::from(refused);
        let printer = scene.printer;
        if printer.is_json() {
            let tools: Vec<Value> = tools
                .iter()
                .map(|(tool, walled)| confinement_json(tool, walled))
                .collect();
            printer.json(&json!({
                "project": opened.project.as_ref().map(|project| &project.root),
                "sandboxEnabled": opened.settings.walls.none.is_none(),
                "rung": survey.rung.map(|rung| rung.letter().to_string()),
                "reason": survey.reason,
                "remedy": survey.remedy,
                "features": survey.features,
                "tools": tools,
                "degraded": trouble,
            }));
            return Ok(exit);
        }
        printer.note(format!("{DIM}{}{DIM:#}", opened.project_line()));
        tell_machine(scene, &opened, &survey);
        printer.line("");
        printer.line(heading("tools"));
        for (tool, walled) in &tools {
            tell_tool(scene, tool, walled);
        }
        for reason in trouble {
            printer.note(format!("{YELLOW}degraded{YELLOW:#}: {}", plain(&reason)));
        }
        printer.line("");
        printer.line(
            "An agent with a shell of your user can act as you: the sandbox is around tools, not around agents.",
        );
        Ok(exit)
    }
}

fn tell_machine(scene: &Scene, opened: &Opened, survey: &Survey) {
    let printer = scene.printer;
    match survey.rung {
        Some(rung) => printer.line(format!(
            "{GREEN}rung {}{GREEN:#}: {}",
            rung.letter(),
            survey.reason
        )),
        None => {
            printer.line(format!("{RED}no rung{RED:#}: {}", survey.reason));
            printer.line("  tools are not started, rather than run unconfined");
            if let Some(remedy) = &survey.remedy {
                printer.line(format!("  fix: {remedy}"));
            }
        }
    }
    if opened.settings.walls.none.is_some() {
        printer.line(format!(
            "{RED}the sandbox is off{RED:#} for every tool (`sandbox_enabled = false`): each may do what you may"
        ));
    }
    for Feature {
        name,
        value,
        gives,
        lost,
        how,
    } in &survey.features
    {
        printer.line(format!("  {name:<18} {value}; {gives}"));
        if let Some(lost) = lost {
            printer.line(format!("  {:<18} {YELLOW}lost{YELLOW:#}: {lost}", ""));
        }
        if let Some(how) = how {
            printer.line(format!("  {:<18} fix: {how}", ""));
        }
    }
}

fn tell_tool(scene: &Scene, tool: &Tool, walled: &Walled) {
    let name = tool.name();
    let line = match walled {
        Walled::NotAtAll => format!("  {name:<24} runs in Toolcrib itself"),
        Walled::Open => format!(
            "  {name:<24} {RED}unconfined{RED:#}: it may do what you may, as your settings say"
        ),
        Walled::Confined { enforced, .. } => format!("  {name:<24} enforced: {enforced}"),
        Walled::Refused(why) => format!("  {name:<24} {RED}refused{RED:#}: {}", plain(why)),
    };
    scene.printer.line(line);
    if let Walled::Confined { lost, .. } = walled {
        for one in lost {
            scene
                .printer
                .line(format!("  {:<24} not promised: {}", "", plain(one)));
        }
    }
}

fn confinement_json(tool: &Tool, walled: &Walled) -> Value {
    let name = tool.name();
    match walled {
        Walled::NotAtAll => json!({"name": name, "confined": null}),
        Walled::Open => json!({"name": name, "confined": false}),
        Walled::Confined { enforced, lost } => {
            json!({"name": name, "confined": true, "enforced": enforced, "lost": lost})
        }
        Walled::Refused(why) => json!({"name": name, "confined": null, "refused": why}),
    }
}
