//! Drives the real router over a real port: every route, every refusal, and how it stops.

mod fixture;
mod refusals;
mod routes;
mod streams;
