//! Whole outputs over REST: streamed page by page, with byte ranges, never held in memory.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, RANGE,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::Stream;
use toolcrib_core::{CallError, ErrorCode, OutputId, Outputs};

use super::{ErrorResponse, bad_request, named};
use crate::serve::Served;
use crate::serve::auth::Who;
use crate::wire::ErrorView;

/// How much of an output is held at a time.
const PAGE: u64 = 256 * 1_024;

/// Reads a kept output, whole or a range of it.
#[utoipa::path(
    get, path = "/outputs/{id}", tag = "outputs", operation_id = "readOutput",
    params(
        ("id" = String, Path, description = "`outputId` in the metadata of the outcome that was cut"),
        ("Range" = Option<String>, Header, description = "One byte range: `bytes=0-999`, `bytes=1000-` or `bytes=-500`"),
    ),
    responses(
        (status = 200, description = "The whole text", body = String, content_type = "text/plain; charset=utf-8"),
        (status = 206, description = "The range", body = String, content_type = "text/plain; charset=utf-8"),
        (status = 400, description = "`bad_request`: the id is not UTF-8", body = ErrorView),
        (status = 403, description = "`forbidden`: foreign Host or Origin", body = ErrorView),
        (status = 404, description = "`not_found`: no such output, or it has expired", body = ErrorView),
        (status = 416, description = "`bad_request`: the range is outside the output; Content-Range says its size", body = ErrorView),
        (status = 500, description = "`internal`: the output can't be read", body = ErrorView),
    )
)]
pub async fn read(
    State(served): State<Arc<Served>>,
    who: Who,
    id: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, ErrorResponse> {
    let id = OutputId::parse(&named(id)?).ok_or_else(not_found)?;
    let outputs = served.crib.outputs().clone();
    // One byte is enough to learn the size of the whole.
    let total = match outputs.read(who.agent(), &id, 0, 1).await {
        Ok(page) => page.total,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(not_found().into()),
        Err(error) => {
            tracing::error!(%error, output = %id, "a kept output could not be read");
            let error = CallError::internal("the output is kept but can't be read");
            return Err(error
                .hint("look at the server's log, and at the disk")
                .into());
        }
    };
    let asked = headers
        .get(RANGE)
        .map(|range| RangeRequest::parse(range.to_str().unwrap_or_default(), total));
    let (status, range) = match asked {
        None | Some(RangeRequest::Whole) => (StatusCode::OK, 0..total),
        Some(RangeRequest::Part(range)) => (StatusCode::PARTIAL_CONTENT, range),
        Some(RangeRequest::Unsatisfiable) => return Ok(outside(total)),
    };
    let mut response = Response::builder()
        .status(status)
        .header(CONTENT_TYPE, "text/plain; charset=utf-8")
        .header(CONTENT_LENGTH, range.end - range.start)
        .header(ACCEPT_RANGES, "bytes")
        .header(CACHE_CONTROL, "private, no-store")
        // The text is a tool's, not ours: a browser must not take it for a page.
        .header(X_CONTENT_TYPE_OPTIONS, "nosniff");
    if status == StatusCode::PARTIAL_CONTENT {
        let place = format!("bytes {}-{}/{total}", range.start, range.end - 1);
        response = response.header(CONTENT_RANGE, place);
    }
    let body = Body::from_stream(pages(outputs, who, id, range));
    response
        .body(body)
        .map_err(|error| CallError::internal(error.to_string()).into())
}

fn not_found() -> CallError {
    CallError::new(ErrorCode::NotFound, "there is no such output")
        .hint("outputs are kept for 24 hours; call the tool again")
}

fn outside(total: u64) -> Response {
    let error = bad_request(format!(
        "the range is not within the {total} bytes of the output"
    ))
    .hint("ask for one range such as `bytes=0-999`, `bytes=1000-` or `bytes=-500`");
    let refusal = ErrorResponse {
        status: StatusCode::RANGE_NOT_SATISFIABLE,
        error,
    };
    ([(CONTENT_RANGE, format!("bytes */{total}"))], refusal).into_response()
}

/// What a Range header asks for.
#[derive(Debug, PartialEq, Eq)]
enum RangeRequest {
    /// A unit that we do not know is passed over, as HTTP says.
    Whole,
    Part(Range<u64>),
    Unsatisfiable,
}

impl RangeRequest {
    fn parse(header: &str, total: u64) -> RangeRequest {
        let Some((unit, range)) = header.split_once('=') else {
            return RangeRequest::Unsatisfiable;
        };
        if !unit.trim().eq_ignore_ascii_case("bytes") {
            return RangeRequest::Whole;
        }
        match RangeRequest::range(range.trim(), total) {
            Some(range) if range.start < range.end => RangeRequest::Part(range),
            _ => RangeRequest::Unsatisfiable,
        }
    }

    fn range(text: &str, total: u64) -> Option<Range<u64>> {
        let (first, last) = text.split_once('-')?;
        match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => {
                Some(first..last.saturating_add(1).min(total))
            }
            (Some(first), None) if last.is_empty() => Some(first..total),
            (None, Some(suffix)) if first.is_empty() => Some(total.saturating_sub(suffix)..total),
            _ => None,
        }
    }
}

fn number(text: &str) -> Option<u64> {
    text.bytes()
        .all(|digit| digit.is_ascii_digit())
        .then(|| text.parse().ok())?
}

/// The bytes of `range`, one page after the other.
fn pages(
    outputs: Arc<dyn Outputs>,
    who: Who,
    id: OutputId,
    range: Range<u64>,
) -> impl Stream<Item = io::Result<Bytes>> + Send {
    let start = (outputs, who, id, range);
    futures_util::stream::try_unfold(start, async |(outputs, who, id, mut left)| {
        if left.is_empty() {
            return Ok(None);
        }
        let max = usize::try_from((left.end - left.start).min(PAGE)).unwrap_or(usize::MAX);
        let mut page = outputs.read(who.agent(), &id, left.start, max).await?.bytes;
        page.truncate(max);
        if page.is_empty() {
            // It ended before its promised size; a cut connection says so, a short answer would not.
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        left.start += page.len() as u64;
        Ok(Some((Bytes::from(page), (outputs, who, id, left))))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_http_says() {
        let part = RangeRequest::Part;
        for (header, asked) in [
            ("bytes=0-0", part(0..1)),
            ("bytes=2-4", part(2..5)),
            ("bytes=2-400", part(2..10)),
            ("bytes=2-18446744073709551615", part(2..10)),
            ("bytes=9-", part(9..10)),
            ("bytes=-3", part(7..10)),
            ("bytes=-30", part(0..10)),
            ("Bytes= 1-2", part(1..3)),
            ("lines=1-2", RangeRequest::Whole),
            ("bytes=10-", RangeRequest::Unsatisfiable),
            ("bytes=10-12", RangeRequest::Unsatisfiable),
            ("bytes=-0", RangeRequest::Unsatisfiable),
            ("bytes=4-2", RangeRequest::Unsatisfiable),
            ("bytes=-", RangeRequest::Unsatisfiable),
            ("bytes=a-b", RangeRequest::Unsatisfiable),
            ("bytes=+1-2", RangeRequest::Unsatisfiable),
            ("bytes=0-1,3-4", RangeRequest::Unsatisfiable),
            ("bytes", RangeRequest::Unsatisfiable),
        ] {
            assert_eq!(RangeRequest::parse(header, 10), asked, "{header}");
        }
        assert_eq!(
            RangeRequest::parse("bytes=-5", 0),
            RangeRequest::Unsatisfiable
        );
    }
}
