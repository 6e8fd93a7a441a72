//! A registered tool on the wire: what is sent to make or change one, and how it is shown.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolcrib_core::Object;
use toolcrib_core::store::CustomTool;
use toolcrib_sources::registered::{Examination, HIDDEN};
use utoipa::ToSchema;

/// Registers a tool. `command` is enough: the program is asked for what is left out. Unknown fields are
/// refused.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomToolCreate {
    /// 1 to 64 letters, digits, `_` and `-`.
    #[schema(example = "weather_lookup")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A program on the PATH, or a path. A relative one starts at the project and is made absolute.
    #[schema(example = "python3")]
    pub command: String,
    #[serde(flatten)]
    pub fields: CustomToolFields,
}

/// Changes a registered tool. `null` takes a field back to its default.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomToolUpdate {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// `active` puts it into the catalog, after its program was validated; `inactive` takes it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    #[serde(flatten)]
    pub fields: CustomToolFields,
}

/// What may be said of a registered tool beside its name and command.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomToolFields {
    /// What agents read; from the program where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// An argument that begins with `./`, or that names the program of an interpreter, is made absolute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    /// Where the program starts; the project that is served where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// Variables for the program. Their values are never shown again; `***` keeps a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<BTreeMap<String, String>>,
    /// JSON Schema 2020-12 of the arguments; from the program where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<BTreeMap<String, Value>>)]
    pub input_schema: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<BTreeMap<String, Value>>)]
    pub output_schema: Option<Value>,
    /// The setting `default_timeout` where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 86_400_000)]
    pub timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 10)]
    pub max_retries: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 60_000)]
    pub retry_delay_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 64)]
    pub pool_size: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_alive: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aliases: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<BTreeMap<String, Value>>)]
    pub metadata: Option<Map<String, Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<BTreeMap<String, Value>>)]
    pub annotations: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<BTreeMap<String, Value>>)]
    pub permissions: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<BTreeMap<String, Value>>)]
    pub sandbox: Option<Value>,
    /// `false` starts nothing and stores the tool `inactive`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validate: Option<bool>,
}

/// A registered tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomToolView {
    pub id: String,
    pub name: String,
    pub description: String,
    pub version: String,
    pub command: String,
    pub args: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// Names only: every value is `***`.
    pub env: BTreeMap<String, String>,
    /// Left out until the program was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<BTreeMap<String, Value>>)]
    pub input_schema: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<BTreeMap<String, Value>>)]
    pub output_schema: Option<Value>,
    pub timeout_ms: u64,
    pub max_retries: u32,
    pub retry_delay_ms: u64,
    pub pool_size: u32,
    pub keep_alive: bool,
    /// `active` (in the catalog), `inactive`, or `error` (its restarts failed).
    #[schema(example = "active")]
    pub status: String,
    /// `healthy`, `degraded`, `unhealthy`, or `unknown`.
    #[schema(example = "unknown")]
    pub health_status: String,
    /// When its process was last asked, in milliseconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_health_check: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    pub tags: Vec<String>,
    pub aliases: Vec<String>,
    #[schema(value_type = BTreeMap<String, Value>)]
    pub metadata: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<BTreeMap<String, Value>>)]
    pub annotations: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<BTreeMap<String, Value>>)]
    pub permissions: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<BTreeMap<String, Value>>)]
    pub sandbox: Option<Value>,
    /// In milliseconds since the epoch.
    pub created_at: u64,
    /// In milliseconds since the epoch.
    pub updated_at: u64,
    /// What is odd about it, in the answer to a change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl From<CustomTool> for CustomToolView {
    fn from(tool: CustomTool) -> CustomToolView {
        let names = tool.env.0.into_keys();
        CustomToolView {
            id: tool.id,
            name: tool.name,
            description: tool.description,
            version: tool.version,
            command: tool.command,
            args: tool.args,
            working_dir: tool.working_dir,
            env: names.map(|name| (name, HIDDEN.to_owned())).collect(),
            input_schema: Some(tool.input_schema).filter(|schema| !schema.is_null()),
            output_schema: tool.output_schema,
            timeout_ms: tool.timeout_ms,
            max_retries: tool.max_retries,
            retry_delay_ms: tool.retry_delay_ms,
            pool_size: tool.pool_size,
            keep_alive: tool.keep_alive,
            status: tool.status.as_str().to_owned(),
            health_status: tool.health.as_str().to_owned(),
            last_health_check: tool.last_health_check_ms,
            error_message: tool.error_message,
            tags: tool.tags,
            aliases: tool.aliases,
            metadata: tool.metadata,
            annotations: tool.annotations,
            permissions: tool.permissions,
            sandbox: tool.sandbox,
            created_at: tool.created_ms,
            updated_at: tool.updated_ms,
            warnings: Vec::new(),
        }
    }
}

/// Registered tools, or the part of them that was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomToolList {
    /// Sorted by name.
    pub tools: Vec<CustomToolView>,
    /// How many fit the filter, on all pages together.
    pub total: u64,
}

/// What starting a tool's program showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ValidationView {
    pub valid: bool,
    /// Why it is not valid.
    pub errors: Vec<String>,
    /// Where the program says something else than the stored one; the stored one is used.
    pub warnings: Vec<String>,
}

impl From<Examination> for ValidationView {
    fn from(examined: Examination) -> ValidationView {
        ValidationView {
            valid: examined.is_valid(),
            errors: examined.errors,
            warnings: examined.warnings,
        }
    }
}

/// The arguments to test a registered tool with. An empty body means no arguments.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TestBody {
    /// The tool's arguments, by name.
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, Value>)]
    pub input: Object,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_variables_are_never_shown() {
        let mut tool = CustomTool::new("a", "b");
        tool.env.0.insert("KEY".to_owned(), "s3cret".to_owned());
        tool.input_schema = Value::Null;
        let view = CustomToolView::from(tool);
        let text = serde_json::to_string(&view).unwrap();
        assert!(text.contains(r#""env":{"KEY":"***"}"#), "{text}");
        assert!(
            !text.contains("s3cret") && !text.contains("inputSchema"),
            "{text}"
        );
        let back: CustomToolView = serde_json::from_str(&text).unwrap();
        assert_eq!(back, view);
    }

    #[test]
    fn what_the_seed_sends_is_a_create() {
        let body = serde_json::json!({
            "name": "weather_lookup", "description": "Get current weather for a location", "command": "python",
            "args": ["./tools/installed/weather/tool.py"], "inputSchema": {"type": "object"}, "timeoutMs": 10000,
            "tags": ["weather", "external-api"],
        });
        let create: CustomToolCreate = serde_json::from_value(body.clone()).unwrap();
        assert_eq!(create.fields.timeout_ms, Some(10_000));
        assert_eq!(serde_json::to_value(create).unwrap(), body);
    }
}
