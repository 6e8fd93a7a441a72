//! The ways that a request takes: the router in this process, a socket, a port.

use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, Request, StatusCode};
use axum::response::Response;
use axum::{Extension, Router};
use futures_util::StreamExt;
use reqwest::header::{AUTHORIZATION, HeaderValue};
use toolcrib_core::ErrorCode;
use tower::Service;

use super::{Scene, Target};
use crate::approver::process::ProcessId;
use crate::config::Project;
use crate::env::{self, Env};
use crate::failure::Failure;
use crate::open;
use crate::serve::auth::{LocalProcess, Who};
use crate::serve::{Served, rest};
use crate::wire::HealthView;

const JSON: &str = "application/json";
/// How long whatever holds the project's socket may take to say who it is.
const GREETING: Duration = Duration::from_secs(5);

/// Where requests go.
pub enum Transport {
    Here(Here),
    There(There),
}

impl From<Here> for Transport {
    fn from(here: Here) -> Transport {
        Transport::Here(here)
    }
}

impl From<There> for Transport {
    fn from(there: There) -> Transport {
        Transport::There(there)
    }
}

impl Transport {
    /// Sends a request and gives the whole answer.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> Result<(StatusCode, Bytes), Failure> {
        match self {
            Transport::Here(here) => here.send(method, path, body).await,
            Transport::There(there) => there.send(method, path, body).await,
        }
    }

    /// Sends a request whose answer comes in pieces, as long as somebody reads them.
    pub async fn listen(&self, path: &str) -> Result<Pieces, Failure> {
        match self {
            Transport::Here(here) => {
                let answer = here.ask(Method::GET, path, None).await?;
                Ok(Pieces::Here(answer.into_body().into_data_stream()))
            }
            Transport::There(there) => {
                let answer = there.ask(Method::GET, path, None).await?;
                Ok(Pieces::There(Box::new(answer)))
            }
        }
    }

    pub fn shows_token(&self) -> bool {
        matches!(self, Transport::There(There { token: Some(_), .. }))
    }

    /// What answered did not answer as this version does.
    pub fn foreign(&self, error: serde_json::Error) -> Failure {
        match self {
            Transport::Here(_) => broken().cause(error),
            Transport::There(there) => Failure::new(
                ErrorCode::Unavailable,
                format!(
                    "what answers at {} is not this version of Toolcrib",
                    there.base
                ),
            )
            .cause(error)
            .hint("check the port"),
        }
    }
}

fn broken() -> Failure {
    Failure::new(ErrorCode::Internal, "the answer can't be read")
}

/// The router in this process, asked by its owner.
pub struct Here(Router);

impl Here {
    pub fn new(served: Served, env: &Env) -> Here {
        let who = match ProcessId::own() {
            Some(id) => Who::owner_with(LocalProcess {
                id,
                env: env.clone().into(),
            }),
            None => Who::owner(),
        };
        Here(rest::api_router(served.into()).layer(Extension(who)))
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> Result<(StatusCode, Bytes), Failure> {
        let (parts, body) = self.ask(method, path, body).await?.into_parts();
        let body = axum::body::to_bytes(body, usize::MAX).await;
        Ok((parts.status, body.map_err(|error| broken().cause(error))?))
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> Result<Response, Failure> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(CONTENT_TYPE, JSON)
            .body(Body::from(body.unwrap_or_default()));
        let request = request.map_err(|error| {
            Failure::new(ErrorCode::BadRequest, "the request can't be sent").cause(error)
        })?;
        let Ok(answer) = self.0.clone().call(request).await;
        Ok(answer)
    }
}

/// An answer that comes in pieces.
pub enum Pieces {
    Here(BodyDataStream),
    There(Box<reqwest::Response>),
}

impl Pieces {
    /// The next piece; nothing at the end.
    pub async fn next(&mut self) -> Option<Bytes> {
        match self {
            Pieces::Here(body) => body.next().await?.ok(),
            Pieces::There(answer) => answer.chunk().await.ok()?,
        }
    }
}

/// A crib behind an address.
pub struct There {
    base: String,
    client: reqwest::Client,
    token: Option<Secret>,
    /// The project that it serves, in words, where it said so.
    serves: Option<String>,
}

/// A token as it is sent; nothing prints it.
struct Secret(HeaderValue);

impl Secret {
    fn new(token: &str) -> Result<Secret, Failure> {
        let header = HeaderValue::from_str(&format!("Bearer {}", token.trim()));
        let mut header = header.map_err(|_| {
            Failure::new(
                ErrorCode::BadRequest,
                "the token holds characters that no token has",
            )
            .hint("copy it again from where `toolcrib token create` printed it")
        })?;
        header.set_sensitive(true);
        Ok(Secret(header))
    }
}

impl There {
    /// The crib that a person named, if one was.
    pub fn named(scene: &Scene, target: &Target) -> Result<Option<There>, Failure> {
        if target.host.is_none() && target.port.is_none() {
            return match target.token {
                None => Ok(None),
                Some(_) => {
                    let message = "`--token` goes with `--host` or `--port`";
                    Err(Failure::new(ErrorCode::BadRequest, message)
                        .hint("leave it out: on this machine commands need no token"))
                }
            };
        }
        let token = target.token.as_deref().or(scene.env.text(env::TOKEN));
        let token = token.map(Secret::new).transpose()?;
        let host = target.host.as_deref().unwrap_or("127.0.0.1");
        let host = if host.contains(':') && !host.starts_with('[') {
            format!("[{host}]")
        } else {
            host.to_owned()
        };
        let port = target.port.unwrap_or(crate::config::DEFAULT_PORT);
        Ok(Some(There {
            base: format!("http://{host}:{port}"),
            client: client(reqwest::Client::builder())?,
            token,
            serves: None,
        }))
    }

    /// The crib that serves this project already, if it is of this very version.
    pub async fn serving(
        scene: &Scene,
        target: &Target,
        project: Option<&Project>,
    ) -> Option<There> {
        let path = open::socket(&scene.env, project).filter(|_| !target.standalone)?;
        let path = path.exists().then_some(path)?;
        let mut there = There {
            base: "http://localhost".to_owned(),
            client: client(reqwest::Client::builder().unix_socket(path)).ok()?,
            token: None,
            serves: None,
        };
        // What holds the socket and says nothing is no crib that serves.
        let asked = there.send(Method::GET, "/api/health", None);
        let (_, health) = tokio::time::timeout(GREETING, asked).await.ok()?.ok()?;
        let health: HealthView = serde_json::from_slice(&health).ok()?;
        there.serves = health.project_line;
        (health.version == crate::VERSION).then_some(there)
    }

    /// Which crib this is, in words.
    pub fn line(&self) -> String {
        match &self.serves {
            Some(line) => line.clone(),
            None => format!("crib at {}", self.base),
        }
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> Result<(StatusCode, Bytes), Failure> {
        let answer = self.ask(method, path, body).await?;
        let status = answer.status();
        Ok((
            status,
            answer.bytes().await.map_err(|error| self.silent(error))?,
        ))
    }

    fn silent(&self, error: reqwest::Error) -> Failure {
        Failure::new(ErrorCode::Unavailable, format!("no crib answers at {}", self.base))
            .cause(innermost(&error.without_url()))
            .hint("start one with `toolcrib serve`, or leave `--host` and `--port` out to work without a server")
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> Result<reqwest::Response, Failure> {
        let mut request = self.client.request(method, format!("{}{path}", self.base));
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, JSON).body(body);
        }
        if let Some(Secret(token)) = &self.token {
            request = request.header(AUTHORIZATION, token.clone());
        }
        request.send().await.map_err(|error| self.silent(error))
    }
}

/// What really went wrong, such as "Connection refused", without the layers around it.
fn innermost(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(inner) => innermost(inner),
        None => error.to_string(),
    }
}

fn client(builder: reqwest::ClientBuilder) -> Result<reqwest::Client, Failure> {
    // The client asks for a TLS provider even where it only speaks plain HTTP.
    let _ = rustls::crypto::ring::default_provider().install_default();
    builder
        .no_proxy()
        .connect_timeout(Duration::from_secs(5))
        .build()
        .map_err(|error| {
            Failure::new(ErrorCode::Internal, "no HTTP client could be made").cause(error)
        })
}
