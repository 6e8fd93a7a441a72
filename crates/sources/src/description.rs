//! What reading an entry gave: what its tools are, or who has to be asked for that, whatever it is written in.

use std::path::Path;
use std::sync::Arc;

use toolcrib_core::{BoxFuture, Problem};

use crate::origin::Loaded;

/// What reading an entry of a tools folder gave.
pub enum Description {
    /// All is known.
    Known(Loaded),
    /// What is remembered of it stands, but it is asked afresh: what it says may differ from start to start.
    Remembered {
        known: Loaded,
        tool: Arc<dyn Undescribed>,
        /// What is wrong with it, whatever it says.
        problems: Vec<Problem>,
    },
    /// Its program has to be asked.
    Wanted {
        tool: Arc<dyn Undescribed>,
        /// What is wrong with it so far.
        problems: Vec<Problem>,
    },
}

/// A tool that has to be asked what it is.
pub trait Undescribed: Send + Sync {
    /// The file that the tool is told to come from.
    fn file(&self) -> Option<&Path>;

    /// Asks the program what it is, and remembers what it says.
    fn describe(&self, afterwards: Afterwards) -> BoxFuture<'_, Loaded>;

    /// What is known about it without asking, until it has answered.
    fn meanwhile(&self) -> Loaded;

    /// Asking it took too long, for this reason: it is not asked again for a while, whichever process is there.
    fn put_off(&self, why: &Problem);
}

/// What becomes of the process that was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Afterwards {
    /// It waits for the first call, which is likely to come soon.
    Stay,
    /// It ends: too many were asked to keep them all.
    End,
}

impl Description {
    /// What is known, or remembered.
    pub fn loaded(&self) -> Option<&Loaded> {
        match self {
            Description::Known(known) | Description::Remembered { known, .. } => Some(known),
            Description::Wanted { .. } => None,
        }
    }

    pub fn loaded_mut(&mut self) -> Option<&mut Loaded> {
        match self {
            Description::Known(known) | Description::Remembered { known, .. } => Some(known),
            Description::Wanted { .. } => None,
        }
    }

    /// All that is wrong, in its order.
    pub fn problems(&self) -> Vec<Problem> {
        let (so_far, known) = match self {
            Description::Known(known) => (&[][..], &known.problems[..]),
            Description::Remembered {
                known, problems, ..
            } => (&problems[..], &known.problems[..]),
            Description::Wanted { problems, .. } => (&problems[..], &[][..]),
        };
        [so_far, known].concat()
    }
}
