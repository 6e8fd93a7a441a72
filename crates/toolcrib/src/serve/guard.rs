//! Who may knock: Host and Origin must name this server, so that no foreign web page can use it.
//!
//! Against DNS rebinding (a foreign name that points here) the Host is checked; against foreign pages that send
//! requests here the Origin and `Sec-Fetch-Site` are. It looks at headers only and allocates nothing for a good
//! request, because every call passes it.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::{IpAddr, SocketAddr};
use std::task::{Context, Poll};

use axum::extract::Request;
use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderValue, Uri};
use axum::response::{IntoResponse, Response};
use futures_util::future::Either;
use toolcrib_core::{CallError, ErrorCode};
use tower::{Layer, Service};

use super::rest::ErrorResponse;

/// Puts the check in front of whatever it wraps.
#[derive(Debug, Clone, Copy)]
pub struct Guard {
    own: SocketAddr,
}

impl Guard {
    /// `own` is the address that the listener is bound to.
    pub fn new(own: SocketAddr) -> Guard {
        Guard { own }
    }

    /// Says why a request is refused, or nothing.
    fn refusal(self, uri: &Uri, headers: &HeaderMap) -> Option<CallError> {
        let mut hosts = headers.get_all(HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return Some(
                CallError::new(
                    ErrorCode::BadRequest,
                    "the request must have exactly one Host header",
                )
                .hint("send `Host: localhost`, as HTTP/1.1 clients do by themselves"),
            );
        };
        // A request line with a whole URL names its host there, and that one counts too.
        let asked = uri.authority().map(|authority| authority.as_str());
        if !self.is_own(text(host)) || !asked.is_none_or(|asked| self.is_own(asked)) {
            return Some(self.forbidden("the Host of the request is not this server"));
        }
        let mut origins = headers.get_all(ORIGIN).iter();
        if !origins.all(|origin| self.is_own_origin(text(origin), text(host))) {
            return Some(self.forbidden("the request comes from a web page of another origin"));
        }
        if headers
            .get("sec-fetch-site")
            .is_some_and(|site| site == "cross-site")
        {
            return Some(self.forbidden("the request comes from a web page of another site"));
        }
        None
    }

    fn forbidden(self, message: &str) -> CallError {
        let hint = format!("use http://localhost:{} from this machine", self.own.port());
        CallError::new(ErrorCode::Forbidden, message).hint(hint)
    }

    /// Is `authority` (`host` or `host:port`) a name of this server? Any port: tunnels and containers map them.
    fn is_own(self, authority: &str) -> bool {
        split(authority).is_some_and(|(host, _)| self.is_own_host(host))
    }

    fn is_own_host(self, host: &str) -> bool {
        if host.eq_ignore_ascii_case("localhost") || host == "127.0.0.1" || host == "[::1]" {
            return true;
        }
        let bare = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host);
        // One that listens on every address can't know them all. A bare address is nobody's name to point elsewhere.
        bare.parse::<IpAddr>()
            .is_ok_and(|ip| ip == self.own.ip() || self.own.ip().is_unspecified())
    }

    /// Only pages that this very server gave out: its scheme, its names, its port. Where any address may be its own,
    /// the page must come from the one that is asked.
    fn is_own_origin(self, origin: &str, asked: &str) -> bool {
        let Some(authority) = origin.strip_prefix("http://") else {
            return false;
        };
        let Some((host, port)) = split(authority) else {
            return false;
        };
        let is_own = self.is_own_host(host) && port.unwrap_or(80) == self.own.port();
        is_own && (!self.own.ip().is_unspecified() || authority.eq_ignore_ascii_case(asked))
    }
}

/// Header values that are not text fit no name.
fn text(value: &HeaderValue) -> &str {
    value.to_str().unwrap_or_default()
}

/// Splits `host`, `host:port`, `[v6]` or `[v6]:port`; anything else is none.
fn split(authority: &str) -> Option<(&str, Option<u16>)> {
    let end = match authority.starts_with('[') {
        true => authority.find(']')? + 1,
        false => authority.find(':').unwrap_or(authority.len()),
    };
    let (host, rest) = authority.split_at(end);
    if rest.is_empty() {
        return Some((host, None));
    }
    let digits = rest.strip_prefix(':')?;
    // `parse` alone would take `+80`.
    let port = digits
        .bytes()
        .all(|digit| digit.is_ascii_digit())
        .then(|| digits.parse().ok())??;
    Some((host, Some(port)))
}

impl<S> Layer<S> for Guard {
    type Service = Guarded<S>;

    fn layer(&self, inner: S) -> Guarded<S> {
        Guarded {
            guard: *self,
            inner,
        }
    }
}

/// What stands behind the guard.
#[derive(Debug, Clone)]
pub struct Guarded<S> {
    guard: Guard,
    inner: S,
}

impl<S> Service<Request> for Guarded<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Either<Ready<Result<Response, Infallible>>, S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        match self.guard.refusal(request.uri(), request.headers()) {
            Some(error) => Either::Left(ready(Ok(ErrorResponse::from(error).into_response()))),
            None => Either::Right(self.inner.call(request)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(own: &str) -> Guard {
        Guard::new(own.parse().unwrap())
    }

    #[test]
    fn only_own_names_are_hosts() {
        let own = guard("10.0.0.7:7717");
        for good in [
            "localhost",
            "LocalHost:1",
            "127.0.0.1:7717",
            "[::1]",
            "[::1]:7717",
            "10.0.0.7",
            "10.0.0.7:99",
        ] {
            assert!(own.is_own(good), "{good}");
        }
        for bad in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "localhost:",
            "localhost:+80",
            "localhost:x",
            "localhost:99999",
            "localhost@evil.example",
            "[::1",
            "[::1]x",
            "10.0.0.8",
            "0.0.0.0",
            "::1",
        ] {
            assert!(!own.is_own(bad), "{bad}");
        }
        assert!(guard("[fd00::1]:7717").is_own("[fd00:0::1]:7717"));
    }

    #[test]
    fn on_every_address_no_name_is_taken_and_no_neighbour_s_page() {
        let own = guard("0.0.0.0:7717");
        assert!(
            own.is_own("192.168.1.5:7717") && own.is_own("localhost") && own.is_own("[fd00::1]:1")
        );
        assert!(!own.is_own("evil.example") && !own.is_own("192.168.1.5.evil.example:7717"));
        let page = "http://192.168.1.5:7717";
        assert!(own.is_own_origin(page, "192.168.1.5:7717"));
        assert!(!own.is_own_origin(page, "192.168.1.6:7717"));
        assert!(!own.is_own_origin("http://192.168.1.5:80", "192.168.1.5:80"));
    }

    #[test]
    fn only_own_pages_are_origins() {
        let own = guard("127.0.0.1:7717");
        for good in [
            "http://localhost:7717",
            "http://127.0.0.1:7717",
            "http://[::1]:7717",
        ] {
            assert!(own.is_own_origin(good, "localhost:7717"), "{good}");
        }
        for bad in [
            "null",
            "",
            "https://localhost:7717",
            "http://localhost",
            "http://localhost:3000",
            "http://evil.example:7717",
            "http://localhost:7717.evil.example",
            "http://localhost:7717/",
        ] {
            assert!(!own.is_own_origin(bad, "localhost:7717"), "{bad}");
        }
        assert!(guard("127.0.0.1:80").is_own_origin("http://localhost", "localhost"));
    }
}
