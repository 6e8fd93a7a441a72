//! `toolcrib context`: what the tools cost a model in every conversation, and where that could be less.

use std::collections::BTreeMap;

use clap::Args;
use serde_json::{Value, json};
use toolcrib_core::surface::TOO_MANY;
use toolcrib_core::tokens::estimate;
use toolcrib_core::words::counted;

use super::list::heading;
use super::reach::Reach;
use super::{Done, Scene, Target};
use crate::printer::{Column, DIM, plain};
use crate::serve::mcp::SMALL_SURFACE;
use crate::wire::{DefinitionList, ToolList, ToolView};

/// How many of the most expensive tools are shown.
const DEAREST: usize = 10;
/// What models take, in tokens.
const SIZES: [(&str, usize); 3] = [("128k", 128_000), ("200k", 200_000), ("1M", 1_000_000)];
/// A description or schema beyond this is worth a look.
const LONG_DESCRIPTION: usize = 40;
const LARGE_SCHEMA: usize = 300;

/// Show what your tools cost a model in every conversation, in tokens
#[derive(Debug, Args)]
#[command(
    after_help = "Tokens are estimated, without asking any model; real ones differ by a few percent."
)]
pub struct Context {
    #[command(flatten)]
    pub target: Target,
}

/// One tool, and what it costs.
struct Cost {
    tokens: usize,
    description: usize,
    schema: usize,
    tool: ToolView,
}

impl Context {
    pub async fn run(self, scene: &Scene) -> Done {
        let reach = Reach::open(scene, &self.target).await?;
        let list: ToolList = reach.get("/tools").await?;
        let listed: DefinitionList = reach.get("/tools/definitions").await?;
        let mut costs = costs(list.tools, &listed.tools);
        costs.sort_by(|a, b| {
            b.tokens
                .cmp(&a.tokens)
                .then_with(|| a.tool.name.cmp(&b.tool.name))
        });
        let total: usize = costs.iter().map(|cost| cost.tokens).sum();
        let searched = SMALL_SURFACE.min(total);
        let printer = scene.printer;
        if printer.is_json() {
            let tools = costs.iter().map(|cost| {
                json!({"name": cost.tool.name, "source": cost.tool.source, "scope": cost.tool.scope, "module": cost.tool.module,
                       "tokens": cost.tokens, "hint": hint(cost)})
            });
            printer.json(&json!({
                "tokens": total, "tools": tools.collect::<Vec<_>>(), "groups": groups(&costs).iter().map(Group::json).collect::<Vec<_>>(),
                "searchTokens": searched, "autoSearches": total > TOO_MANY,
            }));
            return Ok(0);
        }
        printer.note(format!("{DIM}{}{DIM:#}", reach.line()));
        let columns = [
            Column::whole("source"),
            Column::whole("scope"),
            Column::cut("module"),
            Column::whole("tools"),
            Column::whole("tokens"),
        ];
        let rows: Vec<Vec<String>> = groups(&costs).iter().map(Group::row).collect();
        printer.table(&columns, &rows);
        printer.line(format!(
            "{}, about {total} tokens in every conversation",
            counted(costs.len(), "tool")
        ));
        let share = |size: usize| format!("{:.1} %", 100.0 * total as f64 / size as f64);
        let shares = SIZES.map(|(name, size)| format!("{} of {name}", share(size)));
        printer.line(format!("that is {}", shares.join(", ")));
        let turns = match total > TOO_MANY {
            true => "agents with `surface = \"auto\"` get that search",
            false => "agents with `surface = \"auto\"` get the whole list, which is short",
        };
        if total > searched {
            printer.line(format!(
                "as a search it would be about {searched} tokens, {} less; {turns}",
                total - searched
            ));
        }
        if costs.is_empty() {
            return Ok(0);
        }
        printer.line(heading("the most expensive"));
        let rows = costs.iter().take(DEAREST).map(|cost| {
            let hint = hint(cost).unwrap_or_default();
            vec![
                cost.tool.name.clone(),
                cost.tokens.to_string(),
                plain(&hint).into_owned(),
            ]
        });
        let columns = [
            Column::whole("name"),
            Column::whole("tokens"),
            Column::cut("hint"),
        ];
        printer.table(&columns, &rows.collect::<Vec<_>>());
        Ok(0)
    }
}

/// What each listed tool costs, with what is known of it.
fn costs(tools: Vec<ToolView>, listed: &[Value]) -> Vec<Cost> {
    let mut definitions: BTreeMap<&str, &Value> = BTreeMap::new();
    for definition in listed {
        definitions.extend(definition["name"].as_str().map(|name| (name, definition)));
    }
    let cost = |tool: ToolView| {
        let definition = definitions.get(tool.name.as_str())?;
        Some(Cost {
            tokens: estimate(&definition.to_string()),
            description: estimate(&tool.description),
            schema: estimate(&definition["inputSchema"].to_string()),
            tool,
        })
    };
    tools.into_iter().filter_map(cost).collect()
}

/// What makes a tool expensive, where that can be helped.
fn hint(cost: &Cost) -> Option<String> {
    if cost.description > LONG_DESCRIPTION {
        return Some(format!(
            "its description is {} tokens: 40 are enough",
            cost.description
        ));
    }
    (cost.schema > LARGE_SCHEMA).then(|| {
        format!(
            "its schema is {} tokens: fewer parameters, shorter texts",
            cost.schema
        )
    })
}

/// The tools of one module.
struct Group {
    source: String,
    scope: Option<String>,
    module: String,
    tools: usize,
    tokens: usize,
}

impl Group {
    fn row(&self) -> Vec<String> {
        vec![
            self.source.clone(),
            self.scope.clone().unwrap_or_default(),
            self.module.clone(),
            self.tools.to_string(),
            self.tokens.to_string(),
        ]
    }

    fn json(&self) -> Value {
        json!({"source": self.source, "scope": self.scope, "module": self.module, "tools": self.tools, "tokens": self.tokens})
    }
}

/// By source, scope and module, the most expensive first.
fn groups(costs: &[Cost]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for cost in costs {
        let tool = &cost.tool;
        let same = |group: &&mut Group| {
            group.module == tool.module && group.source == tool.source && group.scope == tool.scope
        };
        match groups.iter_mut().find(same) {
            Some(group) => {
                group.tools += 1;
                group.tokens += cost.tokens;
            }
            None => groups.push(Group {
                source: tool.source.clone(),
                scope: tool.scope.clone(),
                module: tool.module.clone(),
                tools: 1,
                tokens: cost.tokens,
            }),
        }
    }
    groups.sort_by(|a, b| {
        b.tokens
            .cmp(&a.tokens)
            .then_with(|| a.module.cmp(&b.module))
    });
    groups
}
