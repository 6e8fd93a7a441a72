//! What would have to be granted, in words and as a command. People and agents follow hints, and a failure's words are the
//! tool's own: only what was parsed gets in here.

use std::path::Path;

use toolcrib_core::Hint;
use toolcrib_core::permit::presets::Preset;
use toolcrib_core::words::{CommandLine, inline, is_unseen, line};
use toolcrib_sandbox::{Exec, HostRule, Rung};

use super::Held;

/// The longest path that a hint names.
const MAX_PATH: usize = 512;

/// What the walls kept a process from, on this rung.
#[derive(Debug)]
pub struct Lacking {
    need: Need,
    rung: Option<Rung>,
}

/// What a process would have needed.
#[derive(Debug)]
pub(super) enum Need {
    /// A host, and why the proxy refused it, where it did.
    Host(HostRule, String),
    /// Some host.
    Network,
    Read(PlainPath),
    Write(PlainPath),
    /// To open something, and nobody said what for.
    Open(PlainPath),
    /// To make this.
    Create(PlainPath, First),
    /// To make this beside something protected, which this rung can't let it do.
    CreateBeside(PlainPath, First),
    /// To remove or replace this, which is a change of its folder.
    Remove(PlainPath, PlainPath),
    /// To run another program; its name, where it is a plain one.
    Exec(Option<PlainPath>),
    /// What programs of a build need.
    Preset(&'static Preset),
}

/// What comes first where something is to be made: what is granted must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum First {
    /// The grant itself makes it.
    Grant,
    /// A person makes the file.
    Touch,
    /// A person makes the folder.
    MakeFolder,
}

impl First {
    /// The command by which a person makes it.
    fn made(self, path: &PlainPath) -> Option<CommandLine> {
        let made = match self {
            First::Grant => return None,
            First::Touch => CommandLine::new("touch"),
            First::MakeFolder => CommandLine::new("mkdir"),
        };
        Some(made.operand(&path.0))
    }
}

/// A path that can be read by a person at a glance: text without what can't be seen, and of bounded length.
#[derive(Debug)]
pub(super) struct PlainPath(String);

impl PlainPath {
    pub(super) fn new(path: &Path) -> Option<PlainPath> {
        let text = path.to_str()?;
        let plain = !text.is_empty() && text.len() <= MAX_PATH;
        let odd = |c: char| is_unseen(c) || c == '`';
        (plain && !text.contains(odd)).then(|| PlainPath(text.to_owned()))
    }
}

/// A single host; what stands for many is for people to think of.
pub(super) fn host_named(text: &str) -> Option<HostRule> {
    let rule: HostRule = text.parse().ok()?;
    (!text.contains('*')).then_some(rule)
}

impl Lacking {
    pub(super) fn new(need: Need, rung: Option<Rung>) -> Lacking {
        Lacking { need, rung }
    }

    /// The same for a program of a build, which needs more than to run others.
    #[must_use]
    pub(super) fn of_program(self, preset: Option<&'static Preset>) -> Lacking {
        let of_other = match &self.need {
            Need::Exec(Some(program)) => Preset::of(&program.0),
            _ => None,
        };
        match (&self.need, preset.or(of_other)) {
            (Need::Exec(_), Some(preset)) => Lacking {
                need: Need::Preset(preset),
                ..self
            },
            _ => self,
        }
    }

    /// Of a process that would start this program: what keeps it from that.
    pub fn other_program(name: &str, held: &Held) -> Option<Lacking> {
        let need = Need::Exec(PlainPath::new(Path::new(name)));
        (held.policy.exec == Exec::Once).then(|| Lacking::new(need, held.rung))
    }

    /// May it be helped by a grant to run other programs?
    pub fn is_exec(&self) -> bool {
        matches!(self.need, Need::Exec(_) | Need::Preset(_))
    }

    /// Was it for what its process found when it started? Another process may find more.
    pub fn is_for_this_process(&self) -> bool {
        matches!(self.need, Need::CreateBeside(..))
    }

    /// What it was kept from, as it follows "the sandbox kept it from".
    pub fn words(&self) -> String {
        match &self.need {
            Need::Host(host, why) if why.is_empty() => inline(&host.to_string()),
            Need::Host(host, why) => format!("{} ({})", inline(&host.to_string()), line(why)),
            Need::Network => "the network".to_owned(),
            Need::Read(path) => format!("reading {}", inline(&path.0)),
            Need::Write(path) => format!("writing {}", inline(&path.0)),
            Need::Open(path) => format!("opening {}", inline(&path.0)),
            Need::Create(path, _) | Need::CreateBeside(path, _) => {
                format!("creating {}", inline(&path.0))
            }
            Need::Remove(path, _) => format!("removing or replacing {}", inline(&path.0)),
            Need::Exec(Some(program)) => format!("running {}", inline(&program.0)),
            Need::Exec(None) => "running another program".to_owned(),
            Need::Preset(preset) => format!("what `{}` needs to build", preset.name),
        }
    }

    fn grant(&self, tool: &str) -> CommandLine {
        let grant = CommandLine::new("toolcrib grant").operand(tool);
        match &self.need {
            Need::Host(host, _) => grant.flag("--net", &host.to_string()),
            Need::Network => grant.switch("--net HOST"),
            Need::Read(path) | Need::Open(path) => grant.flag("--read", &path.0),
            Need::Write(path) | Need::Create(path, _) | Need::CreateBeside(path, _) => {
                grant.flag("--write", &path.0)
            }
            Need::Remove(_, folder) => grant.flag("--write", &folder.0),
            Need::Exec(_) => grant.switch("--exec"),
            Need::Preset(preset) => grant.flag("--preset", preset.name),
        }
    }

    /// What to do about it, for a tool of this name.
    pub fn hint(&self, tool: &str) -> Hint {
        let kept = format!("the sandbox kept it from {}", self.words());
        let grant = Hint::run(self.grant(tool));
        match &self.need {
            Need::Open(_) => grant
                .before(format!("{kept}; if it should read it, say "))
                .after("; `--write` instead of `--read` lets it write there too"),
            Need::Create(path, first) => match first.made(path) {
                None => grant
                    .before(format!("{kept}; if it should, run "))
                    .after(", which makes it when the tool starts"),
                Some(made) => grant.before(format!(
                    "{kept}; if it should, make it first (`{made}`), then run "
                )),
            },
            Need::CreateBeside(path, first) => {
                let rung = self.rung.map(|rung| format!(" (rung {})", rung.letter()));
                let why = format!(
                    "{kept}: on this machine{} no grant lets a tool make new entries in a folder that holds something protected, such as `.git`",
                    rung.unwrap_or_default()
                );
                let made = first
                    .made(path)
                    .unwrap_or(CommandLine::new("touch").operand(&path.0));
                Hint::run(made)
                    .before(format!("{why}; make it yourself with "))
                    .after(" and call again, or let the tool write into a folder of its own; `toolcrib doctor` says what the machine lacks")
            }
            Need::Remove(..) => grant.before(format!(
                "{kept}, which takes its folder, not the file alone; if it should, run "
            )),
            Need::Preset(_) => grant
                .before(format!("{kept}; if it should, run "))
                .after(", which prints what that opens"),
            _ => grant.before(format!("{kept}; if it should, run ")),
        }
    }
}
