//! What a look at a folder promises: only what changed is opened, loaded and kept.

use std::cell::Cell;
use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use notify::{EventKind, RecursiveMode, Watcher};

use toolcrib_core::{Access, Scope, Severity, Update};

use super::compare::Reread;
use super::look::{Look, WatchedFolder};
use super::{Folder, LastGood, Needs};
use crate::testing::place;

/// Writes down what it is asked.
#[derive(Default)]
struct AskedFiles(Mutex<Vec<String>>);

impl AskedFiles {
    fn note(&self, what: &str, file: &str) {
        self.0.lock().unwrap().push(format!("{what} {file}"));
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl LastGood for AskedFiles {
    fn read(&self, _: &Path, file: &str) -> Option<Vec<u8>> {
        self.note("read", file);
        None
    }

    fn keep(&self, _: &Path, texts: &[(String, Vec<u8>)]) {
        texts.iter().for_each(|(file, _)| self.note("keep", file));
    }

    fn forget(&self, _: &Path, files: &[String]) {
        files.iter().for_each(|file| self.note("forget", file));
    }

    fn retain(&self, _: &Path, files: &[String]) {
        self.note("retain", &files.join(","));
    }
}

struct Scene {
    _dir: tempfile::TempDir,
    shelf: WatchedFolder,
    needs: Needs,
    asked: Arc<AskedFiles>,
}

fn scene(access: Access) -> Scene {
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder {
        path: dir.path().canonicalize().unwrap(),
        scope: Scope::Local,
        rank: 0,
        access,
        trusted: Vec::new(),
        programs: true,
    };
    let asked = Arc::<AskedFiles>::default();
    Scene {
        _dir: dir,
        shelf: WatchedFolder::new(Arc::new(folder)),
        needs: Needs {
            place: place(None),
            last_good: asked.clone(),
            patient: false,
        },
        asked,
    }
}

impl Scene {
    fn path(&self, name: &str) -> PathBuf {
        self.shelf.folder.path.join(name)
    }

    /// Writes a file that looks as if it had been there for a while.
    fn write(&self, name: &str, word: &str) {
        let text = format!(
            r#"{{"name": "test", "tools": [{{"name": "{name}", "description": "A tool",
                "inputSchema": {{"type": "object"}}, "handler": {{"type": "shell", "command": "echo {word}"}}}}]}}"#
        );
        let path = self.path(&format!("{name}.json"));
        std::fs::write(&path, text).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(10))
            .unwrap();
    }

    /// The names of the files that gave an update.
    fn look(&mut self, reread: &Reread) -> Vec<String> {
        let Look {
            updates, memory, ..
        } = self.shelf.look(reread, &self.needs);
        memory.store(self.asked.as_ref());
        let name = |update: &Update| update.key.0.rsplit('/').next().unwrap().to_owned();
        updates.iter().map(name).collect()
    }
}

/// Hears which files are opened, the way the kernel tells it.
struct Opens {
    heard: Receiver<PathBuf>,
    asked: Cell<u32>,
    _watcher: notify::RecommendedWatcher,
}

impl Opens {
    fn of(folder: &Path) -> Opens {
        let (tell, heard) = channel();
        let mut watcher =
            notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
                let event = event.unwrap();
                if matches!(event.kind, EventKind::Access(_)) {
                    event.paths.into_iter().for_each(|path| {
                        let _ = tell.send(path);
                    });
                }
            })
            .unwrap();
        watcher.watch(folder, RecursiveMode::NonRecursive).unwrap();
        Opens {
            heard,
            asked: Cell::new(0),
            _watcher: watcher,
        }
    }

    /// Every file that was opened until now.
    fn so_far(&self, folder: &Path) -> HashSet<String> {
        // Events come in order: once this one is heard, all earlier ones were.
        self.asked.set(self.asked.get() + 1);
        let last = folder.join(format!("last-{}", self.asked.get()));
        File::create(&last).unwrap();
        let mut opened = HashSet::new();
        loop {
            let path = self.heard.recv_timeout(Duration::from_secs(10)).unwrap();
            if path == last {
                return opened;
            }
            let name = path.file_name().unwrap().to_str().unwrap();
            if path != folder && !name.starts_with("last-") {
                opened.insert(name.to_owned());
            }
        }
    }
}

#[test]
fn only_what_changed_is_opened_again() {
    let mut scene = scene(Access::Open);
    for name in ["a", "b", "c"] {
        scene.write(name, "one");
    }
    assert_eq!(scene.look(&Reread::Nothing), ["a.json", "b.json", "c.json"]);
    let folder = scene.shelf.folder.path.clone();
    let opens = Opens::of(&folder);
    assert!(scene.look(&Reread::Nothing).is_empty());
    assert_eq!(opens.so_far(&folder), HashSet::new());

    scene.write("b", "two");
    opens.so_far(&folder);
    assert_eq!(scene.look(&Reread::Nothing), ["b.json"]);
    assert_eq!(opens.so_far(&folder), HashSet::from(["b.json".to_owned()]));

    // What was heard of is opened, but the same text is not loaded again.
    let heard = Reread::Paths(HashSet::from([scene.path("c.json")]));
    assert!(scene.look(&heard).is_empty());
    let opened = opens.so_far(&folder);
    assert!(
        opened.contains("c.json") && !opened.contains("a.json"),
        "{opened:?}"
    );
}

#[test]
fn only_what_changed_is_kept_and_what_is_gone_is_forgotten() {
    let mut scene = scene(Access::Open);
    scene.write("a", "one");
    scene.write("b", "one");
    scene.look(&Reread::Nothing);
    assert_eq!(
        scene.asked.take(),
        ["retain a.json,b.json", "keep a.json", "keep b.json"]
    );
    scene.look(&Reread::All);
    assert!(scene.asked.take().is_empty());
    scene.write("b", "two");
    std::fs::remove_file(scene.path("a.json")).unwrap();
    assert_eq!(scene.look(&Reread::Nothing), ["a.json", "b.json"]);
    assert_eq!(scene.asked.take(), ["forget a.json", "keep b.json"]);
}

#[test]
fn nothing_stands_in_for_an_untrusted_projects_files() {
    let mut scene = scene(Access::Open);
    let project = scene.shelf.folder.path.clone();
    Arc::make_mut(&mut scene.shelf.folder).access = Access::untrusted(project);
    scene.write("a", "one");
    std::fs::write(scene.path("b.json"), "{ nonsense").unwrap();
    scene.look(&Reread::Nothing);
    assert_eq!(scene.asked.take(), ["retain "]);
}

#[test]
fn of_an_untrusted_project_no_more_is_read_than_a_scan_may_cost() {
    let mut scene = scene(Access::Open);
    let project = scene.shelf.folder.path.clone();
    // 20 MiB in all, cheap to read.
    let text = format!("#{}\n", " ".repeat((1 << 20) - 10));
    for number in 10..30 {
        std::fs::write(scene.path(&format!("{number}.py")), &text).unwrap();
    }
    let mut problems = |access: Access| {
        scene.shelf = WatchedFolder::new(Arc::new(Folder {
            access,
            ..Folder::clone(&scene.shelf.folder)
        }));
        let look = scene.shelf.look(&Reread::Nothing, &scene.needs);
        let problems = look.updates.into_iter().flat_map(|update| update.problems);
        let refused = problems.filter(|problem| problem.severity == Severity::Error);
        refused.collect::<Vec<_>>()
    };
    assert_eq!(problems(Access::Open), []);
    let found = problems(Access::untrusted(project));
    assert_eq!(found.len(), 4, "{found:?}");
    let first = &found[0];
    assert!(first.file.as_deref().unwrap().ends_with("26.py"));
    assert!(first.message.contains("16777216 bytes"), "{first:?}");
    assert!(first.hint.to_string().contains("toolcrib trust"));
}

#[test]
fn a_second_change_within_one_tick_of_the_clock_is_not_missed() {
    let mut scene = scene(Access::Open);
    scene.write("a", "one");
    let path = scene.path("a.json");
    let now = SystemTime::now();
    let stamp = |path: &Path| {
        let file = File::options().write(true).open(path).unwrap();
        file.set_modified(now).unwrap();
    };
    stamp(&path);
    assert_eq!(scene.look(&Reread::Nothing), ["a.json"]);
    // As long, at the same time, in the same inode: only the text tells.
    scene.write("a", "two");
    stamp(&path);
    assert_eq!(scene.look(&Reread::Nothing), ["a.json"]);
}

#[test]
fn a_folder_that_is_home_or_leads_out_is_neither_walked_nor_watched() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("x.json"), "{ nonsense").unwrap();
    let project = tempfile::tempdir().unwrap();
    let root = project.path().canonicalize().unwrap();
    let link = root.join("tools");
    for target in [Path::new("/"), outside.path()] {
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(target, &link).unwrap();
        let mut scene = scene(Access::Open);
        scene.shelf = WatchedFolder::new(Arc::new(Folder {
            path: link.clone(),
            scope: Scope::Local,
            rank: 0,
            access: Access::untrusted(root.clone()),
            trusted: Vec::new(),
            programs: true,
        }));
        assert!(!scene.shelf.may_be_watched(&scene.needs.place));
        assert_eq!(scene.look(&Reread::Nothing), ["tools"]);
        assert_eq!(scene.asked.take(), Vec::<String>::new());
    }
}
