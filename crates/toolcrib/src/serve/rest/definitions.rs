//! The whole catalog that an agent sees, in the form of one vendor or another.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json as object};
use toolcrib_core::{Catalog, Tool};
use utoipa::IntoParams;

use super::{ErrorResponse, json, queried};
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
        (status = 200, body = DefinitionList),
        (status = 400, description = "`bad_request`: there is no such format", body = ErrorView),
        (status = 403, description = "`forbidden`: foreign Host or Origin", body = ErrorView),
    )
)]
pub async fn definitions(
    State(served): State<Arc<Served>>,
    wanted: Result<Query<Wanted>, QueryRejection>,
) -> Result<Response, ErrorResponse> {
    let wanted = queried(wanted, "it takes `format`: openai, anthropic or mcp")?;
    let format = wanted.format.unwrap_or_default();
    let tools = all(&served.crib.tools(), format);
    Ok(json(StatusCode::OK, &DefinitionList { format, tools }))
}

fn all(catalog: &Catalog, format: Form) -> Vec<Value> {
    match format {
        Form::Mcp => convert::tools(catalog),
        Form::Openai => convert::listed(catalog).map(openai).collect(),
        Form::Anthropic => convert::listed(catalog).map(anthropic).collect(),
    }
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
