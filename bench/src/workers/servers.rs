//! All that is measured, started and asked in the same way.

use std::time::{Duration, Instant};

use super::{
    ARGUMENTS, Ask, FILE, POOL, Pipe, Running, WARM, World, holds, legacy, ours, own, pin_tree,
    python, stateless_call,
};

pub const FLOOR_ECHO: &str = "bare axum echo";
pub const FLOOR_PIPE: &str = "bare pipe";
pub const OURS_HTTP: &str = "toolcrib, HTTP";
pub const OURS_FILE: &str = "toolcrib, .py file";
pub const OURS_STDIO: &str = "toolcrib, stdio";
pub const FAST: &str = "FastMCP";
pub const SDK: &str = "Python SDK";

/// What a worker is sent for the same call.
const EXECUTE: &str = r#"{"jsonrpc":"2.0","id":"ID","method":"execute","params":{"input":{"text":"some text"},"context":{"runId":"019a8c5e-0000-7000-8000-000000000000","executionId":"019a8c5e-0000-7000-8000-000000000000","workingDir":"/tmp/project","timeout":29999,"callId":"019a8c5e-0000-7000-8000-000000000000","agent":"bench","profile":"default","directory":"/tmp/project"}}}"#;

/// How a server is reached.
pub enum Way {
    Http(Running, Ask),
    /// As many processes as the pool has, each asked one thing at a time.
    Pipes(Vec<Pipe>),
    /// One process that takes many requests at once.
    Stdio(Pipe),
}

impl Way {
    pub fn pids(&self) -> Vec<u32> {
        match self {
            Way::Http(running, _) => vec![running.id()],
            Way::Pipes(pipes) => pipes.iter().map(Pipe::id).collect(),
            Way::Stdio(pipe) => vec![pipe.id()],
        }
    }

    pub fn pin(&self, core: usize) {
        self.pids().into_iter().for_each(|pid| pin_tree(pid, core));
    }

    /// One call at a time: is it answered?
    pub fn asks(&mut self) -> Option<Box<dyn FnMut() -> bool + '_>> {
        match self {
            Way::Http(running, ask) => {
                let mut client = ask.client(running.port)?;
                Some(Box::new(move || client.ask().is_ok_and(holds)))
            }
            Way::Pipes(pipes) => {
                let pipe = pipes.first_mut()?;
                Some(Box::new(|| {
                    pipe.ask().is_some_and(|line| holds(line.as_bytes()))
                }))
            }
            Way::Stdio(pipe) => Some(Box::new(|| {
                pipe.ask().is_some_and(|line| holds(line.as_bytes()))
            })),
        }
    }

    /// Keeps so many calls in flight for a while; how long each took.
    pub fn busy(&mut self, clients: usize, time: Duration) -> Option<Vec<Duration>> {
        match self {
            Way::Http(running, ask) => http(running.port, ask, clients, time),
            Way::Pipes(pipes) => std::thread::scope(|scope| {
                let pipes = pipes.iter_mut().take(clients);
                let all: Vec<_> = pipes
                    .map(|pipe| scope.spawn(move || pipe.busy(1, time)))
                    .collect();
                together(all.into_iter().map(|one| one.join().ok().flatten()))
            }),
            Way::Stdio(pipe) => pipe.busy(clients, time),
        }
    }
}

fn http(port: u16, ask: &Ask, clients: usize, time: Duration) -> Option<Vec<Duration>> {
    let begun = Instant::now();
    let busy = || {
        let mut client = ask.client(port)?;
        let mut took = Vec::new();
        while begun.elapsed() < time {
            let start = Instant::now();
            if !client.ask().is_ok_and(holds) {
                return None;
            }
            took.push(start.elapsed());
        }
        Some(took)
    };
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..clients).map(|_| scope.spawn(busy)).collect();
        together(all.into_iter().map(|one| one.join().ok().flatten()))
    })
}

fn together(parts: impl Iterator<Item = Option<Vec<Duration>>>) -> Option<Vec<Duration>> {
    parts
        .collect::<Option<Vec<_>>>()
        .map(|parts| parts.concat())
}

/// The bare program.
pub fn pipe(world: &World) -> Option<Pipe> {
    Pipe::start(world.program(), EXECUTE)
}

/// All servers that could be started, the floors first.
pub struct Servers {
    pub all: Vec<(&'static str, Way)>,
}

impl Servers {
    /// Nothing where one of ours does not start; a peer may be missing.
    pub fn start(world: &World) -> Option<Servers> {
        let (_, body) = stateless_call(WARM, ARGUMENTS);
        let bare = Ask {
            path: "/echo",
            headers: String::new(),
            body: body.clone(),
        };
        let pipes = (0..POOL).map(|_| pipe(world));
        let stdio = Pipe::start(world.mcp(), &body.replacen(r#""id":1"#, r#""id":ID"#, 1))?;
        let mut all = vec![
            (FLOOR_ECHO, Way::Http(own("__echo")?, bare)),
            (FLOOR_PIPE, Way::Pipes(pipes.collect::<Option<_>>()?)),
            (OURS_HTTP, Way::Http(world.serve()?, ours(WARM))),
            (OURS_FILE, Way::Http(world.serve()?, ours(FILE))),
            (OURS_STDIO, Way::Stdio(stdio)),
        ];
        let (headers, body) = legacy(WARM, ARGUMENTS);
        for (name, server) in [(FAST, "fast.py"), (SDK, "server.py")] {
            let ask = Ask {
                path: "/mcp",
                headers: headers.clone(),
                body: body.clone(),
            };
            match python(server) {
                Some(running) => all.push((name, Way::Http(running, ask))),
                None => println!("  {name} could not be started; `make test` installs it"),
            }
        }
        Some(Servers { all })
    }
}
