//! A process that is killed while it writes: every change it acknowledged is there, and no half one.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use sqlx::{Connection, PgConnection, Row};
use toolcrib_core::store::CustomTool;

use crate::support::{self, Dice, SOON, Site};

/// What a registration's name has: a number that all its columns repeat, or nothing.
type Content = Option<u64>;

pub async fn acknowledged_changes_survive_kill_9(site: Site) {
    let rounds = if support::soak() { 300 } else { 30 };
    let mut dice = Dice::new();
    let mut known: HashMap<String, Content> = HashMap::new();
    let (mut acknowledged, mut in_flight, mut done_anyway) = (0, 0, 0);
    // Made before the first kill, so that some rounds also kill a process that opens.
    site.open().await.close().await;
    for round in 0..rounds {
        let lines = killed_in_the_middle(&site, &mut dice).await;
        let mut begun: HashMap<String, Content> = HashMap::new();
        for line in &lines {
            let (mark, name, content) = read(line);
            match mark {
                "?" => {
                    begun.insert(name, content);
                }
                _ => {
                    acknowledged += 1;
                    assert_eq!(begun.remove(&name), Some(content), "{line}");
                    known.insert(name, content);
                }
            }
        }
        settled(&site).await;
        let store = site.open().await;
        store.check().await.unwrap();
        let found = store.custom_tools().list(None, 0, 1_000_000).await.unwrap();
        let mut found: HashMap<String, u64> = found
            .tools
            .into_iter()
            .map(|tool| (tool.name.clone(), whole(&tool)))
            .collect();
        store.close().await;
        for (name, content) in &begun {
            in_flight += 1;
            let now = found.get(name).copied();
            let before = known.get(name).copied().flatten();
            assert!(
                now == before || now == *content,
                "round {round}: {name} was {before:?}, was to be {content:?}, is {now:?}"
            );
            done_anyway += u32::from(now == *content);
            known.insert(name.clone(), now);
        }
        for (name, content) in &known {
            let now = found.remove(name);
            assert_eq!(
                now,
                *content,
                "round {round}: {name} of {} lines",
                lines.len()
            );
        }
        assert!(found.is_empty(), "nobody wrote {found:?}");
    }
    eprintln!(
        "{rounds} rounds of kill -9: {acknowledged} acknowledged changes, {in_flight} in flight, {done_anyway} of them done"
    );
    assert!(acknowledged > rounds, "hardly anything was written");
}

/// What the writer said before it died.
async fn killed_in_the_middle(site: &Site, dice: &mut Dice) -> Vec<String> {
    let mut writer = support::run_writer(&["change", &site.url, &dice.roll().to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(writer.stdout.take().unwrap());
    let (first, began) = tokio::sync::oneshot::channel();
    let reader = std::thread::spawn(move || {
        let mut first = Some(first);
        let mut lines = Vec::new();
        for line in output.split(b'\n') {
            lines.push(String::from_utf8(line.unwrap()).unwrap());
            if let Some(first) = first.take() {
                let _ = first.send(());
            }
        }
        lines
    });
    // Sometimes while it opens, mostly while it writes.
    if dice.below(10) > 0 {
        let _ = tokio::time::timeout(SOON, began).await;
    }
    // sleeps: it is killed at a moment that nobody chose
    tokio::time::sleep(Duration::from_micros(dice.roll() % 120_000)).await;
    writer.kill().unwrap();
    writer.wait().unwrap();
    reader.join().unwrap()
}

/// `? name 7`, `! name -`: begun or acknowledged, what, and what it has then.
fn read(line: &str) -> (&str, String, Content) {
    let mut words = line.split(' ');
    let mark = words.next().unwrap();
    let name = words.next().unwrap().to_owned();
    (mark, name, words.next().unwrap().parse().ok())
}

/// The number that every column repeats; a half change would have two.
fn whole(tool: &CustomTool) -> u64 {
    let number: u64 = tool.version.parse().unwrap();
    let text = number.to_string();
    assert_eq!(tool.description, text);
    assert_eq!(tool.command, text);
    assert_eq!(tool.content_hash, text);
    assert_eq!(
        (&tool.args[..], &tool.tags[..]),
        (&[text.clone()][..], &[text.clone()][..])
    );
    assert_eq!(tool.env.0["N"], text);
    assert_eq!(tool.metadata["n"], number);
    assert_eq!(tool.timeout_ms, number);
    number
}

/// A Postgres goes on for a moment with what a killed client sent last.
pub async fn settled(site: &Site) {
    if site.is_sqlite() {
        return;
    }
    let mut db = PgConnection::connect(&site.url).await.unwrap();
    let sql = "SELECT COUNT(*) AS others FROM pg_stat_activity \
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'";
    support::until("no connection but ours is left", async || {
        let row = sqlx::query(sql).fetch_one(&mut db).await.unwrap();
        row.get::<i64, _>("others") == 0
    })
    .await;
    db.close().await.unwrap();
}
