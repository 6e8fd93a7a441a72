//! What a route asks for: one scope, looked at before its handler runs.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use futures_util::future::Either;
use tower::{Layer, Service};

use super::{Scope, Who, missing, refuse};

/// Lets only those through who have the scope.
#[derive(Debug, Clone, Copy)]
pub struct Needs(pub Scope);

impl<S> Layer<S> for Needs {
    type Service = Asking<S>;

    fn layer(&self, inner: S) -> Asking<S> {
        Asking {
            scope: self.0,
            inner,
        }
    }
}

/// A route behind its scope.
#[derive(Debug, Clone)]
pub struct Asking<S> {
    scope: Scope,
    inner: S,
}

impl<S> Service<Request> for Asking<S>
where
    S: Service<Request, Error = Infallible>,
    S::Response: IntoResponse,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Either<
        Ready<Result<Response, Infallible>>,
        futures_util::future::MapOk<S::Future, fn(S::Response) -> Response>,
    >;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        use futures_util::TryFutureExt;
        let refusal = match request.extensions().get::<Who>() {
            None => Some(refuse(missing(), None)),
            Some(who) => who
                .needs(self.scope)
                .err()
                .map(|error| refuse(error, Some(self.scope))),
        };
        match refusal {
            Some(response) => Either::Left(ready(Ok(response))),
            None => Either::Right(
                self.inner
                    .call(request)
                    .map_ok(S::Response::into_response as fn(S::Response) -> Response),
            ),
        }
    }
}
