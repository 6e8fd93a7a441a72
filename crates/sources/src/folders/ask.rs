//! The fifth step: asks programs what they are, a few at a time, and gathers what they say.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio::time::Instant;
use toolcrib_core::Tool;

use super::Needs;
use super::draft::{Draft, once_good};
use super::last_good::{may_stand_in, stand_in};
use crate::description::{Afterwards, Description};
use crate::origin::Loaded;

/// How many programs are asked at once what they are.
const ASKED_AT_ONCE: usize = 4;
/// Where more than these are to be asked, none of them stays.
const STAYING: usize = 16;
/// While others are still asked, answers are gathered for this long: many answers are not as many catalogs.
const GATHERED_FOR: Duration = Duration::from_millis(50);

impl Draft {
    /// Asks the program. Where it is broken, its last good version stands in for it.
    async fn ask(mut self, needs: &Needs, afterwards: Afterwards) -> Draft {
        let nothing = Description::Known(Loaded::default());
        let (tool, problems) = match std::mem::replace(&mut self.description, nothing) {
            Description::Wanted { tool, problems }
            | Description::Remembered { tool, problems, .. } => (tool, problems),
            known => {
                self.description = known;
                return self;
            }
        };
        let mut loaded = tool.describe(afterwards).await;
        if !self.stale && may_stand_in(&loaded) {
            let good = self.last_good_tools(needs, afterwards).await;
            stand_in(&mut loaded, good);
        }
        if let Some(file) = tool.file() {
            self.file = file.to_path_buf();
        }
        self.description = Description::Known(loaded.after(problems));
        self
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

/// The programs that are being asked.
pub(super) struct Asking {
    needs: Needs,
    tasks: JoinSet<Draft>,
    /// By entry: an answer for a version that is no more is not waited for.
    entries: HashMap<PathBuf, AbortHandle>,
    /// How many were asked since nobody was.
    asked: usize,
    turns: Arc<Semaphore>,
    /// Who has answered, and until when others are waited for.
    answers: Vec<Draft>,
    until: Option<Instant>,
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

    /// Asks these. What the catalog has of them stands until they answer.
    pub fn ask(&mut self, drafts: Vec<Draft>) {
        let afterwards = match drafts.len() > STAYING {
            true => Afterwards::End,
            false => Afterwards::Stay,
        };
        for draft in drafts {
            let (turns, needs) = (self.turns.clone(), self.needs.clone());
            let entry = draft.entry.path.clone();
            let task = self.tasks.spawn(async move {
                let _turn = turns.acquire_owned().await;
                draft.ask(&needs, afterwards).await
            });
            self.asked += 1;
            if let Some(before) = self.entries.insert(entry, task) {
                before.abort();
            }
            self.tell_progress();
        }
    }

    /// Nobody is asked any more, and what was said is not taken in.
    pub fn stop(&mut self) {
        self.tasks = JoinSet::new();
        self.answers.clear();
        self.until = None;
        self.tell_progress();
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

    fn hear(&mut self, answer: Result<Draft, JoinError>) {
        self.tell_progress();
        match answer {
            Ok(draft) => {
                self.answers.push(draft);
                self.until
                    .get_or_insert_with(|| Instant::now() + GATHERED_FOR);
            }
            Err(error) if error.is_cancelled() => {}
            Err(error) => tracing::error!(%error, "asking a program what it is failed"),
        }
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
            self.entries.clear();
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
    use crate::description::Undescribed;
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
                tool: Box::new(Program { answers }),
                problems: Vec::new(),
            },
            keep: None,
            stale: false,
        }
    }

    fn asking() -> Asking {
        Asking::new(Needs {
            place: place(None),
            last_good: Arc::new(NothingKept),
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
}
