//! Runs one command behind walls, to look around in there: `confine A|C|B POLICY FOLDER PROGRAM [ARGUMENT…]`.
//!
//! POLICY is JSON; a hyphen stands for the default of a tool in that folder.

use std::path::Path;
use std::process::ExitCode;

use tokio::io::AsyncReadExt;
use toolcrib_sandbox::{Command, Environment, Exit, Launcher, Policy, Rung, StartError, launcher};

fn main() -> ExitCode {
    if let Some(code) = launcher::run_if_asked() {
        return code;
    }
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [rung, policy, folder, program, rest @ ..] = &args[..] else {
        return ExitCode::from(2);
    };
    let policy = match policy.as_str() {
        "-" => Ok(Policy::default_for(Path::new(folder), None)),
        text => serde_json::from_str(text),
    };
    let (Some(rung), Ok(policy), Ok(runtime)) = (
        Rung::from_letter(rung),
        policy,
        tokio::runtime::Runtime::new(),
    ) else {
        return ExitCode::from(2);
    };
    let command = Command::new(program, folder, policy).args(rest);
    match runtime.block_on(run(command, &Launcher::current().at_most(rung))) {
        Ok(Exit::Code(code)) => ExitCode::from(code as u8),
        Ok(exit) => {
            say(&format!("{exit:?}\n"));
            ExitCode::FAILURE
        }
        Err(error) => {
            say(&format!("{error}\n"));
            ExitCode::from(125)
        }
    }
}

#[expect(clippy::print_stderr, reason = "it is for people to look at")]
fn say(text: &str) {
    eprint!("{text}");
}

async fn run(command: Command, launcher: &Launcher) -> Result<Exit, StartError> {
    #[expect(
        clippy::disallowed_methods,
        reason = "an example has no other place to read it"
    )]
    let environment = Environment::from_vars(std::env::vars_os());
    let mut child = command.spawn(launcher, &environment).await?;
    if let Some(account) = child.account() {
        say(&format!(
            "rung {}: {}\n",
            account.rung.letter(),
            account.enforced
        ));
    }
    let (mut out, mut err) = (String::new(), String::new());
    if let (Some(stdout), Some(stderr)) = (&mut child.stdout, &mut child.stderr) {
        tokio::try_join!(
            stdout.read_to_string(&mut out),
            stderr.read_to_string(&mut err)
        )?;
    }
    say(&format!("{out}{err}"));
    Ok(child.wait().await?)
}
