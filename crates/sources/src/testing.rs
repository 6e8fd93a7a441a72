//! What unit tests need in place of the real crib: outputs in memory, and a place that starts no process.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;
use toolcrib_core::store::{
    CustomTool, LastGood, RegisteredHealth, RegisteredStatus, Registrations, StoreError,
};
use toolcrib_core::{
    BoxFuture, ChainSettings, Crib, OutputId, Outputs, Page, Profiles, Spool, Whole,
};
use toolcrib_sandbox::{Consent, Environment, Launcher};

use crate::script::{ScriptSettings, Scripts};
use crate::{Place, Walls};

/// One profile for everybody.
pub fn profiles() -> Profiles {
    Profiles::everybody(ChainSettings::new(Duration::from_secs(60)))
}

type StoredTexts = Arc<Mutex<HashMap<String, (String, Vec<u8>)>>>;

/// Outputs that live as long as the test.
#[derive(Default)]
pub struct MemoryOutputs(StoredTexts);

struct MemorySpool {
    kept: StoredTexts,
    owner: String,
    bytes: Vec<u8>,
}

fn put(kept: &StoredTexts, owner: String, bytes: Vec<u8>) -> Whole {
    let mut kept = kept.lock().unwrap();
    let id = OutputId::parse(&format!("{:08x}", kept.len() + 1)).unwrap();
    let lines = bytes.iter().filter(|b| **b == b'\n').count() as u64;
    let whole = Whole {
        id: id.clone(),
        bytes: bytes.len() as u64,
        lines,
        cut: false,
    };
    kept.insert(id.as_str().to_owned(), (owner, bytes));
    whole
}

impl Outputs for MemoryOutputs {
    fn keep<'a>(&'a self, owner: &'a str, text: &'a [u8]) -> BoxFuture<'a, io::Result<Whole>> {
        Box::pin(async move { Ok(put(&self.0, owner.to_owned(), text.to_vec())) })
    }

    fn spool<'a>(&'a self, owner: &'a str) -> BoxFuture<'a, io::Result<Box<dyn Spool>>> {
        let spool = MemorySpool {
            kept: self.0.clone(),
            owner: owner.to_owned(),
            bytes: Vec::new(),
        };
        Box::pin(async move { Ok(Box::new(spool) as Box<dyn Spool>) })
    }

    fn read<'a>(
        &'a self,
        owner: &'a str,
        id: &'a OutputId,
        offset: u64,
        max: usize,
    ) -> BoxFuture<'a, io::Result<Page>> {
        Box::pin(async move {
            let kept = self.0.lock().unwrap();
            let found = kept.get(id.as_str()).filter(|(whose, _)| whose == owner);
            let (_, bytes) = found.ok_or(io::ErrorKind::NotFound)?;
            let start = usize::try_from(offset).unwrap().min(bytes.len());
            let end = (start + max).min(bytes.len());
            Ok(Page {
                offset,
                bytes: bytes[start..end].to_vec(),
                total: bytes.len() as u64,
            })
        })
    }

    fn remove<'a>(&'a self, owner: &'a str, id: &'a OutputId) -> BoxFuture<'a, io::Result<()>> {
        let kept = self.0.lock().unwrap().remove(id.as_str());
        let kept = kept.filter(|(whose, _)| whose == owner);
        let removed = kept.map(drop).ok_or(io::ErrorKind::NotFound.into());
        Box::pin(std::future::ready(removed))
    }
}

impl Spool for MemorySpool {
    fn write<'a>(&'a mut self, bytes: &'a [u8]) -> BoxFuture<'a, io::Result<()>> {
        self.bytes.extend_from_slice(bytes);
        Box::pin(std::future::ready(Ok(())))
    }

    fn finish(self: Box<Self>) -> BoxFuture<'static, io::Result<Whole>> {
        Box::pin(async move { Ok(put(&self.kept, self.owner, self.bytes)) })
    }
}

/// A store that has these registrations, or is in trouble.
pub struct Book {
    pub now: Mutex<Result<Vec<CustomTool>, StoreError>>,
    /// Does it answer? It is waited for otherwise.
    pub answers: watch::Sender<bool>,
}

impl Book {
    pub fn with(tools: Vec<CustomTool>) -> Arc<Book> {
        Arc::new(Book {
            now: Mutex::new(Ok(tools)),
            answers: watch::Sender::new(true),
        })
    }
}

impl Registrations for Book {
    fn active(&self) -> BoxFuture<'_, Result<Vec<CustomTool>, StoreError>> {
        Box::pin(async {
            let mut answers = self.answers.subscribe();
            answers.wait_for(|answers| *answers).await.unwrap();
            self.now.lock().unwrap().clone()
        })
    }

    fn set_status<'a>(
        &'a self,
        name: &'a str,
        _: RegisteredStatus,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<CustomTool, StoreError>> {
        Box::pin(std::future::ready(Ok(CustomTool::new(name, "program"))))
    }

    fn set_health<'a>(
        &'a self,
        _: &'a str,
        _: RegisteredHealth,
        _: u64,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Keeps no version of any file.
pub struct NothingKept;

impl LastGood for NothingKept {
    fn read(&self, _: &Path, _: &str) -> Option<Vec<u8>> {
        None
    }

    fn keep(&self, _: &Path, _: &[(String, Vec<u8>)]) {}

    fn forget(&self, _: &Path, _: &[String]) {}

    fn retain(&self, _: &Path, _: &[String]) {}
}

/// A crib without tools.
pub fn crib() -> Arc<Crib> {
    let outputs = Arc::new(MemoryOutputs::default());
    Arc::new(Crib::new(outputs, || 7, profiles()))
}

/// A place in which processes really start, without walls; hosts lie in `cache`.
pub fn running_place(project: &Path, cache: &Path) -> Arc<Place> {
    let vars = [
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("HOME", "/nonexistent"),
    ];
    #[expect(
        clippy::disallowed_methods,
        reason = "what walls do has tests of its own"
    )]
    let consent = Consent::from_user_settings();
    // Cargo builds examples before it runs tests.
    let test = std::env::current_exe().unwrap();
    let built = test.parent().and_then(Path::parent).unwrap();
    let launcher = Launcher::at(built.join("examples/sources_launcher"));
    let environment = Environment::from_vars(vars.map(|(name, value)| (name.into(), value.into())));
    let outputs = Arc::new(MemoryOutputs::default());
    Arc::new(Place {
        walls: Walls {
            none: Some(consent),
            ..Walls::default()
        },
        scripts: Scripts::new(ScriptSettings {
            cache: cache.to_path_buf(),
            ..ScriptSettings::default()
        }),
        ..Place::new(Some(project.into()), launcher, environment, outputs)
    })
}

/// A place around `project` in which only `PATH` and `LANG` are set.
pub fn place(project: Option<&Path>) -> Arc<Place> {
    let vars = [("PATH", "/usr/bin:/bin"), ("LANG", "C.UTF-8")];
    Arc::new(Place::new(
        project.map(Arc::from),
        Launcher::at("/nonexistent"),
        Environment::from_vars(vars.map(|(name, value)| (name.into(), value.into()))),
        Arc::new(MemoryOutputs::default()),
    ))
}
