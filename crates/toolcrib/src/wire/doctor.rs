//! What `doctor` finds, on the wire: what the machine offers, and what holds each tool.

use serde::{Deserialize, Serialize};
use toolcrib_core::{Tool, Walled};
use toolcrib_sandbox::Feature;
use utoipa::ToSchema;

/// How tools are confined here, and what is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DoctorView {
    #[serde(default)]
    pub project: Option<String>,
    /// False where the user's settings take the walls away from every tool.
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
    /// What does not work, in words.
    pub degraded: Vec<String>,
}

/// One thing that walls are built with.
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
}

impl ConfinementView {
    pub fn new(tool: &Tool, walled: Walled) -> ConfinementView {
        let mut view = ConfinementView {
            name: tool.name().to_owned(),
            confined: None,
            enforced: None,
            lost: None,
            refused: None,
        };
        match walled {
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
