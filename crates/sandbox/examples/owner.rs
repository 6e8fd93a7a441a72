//! An owner of tools that the tests can kill, count and exhaust.

use std::process::ExitCode;

use toolcrib_sandbox::{
    Child, Command, Consent, Environment, Launcher, Rung, StartError, launcher,
};

fn main() -> ExitCode {
    if let Some(code) = launcher::run_if_asked() {
        return code;
    }
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let Ok(runtime) = tokio::runtime::Runtime::new() else {
        return ExitCode::FAILURE;
    };
    let done = runtime.block_on(async {
        match args[..] {
            ["own", rung, script] => own(&at_most(rung), script).await,
            ["count", rung] => count(&at_most(rung)).await,
            ["rung"] => {
                let launcher = Launcher::current();
                run(&launcher, "exit").await?.wait().await?;
                say(&format!("{:?}", launcher.rung()));
                Ok(())
            }
            ["exhaust", limit] => exhaust(limit).await,
            _ => Err(StartError::NotFound(args.join(" "))),
        }
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stdout, reason = "the tests read it")]
fn say(text: &str) {
    println!("{text}");
}

fn at_most(rung: &str) -> Launcher {
    match rung {
        "group" => Launcher::current().at_most(Rung::Group),
        _ => Launcher::current(),
    }
}

/// A shell that carries this owner's mark.
async fn run(launcher: &Launcher, script: &str) -> Result<Child, StartError> {
    #[expect(clippy::disallowed_methods, reason = "the mark comes from the test")]
    let mark = std::env::var("TOOLCRIB_TEST_MARK").unwrap_or_default();
    Command::new("sh", "/", free())
        .args(["-c", script])
        .var("TOOLCRIB_TEST_MARK", mark)
        .piped_stdin()
        .spawn(launcher, &Environment::default())
        .await
}

/// Holds a tool until this process is killed.
async fn own(launcher: &Launcher, script: &str) -> Result<(), StartError> {
    let mut child = run(launcher, script).await?;
    child.wait().await?;
    Ok(())
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

fn children() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    let lists =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok());
    lists
        .map(|list| list.split_ascii_whitespace().count())
        .sum()
}

/// Starts 200 tools, some of which it waits for, drops, kills, or can't start, and counts what it still holds.
async fn count(launcher: &Launcher) -> Result<(), StartError> {
    run(launcher, "exit").await?.wait().await?;
    let before = open_descriptors();
    for round in 0..50 {
        run(launcher, "exit").await?.wait().await?;
        drop(run(launcher, "sleep 600").await?);
        let mut child = run(launcher, "sleep 600").await?;
        child.kill();
        child.wait().await?;
        let program = if round % 2 == 0 {
            "no-such-program"
        } else {
            "/proc/version"
        };
        let environment = Environment::default();
        let started = Command::new(program, "/", free()).spawn(launcher, &environment);
        if started.await.is_ok() {
            return Err(StartError::NotFound("the error".to_owned()));
        }
    }
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(5);
    while (children() > 0 || open_descriptors() != before) && std::time::Instant::now() < deadline {
        // sleeps: how often it is looked at; nothing depends on it
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let more = open_descriptors() as isize - before as isize;
    say(&format!("{more} more descriptors, {} children", children()));
    Ok(())
}

/// Starts a tool, sets the limit of its own user namespace to none, and starts another.
async fn exhaust(limit: &str) -> Result<(), StartError> {
    let map = std::fs::read_to_string("/proc/self/uid_map")?;
    if map.contains("4294967295") {
        return Err(StartError::NotFound("a user namespace of its own".into()));
    }
    let launcher = Launcher::current();
    run(&launcher, "exit").await?.wait().await?;
    std::fs::write(limit, "0")?;
    match run(&launcher, "exit").await {
        Ok(_) => say("it started"),
        Err(error) => say(&error.to_string()),
    }
    Ok(())
}

/// What is compared with walls, or needs none: processes of the tests' own.
fn free() -> Consent {
    #[expect(clippy::disallowed_methods, reason = "a test's own processes")]
    Consent::from_user_settings()
}
