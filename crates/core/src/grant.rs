//! Grants: a person's yes to what one tool may do beyond the default.

use std::collections::HashMap;

use crate::{Missing, Permit};

/// The origin of tools that are kept in the store.
pub const REGISTERED: &str = "registered";

/// The origin of built-in tools: nobody else has their names.
pub const BUILTIN: &str = "builtin";

/// Which versions of the tool a grant is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Binding {
    /// Only the content with this hash.
    Content(String),
    /// Whatever the tool becomes.
    Follow,
}

/// What is said when a grant is given. A tool is known by its name and its origin: one of the same name in another
/// project has nothing of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewGrant {
    pub tool: String,
    /// The absolute path of the tool's file, or [`REGISTERED`].
    pub origin: String,
    pub binding: Binding,
    pub permit: Permit,
}

/// A grant on record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    pub id: String,
    pub tool: String,
    pub origin: String,
    pub binding: Binding,
    pub permit: Permit,
    pub created_ms: u64,
}

/// All grants at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grants {
    by_tool: HashMap<(String, String), Vec<(Binding, Permit)>>,
    /// Why nobody knows what was granted, if so.
    trouble: Option<String>,
}

impl Grants {
    pub fn new(all: impl IntoIterator<Item = Grant>) -> Grants {
        let mut grants = Grants::default();
        for grant in all {
            let of_tool = grants.by_tool.entry((grant.origin, grant.tool));
            let of_tool = of_tool.or_default();
            of_tool.push((grant.binding, grant.permit));
        }
        grants
    }

    /// No grant counts, for this reason.
    pub fn unknown(reason: impl Into<String>) -> Grants {
        Grants {
            trouble: Some(reason.into()),
            ..Grants::default()
        }
    }

    /// Why nobody knows what was granted, if so.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// All that was granted to this version of this tool.
    pub fn for_tool(&self, origin: &str, name: &str, content: &str) -> Permit {
        let key = (origin.to_owned(), name.to_owned());
        joined(self.by_tool.get(&key).into_iter().flatten(), content)
    }

    /// All that was granted to other versions of this tool, and no longer counts.
    pub fn for_earlier(&self, origin: &str, name: &str, content: &str) -> Permit {
        let key = (origin.to_owned(), name.to_owned());
        let all = self.by_tool.get(&key).into_iter().flatten();
        let earlier = all.filter(|(binding, _)| match binding {
            Binding::Content(hash) => !hash.is_empty() && hash != content,
            Binding::Follow => false,
        });
        earlier.fold(Permit::default(), |all, (_, one)| all.join(one))
    }

    /// All that was granted to this version of a file, under whatever names its tools have.
    pub fn for_origin(&self, origin: &str, content: &str) -> Permit {
        let of_file = self.by_tool.iter().filter(|((file, _), _)| file == origin);
        joined(of_file.flat_map(|(_, grants)| grants), content)
    }
}

fn joined<'a>(grants: impl Iterator<Item = &'a (Binding, Permit)>, content: &str) -> Permit {
    let counts = |binding: &Binding| match binding {
        Binding::Content(hash) => !hash.is_empty() && hash == content,
        Binding::Follow => true,
    };
    grants
        .filter(|(binding, _)| counts(binding))
        .fold(Permit::default(), |all, (_, one)| all.join(one))
}

/// Why a tool may not run: what it asks for and hasn't been granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ungranted {
    /// Each entry names one need, and the flag that would help.
    pub needs: Vec<String>,
    /// Why nobody knows what was granted, if so.
    pub unknown: Option<String>,
    /// An earlier version was granted something.
    pub earlier: Option<Earlier>,
}

/// A grant that ended with an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Earlier {
    /// What the tool asks for now and was not granted then; nothing where it asks for the same.
    pub new: Vec<String>,
}

impl Ungranted {
    /// `earlier` is what other versions of the tool were granted.
    pub fn new(missing: &Missing, grants: &Grants, earlier: &Permit) -> Ungranted {
        let new = earlier.covers(&missing.0).err();
        Ungranted {
            needs: missing.needs(),
            unknown: grants.trouble.clone(),
            earlier: (!earlier.is_empty()).then(|| Earlier {
                new: new.map(|new| new.needs()).unwrap_or_default(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(tool: &str, origin: &str, binding: Binding, env: &str) -> Grant {
        Grant {
            id: String::new(),
            tool: tool.to_owned(),
            origin: origin.to_owned(),
            binding,
            permit: Permit {
                env: vec![env.to_owned()],
                ..Permit::default()
            },
            created_ms: 0,
        }
    }

    #[test]
    fn a_grant_is_for_one_tool_of_one_origin_and_one_content() {
        let content = |hash: &str| Binding::Content(hash.to_owned());
        let grants = Grants::new([
            grant("a", "/p/a", content("1"), "A"),
            grant("a", "/p/a", content("2"), "B"),
            grant("a", "/p/a", Binding::Follow, "C"),
            grant("a", "/q/a", Binding::Follow, "D"),
            grant("b", REGISTERED, content(""), "E"),
        ]);
        let of = |origin: &str, name: &str, hash: &str| grants.for_tool(origin, name, hash).env;
        assert_eq!(of("/p/a", "a", "1"), ["A", "C"]);
        assert_eq!(of("/p/a", "a", "2"), ["B", "C"]);
        assert_eq!(of("/p/a", "a", "3"), ["C"]);
        assert_eq!(of("/q/a", "a", "1"), ["D"]);
        for (origin, name, hash) in [
            ("/r/a", "a", "1"),
            (REGISTERED, "a", "1"),
            ("/p/a", "b", "1"),
            // A content that nobody knows is nobody's.
            (REGISTERED, "b", ""),
        ] {
            assert!(of(origin, name, hash).is_empty(), "{origin} {name}");
        }
        assert_eq!(Grants::unknown("away").trouble(), Some("away"));
    }
}
