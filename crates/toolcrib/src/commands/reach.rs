//! How a command reaches the tools: a crib loaded right here, or one that serves somewhere.

use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderValue};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use toolcrib_core::{CallError, Caller, Context, ErrorCode, Object, Request, crib};
use toolcrib_sources::{Follow, Sources};

use super::{Scene, Target};
use crate::config::Flags;
use crate::env;
use crate::failure::Failure;
use crate::open::Opened;
use crate::serve::socket::LOGIN_PATH;
use crate::wire::{
    CallBody, CheckView, ErrorView, HealthView, OutcomeView, ProblemList, ReloadView, ToolList,
    ToolView,
};

pub enum Reach {
    Here(Box<Opened>, Sources),
    There(There),
}

/// A crib behind an address.
pub struct There {
    base: String,
    /// Which crib this is, in words.
    line: String,
    client: reqwest::Client,
    token: Option<Secret>,
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

impl Reach {
    /// Talks to a server where one was named, else loads the tools here.
    pub async fn open(scene: &Scene, target: &Target) -> Result<Reach, Failure> {
        if target.host.is_some() || target.port.is_some() {
            return There::new(scene, target).map(Reach::There);
        }
        if target.token.is_some() {
            let message = "`--token` goes with `--host` or `--port`";
            return Err(Failure::new(ErrorCode::BadRequest, message)
                .hint("leave it out: on this machine commands need no token"));
        }
        let opened = Opened::wire(
            scene.env.clone(),
            Flags::default(),
            scene.globals.project.as_deref(),
        )
        .await?;
        if !target.standalone
            && let Some(there) = There::at_socket(&opened).await
        {
            return Ok(Reach::There(there));
        }
        let sources = opened.load(Follow::Nothing).await;
        Ok(Reach::Here(Box::new(opened), sources))
    }

    /// A login URL for a browser, from the crib that serves this project.
    pub async fn login_url(scene: &Scene) -> Result<String, Failure> {
        let project = scene.globals.project.as_deref();
        let opened = Opened::wire(scene.env.clone(), Flags::default(), project).await?;
        let Some(there) = There::at_socket(&opened).await else {
            let message = "no crib of this version serves this project";
            return Err(Failure::new(ErrorCode::Unavailable, message)
                .hint("start one with `toolcrib serve`; it prints a login URL"));
        };
        let made: Value = there
            .send(there.client.post(format!("{}{LOGIN_PATH}", there.base)))
            .await?;
        Ok(made["login"].as_str().unwrap_or_default().to_owned())
    }

    /// Which project or server this is, in words.
    pub fn line(&self) -> String {
        match self {
            Reach::Here(opened, _) => opened.project_line(),
            Reach::There(there) => there.line.clone(),
        }
    }

    pub async fn tools(&self) -> Result<ToolList, Failure> {
        match self {
            Reach::Here(opened, _) => Ok(ToolList::from(opened.crib.tools().as_ref())),
            Reach::There(there) => there.get("/tools").await,
        }
    }

    pub async fn tool(&self, name: &str) -> Result<ToolView, Failure> {
        match self {
            Reach::Here(opened, _) => {
                let catalog = opened.crib.tools();
                let tool = catalog
                    .get(name)
                    .ok_or_else(|| crib::unknown_tool(name, &catalog))?;
                Ok(ToolView::from(tool.as_ref()))
            }
            Reach::There(there) => there.get(&format!("/tools/{}", path_safe(name)?)).await,
        }
    }

    /// Installs the packages that this tool needs, where a command that is about it is the one to do so: a crib that
    /// serves installs by itself.
    pub async fn prepare(&self, name: &str) {
        let Reach::Here(opened, sources) = self else {
            return;
        };
        let mut files = opened.place.installs.idle();
        if let Some(tool) = opened.crib.tools().get(name) {
            files.retain(|file| tool.file.as_ref() == Some(file));
        }
        if !files.is_empty() {
            opened.with_progress(sources.install(files)).await;
        }
    }

    pub async fn call(&self, name: &str, arguments: Object) -> Result<OutcomeView, Failure> {
        match self {
            Reach::Here(opened, _) => {
                let mut context = Context::new(uuid::Uuid::now_v7().to_string());
                context.directory = opened.place.project.clone();
                let request = Request {
                    tool: name.to_owned(),
                    arguments,
                    caller: Caller::new("cli"),
                    context,
                };
                Ok(OutcomeView::from(opened.crib.call(request).await?))
            }
            Reach::There(there) => {
                there
                    .post(
                        &format!("/tools/{}/call", path_safe(name)?),
                        &CallBody {
                            arguments,
                            ..CallBody::default()
                        },
                    )
                    .await
            }
        }
    }

    /// Asks the process behind a tool how it is.
    pub async fn check(&self, name: &str) -> Result<CheckView, Failure> {
        match self {
            Reach::Here(opened, _) => {
                let catalog = opened.crib.tools();
                let tool = catalog
                    .get(name)
                    .ok_or_else(|| crib::unknown_tool(name, &catalog))?;
                Ok(CheckView::of(tool).await)
            }
            Reach::There(there) => {
                there
                    .get(&format!("/tools/{}/health", path_safe(name)?))
                    .await
            }
        }
    }

    /// Ends the workers that were started here, in good order.
    pub async fn close(&self) {
        if let Reach::Here(opened, _) = self {
            opened.close().await;
        }
    }

    pub async fn problems(&self) -> Result<ProblemList, Failure> {
        match self {
            Reach::Here(opened, _) => Ok(ProblemList::from(opened.crib.tools().as_ref())),
            Reach::There(there) => there.get("/tools/errors").await,
        }
    }

    /// What does not work, in words, where the tools are there all the same.
    pub async fn trouble(&self) -> Vec<String> {
        match self {
            Reach::Here(opened, _) => opened.trouble().await,
            Reach::There(there) => {
                let health: Result<HealthView, _> = there.get("/health").await;
                health.map(|health| health.reasons).unwrap_or_default()
            }
        }
    }

    pub async fn reload(&self) -> Result<ReloadView, Failure> {
        match self {
            Reach::Here(opened, sources) => {
                let change = sources.reload().await;
                Ok(ReloadView::new(change, &opened.crib.tools()))
            }
            Reach::There(there) => there.post("/tools/reload", &json!({})).await,
        }
    }
}

pub(super) fn path_safe(name: &str) -> Result<&str, Failure> {
    let safe = name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if safe && !name.is_empty() {
        return Ok(name);
    }
    Err(
        Failure::new(ErrorCode::UnknownTool, format!("there is no tool `{name}`"))
            .hint("names are letters, digits, `_` and `-`; `toolcrib list` shows them"),
    )
}

/// What really went wrong, such as "Connection refused", without the layers around it.
fn innermost(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(inner) => innermost(inner),
        None => error.to_string(),
    }
}

impl There {
    pub fn new(scene: &Scene, target: &Target) -> Result<There, Failure> {
        let token = target.token.as_deref().or(scene.env.text(env::TOKEN));
        let token = token.map(Secret::new).transpose()?;
        let host = target.host.as_deref().unwrap_or("127.0.0.1");
        let host = if host.contains(':') && !host.starts_with('[') {
            format!("[{host}]")
        } else {
            host.to_owned()
        };
        let port = target.port.unwrap_or(crate::config::DEFAULT_PORT);
        let base = format!("http://{host}:{port}");
        let client = client(reqwest::Client::builder())?;
        Ok(There {
            line: format!("crib at {base}"),
            base,
            client,
            token,
        })
    }

    /// The crib that serves this project already, if it is of this very version.
    async fn at_socket(opened: &Opened) -> Option<There> {
        let path = opened.socket().filter(|path| path.exists())?;
        let there = There {
            base: "http://localhost".to_owned(),
            line: format!("{}, served by a running crib", opened.project_line()),
            client: client(reqwest::Client::builder().unix_socket(path)).ok()?,
            token: None,
        };
        let health: HealthView = there.get("/health").await.ok()?;
        (health.version == crate::VERSION).then_some(there)
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.send(self.client.get(self.url(path))).await
    }

    /// Asks with a query; its values may hold anything.
    pub async fn ask<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, String)],
    ) -> Result<T, Failure> {
        let pairs = query
            .iter()
            .map(|(key, value)| format!("{key}={}", encoded(value)));
        let query: Vec<String> = pairs.collect();
        self.get(&format!("{path}?{}", query.join("&"))).await
    }

    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        self.send(self.client.post(self.url(path)).json(body)).await
    }

    pub(super) async fn patch<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        self.send(self.client.patch(self.url(path)).json(body))
            .await
    }

    /// For what answers without a word.
    pub(super) async fn delete(&self, path: &str) -> Result<(), Failure> {
        let request = self.client.delete(self.url(path));
        self.send::<serde::de::IgnoredAny>(request).await?;
        Ok(())
    }

    fn url(&self, path: &str) -> String {
        format!("{}/api{path}", self.base)
    }

    async fn send<T: DeserializeOwned>(
        &self,
        request: reqwest::RequestBuilder,
    ) -> Result<T, Failure> {
        let silent = |error: reqwest::Error| {
            Failure::new(ErrorCode::Unavailable, format!("no crib answers at {}", self.base))
                .cause(innermost(&error.without_url()))
                .hint("start one with `toolcrib serve`, or leave `--host` and `--port` out to work without a server")
        };
        let request = match &self.token {
            Some(Secret(token)) => request.header(AUTHORIZATION, token.clone()),
            None => request,
        };
        let answer = request.send().await.map_err(silent)?;
        let status = answer.status();
        let body = answer.bytes().await.map_err(silent)?;
        if status.is_success() {
            let nothing: &[u8] = b"null";
            let body = if body.is_empty() { nothing } else { &body };
            return serde_json::from_slice(body).map_err(|error| self.foreign(error));
        }
        let view: ErrorView = serde_json::from_slice(&body).map_err(|error| self.foreign(error))?;
        let failure = Failure::from(CallError::from(view));
        Err(match (failure.code, &self.token) {
            (ErrorCode::Unauthorized, None) => failure.hint(
                "set TOOLCRIB_TOKEN to a token of that crib; `toolcrib token create NAME` makes one where it runs",
            ),
            _ => failure,
        })
    }

    fn foreign(&self, error: serde_json::Error) -> Failure {
        Failure::new(
            ErrorCode::Unavailable,
            format!(
                "what answers at {} is not this version of Toolcrib",
                self.base
            ),
        )
        .cause(error)
        .hint("check the port")
    }
}

/// A value as a query takes it.
fn encoded(value: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let each = value.bytes().map(|byte| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    });
    each.collect()
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
