//! What a tool's process may touch, as a policy of the sandbox: the default, and what was granted on top.

use std::collections::BTreeSet;

/// Which tools are confined. Only the user's own settings say so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walls {
    pub enabled: bool,
    /// Tools that may do what the user may, by name.
    pub off: BTreeSet<String>,
}

impl Default for Walls {
    fn default() -> Walls {
        Walls {
            enabled: true,
            off: BTreeSet::new(),
        }
    }
}
