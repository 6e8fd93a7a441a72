//! The JSON of REST: what goes over the wire, in both directions, apart from the types it is made of.
//!
//! A view is made from a core type once, by `From`, and is all that server, CLI and OpenAPI document know of its
//! JSON. Fields are camelCase; optional ones are left out when unset. Reading is lenient: a newer server may say
//! more than an older client knows.

mod agent;
mod approval;
mod call;
mod check;
mod custom_tool;
mod definition;
mod doctor;
mod event;
mod grant;
mod log;
mod me;
mod problem;
mod record;
mod search;
mod token;
mod tool;
mod trust;

pub use agent::{AgentList, AgentView, HiddenToolView, PassView, in_words};
pub use approval::{
    ApprovalCallback, ApprovalDecision, ApprovalDecisionFields, ApprovalList, ApprovalView,
    readable, visible,
};
pub use call::{
    AttachmentType, AttachmentView, CallBody, CallStopped, ErrorBody, ErrorView, OutcomeView,
};
pub use check::{Asked, CheckView};
pub use custom_tool::{
    CustomToolCreate, CustomToolFields, CustomToolList, CustomToolUpdate, CustomToolView, TestBody,
    ValidationView,
};
pub use definition::{DefinitionList, Form};
pub use doctor::{ConfinementView, DoctorView, FeatureView};
pub use event::{
    ApprovalEventView, CallEndView, CallProgressView, CallStartView, ChangeView, LaggedView,
    StandingView, WorkerView, event_json,
};
pub use grant::{GrantCreate, GrantList, GrantView, NetView, PermitView};
pub use log::LogView;
pub use me::MeView;
pub use problem::{HealthView, ProblemList, ProblemView, ReadyView, ReloadView, rfc3339};
pub use record::{RecordList, RecordView};
pub use search::{Detail, MatchView, NamespaceView, SearchView};
pub use token::{TokenCreate, TokenCreated, TokenList, TokenRevoked, TokenView};
pub use tool::{AnnotationsView, PermissionsView, ToolList, ToolView};
pub use trust::{TrustCreate, TrustGiven, TrustList, TrustTaken, TrustedView};
