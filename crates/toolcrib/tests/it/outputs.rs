//! Long outputs of real processes: cut within both limits, kept whole, and read on to their end without a gap.

use crate::support::plugin::{file, shell};
use crate::support::{TestCrib, World};
use serde_json::{Value, json};

const MAX_LINES: usize = 2_000;
const MAX_BYTES: usize = 50_000;

/// A crib with a tool that prints a file of the project.
fn printing(text: &str) -> (World, TestCrib) {
    let world = World::trusted();
    world.write("text", text);
    world.write_tool("print.json", file(&[shell("print", "cat text", json!({}))]));
    let crib = world.serve();
    (world, crib)
}

/// Does what is returned keep both limits, notice included?
fn within_limits(output: &str) {
    assert!(output.len() <= MAX_BYTES, "{} bytes", output.len());
    assert!(
        output.lines().count() <= MAX_LINES,
        "{} lines",
        output.lines().count()
    );
}

/// An outcome that was cut: the text before the notice, the notice, and the metadata.
struct Cut {
    head: String,
    notice: String,
    metadata: Value,
}

async fn cut(crib: &TestCrib) -> Cut {
    let (status, outcome) = crib.call("print", json!({})).await;
    assert_eq!(
        (status, &outcome["isError"]),
        (200, &json!(false)),
        "{outcome}"
    );
    let output = outcome["output"].as_str().unwrap();
    within_limits(output);
    assert_eq!(outcome["metadata"]["truncated"], true);
    // Above the text and below it stands the same.
    let (above, rest) = output.split_once("\n\n").expect("a notice above");
    let (head, notice) = rest
        .rsplit_once("\n\n[truncated: ")
        .expect("a notice below");
    let notice = format!("[truncated: {notice}");
    assert_eq!(above, notice);
    assert!(
        notice.contains("read-output") && notice.contains(id(&outcome["metadata"])),
        "{notice}"
    );
    Cut {
        head: head.to_owned(),
        notice,
        metadata: outcome["metadata"].clone(),
    }
}

fn id(metadata: &Value) -> &str {
    metadata["outputId"].as_str().expect("an id")
}

/// What `read-output` gives from `offset` on, page after page.
async fn read_on(crib: &TestCrib, id: &str, mut offset: usize) -> String {
    let mut rest = String::new();
    loop {
        let (status, page) = crib
            .call("read-output", json!({"id": id, "offset": offset}))
            .await;
        assert_eq!((status, &page["isError"]), (200, &json!(false)), "{page}");
        let output = page["output"].as_str().unwrap();
        within_limits(output);
        assert_eq!(page["metadata"].get("truncated"), None);
        let Some(next) = page["metadata"]["nextOffset"].as_u64() else {
            rest.push_str(output);
            return rest;
        };
        let (text, _) = output
            .rsplit_once("\n[more: ")
            .expect("a word on what is left");
        assert!(next as usize > offset, "no step forward at {offset}");
        assert_eq!(offset + text.len(), next as usize);
        rest.push_str(text);
        offset = next as usize;
    }
}

/// The kept output as `GET /api/outputs/{id}` gives it, range after range.
async fn by_ranges(crib: &TestCrib, id: &str, step: usize) -> Vec<u8> {
    let mut whole: Vec<u8> = Vec::new();
    loop {
        let range = format!("bytes={}-{}", whole.len(), whole.len() + step - 1);
        let request = crib.client.get(format!("{}/api/outputs/{id}", crib.url));
        let response = request.header("Range", range).send().await.unwrap();
        assert_eq!(response.status(), 206);
        let place = response.headers()["Content-Range"]
            .to_str()
            .unwrap()
            .to_owned();
        let body = response.bytes().await.unwrap();
        let (start, end) = (whole.len(), whole.len() + body.len());
        whole.extend_from_slice(&body);
        let total: usize = place.rsplit('/').next().unwrap().parse().unwrap();
        assert_eq!(place, format!("bytes {start}-{}/{total}", end - 1));
        if end == total {
            return whole;
        }
    }
}

async fn at_once(crib: &TestCrib, id: &str) -> Vec<u8> {
    let request = crib.client.get(format!("{}/api/outputs/{id}", crib.url));
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    response.bytes().await.unwrap().to_vec()
}

/// Everything that was cut off is found again, by every way.
async fn is_whole(crib: &TestCrib, cut: &Cut, text: &str) {
    let id = id(&cut.metadata);
    assert!(text.starts_with(&cut.head));
    assert_eq!(cut.metadata["totalBytes"], text.len());
    assert_eq!(cut.metadata["totalLines"], text.lines().count());
    let joined = format!("{}{}", cut.head, read_on(crib, id, cut.head.len()).await);
    assert!(
        joined == text,
        "{} bytes joined, {} printed",
        joined.len(),
        text.len()
    );
    let step = text.len() / 3 + 1;
    assert!(by_ranges(crib, id, step).await == text.as_bytes());
    assert!(at_once(crib, id).await == text.as_bytes());
}

fn numbered(lines: usize) -> String {
    (1..=lines).map(|line| format!("line {line}\n")).collect()
}

#[tokio::test]
async fn what_fits_is_handed_over_whole() {
    for text in [
        numbered(2_000),
        "x".repeat(50_000),
        String::new(),
        "no newline".to_owned(),
    ] {
        let (_world, crib) = printing(&text);
        let (_, outcome) = crib.call("print", json!({})).await;
        assert!(outcome["output"] == json!(text), "{} bytes", text.len());
        assert_eq!(outcome["metadata"].get("truncated"), None);
        assert_eq!(outcome["metadata"].get("outputId"), None);
    }
}

#[tokio::test]
async fn too_many_lines_are_cut_and_counted() {
    let text = numbered(2_500);
    let (_world, crib) = printing(&text);
    let cut = cut(&crib).await;
    let shown = cut.head.lines().count();
    let expected = format!("[truncated: {} lines omitted]", 2_500 - shown);
    assert!(cut.notice.starts_with(&expected), "{}", cut.notice);
    assert!(shown > 1_900);
    is_whole(&crib, &cut, &text).await;
}

#[tokio::test]
async fn one_very_long_line_is_cut_by_bytes() {
    let text = "x".repeat(60_000);
    let (_world, crib) = printing(&text);
    let cut = cut(&crib).await;
    assert!(
        cut.notice
            .starts_with("[truncated: output exceeded 50000 bytes]"),
        "{}",
        cut.notice
    );
    assert!(cut.head.len() > 48_000);
    is_whole(&crib, &cut, &text).await;
}

#[tokio::test]
async fn characters_of_several_bytes_are_never_cut() {
    for text in [
        "€".repeat(30_000),
        format!("x{}", "😀".repeat(20_000)),
        format!("xyz{}\n", "ä€😀\n".repeat(9_000)),
    ] {
        let (_world, crib) = printing(&text);
        let cut = cut(&crib).await;
        is_whole(&crib, &cut, &text).await;
    }
}

#[tokio::test]
async fn megabytes_are_spooled_and_read_on() {
    let text = numbered(450_000);
    assert!(text.len() > 5_000_000);
    let (_world, crib) = printing(&text);
    let cut = cut(&crib).await;
    let id = id(&cut.metadata);
    assert_eq!(cut.metadata["totalBytes"], text.len());
    assert_eq!(cut.metadata["totalLines"], 450_000);
    assert!(by_ranges(&crib, id, 1_000_000).await == text.as_bytes());
    assert!(at_once(&crib, id).await == text.as_bytes());
    let near_the_end = text.len() - 100_000;
    let rest = read_on(&crib, id, near_the_end).await;
    assert!(rest == text[near_the_end..]);
}

#[tokio::test]
async fn bytes_that_are_no_text_become_marks_and_offsets_hold() {
    let world = World::trusted();
    world.write(
        "text",
        [b"ab\xff\n".repeat(20_000), b"\xe2\x82".to_vec()].concat(),
    );
    world.write_tool("print.json", file(&[shell("print", "cat text", json!({}))]));
    let crib = world.serve();
    let text = format!("{}\u{fffd}", "ab\u{fffd}\n".repeat(20_000));
    let cut = cut(&crib).await;
    is_whole(&crib, &cut, &text).await;
}

#[tokio::test]
async fn no_more_is_kept_than_the_settings_say() {
    // The limit falls inside a character, and what comes later would fit into the room that is left.
    let text = format!("{}{}", "€".repeat(40_000), "x".repeat(100_000));
    let world = World::trusted();
    world.write("text", &text);
    world.write(".toolcrib/config.toml", "[outputs]\nmax_bytes = 100000\n");
    world.write_tool("print.json", file(&[shell("print", "cat text", json!({}))]));
    let crib = world.serve();
    let cut = cut(&crib).await;
    assert!(cut.notice.contains("its end is lost"), "{}", cut.notice);
    let kept = String::from_utf8(at_once(&crib, id(&cut.metadata)).await).unwrap();
    assert_eq!(kept.len(), 99_999);
    assert!(text.starts_with(&kept), "a beginning without a gap");
    assert_eq!(cut.metadata["totalBytes"], 99_999);
    let rest = read_on(&crib, id(&cut.metadata), cut.head.len()).await;
    assert!(format!("{}{rest}", cut.head) == kept);
}

#[tokio::test]
async fn lines_left_out_are_counted_even_where_they_are_not_kept() {
    let world = World::trusted();
    world.write("text", "x\n".repeat(2_500));
    world.write(".toolcrib/config.toml", "[outputs]\nmax_bytes = 1000\n");
    world.write_tool("print.json", file(&[shell("print", "cat text", json!({}))]));
    let crib = world.serve();
    let cut = cut(&crib).await;
    let left = 2_500 - cut.head.lines().count();
    assert!(
        cut.notice
            .starts_with(&format!("[truncated: {left} lines omitted]")),
        "{}",
        cut.notice
    );
    assert_eq!(at_once(&crib, id(&cut.metadata)).await.len(), 1_000);
}

#[tokio::test]
async fn an_id_that_is_none_reads_nothing() {
    let (_world, crib) = printing("x");
    for id in [
        "0192f0c1-0000-7000-8000-000000000000",
        "..",
        "../../trust",
        "%2e%2e%2ftrust",
        "",
        "x",
        "a/b",
    ] {
        let said = crib
            .refused("read-output", json!({"id": id}), 422, "invalid_arguments")
            .await;
        assert!(said.contains("no such output"), "{said}");
        let (status, _) = crib.get(&format!("/outputs/{id}")).await;
        assert_eq!(status, 404, "{id}");
    }
}
