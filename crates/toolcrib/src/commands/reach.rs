//! How a command reaches a crib: one kind of request, sent to a router right here, to the crib that serves this project,
//! or to one elsewhere. What is asked for is written once, as a route; a command only says what it wants and shows it.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use axum::http::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toolcrib_core::call::DEFAULT_AGENT;
use toolcrib_core::{CallError, ErrorCode, Object, Pending, Status};
use toolcrib_sources::{Follow, Sources};

use super::transport::{Here, Pieces, There, Transport};
use super::{Scene, Target};
use crate::config::{Flags, Project, project};
use crate::failure::Failure;
use crate::open::{Opened, data_folder, served_project};
use crate::serve::auth::Approves;
use crate::serve::socket::{APPROVE, LOGIN_PATH};
use crate::serve::{NAMED, Served, reload};
use crate::store_handle::StoreHandle;
use crate::wire::{CallBody, ErrorView, OutcomeView, ToolView};

/// How long a call waits for the packages of its tool.
const INSTALLED: Duration = Duration::from_secs(15 * 60);
/// How often it is asked whether a tool is loaded by now.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// A crib that answers.
pub struct Reach {
    /// Which project or server this is, in words.
    line: String,
    transport: Transport,
    /// What was loaded for this command, where no crib serves.
    loaded: Option<Loaded>,
}

/// Tools that were loaded for one command.
struct Loaded {
    opened: Arc<Opened>,
    sources: Arc<OnceLock<Sources>>,
}

impl Reach {
    /// Talks to a server where one was named or serves this project, else loads the tools here.
    pub async fn open(scene: &Scene, target: &Target) -> Result<Reach, Failure> {
        Reach::open_for(scene, target, About::Tools).await
    }

    /// The same for a command that is about one tool: it waits for that one, and for no other.
    pub async fn open_for(
        scene: &Scene,
        target: &Target,
        about: About<'_>,
    ) -> Result<Reach, Failure> {
        if let Some(there) = There::named(scene, target)? {
            return Ok(Reach::to(there));
        }
        let flag = scene.globals.project.as_deref();
        // Not even the store is opened where a crib serves, because that has it.
        let project = served_project(&scene.env, flag)?;
        if let Some(there) = There::serving(scene, target, project.as_ref()).await {
            let line = format!("{}, served by a running crib", there.line());
            return Ok(Reach {
                line,
                ..Reach::to(there)
            });
        }
        let opened = Opened::wire(scene.env.clone(), Flags::default(), flag).await?;
        let opened = Arc::new(opened);
        let sources = match about {
            About::Tools => opened.load().await,
            About::Tool(_) | About::CallOf(_) => opened.start(Follow::Nothing).await,
        };
        about.ready(&opened, &sources).await;
        let loaded = Loaded {
            sources: Arc::new(OnceLock::from(sources)),
            opened,
        };
        // The command ends with its answer, so others hear of a change through the store alone.
        let served = Served::of(&loaded.opened, &Arc::default());
        Ok(Reach {
            line: loaded.opened.project_line(),
            transport: Here::new(
                served.with_reload(reload(loaded.sources.clone())),
                &scene.env,
            )
            .into(),
            loaded: Some(loaded),
        })
    }

    /// The same for what is in the store alone. Needs no settings but the store's, and loads no tool.
    pub async fn records(
        scene: &Scene,
        target: &Target,
        project: Option<&Project>,
    ) -> Result<Reach, Failure> {
        if let Some(there) = There::named(scene, target)? {
            return Ok(Reach::to(there));
        }
        if let Some(there) = There::serving(scene, target, project).await {
            return Ok(Reach::to(there));
        }
        let data = data_folder(&scene.env)?;
        let store = Arc::new(StoreHandle::open(&scene.env, &data).await?);
        let served = Served::records(&scene.env, &store, &data, project);
        Ok(Reach {
            line: String::new(),
            transport: Here::new(served, &scene.env).into(),
            loaded: None,
        })
    }

    /// The project that is meant, where there is one that can be entered; what is in the store is there without.
    pub fn project(scene: &Scene) -> Option<Project> {
        let found = project::find(scene.globals.project.as_deref(), &scene.env);
        found.ok().flatten()
    }

    /// A login URL for a browser, from the crib that serves this project.
    pub async fn login_url(scene: &Scene, approves: Approves) -> Result<String, Failure> {
        let project = project::find(scene.globals.project.as_deref(), &scene.env)?;
        let target = Target::default();
        let Some(there) = There::serving(scene, &target, project.as_ref()).await else {
            let message = "no crib of this version serves this project";
            return Err(Failure::new(ErrorCode::Unavailable, message)
                .hint("start one with `toolcrib serve`; it prints a login URL"));
        };
        let reach = Reach::to(there);
        let path = match approves {
            Approves::No => LOGIN_PATH.to_owned(),
            Approves::Yes => format!("{LOGIN_PATH}?{APPROVE}"),
        };
        let made: Value = reach.send(Method::POST, &path, None).await?;
        Ok(made["login"].as_str().unwrap_or_default().to_owned())
    }

    fn to(there: There) -> Reach {
        Reach {
            line: there.line(),
            transport: there.into(),
            loaded: None,
        }
    }

    /// Which project or server this is, in words.
    pub fn line(&self) -> &str {
        &self.line
    }

    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.send(Method::GET, &format!("/api{path}"), None).await
    }

    /// Asks with a query; its values may hold anything.
    pub async fn ask<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, String)],
    ) -> Result<T, Failure> {
        self.get(&with_query(path, query)).await
    }

    pub async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        let body = Some(written(body)?);
        self.send(Method::POST, &format!("/api{path}"), body).await
    }

    pub async fn patch<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        let body = Some(written(body)?);
        self.send(Method::PATCH, &format!("/api{path}"), body).await
    }

    /// What answers without a word is read as [`serde::de::IgnoredAny`].
    pub async fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.send(Method::DELETE, &format!("/api{path}"), None)
            .await
    }

    async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> Result<T, Failure> {
        let (status, body) = self.transport.send(method, path, body).await?;
        let foreign = |error| self.transport.foreign(error);
        // 202 is a call that waits for a person, and no answer to it.
        if status.is_success() && status.as_u16() != 202 {
            let nothing: &[u8] = b"null";
            let body = if body.is_empty() { nothing } else { &body };
            return serde_json::from_slice(body).map_err(foreign);
        }
        let view: ErrorView = serde_json::from_slice(&body).map_err(foreign)?;
        let failure = Failure::from(CallError::from(view));
        Err(match failure.code {
            ErrorCode::Unauthorized if !self.transport.shows_token() => failure.hint(
                "set TOOLCRIB_TOKEN to a token of that crib; `toolcrib token create NAME` makes one where it runs",
            ),
            _ => failure,
        })
    }

    pub async fn tool(&self, name: &str) -> Result<ToolView, Failure> {
        self.get(&format!("/tools/{}", segment(name)?)).await
    }

    /// The same once it is known what the tool takes. One that is being loaded is waited for, as a call waits.
    pub async fn tool_with_schema(&self, name: &str) -> Result<ToolView, Failure> {
        let end = Instant::now() + NAMED;
        loop {
            let tool = self.tool(name).await?;
            if tool.status != Status::Loading.as_str() || Instant::now() >= end {
                return Ok(tool);
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Calls a tool, as the agent that was chosen. Dropping the future cancels the call, wherever it runs.
    pub async fn call(
        &self,
        name: &str,
        agent: Option<&str>,
        arguments: Object,
    ) -> Result<OutcomeView, Failure> {
        let path = format!("/tools/{}/call", segment(name)?);
        let body = CallBody {
            arguments,
            agent: agent.map(str::to_owned),
            attached: true,
            ..CallBody::default()
        };
        self.post(&path, &body).await
    }

    /// What happens in the crib from now on, piece by piece.
    pub async fn events(&self) -> Result<Pieces, Failure> {
        self.transport.listen("/api/events").await
    }

    /// A kept output, whole.
    pub async fn output(&self, id: &str) -> Result<String, Failure> {
        let path = format!("/api/outputs/{}", segment(id)?);
        let (status, body) = self.transport.send(Method::GET, &path, None).await?;
        match status.is_success() {
            true => Ok(String::from_utf8_lossy(&body).into_owned()),
            false => {
                let view: ErrorView =
                    serde_json::from_slice(&body).map_err(|error| self.transport.foreign(error))?;
                Err(Failure::from(CallError::from(view)))
            }
        }
    }

    /// Ends the workers that were started here, in good order.
    pub async fn close(&self) {
        if let Some(loaded) = &self.loaded {
            loaded.opened.close().await;
        }
    }
}

/// What a command is about.
#[derive(Clone, Copy)]
pub enum About<'a> {
    /// All tools there are.
    Tools,
    /// What this one is.
    Tool(&'a str),
    /// What this one gives: what it needs is installed for it.
    CallOf(&'a str),
}

impl About<'_> {
    /// Waits for the one tool that the command is about, where that is being loaded. A crib that serves does so by itself.
    async fn ready(self, opened: &Opened, sources: &Sources) {
        let crib = &opened.crib;
        let name = match self {
            About::Tools => return,
            About::Tool(name) | About::CallOf(name) => name,
        };
        let pending = || {
            let view = crib.owners_view();
            let tool = view.get(name)?;
            Some((tool.pending?, tool.file.clone()?))
        };
        // A name that nobody knows yet may be one that is about to be told.
        if crib.owners_view().get(name).is_none() {
            let described = crib.described(DEFAULT_AGENT, name);
            let waited = tokio::time::timeout(opened.settings.list_wait, described);
            let _ = opened.with_progress(waited).await;
        }
        if let (About::Tool(_), Some((Pending::Description, _))) = (self, pending()) {
            let described = crib.described(DEFAULT_AGENT, name);
            let waited = tokio::time::timeout(NAMED, described);
            let _ = opened.with_progress(waited).await;
        }
        // What it is comes first, and may be that something has to be installed.
        let stages = [
            (Pending::Description, NAMED),
            (Pending::Preparation, INSTALLED),
        ];
        for (stage, patience) in stages {
            let (About::CallOf(_), Some((now, file))) = (self, pending()) else {
                return;
            };
            if now != stage {
                continue;
            }
            let ready = async {
                tokio::select! {
                    _ = sources.want(vec![file]) => {}
                    () = crib.callable(DEFAULT_AGENT, name) => {}
                }
            };
            let _ = opened
                .with_progress(tokio::time::timeout(patience, ready))
                .await;
        }
    }
}

/// A path with a query.
pub fn with_query(path: &str, query: &[(&str, String)]) -> String {
    let pairs = query
        .iter()
        .map(|(key, value)| format!("{key}={}", encoded(value)));
    let pairs: Vec<String> = pairs.collect();
    match pairs.is_empty() {
        true => path.to_owned(),
        false => format!("{path}?{}", pairs.join("&")),
    }
}

/// A name as one step of a path, which never reads as a word of the route table.
pub fn segment(name: &str) -> Result<String, Failure> {
    if matches!(name, "" | "." | "..") {
        let message = format!("there is nothing named `{name}`");
        return Err(Failure::new(ErrorCode::NotFound, message)
            .hint("names are letters, digits, `_` and `-`; `toolcrib list` shows them"));
    }
    let rest = name.char_indices().nth(1).map_or(name.len(), |(at, _)| at);
    let first = name[..rest].bytes().map(|byte| format!("%{byte:02X}"));
    Ok(first.collect::<String>() + &encoded(&name[rest..]))
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

fn written(body: &impl Serialize) -> Result<Vec<u8>, Failure> {
    serde_json::to_vec(body).map_err(|error| {
        Failure::new(ErrorCode::Internal, "the request can't be written").cause(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_step_of_a_path() {
        assert_eq!(segment("errors").unwrap(), "%65rrors");
        assert_eq!(segment("a/b c").unwrap(), "%61%2Fb%20c");
        assert_eq!(segment("ä").unwrap(), "%C3%A4");
        for name in ["", ".", ".."] {
            assert!(segment(name).is_err(), "{name}");
        }
        let query = [("tool", "a&b".to_owned()), ("n", "1".to_owned())];
        assert_eq!(with_query("/logs", &query), "/logs?tool=a%26b&n=1");
        assert_eq!(with_query("/logs", &[]), "/logs");
    }
}
