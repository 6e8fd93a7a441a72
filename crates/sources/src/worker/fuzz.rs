//! Fuzz target: whatever a worker writes, and in whatever pieces, it comes out whole, in order and bounded.

use std::path::Path;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use toolcrib_fuzz::{Fuzz, corpus};

use super::lines::{Line, Lines, MAX_MESSAGE};
use super::message::Message;

const SLOWEST: Duration = Duration::from_secs(if cfg!(debug_assertions) { 20 } else { 1 });

/// All that comes out of a text that is written in pieces of this size.
async fn read(text: &[u8], piece: usize) -> Vec<Line> {
    let (mut to, from) = tokio::io::duplex(piece);
    let text = text.to_vec();
    let writing = tokio::spawn(async move {
        let _ = to.write_all(&text).await;
    });
    let mut lines = Lines::new(from);
    let mut all = Vec::new();
    while let Some(line) = lines.next().await.unwrap() {
        assert!(lines.held() < 3 * MAX_MESSAGE);
        all.push(line);
    }
    writing.await.unwrap();
    all
}

/// Every line that was written is in one that was read, in the same order: as text, or as a part of a message.
fn compare(text: &[u8], read: &[Line]) {
    let written = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let written: Vec<&[u8]> = written.filter(|line| !line.is_empty()).collect();
    let mut rest = written.as_slice();
    for line in read {
        match line {
            Line::Text(text) => {
                let [first, others @ ..] = rest else {
                    panic!("more came out than went in: {text:?}");
                };
                assert_eq!(*text, String::from_utf8_lossy(first));
                rest = others;
            }
            // It comes after its own text.
            Line::Unreadable(_) => {}
            Line::Message(message) => {
                let mut joined = Vec::new();
                let mut used = 0;
                // Few messages have many lines; those that have end at a bracket.
                while let Some(line) = rest.get(used) {
                    if used > 0 {
                        joined.push(b'\n');
                    }
                    let plain = used == 0;
                    match plain {
                        true => joined.extend_from_slice(line),
                        false => joined.extend_from_slice(String::from_utf8_lossy(line).as_bytes()),
                    }
                    used += 1;
                    if line.ends_with(b"}") {
                        let lossy = String::from_utf8_lossy(&joined).into_owned();
                        let whole = [joined.as_slice(), lossy.as_bytes()];
                        let parsed = whole.map(|text| Message::parse(text).ok());
                        if parsed.iter().flatten().any(|one| one == message.as_ref()) {
                            break;
                        }
                    }
                    assert!(
                        used < rest.len(),
                        "a message came from nowhere: {message:?}"
                    );
                }
                rest = &rest[used..];
            }
        }
    }
    assert!(rest.is_empty(), "{} lines were lost", rest.len());
}

#[test]
fn any_bytes_of_a_worker_come_out_as_they_went_in() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let fuzz = Fuzz {
        name: "lines",
        corpus: corpus(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/lines")),
        words: &[
            "\n",
            "\r\n",
            " ",
            "{",
            "}",
            "[",
            "]",
            "\"",
            "\\",
            ",",
            ":",
            "{}\n",
            "{\n",
            "}\n",
            "{\"id\":\"1\",\"result\":1}\n",
            "{\"method\":\"log\"}\n",
            "{\"a\":",
            "\"}\n",
            "null",
            "1e999",
            "\\u0000",
            "\\ud800",
            "\u{2028}",
            "\u{85}",
            "\0",
            "\t",
            "x\n",
        ],
        pairs: &[
            ("{", "}"),
            ("[", "]"),
            ("\"", "\""),
            ("{\"a\":", "}"),
            ("{\n\"a\":\n", "\n}"),
            ("{\"id\":1,\"result\":", "}\n"),
        ],
        // Much text is slow to compare, not to read.
        longest: 256 * 1_024,
        slowest: SLOWEST,
        most: None,
    };
    fuzz.run(|text| {
        let sizes = [1 + text.len() % 97, 64 * 1_024];
        let [small, large] = sizes.map(|piece| runtime.block_on(read(text, piece)));
        assert_eq!(small, large);
        if text.len() < 20_000 {
            compare(text, &large);
        }
    });
}
