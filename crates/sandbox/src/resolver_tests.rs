//! What belongs to a program, and trees of all shapes in which nothing outside is ever opened.

use std::os::unix::fs::{PermissionsExt, symlink};

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::policy::Policy;
use crate::program::Unfolded;
use crate::resolved_paths::ResolvedPaths;

struct World(tempfile::TempDir);

impl World {
    fn new() -> World {
        World(tempfile::tempdir().unwrap())
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(path)
    }

    fn file(&self, path: &str) -> PathBuf {
        let path = self.at(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "").unwrap();
        if path.parent().unwrap().ends_with("bin") {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        path
    }

    /// What belongs to a program, with a home and a project in it.
    fn of(&self, program: &Path) -> Vec<String> {
        let (home, project) = (self.at("home"), self.at("home/project"));
        let mut resolver = Resolver::new(Some(&home), Some(&project));
        let spots = resolver.program(program);
        let mut names: Vec<String> = spots
            .iter()
            .filter_map(|spot| spot.path.strip_prefix(self.at("")).ok())
            .map(|path| path.display().to_string())
            .collect();
        names.sort();
        names.dedup();
        names
    }
}

#[test]
fn a_prefix_belongs_to_its_program_and_a_home_does_not() {
    let world = World::new();
    let python = world.file("home/.pyenv/versions/3/bin/python3");
    world.file("home/.pyenv/versions/3/lib/python3.1/os.py");
    world.file("home/.local/share/keyrings/secret");
    world.file("home/.local/lib/python3.1/x");
    world.file("home/lib/python3.1/x");
    let base = [
        "home/.pyenv/versions/3/bin",
        "home/.pyenv/versions/3/bin/python3",
        "home/.pyenv/versions/3/lib",
    ];
    assert_eq!(world.of(&python), base);
    assert_eq!(world.of(&world.file("home/bin/tool")), ["home/bin/tool"]);
    assert_eq!(
        world.of(&world.file("home/.local/bin/tool")),
        ["home/.local/bin", "home/.local/bin/tool", "home/.local/lib"]
    );
    let venv = world.file("home/project/.venv/bin/python");
    let cfg = world.file("home/project/.venv/pyvenv.cfg");
    let line = format!("home = {}\n", python.parent().unwrap().display());
    std::fs::write(cfg, line).unwrap();
    let found = world.of(&venv);
    let environment = ["home/project/.venv/bin", "home/project/.venv/pyvenv.cfg"];
    for name in base.iter().chain(&environment) {
        assert!(found.contains(&(*name).to_owned()), "{name} in {found:?}");
    }
}

#[test]
fn a_folder_in_a_home_that_only_has_a_bin_has_no_libraries() {
    let world = World::new();
    let program = world.file("home/other/bin/run");
    world.file("home/other/lib/secret.rb");
    assert_eq!(world.of(&program), ["home/other/bin/run"]);
    // What is the project's own is read anyway.
    let program = world.file("home/project/bin/run");
    world.file("home/project/lib/x");
    let found = world.of(&program);
    assert!(found.contains(&"home/project/lib".to_owned()), "{found:?}");
}

#[test]
fn links_out_of_a_prefix_are_not_followed() {
    let world = World::new();
    world.file("home/.ssh/id");
    world.file("home/.ssh/lib/python3.1/x");
    let link = |from: &str, to: PathBuf| {
        std::fs::create_dir_all(world.at(from).parent().unwrap()).unwrap();
        symlink(to, world.at(from)).unwrap();
    };
    let ssh = world.at("home/.ssh");
    let one = world.file("home/project/tool/bin/run");
    for name in [
        "lib", "lib64", "share", "opt", "include", "libexec", "Cellar",
    ] {
        link(&format!("home/project/tool/{name}"), ssh.clone());
    }
    link("home/project/tool/pyvenv.cfg", ssh.join("id"));
    // By way of a second link, and of a venv that names a base of the same kind.
    let two = world.file("home/project/.venv/bin/python");
    world.file("home/project/base/bin/python3");
    link("home/project/base/lib", ssh.clone());
    link("home/project/.venv/lib", world.at("home/project/base/lib"));
    let cfg = world.file("home/project/.venv/pyvenv.cfg");
    let line = format!("home = {}\n", world.at("home/project/base/bin").display());
    std::fs::write(cfg, line).unwrap();
    // A prefix that is itself a link to a home.
    link("home/project/whole", world.at("home"));
    world.file("home/bin/run");
    world.file("home/lib/python3.1/x");
    let three = world.at("home/project/whole/bin/run");
    for program in [one, two, three] {
        let found = world.of(&program);
        assert!(!found.iter().any(|path| path.contains(".ssh")), "{found:?}");
        assert!(!found.contains(&"home/lib".to_owned()), "{found:?}");
    }
}

#[test]
fn a_pipe_in_place_of_a_settings_file_makes_nobody_wait() {
    let world = World::new();
    let pipe = world.at("pyvenv.cfg");
    #[expect(
        clippy::disallowed_methods,
        reason = "a pipe has to be made, no tool runs"
    )]
    let mut mkfifo = std::process::Command::new("mkfifo");
    assert!(mkfifo.arg(&pipe).status().unwrap().success());
    assert_eq!(read_small(&pipe), None);
    assert_eq!(system::base_of_environment(&world.at("")), None);
    let large = world.file("large");
    std::fs::write(&large, "x".repeat(1 << 20)).unwrap();
    assert_eq!(read_small(&large).unwrap().len(), SMALL as usize);
}

/// One change of a tree, by indexes into lists of places.
#[derive(Debug, Clone)]
enum Change {
    Folder(usize),
    File(usize),
    Program(usize),
    Link(usize, usize),
    Environment(usize, usize),
    Rename(usize, usize),
}

/// Places in the project and the tool that an attacker makes.
const INSIDE: [&str; 22] = [
    "home/project/a",
    "home/project/a/b",
    "home/project/a/bin",
    "home/project/a/bin/run",
    "home/project/a/lib",
    "home/project/a/share",
    "home/project/a/pyvenv.cfg",
    "home/project/.venv",
    "home/project/.venv/bin",
    "home/project/.venv/bin/python",
    "home/project/.venv/lib",
    "home/project/.venv/lib64",
    "home/project/.venv/pyvenv.cfg",
    "home/project/sub/.git",
    "home/project/sub/deep/.git",
    "home/project/bin",
    "home/project/bin/run",
    "home/project/lib",
    "home/tool/bin/run",
    "home/tool/lib",
    "home/tool/opt",
    "home/project/node_modules",
];
/// Where links lead.
const TARGETS: [&str; 16] = [
    "home",
    "home/.ssh",
    "home/.ssh/lib",
    "home/.ssh/bin/run",
    "home/.ssh/id",
    "home/secret",
    "home/secret/bin",
    "home/secret/lib",
    "",
    "home/project",
    "home/project/a",
    "home/project/.venv",
    "home/project/sub",
    "home/tool",
    "home/project/a/lib",
    "home/project/bin/run",
];
/// Programs that are started.
const PROGRAMS: [&str; 5] = [
    "home/project/a/bin/run",
    "home/project/.venv/bin/python",
    "home/project/bin/run",
    "home/tool/bin/run",
    "/bin/sh",
];

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let place = 0..INSIDE.len();
    let one = prop_oneof![
        place.clone().prop_map(Change::Folder),
        place.clone().prop_map(Change::File),
        place.clone().prop_map(Change::Program),
        (place.clone(), 0..TARGETS.len()).prop_map(|(at, to)| Change::Link(at, to)),
        (place.clone(), 0..TARGETS.len()).prop_map(|(at, to)| Change::Environment(at, to)),
        (place.clone(), place).prop_map(|(from, to)| Change::Rename(from, to)),
    ];
    vec(one, 0..24)
}

/// Does what can be done; what can't is left. No change touches anything behind a link.
fn make(world: &World, change: &Change) {
    let inside = |index: usize| world.at(INSIDE[index]);
    let ready = |path: &Path| {
        let root = [world.at("home/project"), world.at("home/tool")];
        let parent = path.parent().unwrap();
        let _ = std::fs::create_dir_all(parent);
        let real = parent.canonicalize().unwrap_or_default();
        root.iter().any(|root| real.starts_with(root))
    };
    match change {
        Change::Folder(at) if ready(&inside(*at)) => drop(std::fs::create_dir(inside(*at))),
        Change::File(at) if ready(&inside(*at)) => {
            drop(std::fs::File::create_new(inside(*at)));
        }
        Change::Program(at)
            if ready(&inside(*at)) && std::fs::File::create_new(inside(*at)).is_ok() =>
        {
            let mode = std::fs::Permissions::from_mode(0o755);
            drop(std::fs::set_permissions(inside(*at), mode));
        }
        Change::Link(at, to) if ready(&inside(*at)) => {
            drop(symlink(world.at(TARGETS[*to]), inside(*at)));
        }
        Change::Environment(at, to) if ready(&inside(*at)) => {
            let line = format!("home = {}/bin\n", world.at(TARGETS[*to]).display());
            if let Ok(mut file) = std::fs::File::create_new(inside(*at).join("pyvenv.cfg")) {
                drop(std::io::Write::write_all(&mut file, line.as_bytes()));
            }
        }
        Change::Rename(from, to) if ready(&inside(*from)) && ready(&inside(*to)) => {
            drop(std::fs::rename(inside(*from), inside(*to)));
        }
        _ => {}
    }
}

fn canaries(world: &World) -> Vec<PathBuf> {
    world.file("home/.ssh/id");
    world.file("home/.ssh/lib/key");
    world.file("home/secret/lib/node_modules/key");
    world.file("home/secret/notes");
    for program in ["home/.ssh/bin/run", "home/secret/bin/python3"] {
        world.file(program);
    }
    for folder in ["home/project", "home/tool"] {
        std::fs::create_dir_all(world.at(folder)).unwrap();
    }
    [
        "home/.ssh/id",
        "home/.ssh/lib/key",
        "home/secret/notes",
        "home",
    ]
    .map(|path| world.at(path))
    .to_vec()
}

fn ground(world: &World, program: &str, policy: &Policy) -> Option<ResolvedPaths> {
    let file = match program.starts_with('/') {
        true => PathBuf::from(program),
        false => world.at(program),
    };
    let program = Unfolded {
        file,
        argv: Vec::new(),
        scripts: Vec::new(),
    };
    ResolvedPaths::of(policy, &program, Some(&world.at("home"))).ok()
}

/// A folder named `lib` of an installation with a program in its `bin` belongs to that program; the rest of it doesn't.
fn is_shown(ground: &ResolvedPaths, canary: &Path) -> bool {
    let spots = ground
        .read
        .iter()
        .chain(&ground.write)
        .chain(&ground.entries);
    let mut paths = spots.map(|spot| spot.path.as_path());
    paths.any(|path| canary.starts_with(path))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever a project and a tool are made of, nothing outside is opened by a policy that names only them.
    #[test]
    fn no_tree_opens_what_lies_outside(changes in changes(), program in 0..PROGRAMS.len()) {
        let world = World::new();
        let canaries = canaries(&world);
        changes.iter().for_each(|change| make(&world, change));
        let policy = Policy::default_for(&world.at("home/tool"), Some(&world.at("home/project")));
        if let Some(ground) = ground(&world, PROGRAMS[program], &policy) {
            for canary in &canaries {
                prop_assert!(!is_shown(&ground, canary), "{canary:?} in {:?}", ground.read);
            }
        }
    }

    /// What was granted once stays that place: later changes of the tree move it nowhere.
    #[test]
    fn a_grant_never_moves(
        before in changes(),
        after in changes(),
        granted in 0..INSIDE.len(),
        written: bool,
    ) {
        let world = World::new();
        let canaries = canaries(&world);
        before.iter().for_each(|change| make(&world, change));
        let place = world.at(INSIDE[granted]);
        // Granted as it was then: the place it led to, if that lay in the project or the tool.
        let Ok(place) = place.canonicalize() else { return Ok(()) };
        let own = [world.at("home/project"), world.at("home/tool")];
        prop_assume!(own.iter().any(|own| place.starts_with(own)));
        after.iter().for_each(|change| make(&world, change));
        let mut policy = Policy::default_for(&world.at("home/tool"), Some(&world.at("home/project")));
        match written {
            true => policy.write.push(place.clone()),
            false => policy.granted.push(place.clone()),
        }
        if let Some(ground) = ground(&world, "/bin/sh", &policy) {
            for canary in &canaries {
                prop_assert!(!is_shown(&ground, canary), "{canary:?} by {place:?}");
            }
            // What is executed later stays unwritten, however deep, unless it was granted itself.
            for spot in &ground.entries {
                let names = spot.path.strip_prefix(world.at("")).unwrap().components();
                let mut guarded = names.filter(|name| crate::GUARDED.iter().any(|one| name.as_os_str() == *one));
                prop_assert!(guarded.next().is_none() || spot.path.starts_with(&place), "{spot:?}");
            }
        }
    }
}
