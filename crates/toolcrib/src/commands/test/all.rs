//! `toolcrib test --all`: tries every example again, and says which no longer gives what it gave.

use serde_json::json;
use toolcrib_core::words::counted;
use toolcrib_core::{ErrorCode, Object};
use toolcrib_sources::examples::{Example, read};

use super::super::reach::{About, Reach};
use super::super::{Done, Scene, Target};
use super::examples;
use crate::error::EXIT_TOOL_FAILED;
use crate::failure::Failure;
use crate::printer::{DIM, GREEN, RED, plain};
use crate::wire::{ToolList, ToolView};

/// How one example went.
struct Tried {
    tool: String,
    arguments: String,
    wrong: Option<String>,
}

/// Tries the examples of all tools, or of this one.
pub async fn run(scene: &Scene, target: &Target, name: Option<&str>) -> Done {
    let reach = match name {
        Some(name) => Reach::open_for(scene, target, About::CallOf(name)).await?,
        None => Reach::open(scene, target).await?,
    };
    let tools = match name {
        Some(name) => vec![reach.tool(name).await?],
        None => reach.get::<ToolList>("/tools").await?.tools,
    };
    let mut all = Vec::new();
    let mut passed_over = 0;
    for tool in &tools {
        let folder = examples::folder(scene, tool.scope.as_deref())?;
        let kept = read(&folder, &tool.name).map_err(examples::unusable)?;
        if !may_try(tool) {
            passed_over += kept.len();
            continue;
        }
        for example in kept {
            all.push(tried(&reach, tool, &example).await?);
        }
    }
    reach.close().await;
    let failed = all.iter().filter(|one| one.wrong.is_some()).count();
    match scene.printer.is_json() {
        true => {
            let tried = all.iter().map(|one| {
                json!({"tool": one.tool, "arguments": one.arguments, "ok": one.wrong.is_none(), "wrong": one.wrong})
            });
            let tried: Vec<_> = tried.collect();
            scene.printer.json(&json!({"examples": tried, "count": all.len(), "failed": failed, "passedOver": passed_over}));
        }
        false => print(scene, &all, passed_over, failed),
    }
    Ok(if failed > 0 { EXIT_TOOL_FAILED } else { 0 })
}

fn print(scene: &Scene, all: &[Tried], passed_over: usize, failed: usize) {
    let printer = scene.printer;
    for one in all {
        let (tool, arguments) = (plain(&one.tool), plain(&one.arguments));
        match &one.wrong {
            None => printer.line(format!("{GREEN}ok{GREEN:#} {tool} {DIM}{arguments}{DIM:#}")),
            Some(wrong) => printer.line(format!(
                "{RED}failed{RED:#} {tool} {DIM}{arguments}{DIM:#}: {}",
                plain(wrong)
            )),
        }
    }
    if passed_over > 0 {
        printer.note(format!(
            "{} of tools that are not this project's and may change something: not tried",
            counted(passed_over, "example")
        ));
    }
    printer.note(match all.len() {
        0 => "there are no examples; `toolcrib test NAME … --save` keeps one".to_owned(),
        count => format!("{}, {failed} failed", counted(count, "example")),
    });
}

/// A project's files say what its own tools are called with. Of others they are followed only where nothing can happen:
/// nobody who may write an example sends mail by it.
fn may_try(tool: &ToolView) -> bool {
    tool.scope.is_some() || tool.annotations.read_only_hint == Some(true)
}

async fn tried(reach: &Reach, tool: &ToolView, example: &Example) -> Result<Tried, Failure> {
    let bad = |why: String| Failure::new(ErrorCode::BadRequest, why);
    let arguments =
        serde_json::to_string(&example.arguments).map_err(|error| bad(error.to_string()))?;
    let given = Object::parse(&arguments).map_err(|error| bad(error.to_string()))?;
    let wrong = match reach.call(&tool.name, None, given).await {
        Ok(outcome) => examples::wrong(example, &outcome),
        Err(failure) => Some(failure.message),
    };
    Ok(Tried {
        tool: tool.name.clone(),
        arguments,
        wrong,
    })
}
