//! Approvals when processes are killed: nothing is lost, and nothing is used twice.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use toolcrib_core::store::ApprovalState;

use crate::support::{self, Dice, Site};

/// A process that a test started, and what it says.
struct Started {
    child: Child,
    lines: Receiver<String>,
}

fn start(site: &Site, role: &str, first: u64) -> Started {
    let marks = site.folder.path().join("marks");
    let first = first.to_string();
    let mut command = Command::new(support::example("approver"));
    command.args([role, &site.url, &first]).arg(marks);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let lines = lines_of(child.stdout.take().unwrap());
    Started { child, lines }
}

fn lines_of(stdout: ChildStdout) -> Receiver<String> {
    let (said, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if said.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

impl Started {
    /// Kills it, and gives all that it had said.
    fn killed(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.lines.iter().collect()
    }
}

/// Ask, decide and run are three processes' steps, and each process is killed somewhere.
pub async fn nothing_is_lost_or_used_twice_over_kill_9(site: Site) {
    let rounds = if support::soak() { 500 } else { 25 };
    let mut dice = Dice::new();
    site.open().await.close().await;
    let mut decided: HashMap<String, String> = HashMap::new();
    let (mut ended, mut next) = (HashSet::new(), 0_u64);
    let mut interrupted = HashSet::new();
    for round in 0..rounds {
        let waits = start(&site, "wait", next);
        let decides = start(&site, "decide", 0);
        // sleeps: a different moment in every round is what is tested
        tokio::time::sleep(Duration::from_micros(dice.roll() % 60_000)).await;
        let (first, then) = match dice.roll() % 2 {
            0 => (waits, decides),
            _ => (decides, waits),
        };
        let mut said = first.killed();
        // sleeps: the other goes on for a moment
        tokio::time::sleep(Duration::from_micros(dice.roll() % 10_000)).await;
        said.extend(then.killed());
        for line in &said {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["decided", state, id] => {
                    decided.insert(id.to_owned(), state.to_owned());
                }
                ["used", n, id] => {
                    ended.insert(id.to_owned());
                    next = next.max(n.parse::<u64>().unwrap() + 1);
                }
                _ => {}
            }
        }
        crate::crash::settled(&site).await;
        let store = site.open().await;
        let approvals = store.approvals();
        // Nobody of this round lives any more.
        approvals.sweep(|_| false).await.unwrap();
        let all = approvals.list(None, None, 1_000).await.unwrap();
        let marks = std::fs::read_to_string(site.folder.path().join("marks")).unwrap_or_default();
        let mut ran = HashSet::new();
        for id in marks.lines() {
            assert!(ran.insert(id.to_owned()), "round {round}: {id} ran twice");
        }
        let known: HashMap<&str, ApprovalState> =
            all.iter().map(|one| (&*one.id, one.state)).collect();
        for (id, state) in &decided {
            let Some(now) = known.get(id.as_str()) else {
                continue;
            };
            assert_ne!(
                *now,
                ApprovalState::Pending,
                "round {round}: {id} lost its {state}"
            );
            assert!(
                state != "rejected" || !ran.contains(id),
                "round {round}: {id} was rejected and ran"
            );
        }
        for (id, state) in known {
            assert_ne!(state, ApprovalState::Executing, "round {round}");
            let fits = match state {
                ApprovalState::Used => ran.contains(id),
                ApprovalState::Interrupted => {
                    interrupted.insert(id.to_owned());
                    !ended.contains(id)
                }
                _ => !ran.contains(id) && !interrupted.contains(id),
            };
            assert!(fits, "round {round}: {id} is {state}");
        }
        store.close().await;
    }
    assert!(!decided.is_empty() && !ended.is_empty(), "nothing happened");
    eprintln!(
        "{} decided, {} used, {} interrupted",
        decided.len(),
        ended.len(),
        interrupted.len()
    );
}
