//! Many who say nothing, or say it slowly, and show no token: they don't keep out those who do.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::json;

use super::world;
use crate::support::{eventually, shell_tool};

/// A third of the crowd each: silent, in the middle of a head, in the middle of a body.
const EACH: usize = 200;
/// What "at once" may take on a busy machine; a place that only a silent connection's time limit frees takes longer.
const SOON: Duration = Duration::from_secs(8);

pub(super) fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    stream
}

fn crowd(port: u16) -> Vec<TcpStream> {
    let words = [
        String::new(),
        format!("GET /api/tools HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nX-Slow: "),
        format!(
            "POST /api/tools/greet/call HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 1000\r\n\r\n{{"
        ),
    ];
    let each = |n: usize| {
        let mut stream = connect(port);
        let _ = stream.write_all(words[n % 3].as_bytes());
        stream
    };
    (0..3 * EACH).map(each).collect()
}

/// One request on a connection that stays open, and the status of its answer.
fn ask(stream: &mut TcpStream, port: u16, token: &str) -> io::Result<u16> {
    send(stream, port, token)?;
    receive(stream)
}

fn send(stream: &mut TcpStream, port: u16, token: &str) -> io::Result<()> {
    let head = format!("GET /api/tools/greet HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n");
    stream.write_all(format!("{head}Authorization: Bearer {token}\r\n\r\n").as_bytes())
}

/// The status of an answer, which is read whole.
pub(super) fn receive(stream: &mut TcpStream) -> io::Result<u16> {
    let mut read = Vec::new();
    let mut chunk = [0; 4_096];
    loop {
        let text = String::from_utf8_lossy(&read).to_ascii_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let field = |line: &str| line.strip_prefix("content-length: ")?.parse::<usize>().ok();
            let length = head.lines().find_map(field).unwrap_or(0);
            if body.len() >= length {
                return Ok(head[9..12].parse().unwrap());
            }
        }
        match stream.read(&mut chunk)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => read.extend_from_slice(&chunk[..count]),
        }
    }
}

/// Has the other side closed it?
fn is_closed(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let mut chunk = [0; 4_096];
    loop {
        match stream.read(&mut chunk) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() != io::ErrorKind::WouldBlock,
        }
    }
}

#[tokio::test]
async fn a_crowd_without_tokens_keeps_nobody_out_and_is_sent_away() {
    let world = world();
    let mut crib = world.serve_closed();
    let token = world.token("mine", "read");
    crib.show(Some(&token));
    let port = crib.port();
    let mut kept = connect(port);
    assert_eq!(ask(&mut kept, port, &token).unwrap(), 200);
    let mut events = crib.events().await;

    let mut crowd = crowd(port);
    // A new connection with a token is answered, and so is every further one.
    for _ in 0..3 {
        let mut fresh = connect(port);
        assert_eq!(ask(&mut fresh, port, &token).unwrap(), 200);
    }
    // What was open before stays open: an idle connection, and a stream.
    assert_eq!(ask(&mut kept, port, &token).unwrap(), 200);
    world.write_tool("other.json", shell_tool("other", "echo other", json!({})));
    events.next("tools_changed").await;
    // No place is taken for longer than a stranger's time.
    eventually("the crowd was sent away", || {
        crowd.retain_mut(|stream| !is_closed(stream));
        std::future::ready(crowd.is_empty())
    })
    .await;
    assert_eq!(ask(&mut kept, port, &token).unwrap(), 200);
}

#[tokio::test]
async fn many_who_show_tokens_at_once_are_all_served() {
    let world = world();
    let crib = world.serve_closed();
    let token = world.token("mine", "read");
    let port = crib.port();
    let each = |_| {
        let mut stream = connect(port);
        send(&mut stream, port, &token).unwrap();
        stream
    };
    let mut streams: Vec<TcpStream> = (0..2 * EACH).map(each).collect();
    for stream in &mut streams {
        assert_eq!(receive(stream).unwrap(), 200);
    }
}
