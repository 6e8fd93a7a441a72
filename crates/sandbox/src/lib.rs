//! Where code runs: the only crate that starts processes, and the only one with `unsafe`.
//!
//! # Threat model
//!
//! A tool's process is not trusted to end, to stay in its process group, or to leave nothing behind. What holds:
//!
//! * Every process is started by [`Command`], through a launcher: this binary, executed again as a small
//!   single-threaded process that holds a socket to the crib ([`launcher`]).
//! * The tool starts with an empty environment plus [`Environment`]'s allow-list, no inherited descriptors but its
//!   own three streams, and in a process group of its own.
//! * When the tool exits, when its [`Child`] is dropped, or when the crib dies however it may, the launcher kills the
//!   whole tree: the group, and every descendant that left it, because orphans fall to the launcher.
//!
//! Not promised yet: confinement of reads, writes, network and resources. A trusted tool may do what the user may.

mod child;
mod command;
mod environment;
pub mod launcher;
mod program;
mod rung;

pub use child::{Child, Exit, Stdin};
pub use command::{Command, StartError};
pub use environment::Environment;
pub use rung::{Launcher, Rung};
