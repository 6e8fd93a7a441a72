//! Where code runs: the only crate that starts processes, and the only one with `unsafe`.
//!
//! # Threat model
//!
//! A tool's process is not trusted to end, to stay in its process group, to leave its launcher alone, or to leave
//! nothing behind. What holds:
//!
//! * Every process is started by [`Command`], through a launcher: this binary, executed again as a small
//!   single-threaded process that a socket ties to the crib ([`launcher`]).
//! * The tool starts with an empty environment plus [`Environment`]'s allow-list, no inherited descriptors but its
//!   own three streams, default signals, and a process group of its own.
//! * When the tool exits, when its [`Child`] is dropped or killed, or when the crib or the launcher dies however it may,
//!   the whole tree is killed. On [`Rung::Namespaces`] the kernel does that. On [`Rung::Group`] the launcher does, the
//!   tool can't leave its group nor signal the launcher, and the crib takes over from a launcher that is lost.
//! * Once [`Child::wait`] gives a code or a signal, nothing of the tree is left.
//!
//! A [`Command`] can't be made without a [`Confinement`]. With a [`Policy`] the process is walled in: what it may read,
//! write, execute, reach and use. Without one it may do what the user may, and that takes a [`Consent`] that only the
//! user's own settings make. What a tool chooses (arguments, variables, directory) takes effect at the last exec alone:
//! the launcher's own are always the same. The policy is translated into a plan for the best [`Rung`] that the machine offers, the launcher carries the
//! plan out, and what can't be enforced is refused or named ([`Account`]). Nothing is ever left out in silence.
//!
//! Not promised: that a program which runs anyway, such as cron or a service manager, starts nothing when an unconfined
//! tool asks it to; on [`Rung::Group`], that a tool finds no other way to make its launcher fail, and the crib with it;
//! what a kernel with bugs lets through; what passes through a tunnel to a host that was granted.
//!
//! Why: `docs/design/0002-launcher.md`, `docs/design/0013-sandbox.md`.

pub mod address;
mod child;
mod command;
mod confinement;
mod connect_filter;
mod enclosure;
mod environment;
mod git_settings;
mod groups;
mod guarded;
mod host;
pub mod launcher;
mod machine;
pub mod off_limits;
mod plan;
mod policy;
mod program;
mod proxy;
mod resolved_paths;
mod resolver;
mod rung;
mod scratch;
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "no launcher for macOS uses it yet")
)]
mod seatbelt;
mod shim;
mod start;
mod survey;
mod system;
mod watch;
mod written;

pub use child::{Child, Exit, Stdin};
pub use command::{Command, StartError};
pub use confinement::{Confinement, Consent};
pub use enclosure::Account;
pub use environment::Environment;
pub use host::HostRule;
pub use machine::CannotConfine;
pub use policy::{Exec, GUARDED, Network, Policy};
pub use program::missing;
pub use proxy::Denial;
pub use rung::{Launcher, Rung};
pub use scratch::sweep_leftovers;
pub use shim::{behind, is_stand_in};
pub use survey::{Feature, Survey};
pub use system::is_never_opened;
pub use watch::{Breach, memory_of};
pub use written::Written;
