//! Runs a shell tool: its own program with an argument array, in the project, without any shell.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::mpsc;
use toolcrib_core::{
    BoxFuture, Call, CallError, CallResult, ErrorCode, Hidden, Outcome, Permit, Scope, Spec, Tool,
    Walled,
};
use toolcrib_sandbox::{Command, Denial, Exit};

use super::template::{Dashes, Template};
use crate::Place;
use crate::beneath::base_folder;
use crate::confine::{self, walled};
use crate::denied::{self, Failure, Held};
use crate::directory::Apart;
use crate::executable::alone;
use crate::fields::{Fields, Report};
use crate::options::undescribed;
use crate::origin::Origin;
use crate::process::{self, Captured};

/// How many hosts that were refused are remembered.
const DENIALS: usize = 8;

pub const FIELDS: [&str; 5] = ["type", "command", "timeout", "cwd", "allowDashValues"];

pub struct Shell {
    template: Template,
    cwd: Option<String>,
    /// The project whose files choose between versions of the program.
    versions: Option<PathBuf>,
    /// Is its file trusted by itself, and nothing of the project that it starts in?
    alone: bool,
    place: Arc<Place>,
    hidden: Hidden,
}

impl Shell {
    pub fn read(
        fields: &Fields,
        spec: &Spec,
        origin: &Origin,
        place: &Arc<Place>,
        report: &mut Report,
    ) -> Option<Shell> {
        let allowed = fields.flag(report, "allowDashValues").unwrap_or_default();
        let dashes = if allowed {
            Dashes::Allowed
        } else {
            Dashes::Refused
        };
        let cwd = fields.text(report, "cwd");
        if cwd.is_some_and(|cwd| cwd.is_empty() || cwd.contains('\0')) {
            report.invalid(
                &fields.at("cwd"),
                "is not a folder's path",
                "write a path, or leave it out for the project",
            );
        }
        let hint = "write \"command\": \"program argument {{parameter}}\"";
        let command = fields.required_text(report, "command", hint)?;
        let field = fields.at("command");
        let template = match Template::parse(command, dashes) {
            Ok(template) => template,
            Err(error) => {
                report.error(error.error_type(), &field, &error.to_string(), error.hint());
                return None;
            }
        };
        if let Some(slot) = template.script_slot() {
            let what = format!("lets an agent write the whole script in `{{{{{slot}}}}}`");
            report.warn(
                &field,
                &what,
                "name a program and give it arguments, unless running anything is the point",
            );
        }
        undescribed(template.slots(), &spec.input_schema, &field, report);
        Some(Shell {
            template,
            cwd: cwd.map(str::to_owned),
            versions: origin.versions(place),
            alone: origin.alone,
            place: place.clone(),
            hidden: Hidden::default(),
        })
    }

    /// What it asks for beyond its declared permissions: to start where it says.
    pub fn asks(&self) -> Permit {
        Permit {
            read: self.cwd.iter().cloned().collect(),
            ..Permit::default()
        }
    }

    async fn execute(&self, call: &Call) -> CallResult {
        let mut argv = self.template.filled(&call.arguments)?.into_iter();
        let program = argv
            .next()
            .ok_or_else(|| CallError::internal("the command is empty"))?;
        let argv: Vec<String> = argv.collect();
        // A tool of the user's own that names no folder starts in whatever project this is.
        let foreign = self.cwd.is_none() && call.tool.scope != Some(Scope::Local);
        let mut apart = match foreign || self.alone {
            true => Apart::of(program.as_ref(), &argv, &self.dir()?),
            false => Apart::default(),
        };
        if self.alone {
            let words = std::iter::once(&program).chain(&argv);
            let around = alone::around(&self.dir()?, words.map(String::as_str), &self.place);
            apart.hidden.extend(around);
        }
        let mut command = self
            .command(&program, &call.tool, apart.hidden)?
            .args(&argv);
        if let Some((name, value)) = apart.var {
            command = command.var(name, value);
        }
        let granted = self.place.granted(&call.tool.permit);
        self.hidden.add(self.place.to_hide(&granted));
        let (owner, mask) = (&call.caller.agent, self.hidden.mask());
        let (told, mut denied) = mpsc::channel(DENIALS);
        let command = command.tell_denied(told);
        let captured = process::capture_masked(command, &self.place, owner, &mask).await?;
        let stderr = captured.stderr.clone();
        let name = call.tool.name();
        let outcome = outcome(captured, self.template.failure_is_fine, name)?;
        let held = self.held(&call.tool).filter(|_| outcome.is_error);
        let denials: Vec<Denial> = std::iter::from_fn(|| denied.try_recv().ok()).collect();
        let hint = held.and_then(|held| {
            let failure = Failure {
                tool: name,
                program: Some(&program),
                directory: &self.dir().ok()?,
                message: "",
                data: None,
                stderr: &stderr,
                denials: &denials,
            };
            failure.hint(&held)
        });
        Ok(match hint {
            Some(hint) => denied::hinted(outcome, &hint),
            None => outcome,
        })
    }

    /// What holds its processes, where something does.
    fn held(&self, tool: &Tool) -> Option<Held> {
        let Tool { permit, reads, .. } = tool;
        let policy = confine::policy(&[], permit, reads, &tool.spec.sandbox, &self.place);
        let rung = self.place.launcher.walls_rung();
        Held::by(self.place.holding_tool(tool, policy), rung)
    }

    /// The folder in which it starts.
    fn dir(&self) -> Result<PathBuf, CallError> {
        let Some(cwd) = &self.cwd else {
            return Ok(self.place.directory().to_path_buf());
        };
        base_folder(self.place.project.as_deref(), cwd).ok_or_else(|| {
            CallError::unavailable(format!(
                "`{cwd}` starts at the project, but there is no project"
            ))
            .hint("run in a project, or pass `--project DIR`")
        })
    }

    /// The command in its folder, with the walls of its tool and the variables that the tool was granted.
    fn command(
        &self,
        program: &str,
        tool: &Tool,
        hidden: Vec<PathBuf>,
    ) -> Result<Command, CallError> {
        let Tool { permit, reads, .. } = tool;
        let mut policy = confine::policy(&[], permit, reads, &tool.spec.sandbox, &self.place);
        policy.hide.extend(hidden);
        let holding = self.place.holding_tool(tool, policy);
        let named = self.dir()?;
        let dir = confine::start(named.clone(), &holding, &self.place);
        // Its own program is found from the folder that it names, wherever it starts.
        let program = match program.contains('/') && dir != named {
            true => named.join(program).into_os_string(),
            false => program.into(),
        };
        let mut command = Command::new(program, dir, holding).versions_of(self.versions.clone());
        for (name, value) in self.place.granted(permit) {
            command = command.var(name, value.into_owned());
        }
        Ok(command)
    }

    async fn account(&self, tool: &Tool) -> Walled {
        let command = self.template.program();
        let Some(Ok(command)) = command.map(|program| self.command(&program, tool, Vec::new()))
        else {
            return Walled::NotAtAll;
        };
        let Place {
            launcher,
            environment,
            ..
        } = &*self.place;
        walled(command.account(launcher, environment).await)
    }
}

impl toolcrib_core::Run for Shell {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, CallResult> {
        Box::pin(self.execute(call))
    }

    fn missing(&self) -> Option<String> {
        let program = self.template.program()?;
        let environment = &self.place.environment;
        let missing = toolcrib_sandbox::missing(program.as_ref(), &self.dir().ok()?, environment);
        missing.map(|error| error.to_string())
    }

    fn walled<'a>(&'a self, tool: &'a Tool) -> BoxFuture<'a, Walled> {
        Box::pin(self.account(tool))
    }

    fn hidden(&self, tool: &Tool) -> Option<Hidden> {
        (!tool.permit.env.is_empty()).then(|| self.hidden.clone())
    }
}

fn outcome(captured: Captured, failure_is_fine: bool, name: &str) -> CallResult {
    let Captured {
        stdout,
        stderr,
        exit,
    } = captured;
    let mut outcome = Outcome::from(stdout).title(name);
    let ending = match exit {
        Exit::Code(code) => {
            outcome = outcome.meta("exitCode", code);
            outcome.is_error = code != 0 && !failure_is_fine;
            format!("exit code {code}")
        }
        Exit::Signal(signal) => {
            outcome = outcome.meta("signal", signal);
            outcome.is_error = true;
            format!("ended by signal {signal}")
        }
        Exit::Lost => {
            let said = if stderr.is_empty() {
                String::new()
            } else {
                format!("; it last said: {}", stderr.trim_end())
            };
            let message =
                format!("the process of `{name}` was lost, and how it ended is unknown{said}");
            return Err(CallError::new(ErrorCode::Crashed, message)
                .hint("something killed the process from outside; look for an out-of-memory kill, then call again"));
        }
    };
    if outcome.is_error && outcome.output.is_empty() {
        outcome.output = match stderr.trim_end() {
            "" => ending,
            reason => format!("{ending}: {reason}"),
        };
    }
    Ok(if stderr.is_empty() {
        outcome
    } else {
        outcome.meta("stderr", stderr)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Text;

    fn ended(stdout: &str, stderr: &str, exit: Exit, fine: bool) -> CallResult {
        let stdout = Text {
            head: stdout.into(),
            whole: None,
            rest_is_lost: false,
        };
        outcome(
            Captured {
                stdout,
                stderr: stderr.into(),
                exit,
            },
            fine,
            "t",
        )
    }

    #[test]
    fn an_exit_code_is_a_failure_unless_it_was_said_to_be_fine() {
        let good = ended("out", "", Exit::Code(0), false).unwrap();
        assert_eq!(
            (good.output.as_str(), good.is_error, good.title.as_deref()),
            ("out", false, Some("t"))
        );
        assert_eq!(good.metadata["exitCode"], 0);
        assert!(!good.metadata.contains_key("stderr"));

        let bad = ended("", "no such file\n", Exit::Code(2), false).unwrap();
        assert_eq!(
            (bad.output.as_str(), bad.is_error),
            ("exit code 2: no such file", true)
        );
        assert_eq!(bad.metadata["stderr"], "no such file\n");
        assert_eq!(
            ended("", "", Exit::Code(1), false).unwrap().output,
            "exit code 1"
        );

        let fine = ended("", "", Exit::Code(1), true).unwrap();
        assert_eq!((fine.output.as_str(), fine.is_error), ("", false));
        assert_eq!(fine.metadata["exitCode"], 1);
    }

    #[test]
    fn signals_and_lost_processes_are_told_apart() {
        let killed = ended("part", "", Exit::Signal(9), true).unwrap();
        assert!(killed.is_error);
        assert_eq!(
            (killed.output.as_str(), &killed.metadata["signal"]),
            ("part", &9.into())
        );
        let lost = ended("", "bye", Exit::Lost, true).unwrap_err();
        assert_eq!(lost.code, ErrorCode::Crashed);
        assert!(lost.message.contains("bye"));
    }
}
