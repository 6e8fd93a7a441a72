//! A web server of a test's own on loopback: it answers as it was told, and remembers what it was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

pub struct Server {
    pub port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Answers each request line (`GET /path HTTP/1.1`) with what `answer` makes of it. Lives as long as the tests.
    pub fn start(answer: impl Fn(&str) -> String + Send + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                // A client that goes away early is no matter.
                let _ = stream.and_then(|stream| serve(stream, &seen, &answer));
            }
        });
        Server { port, asked }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The request lines so far.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// A whole answer with this status, further header lines and body.
pub fn response(status: &str, headers: &[&str], body: &str) -> String {
    let mut head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n",
        body.len()
    );
    for header in headers {
        head.push_str(header);
        head.push_str("\r\n");
    }
    format!("{head}\r\n{body}")
}

/// An answer that sends the client elsewhere.
pub fn redirect(status: &str, location: &str) -> String {
    response(status, &[&format!("Location: {location}")], "")
}

fn serve(
    mut stream: TcpStream,
    seen: &Mutex<Vec<String>>,
    answer: impl Fn(&str) -> String,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut lines = reader.by_ref().lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    seen.lock().unwrap().push(request.clone());
    stream.write_all(answer(&request).as_bytes())
}
