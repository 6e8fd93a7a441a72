//! Takes in an answer's body within bounds: text bit by bit into a spool, anything else as an attachment.

use reqwest::Response;
use toolcrib_core::words::counted;
use toolcrib_core::{CallError, Mask, Outcome, Outputs};

use super::file_read::attachment;
use crate::process::Collector;

/// The largest answer that is handed over as an attachment.
const MAX_ATTACHMENT: usize = 5 * 1_000 * 1_000;
/// A body is read no further than this, however much its compression hides.
const MAX_BODY: u64 = 256 * 1_024 * 1_024;

/// Reads the body to its end or its bound.
pub async fn read(
    mut response: Response,
    content_type: Option<&str>,
    outputs: &dyn Outputs,
    owner: &str,
    mask: &Mask,
) -> Result<Outcome, CallError> {
    let mut bytes = Vec::new();
    if !is_text(content_type) {
        // Nobody said that it is text: its bytes decide.
        while bytes.len() <= MAX_ATTACHMENT
            && let Some(chunk) = next(&mut response).await?
        {
            bytes.extend_from_slice(&chunk);
        }
        if !looks_like_text(&bytes, bytes.len() > MAX_ATTACHMENT) {
            return Ok(binary(
                &bytes,
                content_type.unwrap_or("application/octet-stream"),
            ));
        }
    }
    let mut taken = bytes.len() as u64;
    let mut collector = Collector::new(outputs, owner, mask);
    collector.push(&bytes).await;
    let mut cut = false;
    while let Some(chunk) = next(&mut response).await? {
        taken += chunk.len() as u64;
        if taken > MAX_BODY {
            cut = true;
            break;
        }
        collector.push(&chunk).await;
    }
    let mut text = collector.finish().await;
    if let Some(whole) = &mut text.whole {
        whole.cut |= cut;
    }
    Ok(text.into())
}

async fn next(response: &mut Response) -> Result<Option<Vec<u8>>, CallError> {
    match response.chunk().await {
        Ok(chunk) => Ok(chunk.map(Into::into)),
        Err(error) => Err(CallError::unavailable(format!(
            "the answer broke off: {}",
            error.without_url()
        ))
        .hint("call again; if it keeps failing, the server ends its answers too early")),
    }
}

fn binary(bytes: &[u8], content_type: &str) -> Outcome {
    let mime = content_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    if bytes.len() > MAX_ATTACHMENT {
        let output = format!(
            "the answer is {mime} and larger than {MAX_ATTACHMENT} bytes, so it was not taken in"
        );
        return Outcome {
            is_error: true,
            ..Outcome::text(output)
        };
    }
    let output = format!(
        "the answer is not text; {} attached as {mime}",
        counted(bytes.len(), "byte")
    );
    Outcome {
        attachments: vec![attachment(&mime, bytes, None)],
        ..Outcome::text(output)
    }
}

/// Does the server say that it is text?
fn is_text(content_type: Option<&str>) -> bool {
    let mime = content_type
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    mime.starts_with("text/")
        || ["json", "xml", "javascript", "x-www-form-urlencoded"]
            .iter()
            .any(|word| {
                mime.strip_suffix(word)
                    .is_some_and(|front| front.ends_with(['/', '+', '-']))
            })
}

/// Valid UTF-8, but for a character that may be unfinished at the end of a part.
fn looks_like_text(bytes: &[u8], is_part: bool) -> bool {
    match std::str::from_utf8(bytes) {
        Ok(_) => true,
        Err(error) => is_part && error.error_len().is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_types_that_are_text() {
        for text in [
            "text/plain",
            "TEXT/html; charset=utf-8",
            "application/json",
            "application/problem+json",
            "image/svg+xml",
            "application/xml",
            "application/javascript",
            "application/x-javascript",
            "application/x-www-form-urlencoded",
        ] {
            assert!(is_text(Some(text)), "{text}");
        }
        for other in [
            None,
            Some(""),
            Some("image/png"),
            Some("application/octet-stream"),
            Some("application/pdf"),
        ] {
            assert!(!is_text(other), "{other:?}");
        }
    }

    #[test]
    fn an_unfinished_character_is_forgiven_in_a_part_only() {
        assert!(looks_like_text("ä".as_bytes(), false));
        assert!(looks_like_text(&"ä".as_bytes()[..1], true));
        assert!(!looks_like_text(&"ä".as_bytes()[..1], false));
        assert!(!looks_like_text(&[0xFF, b'a'], true));
    }
}
