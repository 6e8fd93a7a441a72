//! What several tests of this crate need: tools, a crib to call them in, and a place where nothing is kept.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::{
    Access, BoxFuture, Call, CallResult, Caller, ChainSettings, Context, Crib, Outcome, OutputId,
    Outputs, Page, Profiles, Rank, Request, Run, Schema, SourceKey, SourceKind, Spec, Spool, Tool,
    ToolName, Update, Whole,
};

/// Keeps nothing.
pub struct NoOutputs;

impl Outputs for NoOutputs {
    fn keep<'a>(&'a self, _: &'a str, _: &'a [u8]) -> BoxFuture<'a, io::Result<Whole>> {
        Box::pin(std::future::ready(Err(io::ErrorKind::StorageFull.into())))
    }

    fn spool<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Box<dyn Spool>>> {
        Box::pin(std::future::ready(Err(io::ErrorKind::StorageFull.into())))
    }

    fn read<'a>(
        &'a self,
        _: &'a str,
        _: &'a OutputId,
        _: u64,
        _: usize,
    ) -> BoxFuture<'a, io::Result<Page>> {
        Box::pin(std::future::ready(Err(io::ErrorKind::NotFound.into())))
    }

    fn remove<'a>(&'a self, _: &'a str, _: &'a OutputId) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(std::future::ready(Err(io::ErrorKind::NotFound.into())))
    }
}

/// Says nothing, and well.
pub struct Nothing;

impl Run for Nothing {
    fn run<'a>(&'a self, _: &'a Call) -> BoxFuture<'a, CallResult> {
        Box::pin(async { Ok(Outcome::text("")) })
    }
}

pub fn spec(name: &str) -> Spec {
    Spec::new(
        ToolName::new(name).unwrap(),
        "A tool of a test",
        Schema::any_object(),
    )
}

/// A built-in tool that anybody may call.
pub fn tool(name: &str, run: Arc<dyn Run>) -> Tool {
    Tool::new(spec(name), SourceKind::Builtin, Access::Open, "h", run)
}

/// All that the source of built-in tools has now.
pub fn builtins(tools: impl IntoIterator<Item = Tool>) -> Vec<Update> {
    vec![Update {
        key: SourceKey("builtin".into()),
        rank: Rank::Builtin,
        file: None,
        tools: tools.into_iter().map(Arc::new).collect(),
        problems: Vec::new(),
    }]
}

/// One profile for everybody.
pub fn profiles(default_timeout: Duration) -> Profiles {
    Profiles::everybody(ChainSettings::new(default_timeout))
}

pub fn request(tool: &str, arguments: Value) -> Request {
    let Value::Object(arguments) = arguments else {
        panic!("arguments are named")
    };
    Request {
        tool: tool.into(),
        arguments: arguments.into(),
        caller: Caller::new("test"),
        context: Context::new("0001"),
    }
}

impl Crib {
    /// One call, as a surface makes it.
    pub async fn call(&self, request: Request) -> CallResult {
        let view = self.view(&request.caller.agent);
        Ok(view.call(request).await?.outcome)
    }
}
