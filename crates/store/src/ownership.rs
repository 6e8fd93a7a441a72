//! Who can change what lies in a project: the owners of the folders that decide what runs, the groups that may write
//! there, and whether everybody may.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What decides what runs, below a project's root.
const DECISIVE: [&str; 5] = [
    ".toolcrib",
    ".toolcrib/tools",
    ".toolcrib/config.toml",
    ".venv",
    "node_modules",
];

const EVERYBODY_WRITES: u32 = 0o002;
const GROUP_WRITES: u32 = 0o020;
const STICKY: u32 = 0o1000;
/// The one user, and the one group, whom nobody needs to be protected from.
const ROOT: u32 = 0;

/// Who can change a project, or a single entry of a tools folder, as it was when it was looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ownership {
    /// User ids.
    owners: BTreeSet<u32>,
    /// May everybody write there?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    open: bool,
    /// The groups whose members may write there.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    groups: BTreeSet<u32>,
}

impl Ownership {
    /// Looks at a project's root, or at an entry, and at `further` places in it: tools folders that settings name. Links
    /// are followed: who owns what they lead to decides.
    pub fn of(path: &Path, further: &[PathBuf]) -> io::Result<Ownership> {
        let root = path.metadata()?;
        let mut found = Ownership::default();
        // Where only its owner may rename and remove a file, others can add some; below, that is enough to add a tool.
        found.add(&root, root.is_dir() && root.mode() & STICKY != 0);
        let usual = DECISIVE.iter().map(|name| path.join(name));
        // Who may write a folder on the way puts another in the place of what lies in it.
        let inside = |folder: &&Path| *folder != path && folder.starts_with(path);
        let further = further.iter().flat_map(|one| {
            let above = one.ancestors().skip(1).take_while(inside);
            [one.as_path()].into_iter().chain(above)
        });
        for place in usual.chain(further.map(Path::to_path_buf)) {
            match place.metadata() {
                Ok(meta) => found.add(&meta, false),
                Err(error) if is_absent(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    fn add(&mut self, meta: &Metadata, sticky: bool) {
        self.owners.insert(meta.uid());
        if sticky {
            return;
        }
        self.open |= meta.mode() & EVERYBODY_WRITES != 0;
        if meta.mode() & GROUP_WRITES != 0 {
            self.groups.insert(meta.gid());
        }
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
        if self.open && !then.open {
            return Some("every user of this machine may write to it".to_owned());
        }
        let mut groups = self.groups.difference(&then.groups);
        let shared = groups.find(|group| !is_private(**group, user))?;
        Some(format!(
            "others may write to it, as members of a group (gid {shared})"
        ))
    }
}

/// Is this group the user's alone? Many systems give every user one, and let it write whatever they make.
fn is_private(group: u32, user: u32) -> bool {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    group == ROOT || has_no_others(group, user, &read("/etc/passwd"), &read("/etc/group"))
}

/// By the system's lists of users and groups. A group that is in neither is taken for a user's own by its number.
fn has_no_others(group: u32, user: u32, users: &str, groups: &str) -> bool {
    let fields = |line: &'_ str| line.split(':').map(str::to_owned).collect::<Vec<_>>();
    let number = |fields: &[String], at: usize| fields.get(at)?.parse::<u32>().ok();
    let (mut name, mut is_own) = (None, group == user);
    for line in users.lines().map(fields) {
        match (number(&line, 2), number(&line, 3)) {
            (Some(id), own) if id == user => {
                is_own = own == Some(group);
                name = line.into_iter().next();
            }
            (Some(_), Some(own)) if own == group => return false,
            _ => {}
        }
    }
    let listed = groups.lines().map(fields);
    let mut members = listed
        .filter(|line| number(line, 2) == Some(group))
        .filter_map(|line| line.into_iter().nth(3));
    let is_user = |member: &str| member.is_empty() || Some(member) == name.as_deref();
    is_own && members.all(|members| members.split(',').map(str::trim).all(is_user))
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
            ..Ownership::default()
        }
    }

    #[test]
    fn a_group_is_private_when_nobody_else_is_in_it() {
        let users =
            "root:x:0:0::/root:/bin/sh\nann:x:1000:1000:::\nbob:x:1001:100:::\ncyd:x:1002:100:::\n";
        let groups = "root:x:0:\nann:x:1000:\nusers:x:100:\nwork:x:2000:ann,bob\nbob:x:1001:ann\n";
        let alone = |group, user| has_no_others(group, user, users, groups);
        assert!(alone(1000, 1000));
        assert!(!alone(100, 1001), "others have it as their own");
        assert!(!alone(2000, 1000) && !alone(1000, 1001));
        assert!(!has_no_others(1000, 1000, users, "ann:x:1000:ann,bob"));
        assert!(has_no_others(1000, 1000, users, "ann:x:1000:ann"));
        // Users whom another service knows are in neither list.
        assert!(alone(5000, 5000) && !alone(5000, 5001));
        let shared = Ownership {
            groups: BTreeSet::from([54_321]),
            ..owned(&[7], false)
        };
        assert!(shared.doubt(7).unwrap().contains("gid 54321"));
        assert_eq!(shared.change_since(&shared, 7), None);
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
        let further = [root.join("scripts/deep/tools")];
        let doubt = || Ownership::of(root, &further).unwrap().doubt(me);
        let mode = |name: &str, mode: u32| {
            std::fs::set_permissions(root.join(name), Permissions::from_mode(mode)).unwrap();
        };
        assert_eq!(doubt(), None);
        std::fs::create_dir_all(root.join(".toolcrib/tools")).unwrap();
        std::fs::write(root.join(".toolcrib/config.toml"), "").unwrap();
        assert_eq!(doubt(), None);
        for folder in ["scripts/deep/tools", ".venv", "node_modules"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        for name in [
            "",
            ".toolcrib",
            ".toolcrib/tools",
            ".toolcrib/config.toml",
            ".venv",
            "node_modules",
            "scripts",
            "scripts/deep",
            "scripts/deep/tools",
        ] {
            mode(name, 0o777);
            assert!(doubt().is_some(), "{name:?}");
            mode(name, 0o755);
            assert_eq!(doubt(), None, "{name:?}");
        }
        mode("", 0o1777);
        assert_eq!(doubt(), None);
        mode(".toolcrib/tools", 0o1777);
        assert!(doubt().is_some());
        assert!(Ownership::of(&root.join("gone"), &[]).is_err());
        let entry = root.join(".toolcrib/config.toml");
        assert_eq!(Ownership::of(&entry, &[]).unwrap(), owned(&[me], false));
    }
}
