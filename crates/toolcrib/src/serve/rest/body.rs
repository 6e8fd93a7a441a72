//! Reads a request's body: whole, bounded in size and time, and once.

use std::error::Error;
use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes};
use futures_util::StreamExt;
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use toolcrib_core::{CallError, ErrorCode};

use super::bad_request;

/// The largest body that is taken.
pub const MAX_BODY: usize = 10 * 1_024 * 1_024;

/// How long a body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);
/// How long nothing of it may come: its sender has gone silent.
const BODY_PAUSE: Duration = Duration::from_secs(10);

/// How much of a body that is too large is read and thrown away, so that its sender gets to read the answer:
/// a connection closed with unread bytes is reset, and the answer may be lost.
const MAX_DISCARD: usize = 4 * MAX_BODY;

const MAX_REASON: usize = 300;

const SHAPE: &str = "send a JSON object such as {\"arguments\": {\"name\": \"value\"}}";

/// The whole body.
pub async fn read(body: Body) -> Result<Bytes, CallError> {
    match tokio::time::timeout(BODY_TIMEOUT, collect(body)).await {
        Ok(read) => read,
        Err(_) => Err(late(BODY_TIMEOUT)),
    }
}

fn late(limit: Duration) -> CallError {
    let seconds = limit.as_secs();
    let message =
        format!("the body did not arrive: nothing more came for {seconds} s, or not all of it");
    bad_request(message).hint("send the whole body at once")
}

/// The next part of a body, where it comes in time.
async fn next(chunks: &mut BodyDataStream) -> Result<Option<Bytes>, CallError> {
    match tokio::time::timeout(BODY_PAUSE, chunks.next()).await {
        Ok(chunk) => chunk.transpose().map_err(broken),
        Err(_) => Err(late(BODY_PAUSE)),
    }
}

async fn collect(body: Body) -> Result<Bytes, CallError> {
    let mut chunks = body.into_data_stream();
    // Nearly every body is one chunk, which is taken as it came.
    let Some(first) = next(&mut chunks).await? else {
        return Ok(Bytes::new());
    };
    let Some(second) = next(&mut chunks).await? else {
        return within(first.len()).map(|()| first);
    };
    let mut whole = Vec::from(first);
    whole.extend_from_slice(&second);
    while let Some(chunk) = next(&mut chunks).await? {
        if whole.len() + chunk.len() > MAX_BODY {
            let mut seen = whole.len() + chunk.len();
            drop(whole);
            while let Ok(Some(more)) = next(&mut chunks).await {
                seen += more.len();
                if seen > MAX_DISCARD {
                    break;
                }
            }
            return Err(too_large());
        }
        whole.extend_from_slice(&chunk);
    }
    within(whole.len()).map(|()| Bytes::from(whole))
}

/// Why a body was not read to its end.
fn broken(error: axum::Error) -> CallError {
    let whole: &(dyn Error + 'static) = &error;
    let mut causes = std::iter::successors(Some(whole), |&error| error.source());
    // The door may take back what it said when the body began.
    match causes.find_map(|cause| cause.downcast_ref::<CallError>()) {
        Some(refusal) => refusal.clone(),
        None => bad_request(format!("the body could not be read: {error}"))
            .hint("send the request again"),
    }
}

fn within(size: usize) -> Result<(), CallError> {
    if size > MAX_BODY {
        Err(too_large())
    } else {
        Ok(())
    }
}

fn too_large() -> CallError {
    let message = format!("the body is larger than {} MB", MAX_BODY / (1_024 * 1_024));
    CallError::new(ErrorCode::TooLarge, message)
        .hint("put large data into a file and name the file instead")
}

/// Reads JSON whatever the content type says; an empty body is the default.
pub fn parse<T: DeserializeOwned + Default>(bytes: &[u8]) -> Result<T, CallError> {
    let text = bytes.trim_ascii_start();
    let Some(first) = text.first() else {
        return Ok(T::default());
    };
    let value = serde_json::from_slice(bytes).map_err(|error| explain::<T>(bytes, &error))?;
    // serde would also take a list of the fields' values, in an order that nobody promised.
    if *first != b'{' {
        return Err(bad_request("the body does not fit: it must be a JSON object").hint(SHAPE));
    }
    Ok(value)
}

/// Reads a second time for the sake of the message: only now is the place of the error worth its price.
fn explain<T: DeserializeOwned>(bytes: &[u8], error: &serde_json::Error) -> CallError {
    let (line, column) = (error.line(), error.column());
    match error.classify() {
        Category::Syntax | Category::Eof | Category::Io => bad_request(format!(
            "the body is not valid JSON: {}",
            cut(error.to_string())
        ))
        .hint(format!("look at line {line}, column {column} of the body")),
        Category::Data => {
            let reader = &mut serde_json::Deserializer::from_slice(bytes);
            let place = match serde_path_to_error::deserialize::<_, T>(reader) {
                Err(error) if error.path().iter().next().is_some() => format!("`{}`", error.path()),
                _ => "the body".to_owned(),
            };
            bad_request(format!(
                "{} does not fit: {}",
                cut(place),
                cut(error.to_string())
            ))
            .hint(SHAPE)
        }
    }
}

/// Reasons quote what was sent, which may be long.
fn cut(text: String) -> String {
    match text.char_indices().nth(MAX_REASON) {
        None => text,
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::CallBody;

    fn refused(body: &str) -> CallError {
        parse::<CallBody>(body.as_bytes()).unwrap_err()
    }

    #[test]
    fn an_empty_body_is_no_arguments() {
        for empty in ["", " \n", "{}"] {
            assert_eq!(
                parse::<CallBody>(empty.as_bytes()).unwrap(),
                CallBody::default()
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_sender_that_goes_silent_is_not_waited_for() {
        let begun = tokio::time::Instant::now();
        let first = futures_util::stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"{"))]);
        let body = Body::from_stream(first.chain(futures_util::stream::pending()));
        let error = read(body).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::BadRequest, "{error}");
        assert_eq!(begun.elapsed(), BODY_PAUSE);
        // One that sends a little now and then has its time too.
        let drops = futures_util::stream::unfold((), async |()| {
            // sleeps: a sender that takes its time, on a clock that does not
            tokio::time::sleep(Duration::from_secs(9)).await;
            Some((Ok::<_, std::io::Error>(Bytes::from_static(b" ")), ()))
        });
        let error = read(Body::from_stream(drops)).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::BadRequest, "{error}");
        assert_eq!(begun.elapsed(), BODY_PAUSE + BODY_TIMEOUT);
    }

    #[test]
    fn the_place_is_named() {
        let error = refused("{\n \"arguments\": }");
        assert!(error.message.contains("line 2 column 15"), "{error}");
        let error = refused(r#"{"arguments": [1]}"#);
        assert!(
            error.message.starts_with("`arguments` does not fit"),
            "{error}"
        );
        let error = refused(r#"{"argument": {}}"#);
        assert!(
            error.message.contains("unknown field `argument`"),
            "{error}"
        );
        assert!(
            refused(r#"{"arguments": {}} x"#)
                .message
                .contains("not valid JSON")
        );
    }

    #[test]
    fn a_long_quote_is_cut() {
        let error = refused(&format!("{{\"arguments\": \"{}\"}}", "x".repeat(100_000)));
        assert!(error.message.len() < 1_000, "{}", error.message.len());
    }
}
