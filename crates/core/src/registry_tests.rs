//! What the registry promises about names, versions and batches.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::{Catalog, Registry};
use crate::source::{ErrorType, Problem, Rank, SourceKey, SourceKind, Update};
use crate::testing::{self, Nothing};
use crate::{Access, Tool};

impl Registry {
    fn catalog(&self) -> Arc<Catalog> {
        self.snapshot().catalog.clone()
    }
}

fn tool(name: &str, file: &str, text: &str) -> Arc<Tool> {
    let mut tool = testing::tool(name, Arc::new(Nothing));
    if !file.is_empty() {
        (tool.source, tool.file) = (SourceKind::Plugin, Some(PathBuf::from(file)));
    }
    tool.hash = text.into();
    Arc::new(tool)
}

fn part(rank: Rank, file: &str, names: &[&str]) -> Update {
    let tools = names.iter().map(|name| tool(name, file, file)).collect();
    Update {
        key: SourceKey(file.into()),
        rank,
        file: Some(file.into()),
        tools,
        problems: Vec::new(),
    }
}

fn registry() -> Registry {
    Registry::new(|| 7, testing::profiles(Duration::from_secs(1)))
}

fn names(registry: &Registry) -> Vec<String> {
    registry
        .catalog()
        .tools()
        .map(|tool| tool.name().to_owned())
        .collect()
}

#[test]
fn a_higher_folder_hides_a_lower_one_silently() {
    let registry = registry();
    registry.apply(vec![
        part(Rank::Folder(1), "/g/a.json", &["x"]),
        part(Rank::Folder(0), "/l/a.json", &["x"]),
    ]);
    let catalog = registry.catalog();
    let tool = catalog.get("x").unwrap();
    assert_eq!(tool.file.as_deref(), Some("/l/a.json".as_ref()));
    assert_eq!(tool.shadows, ["/g/a.json"]);
    assert!(catalog.problems().is_empty());
}

#[test]
fn in_one_folder_the_first_file_wins_and_the_other_is_told() {
    let registry = registry();
    registry.apply(vec![
        part(Rank::Folder(0), "/l/b.json", &["x"]),
        part(Rank::Folder(0), "/l/a.json", &["x"]),
    ]);
    let catalog = registry.catalog();
    assert_eq!(
        catalog.get("x").unwrap().file.as_deref(),
        Some("/l/a.json".as_ref())
    );
    let [problem] = catalog.problems() else {
        panic!("{:?}", catalog.problems())
    };
    assert_eq!(problem.error_type, ErrorType::NameClash);
    assert_eq!(problem.file.as_deref(), Some("/l/b.json".as_ref()));
    assert_eq!(problem.timestamp_ms, 7);
    assert!(problem.message.contains("/l/a.json"), "{}", problem.message);
}

#[test]
fn a_built_in_name_cannot_be_taken() {
    let registry = registry();
    let builtin = Update {
        tools: vec![tool("x", "", "")],
        file: None,
        ..part(Rank::Builtin, "builtin", &[])
    };
    registry.apply(vec![
        part(Rank::Folder(0), "/l/a.json", &["x", "y"]),
        builtin,
    ]);
    let catalog = registry.catalog();
    assert_eq!(catalog.get("x").unwrap().source, SourceKind::Builtin);
    assert!(catalog.get("y").is_some());
    assert!(catalog.problems()[0].message.contains("built-in"));
}

#[test]
fn only_what_a_reader_could_see_makes_a_version() {
    let registry = registry();
    let first = registry.apply(vec![part(Rank::Folder(0), "/l/a.json", &["x", "y"])]);
    assert_eq!((first.version, first.added.len()), (1, 2));
    let again = registry.apply(vec![part(Rank::Folder(0), "/l/a.json", &["x", "y"])]);
    assert_eq!((again.version, again.tools_changed()), (1, false));
    let less = registry.apply(vec![part(Rank::Folder(0), "/l/a.json", &["x"])]);
    assert_eq!((less.version, less.removed), (2, vec!["y".to_owned()]));
    let gone = registry.apply(vec![Update::gone(
        SourceKey("/l/a.json".into()),
        Rank::Folder(0),
    )]);
    assert_eq!((gone.version, gone.removed), (3, vec!["x".to_owned()]));
}

#[test]
fn a_problem_keeps_the_time_it_was_first_seen() {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NOW: AtomicU64 = AtomicU64::new(1);
    let registry = Registry::new(
        || NOW.fetch_add(1, Ordering::Relaxed),
        testing::profiles(Duration::from_secs(1)),
    );
    let broken = || Update {
        problems: vec![Problem::error(SourceKind::Plugin, ErrorType::Syntax, "no")],
        ..part(Rank::Folder(0), "/l/a.json", &[])
    };
    registry.apply(vec![broken()]);
    let change = registry.apply(vec![broken(), part(Rank::Folder(0), "/l/b.json", &["z"])]);
    assert!(change.new_problems.is_empty());
    assert_eq!(registry.catalog().problems()[0].timestamp_ms, 1);
}

#[test]
fn a_snapshot_never_changes() {
    let registry = registry();
    registry.apply(vec![part(Rank::Folder(0), "/l/a.json", &["x"])]);
    let held = registry.catalog();
    registry.apply(vec![Update::gone(
        SourceKey("/l/a.json".into()),
        Rank::Folder(0),
    )]);
    assert!(held.get("x").is_some());
    assert!(names(&registry).is_empty());
}

proptest! {
    /// Whatever the order and the grouping of updates, the end is the same catalog.
    #[test]
    fn the_catalog_depends_only_on_what_there_is(
        files in prop::collection::btree_map(0_usize..6, prop::collection::btree_set(0_usize..5, 0..4), 0..6),
        order in any::<prop::sample::Index>(),
        split in any::<bool>(),
    ) {
        let update = |(file, tools): (&usize, &BTreeSet<usize>)| {
            let names: Vec<String> = tools.iter().map(|t| format!("t{t}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            part(Rank::Folder((file % 2) as u16), &format!("/f{}/{file}.json", file % 2), &names)
        };
        let updates: Vec<Update> = files.iter().map(update).collect();
        let straight = registry();
        straight.apply(updates.clone());
        let mut turned = updates;
        if !turned.is_empty() {
            let at = order.index(turned.len());
            turned.rotate_left(at);
        }
        let other = registry();
        if split {
            turned.into_iter().for_each(|update| { other.apply(vec![update]); });
        } else {
            other.apply(turned);
        }
        let view = |registry: &Registry| -> BTreeMap<String, (Option<PathBuf>, Vec<String>)> {
            let catalog = registry.catalog();
            catalog.tools().map(|t| (t.name().to_owned(), (t.file.clone(), t.shadows.clone()))).collect()
        };
        prop_assert_eq!(view(&straight), view(&other));
        prop_assert_eq!(straight.catalog().problems().len(), other.catalog().problems().len());
        let wanted: BTreeSet<String> = files.values().flatten().map(|t| format!("t{t}")).collect();
        prop_assert_eq!(names(&straight).into_iter().collect::<BTreeSet<_>>(), wanted);
    }
}

#[test]
fn a_registered_tool_loses_its_name_to_a_file_and_is_told() {
    let registry = registry();
    let mut registered = tool("x", "", "registered").as_ref().clone();
    registered.source = SourceKind::Registered;
    let part_of = |tool: &Tool| Update {
        key: SourceKey("registered:x".into()),
        rank: Rank::Registered,
        file: None,
        tools: vec![Arc::new(tool.clone())],
        problems: Vec::new(),
    };
    registry.apply(vec![part_of(&registered)]);
    assert_eq!(names(&registry), ["x"]);
    registry.apply(vec![part(Rank::Folder(3), "/f", &["x"])]);
    let catalog = registry.catalog();
    let winner = catalog.get("x").unwrap();
    assert_eq!(winner.source, SourceKind::Plugin);
    assert!(winner.shadows.is_empty());
    let [problem] = catalog.problems() else {
        panic!("{:?}", catalog.problems());
    };
    assert_eq!(problem.source, SourceKind::Registered);
    assert_eq!(problem.error_type, ErrorType::NameClash);
    assert!(problem.message.contains("`/f`"), "{problem:?}");
    assert!(
        problem.hint.to_string().contains("toolcrib unregister x"),
        "{problem:?}"
    );
    // What waits for trust takes no name away.
    let mut waiting = part(Rank::Folder(3), "/f", &["x"]);
    let tool = Arc::make_mut(&mut waiting.tools[0]);
    tool.access = Access::untrusted("/p");
    registry.apply(vec![waiting]);
    let catalog = registry.catalog();
    assert_eq!(catalog.get("x").unwrap().source, SourceKind::Registered);
    assert!(catalog.problems().is_empty());
}
