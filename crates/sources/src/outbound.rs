//! Requests to servers elsewhere, for all that the crib itself sends: what was checked is what is connected to.
//!
//! A name is looked up once; all of its addresses are judged (metadata, link-local, the crib's own port), and the client
//! knows those and asks nobody again. Redirects are followed by whoever sends, who checks each hop like the first.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, OnceLock};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::LOCATION;
use reqwest::{Client, Method, Response, StatusCode};
use toolcrib_core::{BoxFuture, CallError};
use toolcrib_sandbox::address::{self, Never};
use url::{Host, Url};

use crate::Place;
use crate::plugin::host_of;

/// Finds the addresses of a host's name. A field, so that tests can answer as a hostile name server would.
pub type Lookup =
    Arc<dyn Fn(String, u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> + Send + Sync>;

/// The addresses of the URL's host, all of which are fit to be called.
pub async fn addresses(
    place: &Place,
    lookup: &Lookup,
    url: &Url,
) -> Result<Vec<SocketAddr>, CallError> {
    let shown = shown_host(url);
    let refused = |why: Never| {
        CallError::denied(format!("`{shown}` may not be called: {why}"))
            .hint("tools never reach link-local and metadata addresses, nor Toolcrib itself")
    };
    let port = url.port_or_known_default().unwrap_or(80);
    let found = match url.host() {
        None => return Err(CallError::invalid("the URL names no host")),
        Some(Host::Ipv4(ip)) => vec![SocketAddr::new(ip.into(), port)],
        Some(Host::Ipv6(ip)) => vec![SocketAddr::new(ip.into(), port)],
        Some(Host::Domain(name)) => {
            if let Some(why) = address::name_refusal(name) {
                return Err(refused(why));
            }
            lookup(name.to_owned(), port).await.map_err(|error| {
                CallError::unavailable(format!(
                    "the address of `{shown}` could not be found: {error}"
                ))
                .hint("check the host's name and the network")
            })?
        }
    };
    // Every crib of this user, this one included.
    let mut cribs = toolcrib_sandbox::off_limits::listening();
    cribs.extend(place.own_address.get());
    let of_crib = |addr: SocketAddr| {
        cribs.iter().find_map(|own| {
            let refusal = address::refusal(addr, Some(*own));
            refusal.or_else(|| behind_every_address(addr, *own))
        })
    };
    match found
        .iter()
        .find_map(|addr| address::refusal(*addr, None).or_else(|| of_crib(*addr)))
    {
        Some(why) => Err(refused(why)),
        None if found.is_empty() => {
            Err(CallError::unavailable(format!("`{shown}` has no address"))
                .hint("check the host's name"))
        }
        None => Ok(found),
    }
}

pub fn shown_host(url: &Url) -> String {
    let host = host_of(url)
        .map(|host| host.to_string())
        .unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host,
    }
}

/// A crib that listens everywhere is also behind each address of this machine.
fn behind_every_address(addr: SocketAddr, own: SocketAddr) -> Option<Never> {
    if !own.ip().is_unspecified() || own.port() != addr.port() {
        return None;
    }
    // Only an address of this machine can be bound; the socket is closed at once and nothing is sent.
    UdpSocket::bind((addr.ip(), 0))
        .is_ok()
        .then_some(Never::OwnPort)
}

/// Where the answer sends us, if it does.
pub fn redirect(url: &Url, response: &Response) -> Result<Option<Url>, CallError> {
    let status = response.status().as_u16();
    match response
        .headers()
        .get(LOCATION)
        .and_then(|value| value.to_str().ok())
    {
        Some(location) if matches!(status, 301 | 302 | 303 | 307 | 308) => {
            next_url(url, location).map(Some)
        }
        _ => Ok(None),
    }
}

/// The URL that a redirect leads to; only http(s), and no credentials.
fn next_url(url: &Url, location: &str) -> Result<Url, CallError> {
    let refuse = |why: &str| {
        CallError::denied(format!("`{}` redirected to {why}", shown_host(url)))
            .hint("call the address you mean directly")
    };
    let mut next = url
        .join(location)
        .map_err(|_| refuse("something that is not a URL"))?;
    if !matches!(next.scheme(), "http" | "https") {
        return Err(refuse("a scheme other than http and https"));
    }
    if !next.username().is_empty() || next.password().is_some() {
        return Err(refuse("a URL with credentials"));
    }
    next.set_fragment(None);
    Ok(next)
}

pub fn becomes_get(status: StatusCode, method: &Method) -> bool {
    match status.as_u16() {
        303 => *method != Method::HEAD,
        301 | 302 => *method == Method::POST,
        _ => false,
    }
}

/// The innermost reason. The URL is left out: its query may hold what nobody should read in a log.
pub fn reason(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string().chars().take(300).collect()
}

pub fn system_lookup(host: String, port: u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
    Box::pin(async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) })
}

/// A resolver that knows the checked addresses and asks nobody, so that a second answer can't differ from the first.
struct Pinned(Vec<SocketAddr>);

impl Resolve for Pinned {
    fn resolve(&self, _name: Name) -> Resolving {
        let addrs: Addrs = Box::new(self.0.clone().into_iter());
        Box::pin(std::future::ready(Ok(addrs)))
    }
}

/// A client for one request, cheap because the TLS configuration is made once.
pub async fn client(url: &Url, checked: Vec<SocketAddr>) -> Result<Client, CallError> {
    let tls = if url.scheme() == "https" {
        tokio::task::spawn_blocking(tls_with_roots)
            .await
            .map_err(|error| CallError::internal(error.to_string()))??
    } else {
        tls_without_roots()?
    };
    Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .dns_resolver(Arc::new(Pinned(checked)))
        .tls_backend_preconfigured(tls)
        .user_agent(concat!("toolcrib/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| {
            CallError::internal(format!("no HTTP client could be made: {}", reason(error)))
        })
}

fn tls(roots: rustls::RootCertStore) -> Result<rustls::ClientConfig, CallError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| CallError::internal(format!("TLS could not be set up: {error}")))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

/// For plain http, where no certificate will ever be looked at.
fn tls_without_roots() -> Result<rustls::ClientConfig, CallError> {
    static CONFIG: OnceLock<rustls::ClientConfig> = OnceLock::new();
    if let Some(config) = CONFIG.get() {
        return Ok(config.clone());
    }
    let config = tls(rustls::RootCertStore::empty())?;
    Ok(CONFIG.get_or_init(|| config).clone())
}

/// With the machine's own certificates, read when https is first used.
fn tls_with_roots() -> Result<rustls::ClientConfig, CallError> {
    static CONFIG: OnceLock<rustls::ClientConfig> = OnceLock::new();
    if let Some(config) = CONFIG.get() {
        return Ok(config.clone());
    }
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(CallError::unavailable(
            "this machine has no certificates to check an https server with",
        )
        .hint("install the package `ca-certificates`"));
    }
    let config = tls(roots)?;
    Ok(CONFIG.get_or_init(|| config).clone())
}
