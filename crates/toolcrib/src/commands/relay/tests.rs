//! What becomes of lines while cribs come and go, and while one of the two does not read.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, DuplexStream, Lines, ReadHalf, WriteHalf};
use tokio::net::UnixListener;
use tokio::task::JoinHandle;

use super::*;

/// A test that would wait for ever has failed.
const LONG: Duration = Duration::from_secs(60);

/// What a crib answers with its head, or a client with its end.
struct End {
    lines: Lines<BufReader<ReadHalf<Box<dyn Stream>>>>,
    write: WriteHalf<Box<dyn Stream>>,
}

impl End {
    fn of(stream: Box<dyn Stream>) -> End {
        let (read, write) = tokio::io::split(stream);
        End {
            lines: BufReader::new(read).lines(),
            write,
        }
    }

    async fn send(&mut self, text: &str) {
        self.write.write_all(text.as_bytes()).await.unwrap();
        self.write.flush().await.unwrap();
    }

    async fn next(&mut self) -> Option<Value> {
        let line = tokio::time::timeout(LONG, self.lines.next_line()).await;
        let line = line.expect("nothing came").unwrap()?;
        Some(serde_json::from_str(&line).unwrap())
    }
}

/// A crib's socket.
struct Site {
    listener: UnixListener,
    path: PathBuf,
    _folder: tempfile::TempDir,
}

impl Site {
    fn new() -> Site {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        Site {
            listener: UnixListener::bind(&path).unwrap(),
            path,
            _folder: folder,
        }
    }

    /// The crib's end of the next connection.
    async fn accept(&self) -> End {
        let (mut stream, _) = self.listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        let switched = b"HTTP/1.1 101 Switching Protocols\r\n\r\n";
        stream.write_all(switched).await.unwrap();
        End::of(Box::new(stream))
    }

    /// A relay that has found its first crib.
    async fn relayed(&self) -> (End, End, JoinHandle<std::io::Result<()>>) {
        let (near, far): (DuplexStream, DuplexStream) = tokio::io::duplex(4_096);
        let door = Door {
            socket: self.path.clone(),
            session: "s".into(),
            agent: Some("reviewer".to_owned()),
            surface: None,
        };
        let (first, crib) = tokio::join!(connect(&door), self.accept());
        let first = first.unwrap();
        let relay = tokio::spawn(async move {
            let (read, write) = tokio::io::split(far);
            let alone = async |_| -> Box<dyn Stream> { panic!("a crib answers") };
            run(read, write, &door, first, alone).await
        });
        (End::of(Box::new(near)), crib, relay)
    }
}

fn request(id: u64, method: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method})
}

fn result(id: u64) -> String {
    json!({"jsonrpc": "2.0", "id": id, "result": {}}).to_string() + "\n"
}

#[tokio::test]
async fn a_line_that_began_with_one_crib_reaches_the_next_one_whole() {
    let site = Site::new();
    let (mut client, mut crib, _relay) = site.relayed().await;
    client.send(&format!("{}\n", request(1, "ping"))).await;
    assert_eq!(crib.next().await.unwrap()["id"], 1);
    crib.send(&result(1)).await;
    assert_eq!(client.next().await.unwrap()["id"], 1);
    let whole = format!("{}\n", request(2, "ping"));
    let (half, rest) = whole.split_at(1);
    client.send(half).await;
    // It is read before the crib goes: the client's pipe takes no more than it holds.
    client.send(&" ".repeat(5_000)).await;
    drop(crib);
    let mut next = site.accept().await;
    client.send(rest).await;
    assert_eq!(next.next().await.unwrap(), request(2, "ping"));
}

#[tokio::test]
async fn who_has_said_all_still_hears_the_answers() {
    let site = Site::new();
    let (mut client, mut crib, relay) = site.relayed().await;
    client.send(&format!("{}\n", request(1, "ping"))).await;
    client.write.shutdown().await.unwrap();
    assert_eq!(crib.next().await.unwrap()["id"], 1);
    assert_eq!(crib.next().await, None, "it hears that no more will come");
    crib.send(&result(1)).await;
    drop(crib);
    assert_eq!(client.next().await.unwrap()["id"], 1);
    assert_eq!(client.next().await, None);
    relay.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_crib_that_reads_nothing_before_it_is_read_holds_nobody_up() {
    let site = Site::new();
    let (client, mut crib, _relay) = site.relayed().await;
    // More than any socket holds, both ways: the crib reads on only when it has been read.
    let word = "x".repeat(8 * 1_024 * 1_024);
    let asked = json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"word": word}});
    let answered = json!({"jsonrpc": "2.0", "id": 2, "result": {"word": word}});
    let End {
        lines: mut heard,
        write: mut say,
    } = client;
    let asking = async {
        let asked = format!("{asked}\n");
        say.write_all(asked.as_bytes()).await.unwrap();
    };
    let hearing = async { heard.next_line().await.unwrap().unwrap().len() };
    let answering = async {
        crib.lines.get_mut().fill_buf().await.unwrap();
        crib.send(&format!("{answered}\n")).await;
        crib.next().await.unwrap()["id"].clone()
    };
    let all = async { tokio::join!(asking, hearing, answering) };
    let ((), heard, id) = tokio::time::timeout(LONG, all).await.expect("it hangs");
    assert_eq!((heard > word.len(), id), (true, json!(1)));
}

#[tokio::test]
async fn what_a_crib_said_before_it_went_is_told() {
    let site = Site::new();
    let (mut client, mut crib, _relay) = site.relayed().await;
    for id in 1..4 {
        client.send(&format!("{}\n", request(id, "ping"))).await;
    }
    for id in 1..4 {
        assert_eq!(crib.next().await.unwrap()["id"], id);
    }
    crib.send(&(result(1) + &result(2))).await;
    drop(crib);
    let mut next = site.accept().await;
    for id in 1..3 {
        assert_eq!(client.next().await.unwrap()["id"], id);
    }
    assert_eq!(next.next().await.unwrap(), request(3, "ping"));
    next.send(&result(3)).await;
    assert_eq!(client.next().await.unwrap()["id"], 3);
}
