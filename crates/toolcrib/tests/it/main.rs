//! End-to-end tests: the real binary, real files, real processes, a port of its own.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod audit;
mod auth;
mod bad_input;
mod chaos;
mod cli;
mod confined;
mod conformance;
mod definitions;
mod degraded;
mod examples;
mod grants;
mod injection;
mod last_good;
mod load;
mod log;
mod mcp_clients;
mod mcp_life;
mod mcp_wire;
mod names;
mod new;
mod one_set;
mod outputs;
mod reference;
mod register_cli;
mod registered;
mod registered_life;
mod relay;
mod reload;
mod saves;
mod schemathesis;
mod secrets;
mod seed_plugin;
mod seed_programs;
mod settings;
mod shutdown;
mod ssrf;
mod support;
mod templates;
mod tidy;
mod traversal;
mod trust;
mod typescript;
mod untrusted;
mod users;
