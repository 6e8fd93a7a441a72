//! The options that every kind of tool takes, whatever language spells them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Hints about what a call does. Unset means "may not be repeated".
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Annotations {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

impl Annotations {
    /// The annotations of a tool that only looks.
    pub fn read_only(title: &str) -> Annotations {
        Annotations {
            title: Some(title.to_owned()),
            read_only_hint: Some(true),
            idempotent_hint: Some(true),
            destructive_hint: Some(false),
            open_world_hint: Some(false),
        }
    }

    /// Is it known that a call changes nothing?
    pub fn only_reads(&self) -> bool {
        self.read_only_hint == Some(true) && self.destructive_hint != Some(true)
    }

    /// May a call be repeated without a person saying so?
    pub fn repeatable(&self) -> bool {
        self.read_only_hint == Some(true) || self.idempotent_hint == Some(true)
    }
}

/// What happens after a tool's process has died: how often it is started again in a row, and how far apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retries {
    pub max: u32,
    pub delay: Duration,
}

impl Default for Retries {
    fn default() -> Retries {
        Retries {
            max: 0,
            delay: Duration::from_secs(1),
        }
    }
}

impl Retries {
    /// The longest wait between two starts.
    pub const MAX_DELAY: Duration = Duration::from_secs(30);

    /// How long to wait before the repetition with this number, counted from 0.
    pub fn delay_before(self, repetition: u32) -> Duration {
        let factor = 1_u32 << repetition.min(16);
        self.delay.saturating_mul(factor).min(Retries::MAX_DELAY)
    }
}

/// What a tool declares that it needs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Permissions {
    /// Unset, it reads the project; false, only itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub can_read_files: Option<bool>,
    pub can_write_files: bool,
    pub can_network: bool,
    pub can_execute_commands: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_environment_vars: Vec<String>,
    /// Shorthand: `["read", "write", "network", "exec"]`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<Requirement>,
}

/// One word of the `required` shorthand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Requirement {
    Read,
    Write,
    Network,
    Exec,
}

impl Permissions {
    /// Spells the shorthand out into the four switches.
    #[must_use]
    pub fn expanded(mut self) -> Permissions {
        for requirement in std::mem::take(&mut self.required) {
            match requirement {
                Requirement::Read => self.can_read_files = Some(true),
                Requirement::Write => self.can_write_files = true,
                Requirement::Network => self.can_network = true,
                Requirement::Exec => self.can_execute_commands = true,
            }
        }
        self
    }
}

/// The walls a tool asks for around itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SandboxOptions {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_paths: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_network: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_hosts: Vec<String>,
    #[serde(rename = "maxMemoryMB", skip_serializing_if = "Option::is_none")]
    pub max_memory_mb: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cpu_percent: Option<u32>,
    /// Caps `timeoutMs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_execution_ms: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shorthand_is_spelled_out() {
        let permissions: Permissions =
            serde_json::from_value(serde_json::json!({"required": ["read", "exec"]})).unwrap();
        let permissions = permissions.expanded();
        assert!(permissions.can_read_files == Some(true) && permissions.can_execute_commands);
        assert!(!permissions.can_write_files && !permissions.can_network);
        assert!(permissions.required.is_empty());
    }

    #[test]
    fn unset_annotations_are_not_repeatable() {
        assert!(!Annotations::default().repeatable());
        assert!(Annotations::read_only("x").repeatable());
    }
}
