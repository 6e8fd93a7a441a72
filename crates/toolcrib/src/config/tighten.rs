//! What a project's own file may say: it may tighten what the user set, and loosen nothing.

use std::path::{Component, Path};

use super::ConfigError;
use super::agents::ModeWord;
use super::file::{ConfigFile, GateMode, ScanMode};

/// A project may lower a limit, never raise it.
pub(super) fn at_most(limit: u64, own: Option<u64>) -> u64 {
    own.map_or(limit, |own| own.min(limit))
}

/// Refuses what a project's file would loosen.
pub(super) fn tightening_only(path: &Path, own: ConfigFile) -> Result<ConfigFile, ConfigError> {
    let refuse = |key: &str, why: &str| {
        let hint = format!(
            "take it out here and set it in `~/.config/toolcrib/config.toml` if you want it: {why}"
        );
        let reason = format!("`{key}` can't be set in a project's file");
        Err(ConfigError::in_file(path, reason, hint))
    };
    if let Some((_, key, why)) = loosening(&own).into_iter().find(|(said, ..)| *said) {
        return refuse(key, why);
    }
    for dir in own.tool_dirs.iter().flatten() {
        let inside = Path::new(dir)
            .components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if !inside || dir.starts_with('~') {
            let key = format!("tool_dirs = [\"{dir}\"]");
            return refuse(&key, "a project's folders must be inside it");
        }
    }
    Ok(own)
}

/// Each thing that a project may not say, whether it does, and why it may not.
#[rustfmt::skip]
fn loosening(own: &ConfigFile) -> [(bool, &'static str, &'static str); 24] {
    let limits = own.output_limit.as_ref();
    let by_name = limits.is_some_and(|limits| limits.clients.is_some() || limits.agents.is_some());
    let opens = own.agents.iter().flatten().any(|(_, agent)| agent.mode == Some(ModeWord::Primary));
    let quota = own.outputs.as_ref().is_some_and(|outputs| outputs.quota_bytes.is_some());
    [
        (own.tools_dir.is_some(), "tools_dir", "a project may not replace the user's own tools"),
        (own.store.is_some(), "store", "a project may not decide where your records are kept"),
        (own.store_grace.is_some(), "store_grace", "a project may not decide how long trust lasts without the store"),
        (own.audit.is_some(), "audit", "a project may not decide how your calls are recorded"),
        (own.approvals.is_some(), "approvals", "a project may not decide who says yes to calls"),
        (own.custom_tools_enabled == Some(true), "custom_tools_enabled = true", "a project may turn programs off, never on"),
        (own.python.is_some(), "python", "a project may not decide what runs your own tools; it may have a `.venv`"),
        (own.sandbox_enabled.is_some(), "sandbox_enabled", "a project may not decide whether its tools are confined"),
        (own.tools.is_some(), "tools", "a project may not decide what its tools may do"),
        (own.secrets.is_some(), "secrets", "a project may not decide which of your secrets are read"),
        (own.web_search.is_some(), "web_search", "a project may not decide who learns what you search for"),
        (own.webhooks.is_some(), "webhooks", "a project may not decide who is sent messages"),
        (own.email.is_some(), "email", "a project may not decide who sends your mail, and to whom"),
        (own.javascript.is_some(), "javascript", "a project may not decide what runs your own tools"),
        (own.scan == Some(ScanMode::Warn), "scan = \"warn\"", "a project may only say \"strict\""),
        (own.gate == Some(GateMode::Off), "gate = \"off\"", "a project may only say \"examples\""),
        (own.worker_idle.is_some(), "worker_idle", "a project may not decide how long workers are kept"),
        (own.health_check_interval.is_some(), "health_check_interval", "a project may not decide how often workers are asked"),
        (own.host.is_some(), "host", "a project may not decide where the crib listens"),
        (own.port.is_some(), "port", "a project may not decide where the crib listens"),
        (by_name, "output_limit.clients, output_limit.agents", "a project may lower the limit for all alone"),
        (own.limits.is_some(), "limits", "a project may not decide how much is counted for your tokens and agents"),
        (opens, "mode = \"primary\"", "a project may only say \"subagent\""),
        (quota, "outputs.quota_bytes", "a project may not decide how much disk is used"),
    ]
}
