//! What the crib lends to its tools, as tests have it: a launcher, and outputs in memory.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use toolcrib_core::call::DEFAULT_AGENT;
use toolcrib_core::{
    BoxFuture, CallResult, Caller, ChainSettings, Context, Crib, OutputId, Outputs, Page, Profile,
    Profiles, Request, Selection, Spool, Whole,
};
use toolcrib_sandbox::{Launcher, Rung};

/// A crib with two agents, who see everything.
pub fn crib(outputs: Arc<dyn Outputs>) -> Crib {
    let agent = |name| {
        let settings = ChainSettings::new(Duration::from_secs(60));
        Profile::new(name, Selection::default(), settings)
    };
    let profiles = Profiles::new(agent(DEFAULT_AGENT), [agent("somebody")]);
    Crib::new(outputs, || 0, profiles)
}

/// A call through the whole chain.
pub async fn call(
    crib: &Crib,
    caller: Caller,
    context: Context,
    tool: &str,
    arguments: Value,
) -> CallResult {
    let request = Request {
        tool: tool.into(),
        arguments: arguments.as_object().unwrap().clone().into(),
        caller,
        context,
    };
    let view = crib.view(&request.caller.agent);
    Ok(view.call(request).await?.outcome)
}

/// Cargo builds examples before it runs tests; they lie beside the test binary's folder.
pub fn launcher() -> Launcher {
    let test = std::env::current_exe().unwrap();
    let built = test
        .parent()
        .and_then(|deps| deps.parent())
        .unwrap()
        .join("examples/sources_launcher");
    assert!(
        built.exists(),
        "{} is built by `cargo test`",
        built.display()
    );
    let launcher = Launcher::at(built);
    #[expect(
        clippy::disallowed_methods,
        reason = "whoever runs the tests chooses how much isolation there is"
    )]
    match std::env::var("TOOLCRIB_MAX_RUNG").as_deref() {
        Ok(letter) => launcher.at_most(Rung::from_letter(letter).unwrap()),
        Err(_) => launcher,
    }
}

type Kept = Arc<Mutex<HashMap<(String, String), Vec<u8>>>>;

/// Keeps outputs in memory.
#[derive(Default)]
pub struct Memory(Kept);

struct MemorySpool {
    kept: Kept,
    owner: String,
    bytes: Vec<u8>,
}

fn keep(kept: &Kept, owner: &str, bytes: Vec<u8>) -> Whole {
    let mut kept = kept.lock().unwrap();
    let id = format!("{:08x}", kept.len());
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
    let whole = Whole {
        id: OutputId::parse(&id).unwrap(),
        bytes: bytes.len() as u64,
        lines,
        cut: false,
    };
    kept.insert((owner.to_owned(), id), bytes);
    whole
}

impl Outputs for Memory {
    fn keep<'a>(&'a self, owner: &'a str, text: &'a [u8]) -> BoxFuture<'a, io::Result<Whole>> {
        Box::pin(async move { Ok(keep(&self.0, owner, text.to_vec())) })
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
            let whole = kept
                .get(&(owner.to_owned(), id.to_string()))
                .ok_or(io::ErrorKind::NotFound)?;
            let from = (offset as usize).min(whole.len());
            let to = from.saturating_add(max).min(whole.len());
            Ok(Page {
                offset,
                bytes: whole[from..to].to_vec(),
                total: whole.len() as u64,
            })
        })
    }

    fn remove<'a>(&'a self, owner: &'a str, id: &'a OutputId) -> BoxFuture<'a, io::Result<()>> {
        let kept = self
            .0
            .lock()
            .unwrap()
            .remove(&(owner.to_owned(), id.to_string()));
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
        Box::pin(async move { Ok(keep(&self.kept, &self.owner, self.bytes)) })
    }
}
