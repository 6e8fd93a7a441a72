//! What `doctor` finds, on the wire: what the machine offers, and what holds each tool.

use serde::{Deserialize, Serialize};
use toolcrib_core::words::CommandLine;
use toolcrib_core::{Access, Tool, Walled};
use toolcrib_sandbox::Feature;
use utoipa::ToSchema;

use super::ProblemView;

/// How tools are confined here, and what is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DoctorView {
    #[serde(default)]
    pub project: Option<String>,
    /// False where the user's settings switch the sandbox off for every tool.
    pub sandbox_enabled: bool,
    /// `A`, `B` or `C`; none where nothing can be confined, and so nothing runs.
    #[serde(default)]
    #[schema(example = "A")]
    pub rung: Option<String>,
    pub reason: String,
    /// What helps where there is no rung.
    #[serde(default)]
    pub remedy: Option<String>,
    pub features: Vec<FeatureView>,
    pub tools: Vec<ConfinementView>,
    /// Files and tools that did not load.
    #[serde(default)]
    pub failed: Vec<ProblemView>,
    /// What does not work, in words.
    pub degraded: Vec<String>,
}

/// One thing that the sandbox is built with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FeatureView {
    pub name: String,
    pub value: String,
    pub gives: String,
    /// What is lost without it.
    #[serde(default)]
    pub lost: Option<String>,
    /// How to get it.
    #[serde(default)]
    pub how: Option<String>,
}

impl From<Feature> for FeatureView {
    fn from(feature: Feature) -> FeatureView {
        FeatureView {
            name: feature.name.to_owned(),
            value: feature.value,
            gives: feature.gives.to_owned(),
            lost: feature.lost.map(str::to_owned),
            how: feature.how.map(str::to_owned),
        }
    }
}

/// What holds one tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConfinementView {
    pub name: String,
    /// Null for a tool that runs in Toolcrib itself, and for one that is refused.
    #[serde(default)]
    pub confined: Option<bool>,
    /// What enforces what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enforced: Option<String>,
    /// What can't be promised here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<Vec<String>>,
    /// Why it can't be confined here, and so does not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// What has to be said before it runs at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<String>,
}

/// Why nothing of a tool runs yet.
fn waits(tool: &Tool) -> Option<String> {
    match &tool.access {
        Access::Open => None,
        Access::Untrusted { .. } => {
            Some("its project is not trusted (`toolcrib trust`)".to_owned())
        }
        Access::NeedsGrant(_) => {
            let grant = CommandLine::new("toolcrib grant").operand(tool.name());
            Some(format!("it needs a grant (`{}`)", grant.switch("--all")))
        }
        Access::Off(error) => Some(match &error.hint {
            Some(hint) => format!("{}: {hint}", error.message),
            None => error.message.clone(),
        }),
    }
}

impl ConfinementView {
    pub fn new(tool: &Tool, walled: Walled) -> ConfinementView {
        let mut view = ConfinementView {
            name: tool.name().to_owned(),
            confined: None,
            enforced: None,
            lost: None,
            refused: None,
            waits: waits(tool),
        };
        match walled {
            // Nothing of it runs, so nobody knows yet what would hold it.
            _ if matches!(tool.access, Access::Untrusted { .. }) => {}
            Walled::NotAtAll => {}
            Walled::Open => view.confined = Some(false),
            Walled::Confined { enforced, lost } => {
                view.confined = Some(true);
                view.enforced = Some(enforced);
                view.lost = Some(lost);
            }
            Walled::Refused(why) => view.refused = Some(why),
        }
        view
    }
}
