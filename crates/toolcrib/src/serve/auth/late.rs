//! A body that comes late: who sends it was known when its first byte came, and must still count when its last one has.

use std::sync::Arc;

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use futures_util::{StreamExt, stream};
use toolcrib_core::CallError;

use super::{Door, Proof, Who, unknown};

/// Lets the body of a request end only if its sender counts by then. Otherwise a request that was begun in time would
/// do afterwards what its token no longer may.
pub fn watched(request: Request, door: &Arc<Door>, who: &Who) -> Request {
    if request.body().is_end_stream() {
        return request;
    }
    let (door, who, seen) = (door.clone(), who.clone(), door.keys.now());
    request.map(|body| {
        let end = stream::once(async move {
            let counts = match &who.0.proof {
                Proof::Owner(_) | Proof::None => true,
                Proof::Token(id) => door.keys.counts_since(id, seen).await?,
                Proof::Session(key) => door.logins.counts(key),
            };
            match counts {
                true => Ok(None),
                false => Err(unknown(
                    "the caller lost the right to do this while the body was sent",
                )),
            }
        });
        let end = end.filter_map(|end: Result<_, CallError>| std::future::ready(end.transpose()));
        let chunks = body
            .into_data_stream()
            .map(|chunk| chunk.map_err(axum::Error::into_inner));
        Body::from_stream(chunks.chain(end.map(|end| end.map_err(Into::into))))
    })
}
