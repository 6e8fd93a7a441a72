//! One request of a built-in tool, hop by hop: who may be asked is looked at again at each.

use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Client, Method, Response};
use serde_json::Value;
use toolcrib_core::{CallError, Network};
use toolcrib_sandbox::HostRule;
use toolcrib_sandbox::address::{self, Reach};
use url::{Host, Url};

use crate::Place;
use crate::outbound::{self, Lookup};

const MAX_REDIRECTS: usize = 5;

/// Who may be asked.
pub enum Allowed<'a> {
    /// What was granted. A host that is granted by its name may not lead into this machine's network.
    Granted(&'a Network),
    /// The server that settings name, wherever it lies, and nobody else.
    Named,
}

/// What is sent.
pub struct Request<'a> {
    pub method: Method,
    pub headers: HeaderMap,
    pub body: Option<&'a Value>,
}

/// An answer, and where it came from.
pub struct Answer {
    pub url: Url,
    pub response: Response,
}

/// Sends a request and follows redirects, where those are for everybody.
pub async fn visit(
    place: &Place,
    lookup: &Lookup,
    allowed: &Allowed<'_>,
    mut url: Url,
    request: &Request<'_>,
) -> Result<Answer, CallError> {
    for _ in 0..=MAX_REDIRECTS {
        let response = hop(place, lookup, allowed, &url, request).await?;
        // Who was named is asked, and nobody whom that one names: keys and messages are for the one.
        let next = match allowed {
            Allowed::Granted(_) => outbound::redirect(&url, &response)?,
            Allowed::Named if response.status().is_redirection() => {
                return Err(CallError::unavailable(format!(
                    "`{}` redirects elsewhere ({})",
                    outbound::shown_host(&url),
                    response.status().as_u16()
                ))
                .hint("write the address that it redirects to into your settings"));
            }
            Allowed::Named => None,
        };
        match next {
            Some(next) => url = next,
            None => return Ok(Answer { url, response }),
        }
    }
    let host = outbound::shown_host(&url);
    Err(CallError::unavailable(format!(
        "`{host}` redirected more than {MAX_REDIRECTS} times"
    ))
    .hint("fetch the address that the redirects lead to"))
}

async fn hop(
    place: &Place,
    lookup: &Lookup,
    allowed: &Allowed<'_>,
    url: &Url,
    request: &Request<'_>,
) -> Result<Response, CallError> {
    let host = outbound::shown_host(url);
    if let Allowed::Granted(network) = allowed
        && !permits(network, url)
    {
        let grant = toolcrib_core::words::CommandLine::new("toolcrib grant")
            .operand("fetch-page")
            .flag("--net", &host);
        let hint = toolcrib_core::Hint::run(grant).after(" grants it");
        return Err(CallError::denied(format!(
            "`{host}` is not among the hosts that were granted"
        ))
        .hint(hint));
    }
    let found = outbound::addresses(place, lookup, url).await?;
    if let Allowed::Granted(network) = allowed {
        let private = found.iter().find(|addr| {
            address::reach(addr.ip()) == Reach::Private
                && !lists(network, url, addr.ip().to_canonical())
        });
        if let Some(private) = private {
            return Err(CallError::denied(format!(
                "`{host}` leads to {}, which is not public and was not granted itself",
                private.ip()
            ))
            .hint("grant the address itself if you mean it, such as `--net 127.0.0.1:8080`"));
        }
    }
    let client: Client = outbound::client(url, found).await?;
    let mut builder = client
        .request(request.method.clone(), url.clone())
        .headers(request.headers.clone());
    if let Some(body) = request.body {
        builder = builder.json(body);
    }
    builder.send().await.map_err(|error| {
        let reason = outbound::reason(error);
        CallError::unavailable(format!("`{host}` could not be reached: {reason}"))
            .hint("check the address and the network, then call again")
    })
}

fn rules(network: &Network) -> impl Iterator<Item = HostRule> {
    let hosts: &[String] = match network {
        Network::Hosts(hosts) => hosts,
        Network::None | Network::Open => &[],
    };
    hosts.iter().filter_map(|host| host.parse().ok())
}

/// May this URL's host be asked?
fn permits(network: &Network, url: &Url) -> bool {
    let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else {
        return false;
    };
    // An address of the sixth version is compared without its brackets.
    let host = match host {
        Host::Domain(name) => name.to_owned(),
        Host::Ipv4(ip) => ip.to_string(),
        Host::Ipv6(ip) => ip.to_string(),
    };
    let tls = url.scheme() == "https";
    match network {
        Network::Open => true,
        Network::None => false,
        Network::Hosts(_) => rules(network).any(|rule| rule.permits(&host, port, tls)),
    }
}

/// Was this very address granted?
fn lists(network: &Network, url: &Url, address: std::net::IpAddr) -> bool {
    let (port, tls) = (
        url.port_or_known_default().unwrap_or(0),
        url.scheme() == "https",
    );
    match network {
        Network::Open => true,
        Network::None => false,
        Network::Hosts(_) => rules(network).any(|rule| rule.permits_address(address, port, tls)),
    }
}

/// A URL that may be asked for: http or https, and nobody's password in it.
pub fn plain_url(text: &str) -> Result<Url, CallError> {
    let bad = |why: &str| {
        CallError::invalid(format!("`url` {why}")).hint("write it like https://example.com/page")
    };
    let mut url = Url::parse(text.trim()).map_err(|_| bad("is not a URL"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(bad("is neither http nor https"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(bad("contains a user or a password"));
    }
    url.set_fragment(None);
    Ok(url)
}

/// A header's value that nobody prints.
pub fn secret_header(value: &str) -> Result<HeaderValue, CallError> {
    let mut value = HeaderValue::from_str(value).map_err(|_| {
        CallError::unavailable("the key holds characters that no header can")
            .hint("check the secret")
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// A body, as far as it may be taken in; how much its compression hides does not matter. Says whether there was more.
pub async fn body(mut response: Response, most: usize) -> Result<(Vec<u8>, bool), CallError> {
    let mut bytes = Vec::new();
    loop {
        match response.chunk().await {
            Ok(None) => return Ok((bytes, false)),
            Ok(Some(chunk)) => {
                let room = most - bytes.len();
                bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
                if chunk.len() > room {
                    return Ok((bytes, true));
                }
            }
            Err(error) => {
                return Err(CallError::unavailable(format!(
                    "the answer broke off: {}",
                    outbound::reason(error)
                ))
                .hint("call again; if it keeps failing, the server ends its answers too early"));
            }
        }
    }
}
