//! Which files of a folder have no tool, though their names promise some: told where it lasts, and once for the folder.

use std::time::Instant;

use toolcrib_core::Problem;

use super::withheld::PROBLEM_LASTS;

/// What the catalog says about files without tools.
#[derive(Default)]
pub(super) struct WithoutTools {
    told: Vec<Problem>,
    /// When more is told, if it is still true then.
    due: Option<Instant>,
}

impl WithoutTools {
    /// What to tell the catalog, given all that is true now; nothing where it knows. Who is patient tells of more files
    /// only when that has lasted: they may be half of a save, or what imports them may come next.
    pub fn news(&mut self, now: Vec<Problem>, patient: bool) -> Option<Vec<Problem>> {
        let more = now.iter().any(|problem| !self.told.contains(problem));
        if now == self.told {
            self.due = None;
            return None;
        }
        if more && patient {
            let due = *self
                .due
                .get_or_insert_with(|| Instant::now() + PROBLEM_LASTS);
            if Instant::now() < due {
                return None;
            }
        }
        self.due = None;
        self.told.clone_from(&now);
        Some(now)
    }

    pub fn due(&self) -> Option<Instant> {
        self.due
    }
}
