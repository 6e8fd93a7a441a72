//! Who can change what lies in a project: the owners of the folders that decide what runs, and whether everybody may
//! write there.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// What decides what runs, below a project's root.
const DECISIVE: [&str; 3] = [".toolcrib", ".toolcrib/tools", ".toolcrib/config.toml"];

const EVERYBODY_WRITES: u32 = 0o002;
const STICKY: u32 = 0o1000;
/// The one user whom nobody needs to be protected from.
const ROOT: u32 = 0;

/// Who can change a project, or a single entry of a tools folder, as it was when it was looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ownership {
    /// User ids.
    owners: BTreeSet<u32>,
    /// May everybody write there?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    open: bool,
}

impl Ownership {
    /// Looks at a project's root, or at an entry. Links are followed: who owns what they lead to decides.
    pub fn of(path: &Path) -> io::Result<Ownership> {
        let root = path.metadata()?;
        // Where only its owner may rename and remove a file, others can add some; below, that is enough to add a tool.
        let mut found = Ownership {
            owners: BTreeSet::from([root.uid()]),
            open: everybody_writes(&root) && !(root.is_dir() && root.mode() & STICKY != 0),
        };
        for name in DECISIVE {
            match path.join(name).metadata() {
                Ok(meta) => {
                    found.owners.insert(meta.uid());
                    found.open |= everybody_writes(&meta);
                }
                Err(error) if is_absent(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// Why this user should think twice, if so: somebody else can change what would run as them.
    pub fn doubt(&self, user: u32) -> Option<String> {
        self.change_since(&Ownership::default(), user)
    }

    /// What is so now and was not when yes was said, if anything.
    pub fn change_since(&self, then: &Ownership, user: u32) -> Option<String> {
        let known = |owner: &u32| *owner == user || *owner == ROOT || then.owners.contains(owner);
        if let Some(owner) = self.owners.iter().find(|owner| !known(owner)) {
            return Some(format!(
                "it belongs, as a whole or in part, to another user (uid {owner})"
            ));
        }
        (self.open && !then.open).then(|| "every user of this machine may write to it".to_owned())
    }
}

fn everybody_writes(meta: &Metadata) -> bool {
    meta.mode() & EVERYBODY_WRITES != 0
}

/// An entry that is a file has nothing below it.
fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn owned(owners: &[u32], open: bool) -> Ownership {
        Ownership {
            owners: owners.iter().copied().collect(),
            open,
        }
    }

    #[test]
    fn what_belongs_to_the_user_or_to_root_is_beyond_doubt() {
        assert_eq!(owned(&[7], false).doubt(7), None);
        assert_eq!(owned(&[0, 7], false).doubt(7), None);
        let doubt = owned(&[7, 8], false).doubt(7).unwrap();
        assert!(doubt.contains("uid 8"), "{doubt}");
        assert!(owned(&[7], true).doubt(7).is_some());
    }

    #[test]
    fn a_yes_to_one_owner_is_none_to_another() {
        let then = owned(&[8], false);
        assert_eq!(owned(&[8], false).change_since(&then, 7), None);
        assert_eq!(owned(&[7, 8], false).change_since(&then, 7), None);
        assert!(owned(&[9], false).change_since(&then, 7).is_some());
        assert!(owned(&[8], true).change_since(&then, 7).is_some());
        assert_eq!(owned(&[8], true).change_since(&owned(&[8], true), 7), None);
    }

    #[test]
    fn what_decides_what_runs_is_looked_at() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let me = root.metadata().unwrap().uid();
        let doubt = || Ownership::of(root).unwrap().doubt(me);
        let mode = |name: &str, mode: u32| {
            std::fs::set_permissions(root.join(name), Permissions::from_mode(mode)).unwrap();
        };
        assert_eq!(doubt(), None);
        std::fs::create_dir_all(root.join(".toolcrib/tools")).unwrap();
        std::fs::write(root.join(".toolcrib/config.toml"), "").unwrap();
        assert_eq!(doubt(), None);
        for name in ["", ".toolcrib", ".toolcrib/tools", ".toolcrib/config.toml"] {
            mode(name, 0o777);
            assert!(doubt().is_some(), "{name:?}");
            mode(name, 0o755);
            assert_eq!(doubt(), None, "{name:?}");
        }
        mode("", 0o1777);
        assert_eq!(doubt(), None);
        mode(".toolcrib/tools", 0o1777);
        assert!(doubt().is_some());
        assert!(Ownership::of(&root.join("gone")).is_err());
        let entry = root.join(".toolcrib/config.toml");
        assert_eq!(Ownership::of(&entry).unwrap(), owned(&[me], false));
    }
}
