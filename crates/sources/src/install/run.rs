//! One install: the programs that do it, behind their walls.
//!
//! An installer writes the environment's own folder and nothing else, asks the hosts of its index and no others, and runs no
//! further program, unless it has to (`uv`) or building was granted. The mark that an environment is whole lies beside its
//! folder.

use std::fs::{File, TryLockError};
use std::io;
use std::time::Duration;

use toolcrib_sandbox::{Command, Exit, Network, Policy};

use super::index::{Index, Installer};
use super::{Install, Mode, NotInstalled, Step};
use crate::Place;
use crate::executable::bundle;
use crate::process::capture;
use crate::worker::now_ms;

/// How long installing may take.
const LIMIT: Duration = Duration::from_secs(600);
/// How often another process that installs the same is looked after.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How many lines of what the installer said are told.
const LINES: usize = 12;
/// The most cores that an installer takes, in percent of one.
const MOST_CPU_PERCENT: u32 = 64 * 100;

/// Makes the environment, unless another process just did. `whose` is the file that asks for it.
pub async fn install(install: &Install, whose: &str, place: &Place) -> Result<(), NotInstalled> {
    let unwritable = |error: io::Error| NotInstalled {
        message: format!("`{}` can't be written: {error}", install.folder.display()),
        hint: "make room, or set XDG_CACHE_HOME to a folder that this user may write".to_owned(),
    };
    let begun = now_ms();
    let locked = tokio::time::timeout(LIMIT, lock(install)).await;
    let Ok(locked) = locked else {
        return Err(took_too_long());
    };
    let _lock = locked.map_err(unwritable)?;
    if install.is_ready() {
        return Ok(());
    }
    // Another process has just tried.
    if let Some(failed) = install.failed().filter(|failed| failed.at > begun) {
        return Err(failed.why());
    }
    let index = Index::of(install.installer, place);
    if let Some(proxy) = &index.proxy {
        return Err(NotInstalled {
            message: format!(
                "its packages can't be installed through the proxy that {proxy} names: installers reach the hosts of their index directly"
            ),
            hint: format!(
                "name an index that is reached without it in the settings of {}, and start the crib without that proxy",
                install.installer.name()
            ),
        });
    }
    let told = format!("installing packages for {whose}: {}", install.packages);
    tracing::info!("{told}");
    place.scripts.working.send_replace(Some(told));
    let made = tokio::time::timeout(LIMIT, all_steps(install, &index, place)).await;
    place.scripts.working.send_replace(None);
    let made = made.unwrap_or_else(|_| Err(Trouble::Told(took_too_long())));
    if made.is_err() {
        let _ = std::fs::remove_dir_all(&install.folder);
    }
    made.map_err(|trouble| match trouble {
        Trouble::Disk(error) => unwritable(error),
        Trouble::Told(told) => told,
    })
}

fn took_too_long() -> NotInstalled {
    NotInstalled {
        message: format!(
            "installing its packages took more than {} s",
            LIMIT.as_secs()
        ),
        hint:
            "check whether this machine can reach the package index; `toolcrib reload` tries again"
                .to_owned(),
    }
}

enum Trouble {
    Disk(io::Error),
    Told(NotInstalled),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Trouble {
        Trouble::Disk(error)
    }
}

/// Keeps other processes from making the same environment at the same time.
async fn lock(install: &Install) -> io::Result<File> {
    if let Some(parent) = install.folder.parent() {
        std::fs::create_dir_all(parent)?;
    }
    let file = File::create(install.beside("lock"))?;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => tokio::time::sleep(LOOK_EVERY).await,
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

async fn all_steps(install: &Install, index: &Index, place: &Place) -> Result<(), Trouble> {
    let mark = install.beside("complete");
    for old in [std::fs::remove_file(&mark), clear(install)] {
        match old {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    std::fs::create_dir(&install.folder)?;
    for (name, text) in &install.files {
        std::fs::write(install.folder.join(name), text)?;
    }
    let mut frame = None;
    for step in &install.steps {
        run(install, step, index, place)
            .await
            .map_err(Trouble::Told)?;
        frame.get_or_insert_with(|| frame_of(install));
    }
    if frame.is_some_and(|frame| frame != frame_of(install)) {
        return Err(Trouble::Told(NotInstalled {
            message: format!(
                "one of its packages replaces what the environment itself is made of ({})",
                install.frame.join(", ")
            ),
            hint: "look at these packages; don't trust one that replaces the interpreter"
                .to_owned(),
        }));
    }
    for waste in install.waste {
        let _ = std::fs::remove_dir_all(install.folder.join(waste));
    }
    Ok(std::fs::write(mark, "")?)
}

/// What an environment's frame is now: where links lead, and what files hold.
fn frame_of(install: &Install) -> Vec<Option<Vec<u8>>> {
    let held = |name: &&str| {
        let path = install.folder.join(name);
        match std::fs::read_link(&path) {
            Ok(target) => Some(target.into_os_string().into_encoded_bytes()),
            Err(_) => {
                let meta = path.symlink_metadata().ok().filter(|meta| meta.is_file())?;
                Some(bundle::content(&path, &meta).ok()?.to_vec())
            }
        }
    };
    install.frame.iter().map(held).collect()
}

fn clear(install: &Install) -> io::Result<()> {
    std::fs::remove_dir_all(&install.folder)
}

/// What one program of an install may touch.
fn walls(install: &Install, step: &Step, index: &Index) -> Policy {
    Policy {
        // `uv` reads its settings whatever it does.
        read: match step.fetches || install.installer == Installer::Uv {
            true => index.read.clone(),
            false => Vec::new(),
        },
        write: vec![install.folder.clone()],
        exec: step.exec,
        network: match step.fetches {
            true => Network::Index(index.hosts.clone()),
            false => Network::None,
        },
        memory_mb: 4_096,
        cpu_percent: MOST_CPU_PERCENT,
        processes: 512,
        file_mb: 4_096,
        tmp_mb: 4_096,
        ..Policy::default()
    }
}

async fn run(
    install: &Install,
    step: &Step,
    index: &Index,
    place: &Place,
) -> Result<(), NotInstalled> {
    let holding = place.holding(walls(install, step, index));
    let mut command = Command::new(&step.program, &install.folder, holding).args(&step.args);
    if step.fetches {
        for (name, value) in &index.vars {
            command = command.var(name, value);
        }
    }
    for (name, value) in &step.vars {
        command = command.var(name, value);
    }
    let failed = step.failed;
    let done = capture(command, place, "toolcrib").await;
    let done = done.map_err(|error| NotInstalled {
        message: format!("{failed}: {}", error.message),
        hint: error.hint.unwrap_or_default().to_string(),
    })?;
    if done.exit == Exit::Code(0) {
        return Ok(());
    }
    let said = [done.stdout.head.trim_end(), done.stderr.trim_end()].join("\n");
    let lines: Vec<&str> = said
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let last = lines[lines.len().saturating_sub(LINES)..].join("\n");
    let built = match install.mode {
        Mode::Unpacked => {
            "; packages that would have to be built are taken only by tools that were granted `--exec` too"
        }
        Mode::Built => "",
    };
    Err(NotInstalled {
        message: format!("{failed}: {last}"),
        hint: format!(
            "check the names and versions, and whether this machine can reach the package index{built}; `toolcrib reload` tries again"
        ),
    })
}
