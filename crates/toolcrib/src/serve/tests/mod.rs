//! Drives the real router over a real port: every route, every refusal, and how it stops.

mod asks;
mod ends;
pub(in crate::serve) mod fixture;
mod opening;
mod progress;
mod refusals;
mod routes;
mod streams;
