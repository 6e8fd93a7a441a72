//! A small web server, and a mail server that remembers what it is told.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

type Answer = Arc<dyn Fn(&str) -> Vec<u8> + Send + Sync>;

/// Answers by the whole request, and remembers it.
pub struct Web {
    pub port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Web {
    pub async fn start(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Web {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (log, answer): (_, Answer) = (asked.clone(), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (log, answer) = (log.clone(), answer.clone());
                tokio::spawn(serve(stream, log, answer));
            }
        });
        Web { port, asked }
    }

    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

async fn serve(mut stream: TcpStream, log: Arc<Mutex<Vec<String>>>, answer: Answer) {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4_096];
    let request = loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let line = line.to_lowercase();
                line.strip_prefix("content-length: ")?.parse().ok()
            });
            if body.len() >= length.unwrap_or(0) {
                break text;
            }
        }
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => break text,
            Ok(read) => bytes.extend_from_slice(&buffer[..read]),
        }
    };
    let reply = answer(&request);
    log.lock().unwrap().push(request);
    let _ = stream.write_all(&reply).await;
}

pub fn reply(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

pub fn html(body: &str) -> Vec<u8> {
    reply(
        "200 OK",
        "Content-Type: text/html; charset=utf-8\r\n",
        body.as_bytes(),
    )
}

pub fn moved(location: &str) -> Vec<u8> {
    reply("302 Found", &format!("Location: {location}\r\n"), b"")
}

/// What a mail server was told on one connection, line by line.
pub struct Mail {
    pub port: u16,
    told: Arc<Mutex<Vec<String>>>,
}

impl Mail {
    /// One that takes everything, and has these extensions.
    pub async fn start(extensions: &'static str) -> Mail {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let told = Arc::new(Mutex::new(Vec::new()));
        let log = told.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let _ = converse(stream, extensions, &log).await;
            }
        });
        Mail { port, told }
    }

    pub fn told(&self) -> Vec<String> {
        self.told.lock().unwrap().clone()
    }
}

async fn converse(
    stream: TcpStream,
    extensions: &str,
    log: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read).lines();
    write.write_all(b"220 test\r\n").await?;
    let mut data = false;
    while let Some(line) = lines.next_line().await? {
        log.lock().unwrap().push(line.clone());
        let answer = match (data, line.get(..4).unwrap_or(&line)) {
            (true, _) if line == "." => {
                data = false;
                "250 taken\r\n".to_owned()
            }
            (true, _) => continue,
            (_, "EHLO") => format!("250-test\r\n{extensions}250 8BITMIME\r\n"),
            (_, "DATA") => {
                data = true;
                "354 go on\r\n".to_owned()
            }
            (_, "AUTH") => "235 fine\r\n".to_owned(),
            (_, "QUIT") => "221 bye\r\n".to_owned(),
            _ => "250 ok\r\n".to_owned(),
        };
        write.write_all(answer.as_bytes()).await?;
    }
    Ok(())
}
