//! Whether a process is a person at a terminal, as far as the kernel can tell, or something that an agent started.
//!
//! Why: `docs/design/0018-approvals.md`.

use std::sync::{Mutex, PoisonError};

use toolcrib_core::{CallError, ErrorCode};

use super::process::{self, Process, ProcessId};
use crate::config;
use crate::env::Env;

/// The longest list of agents' programs that is remembered; those that ended go first.
const MAX_NOTED: usize = 1_024;
/// What agents set in the shells that they open.
const MARKS: [&str; 6] = [
    "CLAUDECODE",
    "CODEX_SANDBOX",
    "CODEX_SANDBOX_NETWORK_DISABLED",
    "GEMINI_CLI",
    "OPENCODE",
    "COPILOT_CLI",
];
/// The first of the numbers that pseudo terminals have, which the kernel packs into two places.
const PTY_MAJORS: std::ops::RangeInclusive<u32> = 136..=143;

/// Programs that connected as agents, also after their connection has ended.
static NOTED: Mutex<Vec<ProcessId>> = Mutex::new(Vec::new());

/// Why a process is no person at a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoPerson {
    #[error("decisions at the command line are switched off in your settings")]
    SwitchedOff,
    #[error("the process that asks has gone")]
    Gone,
    #[error("it takes a terminal, and the process that asks has none")]
    NoTerminal,
    #[error("the process that asks runs in the background of its terminal")]
    Background,
    #[error("the process that asks was started by an agent")]
    OfAgent,
    #[error("the process that asks was started by a tool or by Toolcrib itself")]
    OfToolcrib,
    #[error("the terminal belongs to an agent")]
    AgentsTerminal,
    #[error(
        "the terminal was opened after an agent had connected, and can't be told from one that the agent opened"
    )]
    Unknown,
}

impl NoPerson {
    pub fn refusal(self) -> CallError {
        let message = format!("only a person decides on calls, and {self}");
        let hint = match self {
            NoPerson::SwitchedOff => "use the page or the webhook, or set `approvals.cli = true`",
            NoPerson::Unknown => {
                "use a terminal that was open before the agent started, or the approval's page with a login that may decide"
            }
            _ => "run the command in a terminal of your own, or use the approval's page",
        };
        CallError::new(ErrorCode::Forbidden, message).hint(hint)
    }
}

/// A person at a terminal. Only [`person_at`] makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonAtTerminal {
    /// The terminal, such as `pts/3`.
    pub terminal: String,
    pub user: u32,
}

/// Notes who is behind a process that speaks for an agent.
pub fn note_agent(relay: ProcessId) {
    let Some(relay) = Process::of(relay.pid).filter(|process| process.id == relay) else {
        return;
    };
    let behind = agent_behind(&relay);
    let mut noted = NOTED.lock().unwrap_or_else(PoisonError::into_inner);
    if noted.contains(&behind) {
        return;
    }
    if noted.len() >= MAX_NOTED {
        noted.retain(|one| one.lives());
    }
    noted.truncate(MAX_NOTED - 1);
    noted.push(behind);
}

/// Is a person there, at a terminal that no agent opened?
pub fn person_at(asks: ProcessId, env: &Env) -> Result<PersonAtTerminal, NoPerson> {
    if !config::decides_at_terminal(env) {
        return Err(NoPerson::SwitchedOff);
    }
    let asking = Process::of(asks.pid).filter(|process| process.id == asks);
    let asking = asking.ok_or(NoPerson::Gone)?;
    if asking.terminal == 0 {
        return Err(NoPerson::NoTerminal);
    }
    if asking.foreground != asking.group {
        return Err(NoPerson::Background);
    }
    let all = process::of_user(asking.user);
    let agents = agents(&all, env);
    let scene = Scene {
        oldest: agents.iter().map(|agent| agent.start).min(),
        agents,
        user: asking.user,
    };
    let line = asking.clone().line();
    scene.vouch(&line)?;
    let marked = |process: &Process| MARKS.iter().any(|name| process.has_variable(name));
    let here = line.iter().filter(|one| one.session == asking.session);
    if here.into_iter().any(marked) {
        return Err(NoPerson::OfAgent);
    }
    // A session whose leader let go of it is looked at by its leader too.
    if let Some(leader) = Process::of(asking.session)
        && !line.iter().any(|one| one.id == leader.id)
    {
        scene.vouch(&leader.line())?;
    }
    let (major, minor) = (
        asking.terminal >> 8 & 0xfff,
        terminal_minor(asking.terminal),
    );
    if !PTY_MAJORS.contains(&major) {
        return Ok(PersonAtTerminal {
            terminal: format!("tty{minor}"),
            user: asking.user,
        });
    }
    let number = (major - PTY_MAJORS.start()) * 256 + minor;
    for holder in all.iter().filter(|one| one.holds_terminal(number)) {
        let held = scene.vouch(&holder.clone().line());
        held.map_err(|why| match why {
            NoPerson::Unknown => why,
            _ => NoPerson::AgentsTerminal,
        })?;
    }
    Ok(PersonAtTerminal {
        terminal: format!("pts/{number}"),
        user: asking.user,
    })
}

fn terminal_minor(number: u32) -> u32 {
    number & 0xff | number >> 12 & 0xf_ff00
}

/// The agents there are.
struct Scene {
    agents: Vec<ProcessId>,
    /// When the oldest of them began.
    oldest: Option<u64>,
    user: u32,
}

impl Scene {
    /// Refuses a process whose line leads to an agent, to Toolcrib, or nowhere since an agent is there.
    fn vouch(&self, line: &[Process]) -> Result<(), NoPerson> {
        for (at, process) in line.iter().enumerate() {
            if self.agents.contains(&process.id) {
                return Err(NoPerson::OfAgent);
            }
            if at > 0 && process.is_ours() {
                return Err(NoPerson::OfToolcrib);
            }
        }
        // The last of this user's own, and what stands above it: whoever adopts orphans vouches for nobody.
        let adopts = |process: &Process| {
            process.id.pid == 1 || process.parent == 0 || process.name == "systemd"
        };
        let mut top = None;
        for process in line {
            if adopts(process) {
                break;
            }
            if process.user != self.user {
                // Another user's program let them in: a login, a server of shells.
                return Ok(());
            }
            top = Some(process);
        }
        match (top, self.oldest) {
            (Some(top), Some(oldest)) if top.id.start >= oldest => Err(NoPerson::Unknown),
            _ => Ok(()),
        }
    }
}

/// The programs behind everything that speaks for an agent now, or has. One with another home has another store.
fn agents(all: &[Process], env: &Env) -> Vec<ProcessId> {
    let home = env.get("HOME");
    let speaks = |process: &&Process| {
        let is_ours = process.is_ours() && process.words().iter().skip(1).any(|word| word == "mcp");
        is_ours
            && process
                .variable("HOME")
                .is_none_or(|theirs| Some(theirs.as_os_str()) == home)
    };
    let mut agents: Vec<ProcessId> = all.iter().filter(speaks).map(agent_behind).collect();
    let mut noted = NOTED.lock().unwrap_or_else(PoisonError::into_inner);
    noted.retain(|one| one.lives());
    agents.extend(noted.iter().copied());
    agents
}

/// The program that started what speaks for an agent. A shell or a wrapper between them is part of it: they run as one job,
/// in one group of processes.
fn agent_behind(relay: &Process) -> ProcessId {
    let line = relay.clone().line();
    let mut behind = relay;
    for process in line.iter().skip(1) {
        let leads = process.id.pid == process.session;
        if process.id.pid == 1 || process.parent == 0 || process.user != relay.user {
            break;
        }
        // The shell that a person typed the agent's name into is not the agent, unless nothing stands between them.
        if leads && behind.id != relay.id {
            break;
        }
        behind = process;
        if leads || process.id.pid == process.group {
            break;
        }
    }
    behind.id
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, parent: u32, start: u64) -> Process {
        Process {
            id: ProcessId { pid, start },
            parent,
            group: pid,
            session: pid,
            terminal: 0,
            foreground: 0,
            user: 1_000,
            name: "sh".to_owned(),
        }
    }

    fn scene() -> Scene {
        Scene {
            agents: vec![ProcessId {
                pid: 50,
                start: 500,
            }],
            oldest: Some(500),
            user: 1_000,
        }
    }

    #[test]
    fn who_descends_from_an_agent_or_from_nobody_is_refused() {
        let root = |pid| Process {
            user: 0,
            ..process(pid, 1, 10)
        };
        let init = process(1, 0, 0);
        let systemd = Process {
            name: "systemd".to_owned(),
            ..process(90, 1, 20)
        };
        for (what, line, expected) in [
            (
                "of the agent",
                vec![process(60, 50, 600), process(50, 2, 500)],
                Some(NoPerson::OfAgent),
            ),
            (
                "in an old terminal",
                vec![process(60, 40, 600), process(40, 1, 400), init.clone()],
                None,
            ),
            (
                "an orphan",
                vec![process(60, 1, 600), init.clone()],
                Some(NoPerson::Unknown),
            ),
            (
                "adopted",
                vec![process(60, 90, 600), systemd.clone(), init.clone()],
                Some(NoPerson::Unknown),
            ),
            (
                "an old server's",
                vec![process(60, 40, 600), process(40, 90, 30), systemd, init],
                None,
            ),
            (
                "let in by another user",
                vec![process(60, 70, 600), root(70)],
                None,
            ),
        ] {
            assert_eq!(scene().vouch(&line).err(), expected, "{what}");
        }
        // Where no agent is, nobody has opened anything.
        let nobody = Scene {
            agents: Vec::new(),
            oldest: None,
            user: 1_000,
        };
        assert_eq!(nobody.vouch(&[process(60, 1, 600)]), Ok(()));
    }

    #[test]
    fn who_has_no_terminal_is_nobody() {
        let own = ProcessId::own().unwrap();
        let env = Env::of(&[], std::path::Path::new("/"));
        let gone = ProcessId {
            start: own.start + 1,
            ..own
        };
        assert_eq!(person_at(gone, &env), Err(NoPerson::Gone));
        assert!(person_at(own, &env).is_err(), "tests run in the background");
    }
}
