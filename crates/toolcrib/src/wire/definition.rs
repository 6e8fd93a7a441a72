//! Tools in the forms that model vendors and MCP take them in.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// Whose form.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    Openai,
    Anthropic,
    #[default]
    Mcp,
}

/// Every tool that agents see, ready to be handed to a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DefinitionList {
    pub format: Form,
    /// Sorted by name; each in the form that was asked for.
    #[schema(value_type = Vec<BTreeMap<String, Value>>)]
    pub tools: Vec<Value>,
}
