//! A tool on the wire, and lists of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolcrib_core::{Access, Annotations, Permissions, Tool, View};
use utoipa::ToSchema;

use super::{PassView, PermitView};

/// Something an agent can call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolView {
    pub name: String,
    /// The name under which agents see it over MCP.
    pub mcp_name: String,
    pub description: String,
    #[schema(example = "plugin")]
    pub source: String,
    /// `local` or `global`, for tools out of a folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    pub module: String,
    /// The interpreter that runs it, for tools that need one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interpreter: Option<String>,
    /// `off` where the user's settings let it do what the user may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    pub tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// JSON Schema 2020-12 of the arguments.
    #[schema(value_type = BTreeMap<String, Value>)]
    pub input_schema: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<BTreeMap<String, Value>>)]
    pub output_schema: Option<Value>,
    pub annotations: AnnotationsView,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "PermissionsView::is_empty")]
    pub permissions: PermissionsView,
    /// What it does beyond looking at the project, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub declares: Vec<String>,
    /// The paths of the project that it reads without a grant, where that is not all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads: Option<Vec<String>>,
    /// What it declares and has not been granted yet; of a built-in tool that is off, what to do first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// What it may do beyond the default, because it was granted.
    #[serde(default, skip_serializing_if = "PermitView::is_empty")]
    pub granted: PermitView,
    /// What a call would pass, where the tool is shown for one agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<PassView>,
    /// `active`, `loading`, `untrusted`, `denied`, `off` or `error`.
    #[schema(example = "active")]
    pub status: String,
    #[schema(example = "unknown")]
    pub health_status: String,
    /// Served from the last good version, because the file is broken now.
    pub stale: bool,
    /// Files whose tool of the same name this one hides.
    pub shadows: Vec<String>,
}

impl From<&Tool> for ToolView {
    fn from(tool: &Tool) -> ToolView {
        let spec = &tool.spec;
        let needs = match &tool.access {
            Access::NeedsGrant(ungranted) => ungranted.needs.clone(),
            Access::Off(error) => error.hint.iter().map(ToString::to_string).collect(),
            Access::Open | Access::Untrusted { .. } => Vec::new(),
        };
        let timeout = spec
            .timeout
            .map(|limit| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
        ToolView {
            name: tool.name().to_owned(),
            mcp_name: tool.mcp_name(),
            description: spec.description.clone(),
            source: tool.source.as_str().to_owned(),
            scope: tool.scope.map(|scope| scope.as_str().to_owned()),
            file: tool.file.as_ref().map(|file| file.display().to_string()),
            call: None,
            module: tool.module.clone(),
            interpreter: tool
                .interpreter
                .as_ref()
                .map(|path| path.display().to_string()),
            sandbox: (!tool.confined).then(|| "off".to_owned()),
            plugin_name: tool.plugin_name.clone(),
            version: spec.version.clone(),
            tags: spec.tags.clone(),
            aliases: spec.aliases.clone(),
            input_schema: spec.input_schema.value().clone(),
            output_schema: spec
                .output_schema
                .as_ref()
                .map(|schema| schema.value().clone()),
            annotations: AnnotationsView::from(&spec.annotations),
            timeout_ms: timeout,
            permissions: PermissionsView::from(&spec.permissions),
            declares: tool.declares.clone(),
            reads: tool.reads.narrowed().map(<[String]>::to_vec),
            needs,
            granted: PermitView::from(&tool.permit),
            status: tool.status().as_str().to_owned(),
            health_status: tool.health().as_str().to_owned(),
            stale: tool.stale,
            shadows: tool.shadows.clone(),
        }
    }
}

/// Hints about what a call does.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnnotationsView {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

impl From<&Annotations> for AnnotationsView {
    fn from(annotations: &Annotations) -> AnnotationsView {
        AnnotationsView {
            title: annotations.title.clone(),
            read_only_hint: annotations.read_only_hint,
            idempotent_hint: annotations.idempotent_hint,
            destructive_hint: annotations.destructive_hint,
            open_world_hint: annotations.open_world_hint,
        }
    }
}

/// What a tool declares that it needs beyond the default, the shorthand spelled out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PermissionsView {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub can_read_files: Option<bool>,
    pub can_write_files: bool,
    pub can_network: bool,
    pub can_execute_commands: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_environment_vars: Vec<String>,
}

impl PermissionsView {
    fn is_empty(&self) -> bool {
        *self == PermissionsView::default()
    }
}

impl From<&Permissions> for PermissionsView {
    fn from(permissions: &Permissions) -> PermissionsView {
        let permissions = permissions.clone().expanded();
        PermissionsView {
            can_read_files: permissions.can_read_files,
            can_write_files: permissions.can_write_files,
            can_network: permissions.can_network,
            can_execute_commands: permissions.can_execute_commands,
            allowed_environment_vars: permissions.allowed_environment_vars,
        }
    }
}

/// The catalog, or the part of it that was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ToolList {
    /// Sorted by name.
    pub tools: Vec<ToolView>,
    /// The whole catalog: `total`, and one entry per source that gives any tool.
    #[schema(example = json!({"total": 5, "builtin": 4, "plugin": 1}))]
    pub counts: BTreeMap<String, usize>,
    /// How many tools fit the filters, on all pages together.
    pub count: usize,
    /// Files in tools folders without a tool, if `idle` asks for them; then `tools` has those that are off, too.
    #[serde(rename = "idleFiles", default, skip_serializing_if = "Option::is_none")]
    pub idle_files: Option<Vec<String>>,
}

impl ToolList {
    /// The tools of a view that `fits` lets through, `limit` of them from `offset` on.
    pub fn new(
        view: &View,
        fits: impl Fn(&Tool) -> bool,
        offset: usize,
        limit: Option<usize>,
    ) -> ToolList {
        let fitting: Vec<&Tool> = view
            .tools()
            .map(AsRef::as_ref)
            .filter(|tool| fits(tool))
            .collect();
        let page = fitting
            .iter()
            .skip(offset)
            .take(limit.unwrap_or(usize::MAX));
        ToolList {
            tools: page.map(|tool| ToolView::from(*tool)).collect(),
            counts: counts(view),
            count: fitting.len(),
            idle_files: None,
        }
    }
}

impl From<&View> for ToolList {
    fn from(view: &View) -> ToolList {
        ToolList::new(view, |tool| !tool.is_off(), 0, None)
    }
}

fn counts(view: &View) -> BTreeMap<String, usize> {
    let by_source = view.counts_by_source().into_iter();
    let named = by_source.map(|(source, count)| (source.as_str().to_owned(), count));
    std::iter::once(("total".to_owned(), view.count()))
        .chain(named)
        .collect()
}
