//! A warm Python echo as an executable tool, over MCP: against what it is made of (a bare axum echo, and the very same
//! program asked over pipes), against the same function in FastMCP and in the official SDK, and against starting a
//! process for each call.

use std::time::{Duration, Instant};

use toolcrib_sandbox::Launcher;

use crate::calls::{Ask, PATIENCE, Running, layouts, own};
use crate::cores::{self, is_tree_pinned, pin_self, pin_tree};
use crate::mcp::{legacy, python, stateless_call};
use crate::stats::{Samples, ratio, verdict};

mod pipe;
mod servers;
mod world;

#[path = "../../crates/sandbox/examples/spawn_cost/measure.rs"]
mod spawn_cost;

use pipe::Pipe;
use servers::{FAST, FLOOR_ECHO, FLOOR_PIPE, OURS_FILE, OURS_HTTP, OURS_STDIO, SDK, Servers, Way};
use world::{FILE, ONCE, POOL, WARM, World};

const TEXT: &str = "some text";
const ARGUMENTS: &str = r#"{"text":"some text"}"#;
/// Blocks of calls alternate between all servers, so that noise meets each of them.
const BLOCKS: usize = 20;
const BLOCK: usize = 200;
/// Peers take that much longer.
const PEER_BLOCK: usize = 20;
const CLIENTS: [usize; 3] = [1, 8, 32];
const ROUNDS: usize = 3;
const BUSY: Duration = Duration::from_secs(1);
const SPAWNS: usize = 200;
/// The aims: against the sum of the floors, and against FastMCP.
const TIMES_FLOORS: f64 = 3.0;
const TIMES_FAST: f64 = 15.0;

pub fn run() {
    let Some(world) = World::new() else {
        println!("\nworkers: could not be measured (is `toolcrib` built beside the bench?)");
        return;
    };
    for (what, client, server) in layouts() {
        println!(
            "\nwarm Python echo, one call at a time, client and server on {what}; the server with its workers ({} calls each, peers {})",
            BLOCKS * BLOCK,
            BLOCKS * PEER_BLOCK
        );
        told(latency(&world, client, server));
    }
    pin_self(&cores::all());
    println!("\nwarm Python echo, many calls at once, `poolSize` {POOL}, every core free");
    told(throughput(&world));
    println!("\nwarm worker against a process for each call, over HTTP");
    told(keep_alive(&world));
    println!("\nstart to end of /bin/true, plainly and through the launcher ({SPAWNS} each)");
    told(spawns(&world));
}

fn told(measured: Option<()>) {
    if measured.is_none() {
        println!("  could not be measured: something did not start, answer or stay on its core");
    }
}

/// One server, and how long its calls took.
struct Lane<'a> {
    name: &'static str,
    /// Where the asking is done.
    core: usize,
    calls: usize,
    ask: Box<dyn FnMut() -> bool + 'a>,
    samples: Samples,
}

impl<'a> Lane<'a> {
    fn new(name: &'static str, way: &'a mut Way, core: usize) -> Option<Lane<'a>> {
        Some(Lane {
            name,
            core,
            calls: match name {
                FAST | SDK => PEER_BLOCK,
                _ => BLOCK,
            },
            ask: way.asks()?,
            samples: Samples::default(),
        })
    }

    fn block(&mut self, calls: usize) -> Option<Vec<Duration>> {
        pin_self(&[self.core]);
        let begun = Instant::now();
        let mut took = Vec::with_capacity(calls);
        for _ in 0..calls {
            let start = Instant::now();
            if !(self.ask)() || begun.elapsed() > PATIENCE {
                return None;
            }
            took.push(start.elapsed());
        }
        Some(took)
    }
}

/// Asks all of them by turns.
fn by_turns(lanes: &mut [Lane]) -> Option<()> {
    for _ in 0..BLOCKS {
        for lane in lanes.iter_mut() {
            let took = lane.block(lane.calls)?;
            lane.samples.extend(took);
        }
    }
    Some(())
}

fn latency(world: &World, client: usize, server: usize) -> Option<()> {
    let mut servers = Servers::start(world)?;
    servers.all.iter().for_each(|(_, way)| way.pin(server));
    let lanes = servers.all.iter_mut();
    let lanes = lanes.map(|(name, way)| {
        // The bare program is asked from where the crib would ask it.
        let core = if *name == FLOOR_PIPE { server } else { client };
        Lane::new(name, way, core)
    });
    let mut lanes = lanes.collect::<Option<Vec<_>>>()?;
    for lane in &mut lanes {
        lane.block(lane.calls)?;
    }
    by_turns(&mut lanes)?;
    let measured: Vec<_> = lanes
        .into_iter()
        .map(|lane| (lane.name, lane.samples))
        .collect();
    for (name, samples) in &measured {
        println!("  {name:<18} {}", samples.line());
    }
    // Workers are started by the crib: they are where it is, or the figures mean something else.
    let ours = servers
        .all
        .iter()
        .filter(|(name, _)| [OURS_HTTP, OURS_FILE, OURS_STDIO].contains(name));
    if !ours
        .into_iter()
        .all(|(_, way)| way.pids().iter().all(|pid| is_tree_pinned(*pid, server)))
    {
        return None;
    }
    let of = |wanted| {
        measured
            .iter()
            .find(|(name, _)| *name == wanted)
            .map(|(_, samples)| samples.at(50))
    };
    let (floors, ours) = (of(FLOOR_ECHO)? + of(FLOOR_PIPE)?, of(OURS_HTTP)?);
    let times = ratio(ours, floors);
    println!(
        "  HTTP against the sum of the floors, {floors:.1?}: {times:.2} at p50 (aim ≤ {TIMES_FLOORS}): {}",
        verdict(times <= TIMES_FLOORS)
    );
    println!(
        "  stdio against the pipe: {:.2} at p50",
        ratio(of(OURS_STDIO)?, of(FLOOR_PIPE)?)
    );
    for peer in [FAST, SDK] {
        if let Some(theirs) = of(peer) {
            println!(
                "  {peer} takes {:.1} times as long as HTTP at p50",
                ratio(theirs, ours)
            );
        }
    }
    Some(())
}

fn throughput(world: &World) -> Option<()> {
    let mut servers = Servers::start(world)?;
    for (_, way) in &mut servers.all {
        way.busy(POOL, BUSY / 4)?;
    }
    let mut rates = Vec::new();
    for clients in CLIENTS {
        let mut totals: Vec<_> = servers
            .all
            .iter()
            .map(|_| (Samples::default(), 0.0))
            .collect();
        for _ in 0..ROUNDS {
            for ((_, way), (samples, seconds)) in servers.all.iter_mut().zip(&mut totals) {
                let start = Instant::now();
                samples.extend(way.busy(clients, BUSY)?);
                *seconds += start.elapsed().as_secs_f64();
            }
        }
        println!("  {clients} at once");
        for ((name, _), (samples, seconds)) in servers.all.iter().zip(totals) {
            let rate = samples.len() as f64 / seconds;
            println!("    {name:<18} {rate:>7.0} calls/s  {}", samples.line());
            rates.push((*name, clients, rate));
        }
    }
    let of = |name, clients| {
        let found = rates
            .iter()
            .find(|rate| (rate.0, rate.1) == (name, clients));
        found.map(|rate| rate.2)
    };
    for clients in [8, 32] {
        for (peer, aim) in [(FAST, Some(TIMES_FAST)), (SDK, None)] {
            let Some(theirs) = of(peer, clients) else {
                continue;
            };
            for ours in [OURS_HTTP, OURS_FILE] {
                let times = of(ours, clients)? / theirs.max(0.1);
                let aim = aim.map_or(String::new(), |aim| {
                    format!(" (aim ≥ {aim}): {}", verdict(times >= aim))
                });
                println!("  {ours}: {times:.1} times the calls/s of {peer} at {clients}{aim}");
            }
        }
    }
    Some(())
}

fn keep_alive(world: &World) -> Option<()> {
    let crib = world.serve()?;
    let mut lanes = Vec::new();
    for (name, tool, calls) in [
        ("kept alive", WARM, BLOCK / 2),
        ("spawn per call", ONCE, PEER_BLOCK / 4),
    ] {
        let mut client = ours(tool).client(crib.port)?;
        let ask = Box::new(move || client.ask().is_ok_and(holds));
        lanes.push(Lane {
            name,
            core: 0,
            calls,
            ask,
            samples: Samples::default(),
        });
    }
    // What no crib can save: the program itself starts, answers and ends.
    let bare = || {
        servers::pipe(world)
            .is_some_and(|mut pipe| pipe.ask().is_some_and(|line| holds(line.as_bytes())))
    };
    lanes.push(Lane {
        name: "program alone",
        core: 0,
        calls: PEER_BLOCK / 4,
        ask: Box::new(bare),
        samples: Samples::default(),
    });
    for lane in &mut lanes {
        lane.block(PEER_BLOCK / 4)?;
    }
    by_turns(&mut lanes)?;
    pin_self(&cores::all());
    for lane in &lanes {
        println!("  {:<18} {}", lane.name, lane.samples.line());
    }
    let times = ratio(lanes[1].samples.at(50), lanes[0].samples.at(50));
    println!("  a process for each call takes {times:.1} times as long at p50");
    let times = ratio(lanes[1].samples.at(50), lanes[2].samples.at(50));
    println!("  that is {times:.2} times the program alone");
    Some(())
}

fn spawns(world: &World) -> Option<()> {
    let runtime = tokio::runtime::Runtime::new().ok()?;
    let launcher = Launcher::at(&world.binary);
    let costs = runtime.block_on(spawn_cost::costs(&launcher, SPAWNS))?;
    let plain = costs[0].at(50);
    for cost in costs {
        println!("  {cost}, {:.1} times plain", ratio(cost.at(50), plain));
    }
    Some(())
}

/// A call of our tool over HTTP.
fn ours(tool: &str) -> Ask {
    let (headers, body) = stateless_call(tool, ARGUMENTS);
    Ask {
        path: "/mcp",
        headers,
        body,
    }
}

/// Is this an answer to the call, and not an error?
fn holds(answer: &[u8]) -> bool {
    answer
        .windows(TEXT.len())
        .any(|part| part == TEXT.as_bytes())
}
