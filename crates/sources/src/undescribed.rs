//! A tool file whose program may still have to be asked what it is, whatever language it is written in.

use std::path::Path;

use toolcrib_core::Problem;

use crate::origin::Loaded;
use crate::{executable, script};

/// What reading an entry of a tools folder gave.
pub enum Read {
    Ready(Loaded),
    /// What is remembered of it stands, but it is asked afresh: what it says may differ from start to start.
    Again(Loaded, Box<UndescribedTool>),
    /// The program has to be asked; what is wrong so far comes along.
    Pending(Box<UndescribedTool>, Vec<Problem>),
}

/// A tool that may still have to be asked what it is.
pub enum UndescribedTool {
    Program(executable::UndescribedProgram),
    Script(script::UndescribedScript),
}

/// What becomes of the process that was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Afterwards {
    /// It waits for the first call, which is likely to come soon.
    Stay,
    /// It ends: too many were asked to keep them all.
    End,
}

impl UndescribedTool {
    /// The file that the tool is told to come from.
    pub fn file(&self) -> Option<&Path> {
        match self {
            UndescribedTool::Program(draft) => draft.file(),
            UndescribedTool::Script(draft) => Some(draft.file()),
        }
    }

    /// Asks the program what it is, and remembers what it says.
    pub async fn describe(&self, afterwards: Afterwards) -> Loaded {
        match self {
            UndescribedTool::Program(draft) => draft.describe(afterwards).await,
            UndescribedTool::Script(draft) => draft.describe(afterwards).await,
        }
    }
}
