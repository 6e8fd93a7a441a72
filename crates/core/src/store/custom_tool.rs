//! A tool that was registered by name and command, as it is remembered.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value, json};

use super::StoreError;
use crate::BoxFuture;

/// Whether a registered tool is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RegisteredStatus {
    Active,
    #[default]
    Inactive,
    Error,
}

impl RegisteredStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            RegisteredStatus::Active => "active",
            RegisteredStatus::Inactive => "inactive",
            RegisteredStatus::Error => "error",
        }
    }

    pub fn parse(word: &str) -> Option<RegisteredStatus> {
        use RegisteredStatus::{Active, Error, Inactive};
        [Active, Inactive, Error]
            .into_iter()
            .find(|status| status.as_str() == word)
    }
}

/// How its process was doing when it was last asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RegisteredHealth {
    Healthy,
    Degraded,
    Unhealthy,
    #[default]
    Unknown,
}

impl RegisteredHealth {
    pub fn as_str(self) -> &'static str {
        match self {
            RegisteredHealth::Healthy => "healthy",
            RegisteredHealth::Degraded => "degraded",
            RegisteredHealth::Unhealthy => "unhealthy",
            RegisteredHealth::Unknown => "unknown",
        }
    }

    pub fn parse(word: &str) -> Option<RegisteredHealth> {
        use RegisteredHealth::{Degraded, Healthy, Unhealthy, Unknown};
        [Healthy, Degraded, Unhealthy, Unknown]
            .into_iter()
            .find(|health| health.as_str() == word)
    }
}

/// Environment variables whose values are never shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct EnvVars(pub BTreeMap<String, String>);

impl fmt::Debug for EnvVars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.keys().map(|name| (name, "***"));
        f.debug_map().entries(names).finish()
    }
}

/// One registration, column by column. What a tool declares (`annotations`, `permissions`, `sandbox`) is kept as it
/// was said and read where it is used, so that one odd declaration is one tool's problem and not the list's.
#[derive(Debug, Clone, PartialEq)]
pub struct CustomTool {
    /// Given by the store.
    pub id: String,
    pub name: String,
    pub description: String,
    pub version: String,
    pub command: String,
    pub args: Vec<String>,
    pub working_dir: Option<String>,
    pub env: EnvVars,
    pub input_schema: Value,
    pub output_schema: Option<Value>,
    pub timeout_ms: u64,
    pub max_retries: u32,
    pub retry_delay_ms: u64,
    pub pool_size: u32,
    pub keep_alive: bool,
    pub status: RegisteredStatus,
    pub last_health_check_ms: Option<u64>,
    pub health: RegisteredHealth,
    pub error_message: Option<String>,
    pub tags: Vec<String>,
    pub metadata: Map<String, Value>,
    pub annotations: Option<Value>,
    pub permissions: Option<Value>,
    pub sandbox: Option<Value>,
    pub aliases: Vec<String>,
    /// What a grant is bound to.
    pub content_hash: String,
    /// Given by the store, in milliseconds since the epoch.
    pub created_ms: u64,
    /// Given by the store.
    pub updated_ms: u64,
    /// Given by the store; an update names the one it was made from.
    pub revision: u64,
}

impl CustomTool {
    /// A registration with the documented defaults.
    pub fn new(name: &str, command: &str) -> CustomTool {
        CustomTool {
            id: String::new(),
            name: name.to_owned(),
            description: String::new(),
            version: String::new(),
            command: command.to_owned(),
            args: Vec::new(),
            working_dir: None,
            env: EnvVars::default(),
            input_schema: json!({"type": "object"}),
            output_schema: None,
            timeout_ms: 30_000,
            max_retries: 0,
            retry_delay_ms: 1_000,
            pool_size: 1,
            keep_alive: true,
            status: RegisteredStatus::default(),
            last_health_check_ms: None,
            health: RegisteredHealth::default(),
            error_message: None,
            tags: Vec::new(),
            metadata: Map::new(),
            annotations: None,
            permissions: None,
            sandbox: None,
            aliases: Vec::new(),
            content_hash: String::new(),
            created_ms: 0,
            updated_ms: 0,
            revision: 0,
        }
    }
}

/// What the source of registered tools needs of the store.
pub trait Registrations: Send + Sync {
    /// Every active registration, by name.
    fn active(&self) -> BoxFuture<'_, Result<Vec<CustomTool>, StoreError>>;

    /// Takes a tool into the catalog or out of it, with the reason.
    fn set_status<'a>(
        &'a self,
        name: &'a str,
        status: RegisteredStatus,
        error_message: Option<&'a str>,
    ) -> BoxFuture<'a, Result<CustomTool, StoreError>>;

    /// Notes how a tool is doing. This is no change of the registration.
    fn set_health<'a>(
        &'a self,
        name: &'a str,
        health: RegisteredHealth,
        at_ms: u64,
    ) -> BoxFuture<'a, Result<(), StoreError>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_read_back_and_values_stay_hidden() {
        for word in ["active", "inactive", "error"] {
            assert_eq!(RegisteredStatus::parse(word).unwrap().as_str(), word);
        }
        for word in ["healthy", "degraded", "unhealthy", "unknown"] {
            assert_eq!(RegisteredHealth::parse(word).unwrap().as_str(), word);
        }
        let mut tool = CustomTool::new("a", "b");
        tool.env.0.insert("KEY".to_owned(), "s3cret".to_owned());
        let shown = format!("{tool:?}");
        assert!(shown.contains("KEY") && !shown.contains("s3cret"));
    }
}
