//! Nothing gets out: real attacks from Python and Node behind real walls, on every rung.
//!
//! Rules that no test may break. An attack only ever runs behind walls, and its first lines see to that: they end with
//! code 99 where no canary proves it. It only touches processes and files of its own test. Bombs are bounded in
//! themselves. Under root nothing runs here but [`users`], which starts this program again as an ordinary user with
//! mounts of its own, and only after that as root, with mounts, processes and network of its own.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod arena;
mod attacks;
mod bombs;
mod closed;
mod hosts;
mod life;
mod names;
mod paths;
mod programs;
mod refusal;
mod users;
