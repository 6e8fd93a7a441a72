//! `toolcrib doctor`: what this machine offers to confine tools, what enforces what for each of them, and what is wrong.

use clap::Args;

use super::list::heading;
use super::reach::Reach;
use super::{Done, Scene, Target};
use crate::printer::{DIM, GREEN, RED, YELLOW, plain};
use crate::wire::{ConfinementView, DoctorView, FeatureView};

/// Show how tools are confined here, and what is wrong
#[derive(Debug, Args)]
#[command(
    after_help = "Exits 1 when a tool can't be confined here, and so does not run. An agent with a shell of your user \
    can act as you: the sandbox is around tools, not around agents."
)]
pub struct Doctor {}

impl Doctor {
    pub async fn run(self, scene: &Scene) -> Done {
        let reach = Reach::open(scene, &Target::default()).await?;
        let found = reach.get("/doctor").await;
        reach.close().await;
        let found: DoctorView = found?;
        let refused = found.tools.iter().any(|tool| tool.refused.is_some());
        let exit = u8::from(refused);
        let printer = scene.printer;
        if printer.is_json() {
            printer.json(&found);
            return Ok(exit);
        }
        printer.note(format!("{DIM}{}{DIM:#}", reach.line()));
        tell_machine(scene, &found);
        printer.line("");
        printer.line(heading("tools"));
        for tool in &found.tools {
            tell_tool(scene, tool);
        }
        for problem in &found.failed {
            let what = problem.tool_name.as_deref().or(problem.file.as_deref());
            let line = format!(
                "{} did not load: {}",
                what.unwrap_or("something"),
                problem.message
            );
            printer.line(format!("  {RED}failed{RED:#} {}", plain(&line)));
        }
        tell_caveats(scene, &found.tools);
        for reason in &found.degraded {
            printer.note(format!("{YELLOW}degraded{YELLOW:#}: {}", plain(reason)));
        }
        printer.line("");
        printer.line(
            "An agent with a shell of your user can act as you: the sandbox is around tools, not around agents.",
        );
        Ok(exit)
    }
}

fn tell_machine(scene: &Scene, found: &DoctorView) {
    let printer = scene.printer;
    match &found.rung {
        Some(rung) => printer.line(format!(
            "{GREEN}rung {rung}{GREEN:#}: {}",
            plain(&found.reason)
        )),
        None => {
            printer.line(format!("{RED}no rung{RED:#}: {}", plain(&found.reason)));
            printer.line("  tools are not started, rather than run unconfined");
            if let Some(remedy) = &found.remedy {
                printer.line(format!("  fix: {}", plain(remedy)));
            }
        }
    }
    if !found.sandbox_enabled {
        printer.line(format!(
            "{RED}the sandbox is off{RED:#} for every tool (`sandbox_enabled = false`): each may do what you may"
        ));
    }
    for FeatureView {
        name,
        value,
        gives,
        lost,
        how,
    } in &found.features
    {
        let line = format!("  {name:<18} {value}; {gives}");
        printer.line(plain(&line));
        if let Some(lost) = lost {
            printer.line(format!(
                "  {:<18} {YELLOW}lost{YELLOW:#}: {}",
                "",
                plain(lost)
            ));
        }
        if let Some(how) = how {
            printer.line(format!("  {:<18} fix: {}", "", plain(how)));
        }
    }
}

fn tell_tool(scene: &Scene, tool: &ConfinementView) {
    let name = plain(&tool.name);
    let line = match (tool.confined, &tool.enforced, &tool.refused) {
        (_, _, Some(why)) => format!("  {name:<24} {RED}refused{RED:#}: {}", plain(why)),
        (Some(false), ..) => format!(
            "  {name:<24} {RED}unconfined{RED:#}: it may do what you may, as your settings say"
        ),
        (Some(true), Some(enforced), _) => {
            format!("  {name:<24} enforced: {}", plain(enforced))
        }
        _ => match &tool.waits {
            Some(waits) => format!(
                "  {name:<24} {YELLOW}does not run yet{YELLOW:#}: {}",
                plain(waits)
            ),
            None => format!("  {name:<24} runs in Toolcrib itself"),
        },
    };
    scene.printer.line(line);
}

/// What can't be promised here, each once, with the tools that it is about where that is not all of them.
fn tell_caveats(scene: &Scene, tools: &[ConfinementView]) {
    let confined = tools.iter().filter(|tool| tool.lost.is_some()).count();
    let mut all: Vec<(&str, Vec<&str>)> = Vec::new();
    for tool in tools {
        for caveat in tool.lost.iter().flatten() {
            match all.iter_mut().find(|(known, _)| known == caveat) {
                Some((_, names)) => names.push(&tool.name),
                None => all.push((caveat, vec![&tool.name])),
            }
        }
    }
    for (caveat, names) in all {
        let whose = match names.len() == confined {
            true => String::new(),
            false => format!(" ({})", names.join(", ")),
        };
        let line = format!("{caveat}{whose}");
        scene
            .printer
            .line(format!("  not promised: {}", plain(&line)));
    }
}
