//! Fuzz target: whatever a process asks of the proxy, what is passed on is one plain request to the host that was checked.

use std::path::Path;
use std::time::Duration;

use toolcrib_fuzz::{Fuzz, corpus};

use super::body::{Body, Follower};
use super::request::Request;
use crate::host::{HostRule, Transport};

/// The fields of a head that was passed on, names in small letters.
fn fields(head: &str) -> Vec<(String, &str)> {
    let lines = head.split("\r\n").skip(1).filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let (name, value) = line.split_once(':').unwrap();
            (name.to_ascii_lowercase(), value.trim())
        })
        .collect()
}

fn check_head(request: &Request) {
    // The host is one that a rule can name, and only that rule allows it.
    let host = match request.host.contains(':') {
        true => format!("[{}]", request.host),
        false => request.host.clone(),
    };
    let port = request.port;
    if let Ok(rule) = format!("{host}:{port}").parse::<HostRule>() {
        assert!(rule.allows(&request.host, port, request.way));
        assert!(!rule.allows(&request.host, port ^ 1, request.way));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
    assert!(!request.host.is_empty() && request.host.chars().all(plain));
    assert_ne!(port, 0);
    if request.way == Transport::Connect {
        assert_eq!(request.body, Body::Length(0));
        return;
    }
    let head = String::from_utf8(request.forwarded()).unwrap();
    // One head, whose lines end as they should and nowhere else.
    assert!(head.ends_with("\r\n\r\n"));
    assert_eq!(head.matches("\r\n\r\n").count(), 1);
    let left = head.replace("\r\n", "");
    assert!(
        !left.chars().any(|c| c.is_control() && c != '\t'),
        "{head:?}"
    );
    let line = head.split("\r\n").next().unwrap();
    let words: Vec<&str> = line.split(' ').collect();
    assert_eq!(words.len(), 3, "{line:?}");
    assert!(words[1].starts_with('/') && words[1].bytes().all(|byte| byte.is_ascii_graphic()));
    assert!(matches!(words[2], "HTTP/1.1" | "HTTP/1.0"));
    let fields = fields(&head);
    let values = |name: &str| -> Vec<&str> {
        let found = fields.iter().filter(|(one, _)| one == name);
        found.map(|(_, value)| *value).collect()
    };
    // Said once, it is the host that was checked.
    let said = values("host");
    assert_eq!(said.len(), 1);
    let again = Request::parse(format!("CONNECT {} HTTP/1.1\r\n\r\n", said[0]).as_bytes());
    match again {
        Some(again) => assert_eq!(
            (again.host.as_str(), again.port),
            (request.host.as_str(), port)
        ),
        None => assert_eq!(port, Transport::Plain.usual_port()),
    }
    assert_eq!(values("connection"), ["close"]);
    for dropped in [
        "proxy-authorization",
        "proxy-connection",
        "upgrade",
        "te",
        "trailer",
        "keep-alive",
    ] {
        assert!(values(dropped).is_empty());
    }
    // One length, read in one way.
    let (lengths, encodings) = (values("content-length"), values("transfer-encoding"));
    match request.body {
        Body::Chunked => {
            assert!(lengths.is_empty() && encodings.len() == 1);
            assert!(encodings[0].eq_ignore_ascii_case("chunked"));
        }
        Body::Length(length) => {
            assert!(encodings.is_empty() && lengths.len() <= 1);
            let said = lengths.first().map_or(0, |length| length.parse().unwrap());
            assert_eq!(length, said);
        }
    }
}

/// Follows a body that comes in pieces: how much of it is passed on, unless it is none.
fn followed(body: Body, bytes: &[u8], piece: usize) -> Option<usize> {
    let mut follower = Follower::new(body);
    let mut passed = 0;
    for part in bytes.chunks(piece) {
        let taken = follower.take(part)?;
        assert!(taken <= part.len());
        assert!(taken == part.len() || follower.is_done());
        passed += taken;
        if follower.is_done() {
            break;
        }
    }
    Some(passed)
}

#[test]
fn any_request_is_refused_or_passed_on_as_one() {
    let fuzz = Fuzz {
        name: "proxy",
        corpus: corpus(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/requests")),
        words: &[
            "\r\n",
            "\n",
            "\r",
            "\r\n ",
            "\r\n\t",
            "\t",
            " ",
            "\0",
            "\x0b",
            "\u{85}",
            "\u{2028}",
            ":",
            "/",
            "//",
            "?",
            "#",
            "@",
            "%",
            "\\",
            "[",
            "]",
            "::1",
            ".",
            "-",
            "GET ",
            "CONNECT ",
            "POST ",
            "http://",
            "https://",
            "HTTP://",
            "a.example",
            "evil.example",
            ":80",
            ":443",
            ":0",
            ":65536",
            ":+1",
            " HTTP/1.1",
            " HTTP/1.0",
            "\r\nHost: a.example",
            "\r\nhost:",
            "\r\nHost : a",
            "\r\nContent-Length: 5",
            "\r\nContent-Length:",
            "\r\nTransfer-Encoding: chunked",
            "\r\nTransfer-Encoding: gzip, chunked",
            "\r\nConnection: close, content-length",
            "\r\n\r\n",
            "0\r\n\r\n",
            "5\r\nhello\r\n",
            "ffffffffffffffff\r\n",
            "5;a=b\r\n",
            "A: b\r\n",
            "127.0.0.1",
            "0x7f000001",
            "\u{e9}",
        ],
        pairs: &[
            ("[", "]"),
            ("\r\n", "\r\n"),
            ("GET http://", "/ HTTP/1.1\r\n"),
            ("5\r\n", "\r\n"),
        ],
        longest: 64 * 1_024,
        slowest: Duration::from_secs(5),
        most: None,
    };
    fuzz.run(|text| {
        let end = text.windows(4).position(|part| part == b"\r\n\r\n");
        let end = end.map_or(text.len(), |end| end + 4);
        let (head, rest) = text.split_at(end);
        if let Some(request) = Request::parse(head) {
            check_head(&request);
            let whole = followed(request.body, rest, rest.len().max(1));
            for piece in [1, 7] {
                assert_eq!(followed(request.body, rest, piece), whole);
            }
        }
        // Every text is a body, too.
        let whole = followed(Body::Chunked, text, text.len().max(1));
        assert_eq!(followed(Body::Chunked, text, 3), whole);
        // Whatever is behind a head's end belongs to no head.
        assert!(Request::parse(text).is_none() || end == text.len());
    });
}
