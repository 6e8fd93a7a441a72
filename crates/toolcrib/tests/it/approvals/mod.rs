//! Approvals: a call that a person is asked about runs after a yes, once; and nobody but a person says it.

mod deciding;
mod forgery;
mod scene;
mod waiting;
