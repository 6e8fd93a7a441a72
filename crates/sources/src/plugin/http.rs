//! Runs an http tool: every hop's host and addresses are checked, and what was checked is what is connected to.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, OnceLock};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{CONTENT_TYPE, HeaderMap, LOCATION};
use reqwest::{Client, Method, Response, StatusCode};
use toolcrib_core::permit::secret_name;
use toolcrib_core::{BoxFuture, Call, CallError, CallResult, Hidden, Object, Permit, Spec, Tool};
use toolcrib_sandbox::address::{self, Never};
use url::{Host, Url};

use super::body;
use super::endpoint::{Endpoint, add_query};
use super::headers::{Headers, for_another_server};
use super::reach::{HostPattern, Reach, host_of, same_server};
use super::send::{Destinations, method};
use crate::Place;
use crate::fields::{Fields, Report};
use crate::options::{host_patterns, undescribed};

pub const FIELDS: [&str; 7] = [
    "type",
    "url",
    "method",
    "send",
    "headers",
    "timeout",
    "allowedHosts",
];

const MAX_REDIRECTS: usize = 5;

/// Finds the addresses of a host's name. A field, so that tests can answer as a hostile name server would.
type Lookup =
    Arc<dyn Fn(String, u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> + Send + Sync>;

pub struct Http {
    endpoint: Endpoint,
    method: Method,
    send: Destinations,
    headers: Headers,
    reach: Reach,
    place: Arc<Place>,
    lookup: Lookup,
    hidden: Hidden,
}

impl Http {
    pub fn read(
        fields: &Fields,
        spec: &Spec,
        place: &Arc<Place>,
        report: &mut Report,
    ) -> Option<Http> {
        let method = method(fields, report);
        let allowed = fields.get("allowedHosts").is_some().then(|| {
            let listed = fields.texts(report, "allowedHosts");
            if listed.is_empty() && !report.failed {
                report.invalid(
                    &fields.at("allowedHosts"),
                    "is empty, so nothing could be called",
                    HostPattern::HINT,
                );
            }
            host_patterns(&listed, &fields.at("allowedHosts"), report)
        });
        // Those that can't be read were reported with the other options.
        let walls = spec
            .sandbox
            .allowed_hosts
            .iter()
            .filter_map(|text| HostPattern::parse(text).ok())
            .collect();
        let headers = match fields.object(report, "headers") {
            Some(map) => Headers::read(map, &fields.at("headers"), report),
            None => Headers::default(),
        };
        if spec.sandbox.allow_network == Some(false) {
            let hint = "remove `sandbox.allowNetwork`, or set it to true";
            report.invalid(
                &fields.at("type"),
                "is `http`, but `sandbox.allowNetwork` is false",
                hint,
            );
        }
        let field = fields.at("url");
        let text = fields.required_text(
            report,
            "url",
            "write \"url\": \"https://host/path\" or \"{{url}}/path\"",
        )?;
        let endpoint = match Endpoint::parse(text, allowed.is_some()) {
            Ok(endpoint) => endpoint,
            Err(error) => {
                report.invalid(&field, &error.to_string(), error.hint());
                return None;
            }
        };
        undescribed(endpoint.names(), &spec.input_schema, &field, report);
        let in_url: Vec<&str> = endpoint.names().collect();
        let send = Destinations::read(fields, &method, &in_url, report);
        undescribed(send.names(), &spec.input_schema, &fields.at("send"), report);
        let reach = Reach {
            literal: endpoint.literal_host(),
            allowed,
            walls,
        };
        if endpoint
            .literal_server()
            .is_some_and(|url| !reach.permits(&url))
        {
            let hint = "add the host to `sandbox.allowedHosts`, or remove that list";
            report.invalid(
                &field,
                "names a host that `sandbox.allowedHosts` leaves out",
                hint,
            );
        }
        if reach.literal.is_none() && reach.allowed.is_none() && headers.wanted().next().is_some() {
            report.invalid(
                &fields.at("headers"),
                "takes an environment variable or a secret, but the URL lets an agent choose the host it would be sent to",
                "write the host in `url`, or list the hosts in `allowedHosts`",
            );
        }
        Some(Http {
            endpoint,
            method,
            send,
            headers,
            reach,
            place: place.clone(),
            lookup: Arc::new(system_lookup),
            hidden: Hidden::default(),
        })
    }

    /// What it asks for beyond its declared permissions: the variables and secrets in its headers.
    pub fn asks(&self) -> Permit {
        Permit {
            env: self.headers.wanted().map(str::to_owned).collect(),
            ..Permit::default()
        }
    }

    async fn execute(&self, call: &Call) -> CallResult {
        let mut url = self.endpoint.build(&call.arguments)?;
        let values = self.values(&call.tool).await?;
        let mut headers = self.headers.filled(&values)?;
        let mut method = self.method.clone();
        let remaining = self.endpoint.remaining(&call.arguments);
        let sorted = self.send.sort(&method, remaining)?;
        add_query(&mut url, &sorted.query);
        let mut json = sorted.body;
        // What the tool's author wrote stands.
        for (name, value) in sorted.headers {
            let Some(name) = name.filter(|name| !headers.contains_key(name)) else {
                continue;
            };
            headers.insert(name, value);
        }
        for _ in 0..=MAX_REDIRECTS {
            let response = self.send(&url, &method, &headers, json.as_ref()).await?;
            let Some(next) = redirect(&url, &response)? else {
                return self.outcome(call, &url, response).await;
            };
            if becomes_get(response.status(), &method) {
                method = Method::GET;
                json = None;
            }
            if !same_server(&url, &next) {
                headers = for_another_server(headers);
            }
            url = next;
        }
        Err(CallError::unavailable(format!(
            "`{}` redirected more than {MAX_REDIRECTS} times",
            shown_host(&url)
        ))
        .hint("call the address that the redirects lead to"))
    }

    /// What the headers take, as far as the tool may have it. All but what every tool knows is hidden from then on.
    async fn values<'a>(&'a self, tool: &Tool) -> Result<BTreeMap<&'a str, String>, CallError> {
        let mut values = BTreeMap::new();
        for name in self.headers.wanted() {
            if let Some(value) = self.place.environment.get(name) {
                values.extend(value.to_str().map(|value| (name, value.to_owned())));
                continue;
            }
            let value = match secret_name(name) {
                Some(secret) if self.place.lends(secret, tool) => {
                    let read = self.place.safe.read(secret).await;
                    Some(read.map_err(|unread| unread.into_call_error(tool.name()))?)
                }
                Some(_) => None,
                None => {
                    let granted = self.place.granted(&tool.permit);
                    let own = granted.into_iter().find(|(granted, _)| *granted == name);
                    own.map(|(_, value)| value.into_owned())
                }
            };
            if let Some(value) = value {
                self.hidden.add([value.as_str()]);
                values.insert(name, value);
            }
        }
        Ok(values)
    }

    /// One hop. Whatever led here, the host and its addresses are looked at again.
    async fn send(
        &self,
        url: &Url,
        method: &Method,
        headers: &HeaderMap,
        json: Option<&Object>,
    ) -> Result<Response, CallError> {
        let host = shown_host(url);
        if !self.reach.permits(url) {
            return Err(CallError::denied(format!(
                "`{host}` is not among the hosts this tool may call"
            ))
            .hint("the tool's author can add it to `allowedHosts`"));
        }
        let checked = self.addresses(url).await?;
        let client = client(url, checked).await?;
        let mut request = client
            .request(method.clone(), url.clone())
            .headers(headers.clone());
        if let Some(json) = json {
            request = request.json(json);
        }
        request.send().await.map_err(|error| {
            let hint = "check that the server runs and that its address is right, then call again";
            CallError::unavailable(format!("`{host}` could not be reached: {}", reason(error)))
                .hint(hint)
        })
    }

    /// The addresses of the URL's host, all of which are fit to be called.
    async fn addresses(&self, url: &Url) -> Result<Vec<SocketAddr>, CallError> {
        let shown = shown_host(url);
        let refused = |why: Never| {
            CallError::denied(format!("`{shown}` may not be called: {why}")).hint(
                "http tools never reach link-local and metadata addresses, nor Toolcrib itself",
            )
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
                (self.lookup)(name.to_owned(), port)
                    .await
                    .map_err(|error| {
                        CallError::unavailable(format!(
                            "the address of `{shown}` could not be found: {error}"
                        ))
                        .hint("check the host's name and the network")
                    })?
            }
        };
        // Every crib of this user, this one included.
        let mut cribs = toolcrib_sandbox::off_limits::listening();
        cribs.extend(self.place.own_address.get());
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

    async fn outcome(&self, call: &Call, url: &Url, response: Response) -> CallResult {
        let status = response.status();
        let content_type = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned);
        let mut outcome = body::read(
            response,
            content_type.as_deref(),
            self.place.outputs.as_ref(),
            &call.caller.agent,
            &self.hidden.mask(),
        )
        .await?;
        if status.as_u16() >= 400 {
            outcome.is_error = true;
        }
        if outcome.output.is_empty() && (outcome.is_error || self.method == Method::HEAD) {
            outcome.output = format!("status {status}");
        }
        let mut shown = url.clone();
        shown.set_query(None);
        let outcome = outcome
            .title(call.tool.name())
            .meta("status", status.as_u16())
            .meta("url", shown.as_str());
        Ok(match content_type {
            Some(content_type) => outcome.meta("contentType", content_type),
            None => outcome,
        })
    }
}

impl toolcrib_core::Run for Http {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, CallResult> {
        Box::pin(self.execute(call))
    }

    fn hidden(&self, tool: &Tool) -> Option<Hidden> {
        (!tool.permit.env.is_empty()).then(|| self.hidden.clone())
    }
}

fn shown_host(url: &Url) -> String {
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
fn redirect(url: &Url, response: &Response) -> Result<Option<Url>, CallError> {
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

fn becomes_get(status: StatusCode, method: &Method) -> bool {
    match status.as_u16() {
        303 => *method != Method::HEAD,
        301 | 302 => *method == Method::POST,
        _ => false,
    }
}

/// The innermost reason. The URL is left out: its query may hold what nobody should read in a log.
fn reason(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string().chars().take(300).collect()
}

fn system_lookup(host: String, port: u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
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
async fn client(url: &Url, checked: Vec<SocketAddr>) -> Result<Client, CallError> {
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

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
