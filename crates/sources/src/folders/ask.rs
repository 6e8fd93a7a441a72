//! The fifth step: asks programs what they are, a few at a time, and gathers what they say.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::Instant;
use toolcrib_core::{Access, ErrorType, Problem, Severity, SourceKind, Tool};

use super::Needs;
use super::draft::{Draft, once_good};
use super::last_good::{may_stand_in, stand_in};
use crate::description::{Afterwards, Description, Undescribed};
use crate::examples;
use crate::origin::Loaded;

/// How many programs are asked at once what they are.
const ASKED_AT_ONCE: usize = 4;
/// Where more than these are to be asked, none of them stays.
const STAYING: usize = 16;
/// While others are still asked, answers are gathered for this long: many answers are not as many catalogs.
const GATHERED_FOR: Duration = Duration::from_millis(50);

/// Asking that took longer than this and failed is put off for a while.
const LONG: Duration = Duration::from_secs(2);
/// How long an answer is waited for when a newer version is there to be asked.
const OUTDONE: Duration = Duration::from_secs(1);

impl Draft {
    /// Asks the program. Where it is broken, its last good version stands in for it.
    async fn ask(mut self, needs: &Needs, afterwards: Afterwards) -> Draft {
        let nothing = Description::Known(Loaded::default());
        let (tool, problems) = match std::mem::replace(&mut self.description, nothing) {
            Description::Wanted { tool, problems }
            | Description::Remembered { tool, problems, .. } => (tool, problems),
            Description::Known(loaded) => {
                let loaded = self.proved(loaded).await;
                let loaded = self.tried(loaded, needs, afterwards).await;
                self.description = Description::Known(loaded);
                self.unproved = false;
                return self;
            }
        };
        let begun = Instant::now();
        let mut loaded = tool.describe(afterwards).await;
        if begun.elapsed() > LONG && !loaded.waits {
            put_off(&tool, &loaded).await;
        }
        if afterwards == Afterwards::Stay {
            loaded = self.proved(loaded).await;
        }
        if !self.stale && may_stand_in(&loaded) {
            let good = self.last_good_tools(needs, afterwards).await;
            stand_in(&mut loaded, good);
            // Of a program no text is kept: it goes on as long as its process lives.
            let programs = |tool: &&Arc<Tool>| tool.source == SourceKind::Executable;
            let running = self.before.iter().filter(programs).cloned().collect();
            stand_in(&mut loaded, running);
        }
        if let Some(file) = tool.file() {
            self.file = file.to_path_buf();
        }
        loaded = self.tried(loaded, needs, afterwards).await;
        self.description = Description::Known(loaded.after(problems));
        self
    }

    /// Has a process of each tool ready before it takes over, where the old one has one. A program whose new version does not
    /// start keeps its old one.
    async fn proved(&self, mut loaded: Loaded) -> Loaded {
        let mut failed = None;
        for tool in loaded
            .tools
            .iter()
            .filter(|tool| tool.access == Access::Open)
        {
            let before = self.before.iter().find(|old| old.name() == tool.name());
            let program = tool.source == SourceKind::Executable;
            if !before.is_some_and(|old| program || old.run.is_warm()) {
                continue;
            }
            let Some(warm) = tool.run.warm_up() else {
                continue;
            };
            if let Err(error) = warm.await
                && program
            {
                failed = Some(error);
                break;
            }
        }
        if let Some(error) = failed {
            let message = format!("its new version can't be started: {}", error.message);
            let problem = Problem::error(SourceKind::Executable, ErrorType::Io, message);
            let problem = problem.hint(error.hint.unwrap_or_else(|| "fix it and save".into()));
            loaded.problems.push(problem.file(&self.file));
            loaded.tools.clear();
            stand_in(&mut loaded, self.before.clone());
        }
        loaded
    }

    /// Tries the examples of its tools, where those decide. If one no longer gives what it gave, nothing of the file takes over.
    async fn tried(&self, mut loaded: Loaded, needs: &Needs, afterwards: Afterwards) -> Loaded {
        let Some(served) = self.gate.as_ref().filter(|_| !self.stale) else {
            return loaded;
        };
        let wrong = examples::first_wrong(&loaded.tools, &self.folder.path, &needs.place).await;
        let (Some(wrong), Some(source)) = (wrong, loaded.tools.first().map(|tool| tool.source))
        else {
            return loaded;
        };
        let problem = Problem::error(
            source,
            ErrorType::Validation,
            format!("its new version is held back: {wrong}"),
        );
        let hint = "fix it and save; or, if it is right as it is, correct or remove the example in `_examples`, and save the tool again";
        loaded.problems.push(problem.hint(hint).file(&self.file));
        loaded.tools.clear();
        let good = match served.is_empty() {
            true => self.last_good_tools(needs, afterwards).await,
            false => served.clone(),
        };
        stand_in(&mut loaded, good);
        loaded
    }

    async fn last_good_tools(&self, needs: &Needs, afterwards: Afterwards) -> Vec<Arc<Tool>> {
        let (folder, entry, needs) = (self.folder.clone(), self.entry.clone(), needs.clone());
        let once = tokio::task::spawn_blocking(move || once_good(&folder, &entry, &needs));
        match once.await.ok().flatten() {
            Some(Description::Known(good) | Description::Remembered { known: good, .. }) => {
                good.tools
            }
            Some(Description::Wanted { tool, .. }) => tool.describe(afterwards).await.tools,
            None => Vec::new(),
        }
    }
}

/// Keeps in mind that asking took long and failed.
async fn put_off(tool: &Arc<dyn Undescribed>, loaded: &Loaded) {
    let mut problems = loaded.problems.iter();
    let why = problems.find(|problem| problem.severity == Severity::Error);
    if let Some(why) = why.cloned() {
        let tool = tool.clone();
        let _ = tokio::task::spawn_blocking(move || tool.put_off(&why)).await;
    }
}

/// The programs that are being asked.
pub(super) struct Asking {
    needs: Needs,
    /// Each gives its entry, and its answer unless a newer version outdid it.
    tasks: JoinSet<(PathBuf, Option<Draft>)>,
    /// One of each entry is asked at a time.
    entries: HashMap<PathBuf, Underway>,
    /// How many were asked since nobody was.
    asked: usize,
    turns: Arc<Semaphore>,
    /// Who has answered, and until when others are waited for.
    answers: Vec<Draft>,
    until: Option<Instant>,
}

/// An entry that is being asked.
struct Underway {
    task: Id,
    tool: Option<Arc<dyn Undescribed>>,
    /// When its turn came.
    begun: Arc<OnceLock<Instant>>,
    /// Rings when somebody waits for this very one.
    wanted: Arc<Notify>,
    /// Rings when there is a newer version.
    outdone: Arc<Notify>,
    /// The newer version, which is asked next.
    next: Option<(Draft, Afterwards)>,
}

impl Asking {
    pub fn new(needs: Needs) -> Asking {
        Asking {
            needs,
            tasks: JoinSet::new(),
            entries: HashMap::new(),
            asked: 0,
            turns: Arc::new(Semaphore::new(ASKED_AT_ONCE)),
            answers: Vec::new(),
            until: None,
        }
    }

    /// Asks these. What the catalog has of them stands until they answer. Of an entry that is being asked the answer is
    /// waited for, but not long: where saves come faster than answers, there would never be one.
    pub fn ask(&mut self, drafts: Vec<Draft>) {
        let afterwards = match drafts.len() > STAYING {
            true => Afterwards::End,
            false => Afterwards::Stay,
        };
        for draft in drafts {
            match self.entries.get_mut(&draft.entry.path) {
                Some(underway) => {
                    underway.next = Some((draft, afterwards));
                    underway.outdone.notify_one();
                }
                None => self.begin(draft, afterwards),
            }
        }
        self.tell_progress();
    }

    fn begin(&mut self, draft: Draft, afterwards: Afterwards) {
        let (turns, needs) = (self.turns.clone(), self.needs.clone());
        let path = draft.entry.path.clone();
        let tool = match &draft.description {
            Description::Wanted { tool, .. } | Description::Remembered { tool, .. } => {
                Some(tool.clone())
            }
            Description::Known(_) => None,
        };
        let begun = Arc::<OnceLock<Instant>>::default();
        let (wanted, outdone) = (Arc::<Notify>::default(), Arc::<Notify>::default());
        let (begins, calls, outdoes) = (begun.clone(), wanted.clone(), outdone.clone());
        self.asked += 1;
        let entry = path.clone();
        let task = self.tasks.spawn(async move {
            let _turn = tokio::select! {
                turn = turns.acquire_owned() => turn.ok(),
                () = calls.notified() => None,
                () = outdoes.notified() => return (path, None),
            };
            let _ = begins.set(Instant::now());
            let outdone = async {
                outdoes.notified().await;
                tokio::time::sleep(OUTDONE).await;
            };
            tokio::select! {
                answer = draft.ask(&needs, afterwards) => (path, Some(answer)),
                () = outdone => (path, None),
            }
        });
        let underway = Underway {
            task: task.id(),
            tool,
            begun,
            wanted,
            outdone,
            next: None,
        };
        self.entries.insert(entry, underway);
    }

    /// Nobody is asked any more, and what was said is not taken in.
    pub fn stop(&mut self) {
        self.tasks = JoinSet::new();
        self.entries.clear();
        self.answers.clear();
        self.until = None;
        self.tell_progress();
    }

    /// Somebody waits for these: their turn is now.
    pub fn hurry(&self, files: &[PathBuf]) {
        for underway in self.entries.values() {
            let file = underway.tool.as_ref().and_then(|tool| tool.file());
            if file.is_some_and(|file| files.iter().any(|one| one == file)) {
                underway.wanted.notify_one();
            }
        }
    }

    /// Asks nobody any more, and puts off those who have had their time. Gives their entries.
    pub async fn put_off(&mut self) -> HashSet<PathBuf> {
        let mut paths = HashSet::new();
        for (path, underway) in &self.entries {
            let took = underway.begun.get().map(|begun| begun.elapsed());
            let Some(took) = took.filter(|took| *took > LONG) else {
                continue;
            };
            let message = format!("it was not loaded within {} s", took.as_secs().max(1));
            let why = Problem::error(SourceKind::Executable, ErrorType::Timeout, message);
            if let Some(tool) = underway.tool.clone() {
                let _ = tokio::task::spawn_blocking(move || tool.put_off(&why)).await;
                paths.insert(path.clone());
            }
        }
        self.stop();
        paths
    }

    /// Is an answer on its way?
    pub fn is_busy(&self) -> bool {
        !self.tasks.is_empty() || !self.answers.is_empty()
    }

    /// Waits until there are answers to be taken. May be dropped at any time.
    pub async fn answered(&mut self) {
        loop {
            if self.tasks.is_empty() && !self.answers.is_empty() {
                return;
            }
            if self.tasks.is_empty() {
                return std::future::pending().await;
            }
            let next = self.tasks.join_next();
            let answer = match self.until {
                None => next.await,
                Some(until) => match tokio::time::timeout_at(until, next).await {
                    Ok(answer) => answer,
                    Err(_) => return,
                },
            };
            if let Some(answer) = answer {
                self.hear(answer);
            }
        }
    }

    fn hear(&mut self, answer: Result<(PathBuf, Option<Draft>), JoinError>) {
        match answer {
            Ok((path, answer)) => {
                let underway = self.entries.remove(&path);
                if let Some((next, afterwards)) = underway.and_then(|underway| underway.next) {
                    self.begin(next, afterwards);
                }
                if let Some(draft) = answer {
                    self.answers.push(draft);
                    self.until
                        .get_or_insert_with(|| Instant::now() + GATHERED_FOR);
                }
            }
            Err(error) if error.is_cancelled() => {}
            Err(error) => {
                tracing::error!(%error, "asking a program what it is failed");
                self.entries
                    .retain(|_, underway| underway.task != error.id());
            }
        }
        self.tell_progress();
    }

    /// What was said so far.
    pub fn take(&mut self) -> Vec<Draft> {
        self.until = None;
        std::mem::take(&mut self.answers)
    }

    /// Says how far asking has come, where it takes long.
    fn tell_progress(&mut self) {
        let (left, all) = (self.tasks.len(), self.asked);
        if left == 0 {
            self.asked = 0;
        }
        let told = (left > 0 && all > STAYING).then(|| {
            let done = all.saturating_sub(left);
            format!("asking the tools what they are: {done} of {all}")
        });
        self.needs.place.scripts.working.send_replace(told);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use toolcrib_core::{Access, BoxFuture, Scope};

    use super::*;
    use crate::entry::FileKind;
    use crate::folders::Folder;
    use crate::folders::list::Entry;
    use crate::testing::{NothingKept, place};

    /// A program that answers at once, or never.
    struct Program {
        answers: bool,
    }

    impl Undescribed for Program {
        fn file(&self) -> Option<&Path> {
            None
        }

        fn describe(&self, _: Afterwards) -> BoxFuture<'_, Loaded> {
            match self.answers {
                true => Box::pin(std::future::ready(Loaded::default())),
                false => Box::pin(std::future::pending()),
            }
        }

        fn meanwhile(&self) -> Loaded {
            Loaded::default()
        }

        fn put_off(&self, _: &Problem) {}
    }

    fn draft(number: usize, answers: bool) -> Draft {
        let name = format!("tool-{number}");
        Draft {
            folder: Arc::new(Folder {
                path: "/tools".into(),
                scope: Scope::Local,
                rank: 0,
                access: Access::Open,
                trusted: Vec::new(),
                programs: true,
            }),
            entry: Entry {
                path: Path::new("/tools").join(&name),
                name,
                kind: FileKind::Program,
                meta: Path::new("/").metadata().unwrap(),
            },
            hash: [0; 32],
            file: PathBuf::new(),
            description: Description::Wanted {
                tool: Arc::new(Program { answers }),
                problems: Vec::new(),
            },
            keep: None,
            stale: false,
            number: number as u64,
            before: Vec::new(),
            unproved: false,
            patient: true,
            gate: None,
        }
    }

    fn asking() -> Asking {
        Asking::new(Needs {
            place: place(None),
            last_good: Arc::new(NothingKept),
            patient: true,
        })
    }

    #[tokio::test]
    async fn many_answers_are_taken_in_few_turns() {
        let mut asking = asking();
        asking.ask((0..300).map(|number| draft(number, true)).collect());
        let (mut turns, mut answers) = (0, 0);
        while asking.is_busy() {
            asking.answered().await;
            answers += asking.take().len();
            turns += 1;
        }
        assert_eq!(answers, 300);
        assert!(turns < 100, "{turns} turns for 300 answers");
    }

    #[tokio::test]
    async fn an_answer_does_not_wait_for_who_never_answers() {
        let mut asking = asking();
        asking.ask(vec![draft(1, false), draft(2, true)]);
        asking.answered().await;
        let answers = asking.take();
        assert_eq!(answers.len(), 1);
        assert_eq!(answers[0].entry.name, "tool-2");
        assert!(asking.is_busy());
        asking.stop();
        assert!(!asking.is_busy());
    }

    #[tokio::test]
    async fn a_newer_version_is_asked_when_the_older_takes_long() {
        let mut asking = asking();
        asking.ask(vec![draft(1, false)]);
        // It has its turn before the next one comes.
        tokio::task::yield_now().await;
        asking.ask(vec![draft(1, true)]);
        asking.answered().await;
        assert_eq!(asking.take().len(), 1);
        assert!(!asking.is_busy());
    }
}
