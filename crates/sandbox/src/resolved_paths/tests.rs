//! Tests of what a policy comes to on a disk that the test has made.

use super::*;
use std::os::unix::fs::symlink;

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        for folder in ["project/.git/hooks", "project/src", "secret", "tool"] {
            std::fs::create_dir_all(place.at(folder)).unwrap();
        }
        std::fs::write(place.at("project/readme"), "").unwrap();
        place
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(path)
    }

    fn ground(&self, change: impl FnOnce(&mut Policy)) -> Result<ResolvedPaths, CannotConfine> {
        let mut policy = Policy::default_for(&self.at("tool"), Some(&self.at("project")));
        change(&mut policy);
        let program = Unfolded {
            file: "/bin/sh".into(),
            argv: Vec::new(),
            scripts: Vec::new(),
        };
        ResolvedPaths::of(&policy, &program, None)
    }

    fn shown(&self, spots: &[Spot]) -> Vec<String> {
        let root = self.at("");
        spots
            .iter()
            .filter_map(|spot| Some(spot.path.strip_prefix(&root).ok()?.display().to_string()))
            .collect()
    }
}

#[test]
fn nothing_is_written_by_default() {
    let place = Place::new();
    let ground = place.ground(|_| {}).unwrap();
    assert_eq!(place.shown(&ground.read), ["project", "tool"]);
    assert!(ground.write.is_empty() && ground.protect.is_empty() && ground.entries.is_empty());
    assert!(
        ground
            .read
            .iter()
            .any(|spot| spot.path == Path::new("/usr"))
    );
    assert!(ground.program.is_absolute() && ground.loader.is_some());
}

#[test]
fn a_written_project_keeps_what_is_executed_later() {
    let place = Place::new();
    let ground = place
        .ground(|policy| policy.write.push(place.at("project")))
        .unwrap();
    assert_eq!(place.shown(&ground.write), ["project"]);
    assert_eq!(place.shown(&ground.protect), ["project/.git"]);
    assert_eq!(ground.missing, [place.at("project/.toolcrib")]);
    let mut entries = place.shown(&ground.entries);
    entries.sort();
    assert_eq!(entries, ["project/readme", "project/src"]);
    assert_eq!(
        place.shown(&ground.read),
        ["tool"],
        "what is written is read"
    );
}

#[test]
fn what_is_granted_by_its_own_path_is_written() {
    let place = Place::new();
    let ground = place
        .ground(|policy| policy.write = vec![place.at("project"), place.at("project/.git/hooks")])
        .unwrap();
    assert_eq!(
        place.shown(&ground.write),
        ["project", "project/.git/hooks"]
    );
    assert!(
        place
            .shown(&ground.entries)
            .contains(&"project/.git/hooks".to_owned())
    );
    let ground = place
        .ground(|policy| policy.write = vec![place.at("project"), place.at("project/.git")])
        .unwrap();
    assert!(ground.protect.is_empty());
}

#[test]
fn links_are_followed_and_noted_but_widen_nothing() {
    let place = Place::new();
    symlink("project", place.at("alias")).unwrap();
    let ground = place
        .ground(|policy| policy.read.push(place.at("alias/src")))
        .unwrap();
    let told = place.ground(|policy| policy.granted.push(place.at("alias/src")));
    assert!(told.unwrap_err().reason.contains("no longer the place"));
    assert_eq!(
        ground.links.get(&place.at("alias")),
        Some(&"project".into())
    );
    assert_eq!(place.shown(&ground.read), ["project", "tool"]);

    symlink(place.at("secret"), place.at("project/out")).unwrap();
    let told = place
        .ground(|policy| policy.read.push(place.at("project/out")))
        .unwrap_err();
    assert!(told.reason.contains("leads out of"), "{told}");
    let ground = place
        .ground(|policy| policy.write.push(place.at("project")))
        .unwrap();
    assert!(!place.shown(&ground.entries).contains(&"secret".to_owned()));
}

#[test]
fn what_can_not_be_is_refused() {
    let place = Place::new();
    for path in ["/", "/proc/1", "/sys", "/tmp", "relative", "/usr/../etc"] {
        let told = place
            .ground(|policy| policy.read.push(path.into()))
            .unwrap_err();
        assert!(told.reason.contains(path), "{told}");
        let told = place.ground(|policy| policy.granted.push(path.into()));
        assert!(told.is_err(), "{path}");
    }
    let told = place.ground(|policy| {
        policy.write.push(place.at("project"));
        policy.never.push(place.at("project"));
    });
    assert!(told.unwrap_err().reason.contains("decides about tools"));
    // Who writes beside a database writes it.
    std::fs::create_dir(place.at("project/src/data")).unwrap();
    let told = |written: &str| {
        place.ground(|policy| {
            policy.write.push(place.at(written));
            policy.records.push(place.at("project/src/records.db"));
        })
    };
    for written in ["project", "project/src"] {
        let told = told(written).unwrap_err();
        assert!(told.reason.contains("decides about tools"), "{told}");
    }
    assert!(told("project/src/data").is_ok());
}

#[test]
fn what_is_not_there_is_left_out_but_a_link_to_nowhere_is_refused() {
    let place = Place::new();
    let missing = place.at("missing");
    let ground = place
        .ground(|policy| {
            policy.read.push(missing.clone());
            policy.granted.push(missing.clone());
            policy.write.push(missing.clone());
        })
        .unwrap();
    assert_eq!(place.shown(&ground.read), ["project", "tool"]);
    assert!(ground.write.is_empty());
    symlink("nowhere", &missing).unwrap();
    assert!(
        place
            .ground(|policy| policy.write.push(missing.clone()))
            .is_err()
    );
}

#[test]
fn repositories_deep_in_every_writable_folder_are_kept_and_so_is_the_way_to_them() {
    let place = Place::new();
    for folder in ["project/a/b/.git", "data/x/node_modules/y", "data/z"] {
        std::fs::create_dir_all(place.at(folder)).unwrap();
    }
    let ground = place
        .ground(|policy| policy.write = vec![place.at("data"), place.at("project")])
        .unwrap();
    let kept = ["data/x/node_modules", "project/.git", "project/a/b/.git"];
    assert_eq!(place.shown(&ground.protect), kept);
    let between = ["data/x", "project/a", "project/a/b"].map(|path| place.at(path));
    assert_eq!(ground.between, between);
    let mut entries = place.shown(&ground.entries);
    entries.sort();
    assert_eq!(entries, ["data/z", "project/readme", "project/src"]);
    // By that very path it may be written.
    let ground = place
        .ground(|policy| {
            policy.write = vec![place.at("data"), place.at("data/x/node_modules")];
            policy.keep.push(place.at("data/z"));
        })
        .unwrap();
    assert_eq!(place.shown(&ground.protect), ["data/z"]);
}

#[test]
fn nothing_inside_of_what_is_kept_is_opened_on_the_way_to_something_else() {
    let place = Place::new();
    for folder in ["lib/deep", "data/x/.git"] {
        std::fs::create_dir_all(place.at("project/.toolcrib").join(folder)).unwrap();
    }
    let module = place.at("project/.toolcrib/lib/deep/mod.py");
    std::fs::write(&module, "").unwrap();
    let keeping = |policy: &mut Policy| {
        policy.write.push(place.at("project"));
        policy.keep.push(module.clone());
    };
    let ground = place.ground(keeping).unwrap();
    assert_eq!(ground.between, [] as [PathBuf; 0]);
    // What is granted in there is a root of its own.
    let ground = place.ground(|policy| {
        keeping(policy);
        policy.write.push(place.at("project/.toolcrib/data"));
    });
    let (ground, data) = (ground.unwrap(), "project/.toolcrib/data");
    assert_eq!(ground.between, [place.at(data).join("x")]);
    // Nor is what is kept in there written where nothing is mounted.
    let opened = place.shown(&ground.entries);
    assert!(
        !opened
            .iter()
            .any(|path| path == data || path.contains(".git")),
        "{opened:?}"
    );
}

#[test]
fn a_link_that_is_executed_later_is_kept_with_what_it_leads_to() {
    let place = Place::new();
    std::fs::create_dir_all(place.at("project/venvs/one")).unwrap();
    symlink("venvs/one", place.at("project/.venv")).unwrap();
    let ground = place
        .ground(|policy| policy.write.push(place.at("project")))
        .unwrap();
    assert_eq!(ground.linked, [place.at("project/.venv")]);
    let kept = ["project/.git", "project/venvs/one"];
    assert_eq!(place.shown(&ground.protect), kept);
}
