//! A process that writes to a store; the tests start it, share a file with it, and kill it.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program for tests: it may panic, and it speaks to the one who started it"
)]

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use toolcrib_core::counter::{CallLimit, CounterStep, CounterSteps, Exit};
use toolcrib_core::store::{CallBook, CallRecord, CustomTool, Level, Recorded, StoreError};
use toolcrib_store::{CallFilter, Store, StoreUrl};

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["register", url, prefix, count] => register(url, prefix, count.parse().unwrap()).await,
        ["change", url, seed] => change(url, seed.parse().unwrap()).await,
        ["die", url, name] => die(url, name).await,
        ["try", url] => try_once(url).await,
        ["count", url, count, limit] => {
            count_calls(url, count.parse().unwrap(), limit.parse().unwrap()).await
        }
        ["fill", folder] => fill(Path::new(folder)).await,
        ["calls", url, count] => calls(url, count.parse().unwrap()).await,
        _ => panic!("{arguments:?}"),
    }
}

async fn open(url: &str) -> Store {
    Store::open(&url.parse().unwrap()).await.unwrap()
}

/// So many calls, eight at a time, of which every fifth that is let through never starts. Says how many started.
async fn count_calls(url: &str, count: u64, limit: u64) {
    let store = open(url).await;
    let tasks: Vec<_> = (0..8)
        .map(|task| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut started = 0_u64;
                for n in 0..count / 8 {
                    let Ok(at_ms) = store.count(steps(limit)).await.unwrap() else {
                        continue;
                    };
                    if (n + task) % 5 > 0 {
                        started += 1;
                        continue;
                    }
                    let back = steps(limit);
                    let back = back
                        .iter()
                        .map(|(key, step)| (key.clone(), step.undone(at_ms).unwrap()));
                    store.count_later(back.collect());
                }
                started
            })
        })
        .collect();
    let mut started = 0;
    for task in tasks {
        started += task.await.unwrap();
    }
    // What nobody waits for is done before what is asked for behind it.
    store.count(CounterSteps::new()).await.unwrap().unwrap();
    println!("{started}");
}

/// What one call of an agent is counted by.
fn steps(limit: u64) -> CounterSteps {
    let call = CounterStep::Call {
        per_minute: Some(limit),
        bytes_per_day: None,
    };
    let thread = CounterStep::ToolCall {
        tool: "search".into(),
        run: None,
        limits: Arc::new([CallLimit {
            tool: None,
            thread: Some(limit),
            run: None,
            exit: Exit::Continue,
        }]),
    };
    vec![("agent a".into(), call), ("thread t".into(), thread)]
}

fn tool(name: &str, number: u64) -> CustomTool {
    let text = number.to_string();
    let mut tool = CustomTool::new(name, &text);
    tool.description.clone_from(&text);
    tool.version.clone_from(&text);
    tool.args = vec![text.clone()];
    tool.tags = vec![text.clone()];
    tool.env.0.insert("N".to_owned(), text.clone());
    tool.metadata.insert("n".to_owned(), number.into());
    tool.timeout_ms = number;
    tool.content_hash = text;
    tool
}

fn call(n: u64) -> CallRecord {
    CallRecord {
        id: uuid::Uuid::now_v7().to_string().into(),
        at_ms: 1_700_000_000_000 + n,
        client: "claude-code".into(),
        agent: "default".into(),
        session: Some("0198c0de-0000-7000-8000-000000000000".into()),
        project: None,
        token: None,
        tool: "git-status".into(),
        tool_version: Some("1.0.0".into()),
        tool_hash: Some("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08".into()),
        argument_hash: Some(
            "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08".to_owned(),
        ),
        transport: Level::Ok,
        protocol: Level::Ok,
        outcome: Level::Ok,
        error: None,
        duration_us: 1_234,
        output_bytes: 567,
        marks: Vec::new(),
        decision: None,
    }
}

/// So many registrations, none of which may fail.
async fn register(url: &str, prefix: &str, count: u64) {
    let store = open(url).await;
    for n in 0..count {
        store
            .custom_tools()
            .create(tool(&format!("{prefix}-{n}"), n))
            .await
            .unwrap();
    }
}

/// Says `? name number` before each change and `! name number` after it, until it is killed.
async fn change(url: &str, seed: u64) {
    let store = open(url).await;
    let log = store.call_log();
    let mut tasks = Vec::new();
    for task in 0..4 {
        let store = store.clone();
        tasks.push(tokio::spawn(change_some(store, task, seed ^ task)));
    }
    loop {
        log.record(call(1));
        // sleeps: the pace of the calls, which others write beside
        tokio::time::sleep(Duration::from_micros(200)).await;
    }
}

async fn change_some(store: Store, task: u64, seed: u64) {
    let tools = store.custom_tools();
    let mine = format!("t{task}-");
    let all = tools.list(None, 0, 1_000).await.unwrap().tools;
    let all = all.into_iter().filter(|tool| tool.name.starts_with(&mine));
    let mut there: HashMap<String, CustomTool> =
        all.map(|tool| (tool.name.clone(), tool)).collect();
    let mut dice = seed | 1;
    loop {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        let name = format!("{mine}{}", dice % 5);
        let number = dice >> 40;
        match there.remove(&name) {
            None => {
                say('?', &name, Some(number));
                let made = tools.create(tool(&name, number)).await.unwrap();
                say('!', &name, Some(number));
                there.insert(name, made);
            }
            Some(old) if (dice >> 20) % 5 < 3 => {
                let mut new = tool(&name, number);
                (new.id, new.revision) = (old.id, old.revision);
                say('?', &name, Some(number));
                let made = tools.update(new).await.unwrap();
                say('!', &name, Some(number));
                there.insert(name, made);
            }
            Some(_) => {
                say('?', &name, None);
                assert!(tools.delete(&name).await.unwrap());
                say('!', &name, None);
            }
        }
    }
}

/// One line in one write: a pipe takes it whole, so a kill leaves no half line.
fn say(mark: char, name: &str, number: Option<u64>) {
    let number = number.map_or("-".to_owned(), |number| number.to_string());
    let line = format!("{mark} {name} {number}\n");
    std::io::stdout().write_all(line.as_bytes()).unwrap();
}

/// Opens and writes once; says `fine`, or which error it was.
/// Registers a tool, and ends without closing anything.
async fn die(url: &str, name: &str) {
    let store = open(url).await;
    let made = store.custom_tools().create(tool(name, 1)).await;
    made.unwrap();
    std::process::abort();
}

async fn try_once(url: &str) {
    let url: StoreUrl = url.parse().unwrap();
    let tried = async {
        let store = Store::open(&url).await?;
        store
            .custom_tools()
            .create(tool(&uuid::Uuid::now_v7().to_string(), 1))
            .await?;
        store.close().await;
        Ok(())
    };
    match tried.await {
        Ok(()) => println!("fine"),
        Err(error) => println!("{} {error}", kind(&error)),
    }
}

fn kind(error: &StoreError) -> String {
    let shown = format!("{error:?}");
    shown.split(' ').next().unwrap_or_default().to_owned()
}

/// Fills the disk, writes against it, makes room, and looks whether anything was lost.
async fn fill(folder: &Path) {
    let url = StoreUrl::in_folder(folder);
    let store = Store::open(&url).await.unwrap();
    let tools = store.custom_tools();
    let log = store.call_log();
    let mut acknowledged = Vec::new();
    for n in 0..20 {
        acknowledged.push(tools.create(tool(&format!("before-{n}"), n)).await.unwrap());
    }
    let filler = folder.join("filler");
    let mut file = std::fs::File::create(&filler).unwrap();
    while file.write_all(&[0; 4_096]).is_ok() {}

    let mut n = 0;
    let error = loop {
        n += 1;
        match tools.create(tool(&format!("full-{n}"), n)).await {
            Ok(made) => acknowledged.push(made),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
    let error = tools.delete("before-1").await;
    assert!(!matches!(error, Ok(false)), "{error:?}");
    if error.is_ok() {
        acknowledged.retain(|tool| tool.name != "before-1");
    }
    assert_eq!(log.record(call(1)), Recorded::Queued);
    let error = log.flush(Duration::from_secs(20)).await.unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
    assert_eq!(log.state().trouble, Some(error));
    let error = log.record_durably(call(2)).await.unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
    // All that was acknowledged can be read, here and by every other process.
    same(&store, &acknowledged).await;
    let other = Store::open(&url).await;
    match &other {
        Ok(other) => same(other, &acknowledged).await,
        Err(error) => panic!("{error:?}"),
    }
    let error = Store::open(&StoreUrl::sqlite(folder.join("new.db")))
        .await
        .err()
        .unwrap();
    assert!(matches!(error, StoreError::Full { .. }), "{error:?}");

    drop(file);
    std::fs::remove_file(&filler).unwrap();
    acknowledged.push(tools.create(tool("after", 1)).await.unwrap());
    log.flush(Duration::from_secs(20)).await.unwrap();
    assert_eq!(log.state().trouble, None);
    // What was queued was written at last; what was refused was not.
    assert_eq!(
        store
            .calls()
            .list(&CallFilter::default(), None, 9)
            .await
            .unwrap()
            .calls
            .len(),
        1
    );
    store.close().await;
    let store = Store::open(&url).await.unwrap();
    same(&store, &acknowledged).await;
    store.check().await.unwrap();
    println!("fine");
}

async fn same(store: &Store, acknowledged: &[CustomTool]) {
    let mut expected = acknowledged.to_vec();
    expected.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!(
        store
            .custom_tools()
            .list(None, 0, 10_000)
            .await
            .unwrap()
            .tools,
        expected
    );
}

/// How fast calls are handed in, written and read back.
async fn calls(url: &str, count: u64) {
    let store = open(url).await;
    let log = store.call_log();
    let mut handing: Vec<Duration> = Vec::new();
    let began = Instant::now();
    for n in 0..count {
        let record = call(n);
        loop {
            let before = Instant::now();
            let kept = log.record(record.clone());
            handing.push(before.elapsed());
            if kept == Recorded::Queued {
                break;
            }
            // sleeps: the queue is full, because this is faster than it can be written
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    log.flush(Duration::from_secs(600)).await.unwrap();
    let written = began.elapsed();
    handing.sort();
    let at = |part: usize| handing[handing.len() * part / 100];
    println!("record: p50 {:?}, p99 {:?}", at(50), at(99));
    println!(
        "{count} calls written in {written:?}: {:.0} a second",
        count as f64 / written.as_secs_f64()
    );
    let began = Instant::now();
    let (mut read, mut after) = (0, None);
    loop {
        let page = store
            .calls()
            .list(&CallFilter::default(), after.as_ref(), 100)
            .await
            .unwrap();
        read += page.calls.len();
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    println!("{read} calls read by pages of 100 in {:?}", began.elapsed());
}
