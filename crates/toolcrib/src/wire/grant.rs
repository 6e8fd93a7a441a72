//! Grants on the wire: what is sent to give one, and how they are shown.

use std::path::Path;

use serde::{Deserialize, Serialize};
use toolcrib_core::{Binding, Grant, Network, Permit};
use utoipa::ToSchema;

use super::rfc3339;

/// The hosts that a tool may call, or `true` for the machine's own network, loopback included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum NetView {
    Open(bool),
    /// Each is `host`, `host:port` or `*.suffix`.
    Hosts(Vec<String>),
}

/// A structure with the fields of a permit, between others of its own. They are written out, and not flattened: serde does
/// not promise to refuse unknown fields beside flattened ones.
macro_rules! with_permit {
    ($(#[$about:meta])* pub struct $name:ident { { $($before:tt)* } permit, { $($after:tt)* } }) => {
        $(#[$about])*
        pub struct $name {
            $($before)*
            /// Paths that it may read, with everything in them. A relative one starts at the project.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub read: Vec<String>,
            /// Paths that it may write, except protected ones in them such as `.toolcrib` and `.git`.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub write: Vec<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub net: Option<NetView>,
            /// May it run programs beyond its own?
            #[serde(skip_serializing_if = "std::ops::Not::not")]
            pub exec: bool,
            /// May the packages that it names be installed?
            #[serde(skip_serializing_if = "std::ops::Not::not")]
            pub install: bool,
            /// Megabytes of memory that it may use, where that is more than the 512 of every tool.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schema(minimum = 513, maximum = 1_048_576)]
            pub memory_mb: Option<u64>,
            /// Processor time that it may use, where that is more than the 100 (one processor) of every tool.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schema(minimum = 101, maximum = 100_000)]
            pub cpu_percent: Option<u32>,
            /// Environment variables that it may read.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub env: Vec<String>,
            $($after)*
        }
    };
}

with_permit! {
    /// What a tool may do beyond the default.
    #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
    #[serde(rename_all = "camelCase", default)]
    pub struct PermitView { {} permit, {} }
}

impl PermitView {
    pub fn is_empty(&self) -> bool {
        *self == PermitView::default()
    }

    /// In words for a person.
    pub fn words(&self) -> Vec<String> {
        Permit::from(self.clone()).words()
    }
}

impl From<&Permit> for PermitView {
    fn from(permit: &Permit) -> PermitView {
        PermitView {
            read: permit.read.clone(),
            write: permit.write.clone(),
            net: match &permit.network {
                Network::None => None,
                Network::Hosts(hosts) => Some(NetView::Hosts(hosts.clone())),
                Network::Open => Some(NetView::Open(true)),
            },
            exec: permit.exec,
            install: permit.install,
            memory_mb: permit.memory_mb,
            cpu_percent: permit.cpu_percent,
            env: permit.env.clone(),
        }
    }
}

impl From<PermitView> for Permit {
    fn from(view: PermitView) -> Permit {
        let permit = Permit {
            read: view.read,
            write: view.write,
            network: match view.net {
                None | Some(NetView::Open(false)) => Network::None,
                Some(NetView::Open(true)) => Network::Open,
                Some(NetView::Hosts(hosts)) => Network::Hosts(hosts),
            },
            exec: view.exec,
            install: view.install,
            memory_mb: view.memory_mb,
            cpu_percent: view.cpu_percent,
            env: view.env,
        };
        permit.tidy()
    }
}

with_permit! {
    /// Grants a tool what it asks for, or what is named here.
    #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
    #[serde(rename_all = "camelCase", default, deny_unknown_fields)]
    pub struct GrantCreate {
        {
            /// The tool's name in the catalog.
            #[schema(required, example = "weather_lookup")]
            pub tool: String,
            /// All that it declares.
            #[serde(skip_serializing_if = "std::ops::Not::not")]
            pub all: bool,
            /// Ready sets for tools that run a build: `cargo`, `node`, `python`, `go`, `git`.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            #[schema(example = json!(["cargo"]))]
            pub preset: Vec<String>,
        }
        permit,
        {
            /// Keep the grant when the tool is edited; else it is for what the tool is now.
            #[serde(skip_serializing_if = "std::ops::Not::not")]
            pub follow: bool,
        }
    }
}

impl GrantCreate {
    /// What is named, beside `all`.
    pub fn named(&self) -> Permit {
        Permit::from(PermitView {
            read: self.read.clone(),
            write: self.write.clone(),
            net: self.net.clone(),
            exec: self.exec,
            install: self.install,
            memory_mb: self.memory_mb,
            cpu_percent: self.cpu_percent,
            env: self.env.clone(),
        })
    }
}

/// A person's permission for one tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GrantView {
    pub id: String,
    pub tool: String,
    /// The tool's file, or `registered`: a tool of the same name elsewhere does not have it.
    pub origin: String,
    /// The root of the project that the file lies in; left out for your own tools, which are in every project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Does it hold whatever the tool becomes?
    pub follow: bool,
    /// The content that it is for, where it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_hash: Option<String>,
    #[serde(flatten)]
    pub permit: PermitView,
    #[schema(format = DateTime)]
    pub created_at: String,
}

impl From<Grant> for GrantView {
    fn from(grant: Grant) -> GrantView {
        let content_hash = match grant.binding {
            Binding::Content(hash) => Some(hash),
            Binding::Follow => None,
        };
        GrantView {
            id: grant.id,
            tool: grant.tool,
            project: project_of(&grant.origin).map(str::to_owned),
            origin: grant.origin,
            follow: content_hash.is_none(),
            content_hash,
            permit: PermitView::from(&grant.permit),
            created_at: rfc3339(grant.created_ms),
        }
    }
}

/// The project that a file lies in, by where projects have their tools.
fn project_of(origin: &str) -> Option<&str> {
    origin.split_once("/.toolcrib/").map(|(project, _)| project)
}

impl GrantView {
    /// Says that it is of this project, where its file lies there: tools folders have any name.
    #[must_use]
    pub fn within(mut self, root: &str) -> GrantView {
        if Path::new(&self.origin).starts_with(root) {
            self.project = Some(root.to_owned());
        }
        self
    }
}

/// The grants there are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GrantList {
    /// Sorted by tool.
    pub grants: Vec<GrantView>,
    pub count: usize,
}

impl From<Vec<GrantView>> for GrantList {
    fn from(grants: Vec<GrantView>) -> GrantList {
        GrantList {
            count: grants.len(),
            grants,
        }
    }
}
