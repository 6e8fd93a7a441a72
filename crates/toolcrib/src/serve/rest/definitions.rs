//! The whole catalog that an agent sees, in the form of one vendor or another.

use std::sync::{Arc, OnceLock};

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json as object};
use toolcrib_core::{Tool, View};
use utoipa::IntoParams;

use super::{ErrorResponse, json, queried};
use crate::serve::auth::Who;
use crate::serve::{Served, convert};
use crate::wire::{DefinitionList, ErrorView, Form};

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Wanted {
    /// Whose form: `openai`, `anthropic` or `mcp` (the default).
    format: Option<Form>,
}

/// Gives every tool that agents see as definitions that can be handed to a model: name, description, schema.
#[utoipa::path(
    get, path = "/tools/definitions", tag = "tools", operation_id = "toolDefinitions", params(Wanted),
    responses(
        (status = 200, description = "The tools in the form that was asked for", body = DefinitionList),
        (status = 400, description = "`bad_request`: there is no such format", body = ErrorView),
        (status = 403, description = "`forbidden`: foreign Host or Origin", body = ErrorView),
        (status = 503, description = "`unavailable`: the crib is starting and has not seen the tools yet", body = ErrorView),
    )
)]
pub async fn definitions(
    State(served): State<Arc<Served>>,
    who: Who,
    wanted: Result<Query<Wanted>, QueryRejection>,
) -> Result<Response, ErrorResponse> {
    let wanted = queried(wanted, "it takes `format`: openai, anthropic or mcp")?;
    let format = wanted.format.unwrap_or_default();
    served.looked().await?;
    let view = served.view(&who);
    let made = view.derived(|_| Definitions::default());
    let made = match format {
        Form::Mcp => &made.mcp,
        Form::Openai => &made.openai,
        Form::Anthropic => &made.anthropic,
    };
    Ok(json(
        StatusCode::OK,
        made.get_or_init(|| all(&view, format)),
    ))
}

/// The definitions of one view, each form made when first asked for.
#[derive(Default)]
struct Definitions {
    mcp: OnceLock<DefinitionList>,
    openai: OnceLock<DefinitionList>,
    anthropic: OnceLock<DefinitionList>,
}

fn all(view: &View, format: Form) -> DefinitionList {
    let tools = match format {
        Form::Mcp => convert::tools(view),
        Form::Openai => view.listed().map(|tool| openai(tool)).collect(),
        Form::Anthropic => view.listed().map(|tool| anthropic(tool)).collect(),
    };
    DefinitionList { format, tools }
}

fn openai(tool: &Tool) -> Value {
    let (name, description) = (tool.name(), &tool.spec.description);
    let function = object!({"name": name, "description": description, "parameters": schema(tool)});
    object!({"type": "function", "function": function})
}

fn anthropic(tool: &Tool) -> Value {
    object!({"name": tool.name(), "description": tool.spec.description, "input_schema": schema(tool)})
}

/// The schema of the arguments. Vendors refuse one that does not say that it is an object with properties.
fn schema(tool: &Tool) -> Value {
    let mut schema = tool.spec.input_schema.value().clone();
    if let Value::Object(map) = &mut schema {
        map.entry("type").or_insert_with(|| "object".into());
        map.entry("properties").or_insert_with(|| object!({}));
    }
    schema
}
