//! The command line: THE LIST of commands, one file each.
//!
//! A new command is a file here, a variant of [`Verb`], an arm in [`dispatch`], and a word in [`GROUPS`].

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};
use toolcrib_store::Store;
use tracing_subscriber::filter::{FilterExt, filter_fn};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use crate::audit::LAST_WORDS;
use crate::env::{self, Env};
use crate::failure::Failure;
use crate::log::{Form, Log, REMARK, Sink};
use crate::printer::Printer;

mod agents;
mod approvals;
mod call;
mod calls;
mod completions;
mod connect;
mod context;
mod doctor;
mod errors;
mod grant;
mod health;
mod help;
mod init;
mod lint;
mod list;
mod logs;
mod man;
mod mcp;
mod new;
mod reach;
mod register;
mod relay;
mod reload;
mod sdk;
mod search;
mod serve;
mod show;
mod test;
mod token;
mod transport;
mod trust;
mod unregister;
mod validate;
mod watched;

/// What a command gives when nothing went wrong: its exit code.
pub type Done = Result<u8, Failure>;

#[derive(Debug, Parser)]
#[command(
    name = "toolcrib",
    version,
    about = "The tool crib for AI agents: tools are kept, checked, handed out and signed for",
    help_template = "{about}\n\n{usage-heading} {usage}{after-help}\n\nOptions:\n{options}",
    after_help = GROUPS,
    disable_help_subcommand = true,
    arg_required_else_help = true
)]
pub struct Cli {
    #[command(flatten)]
    pub globals: Globals,
    #[command(subcommand)]
    pub verb: Verb,
}

/// The commands in groups, as `--help` shows them. A test holds it against the real list.
pub const GROUPS: &str = "\
Start:
  init         Make this folder a project with one working tool
  new          Write a new tool from a template, ready to be changed
  sdk          Write the Python or TypeScript SDK as a package, for your editor and your tests
  connect      Print what a coding agent needs to use the tools
  doctor       Show how tools are confined here, and what is wrong

Use:
  list         List the tools there are, and what did not load
  show         Show one tool: where it comes from, its options, its schema
  call         Call a tool
  search       Find the tools that fit what you want to do, as agents do
  test         Call a tool and show validation, timing and stderr
  logs         Show what a tool's worker said on stderr, or the record of calls
  health       Ask a tool's process how it is, starting one if needed
  errors       Show what did not load, and what to do about it
  reload       Read every tool file again
  context      Show what your tools cost a model in every conversation, in tokens
  lint         Look for what makes tools hard to choose, hard to call or costly

Keep:
  trust        Trust a project's tools, or take trust back
  register     Register a program as a tool, in every project
  unregister   Remove a registered tool
  validate     Start a registered tool's program and check that it is what was registered
  grant        Grant a tool what it may do beyond the default, or take it back
  agents       List the agents of your settings, or show what one of them sees and why not
  approvals    List calls that wait for your approval, and decide on them
  token        Make, list and revoke tokens for programs that use HTTP

Serve:
  serve        Serve the tools over HTTP, and follow every change
  mcp          Speak MCP on stdin and stdout, for an agent that starts it
  completions  Print a completion script for your shell
  man          Print the manual page of a command, or write all of them into a folder

`toolcrib help COMMAND` says more, `toolcrib help` lists the guides.

Exit codes: 0 done, 1 the tool reports failure or something did not load,
2 wrong arguments or settings, 3 refused, 4 could not run, 70 a bug in Toolcrib,
130 cancelled with Ctrl-C.";

/// Options that every command takes.
#[derive(Debug, Clone, Args)]
pub struct Globals {
    /// The project, instead of the one around the working directory
    #[arg(long, global = true, value_name = "DIR")]
    pub project: Option<PathBuf>,
    /// Print JSON for programs
    #[arg(long, global = true)]
    pub json: bool,
}

/// A server to talk to, instead of loading the tools here.
#[derive(Debug, Clone, Default, Args)]
pub struct Target {
    /// Talk to the crib that serves at this address
    #[arg(long, value_name = "ADDRESS")]
    pub host: Option<String>,
    /// Talk to the crib that serves on this port
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
    /// The token for that crib; better in TOOLCRIB_TOKEN, where other processes don't see it
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<String>,
    /// Load the tools here, even where a crib serves this project
    #[arg(long)]
    pub standalone: bool,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    Init(init::Init),
    New(new::New),
    Sdk(sdk::Sdk),
    Connect(connect::Connect),
    Doctor(doctor::Doctor),
    List(list::List),
    Show(show::Show),
    Call(call::Call),
    Search(search::Search),
    Test(test::Test),
    Logs(logs::Logs),
    Health(health::Health),
    Errors(errors::Errors),
    Reload(reload::Reload),
    Context(context::Context),
    Lint(lint::Lint),
    Trust(trust::Trust),
    Register(register::Register),
    Unregister(unregister::Unregister),
    Validate(validate::Validate),
    Grant(grant::Grant),
    Agents(agents::Agents),
    Approvals(approvals::Approvals),
    Token(token::Token),
    Serve(serve::Serve),
    Mcp(mcp::Mcp),
    Completions(completions::Completions),
    Man(man::Man),
    Help(help::Help),
}

/// What every command is given.
pub struct Scene {
    pub env: Env,
    pub globals: Globals,
    pub printer: Printer,
}

pub fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return not_understood(&error),
    };
    let mut printer = Printer::new(cli.globals.json);
    let mut env = match Env::read() {
        Ok(env) => env,
        Err(error) => {
            let failure = Failure::new(
                toolcrib_core::ErrorCode::BadRequest,
                "the working directory can't be entered",
            );
            printer.failure(&failure.cause(error).hint("change to a folder that exists"));
            return ExitCode::from(2);
        }
    };
    env.named_project = cli.globals.project.clone();
    let (form, log) = log_to_stderr(&env, &cli);
    printer = printer.with_log(form);
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            let failure = Failure::new(
                toolcrib_core::ErrorCode::Internal,
                "no runtime could be started",
            );
            printer.failure(&failure.cause(error));
            return ExitCode::from(70);
        }
    };
    let scene = Scene {
        env,
        globals: cli.globals,
        printer,
    };
    let done = runtime.block_on(async {
        let done = dispatch(cli.verb, &scene).await;
        // What was written is in the store's file itself then, and a copy of that is whole.
        let _ = tokio::time::timeout(LAST_WORDS, Store::close_all()).await;
        done
    });
    // Threads that wait for the disk must not hold up the exit.
    runtime.shutdown_background();
    log.flush();
    match done {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            printer.failure(&failure);
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Help that was asked for, or what is wrong with the command line, as JSON where that is asked for.
fn not_understood(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    if std::env::args_os().any(|word| word == "--json") {
        let text = error.to_string();
        let message = text.lines().next().unwrap_or_default();
        let message = message.trim_start_matches("error: ");
        let failure = Failure::new(toolcrib_core::ErrorCode::BadRequest, message);
        let failure = failure.hint("`toolcrib help` lists the commands and what they take");
        Printer::new(true).failure(&failure);
    } else {
        let _ = error.print();
    }
    ExitCode::from(2)
}

async fn dispatch(verb: Verb, scene: &Scene) -> Done {
    match verb {
        Verb::Init(command) => command.run(scene).await,
        Verb::New(command) => command.run(scene).await,
        Verb::Sdk(command) => command.run(scene),
        Verb::Connect(command) => command.run(scene),
        Verb::Doctor(command) => command.run(scene).await,
        Verb::Trust(command) => command.run(scene).await,
        Verb::List(command) => command.run(scene).await,
        Verb::Show(command) => command.run(scene).await,
        Verb::Call(command) => command.run(scene).await,
        Verb::Search(command) => command.run(scene).await,
        Verb::Test(command) => command.run(scene).await,
        Verb::Logs(command) => command.run(scene).await,
        Verb::Health(command) => command.run(scene).await,
        Verb::Errors(command) => command.run(scene).await,
        Verb::Reload(command) => command.run(scene).await,
        Verb::Context(command) => command.run(scene).await,
        Verb::Lint(command) => command.run(scene).await,
        Verb::Register(command) => command.run(scene).await,
        Verb::Unregister(command) => command.run(scene).await,
        Verb::Validate(command) => command.run(scene).await,
        Verb::Grant(command) => command.run(scene).await,
        Verb::Agents(command) => command.run(scene).await,
        Verb::Approvals(command) => command.run(scene).await,
        Verb::Token(command) => command.run(scene).await,
        Verb::Serve(command) => command.run(scene).await,
        Verb::Mcp(command) => command.run(scene).await,
        Verb::Completions(command) => command.run(scene),
        Verb::Man(command) => command.run(scene),
        Verb::Help(command) => command.run(scene),
    }
}

/// The whole command line as clap knows it, for completions and the reference.
pub fn command_line() -> clap::Command {
    Cli::command()
}

/// Programs read the log of what runs on; people read what they asked for.
fn log_form(env: &Env, cli: &Cli) -> Form {
    let runs_on = matches!(cli.verb, Verb::Serve(_) | Verb::Mcp(_));
    match env.text(env::LOG_FORMAT) {
        Some("json") => Form::Json,
        Some("text") => Form::Text,
        _ if cli.globals.json => Form::Json,
        _ if runs_on && !std::io::stderr().is_terminal() => Form::Json,
        _ => Form::Text,
    }
}

fn log_to_stderr(env: &Env, cli: &Cli) -> (Form, Sink) {
    // Commands print the problems of tool files themselves, or were asked for something else.
    let default = if matches!(cli.verb, Verb::Serve(_)) {
        "info"
    } else {
        "warn,toolcrib_core::crib=error,toolcrib_sources::worker=error"
    };
    let wanted = env.text(env::LOG).unwrap_or(default);
    let with_remarks = |filter: &str| format!("{filter},{REMARK}=info");
    let filter = tracing_subscriber::EnvFilter::try_new(with_remarks(wanted))
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(with_remarks(default)));
    let (form, sink) = (log_form(env, cli), Sink::stderr());
    // What libraries say of their insides is nobody's business, however much is asked for.
    let ours = filter_fn(|about| {
        let target = about.target();
        target.starts_with("toolcrib") || target == REMARK
    });
    let log = Log::new(form, sink.clone()).with_filter(filter.and(ours));
    let _ = tracing_subscriber::registry().with(log).try_init();
    (form, sink)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        command_line().debug_assert();
    }

    #[test]
    fn every_command_is_in_a_group() {
        let listed: Vec<&str> = GROUPS
            .lines()
            .filter(|line| line.starts_with("  "))
            .filter_map(|line| line.split_whitespace().next())
            .collect();
        let command = command_line();
        let mut real: Vec<&str> = command
            .get_subcommands()
            .map(clap::Command::get_name)
            .collect();
        real.retain(|name| *name != "help");
        assert_eq!(listed, real);
        for subcommand in command.get_subcommands() {
            assert!(
                subcommand.get_about().is_some(),
                "{}",
                subcommand.get_name()
            );
        }
    }
}
