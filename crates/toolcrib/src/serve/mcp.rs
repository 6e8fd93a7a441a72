//! The MCP surface: one handler for every revision of the protocol, over stdio and streamable HTTP.
//!
//! The library speaks the wire in both eras; this file answers its questions with the crib's words. A handler is a
//! cheap clone and holds nothing of a session, because the library makes one per request or per session as it likes.
//!
//! Why there is a short way in front of it: `docs/design/0009-mcp-two-ways.md`.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::Method;
use axum::response::{IntoResponse, Response};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData, Implementation,
    ListPromptsResult, ListResourceTemplatesResult, ListToolsResult, PaginatedRequestParams,
    ProgressNotificationParam, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
    RequestMetaObject, ServerCapabilities, ServerConfig, SubscriptionFilter, Tool,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{Peer, RoleServer, ServerHandler, ServiceExt};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;
use toolcrib_core::{BoxFuture, Context, OutputId, Progress, Request};

use super::auth::{Scope, Who, missing, refuse};
use super::convert::{self, ErrorReply, ResultView, TTL_MS};
use super::lean::Lean;
use super::lines::Lines;
use super::notices::{Changes, Steps};
use super::rest::{ErrorResponse, MAX_BODY, read};
use super::{PerVersion, Served};

/// How much of a kept output one `resources/read` gives.
const RESOURCE_PAGE: usize = 1_024 * 1_024;
/// How long after its end a session may still be listening for changes.
const LOOK_AGAIN: Duration = Duration::from_secs(60);
const OUTPUTS: &str = "toolcrib://outputs/";

/// Answers MCP requests out of a crib.
#[derive(Clone)]
pub struct Mcp(Arc<Shared>);

struct Shared {
    served: Arc<Served>,
    /// Behind the port everybody is asked who they are; on stdio and the socket it is the owner.
    asks: bool,
    /// The tool list in the library's types, made once per catalog version.
    listed: PerVersion<Vec<Tool>>,
}

impl Mcp {
    /// For stdio and the project's socket, where only the owner gets.
    pub fn new(served: Arc<Served>) -> Mcp {
        Mcp::with(served, false)
    }

    fn with(served: Arc<Served>, asks: bool) -> Mcp {
        Mcp(Arc::new(Shared {
            served,
            asks,
            listed: PerVersion::default(),
        }))
    }

    fn tools(&self) -> Arc<(u64, Vec<Tool>)> {
        let catalog = self.0.served.crib.tools();
        self.0.listed.of(&catalog, || {
            let tools = convert::tools(&catalog).into_iter();
            let tools = tools.filter_map(|tool| serde_json::from_value(tool).ok());
            tools.collect()
        })
    }

    fn who(&self, context: &RequestContext<RoleServer>, scope: Scope) -> Result<Who, ErrorData> {
        Who::of_message(context.extensions.get(), self.0.asks, scope)
            .map_err(|error| protocol_error(-32600, format!("{error}{}", hint(&error))))
    }

    /// The call's context, and the task that passes its progress on, if the client asked for that.
    fn context(
        &self,
        meta: &RequestMetaObject,
        peer: &Peer<RoleServer>,
    ) -> (Context, Option<JoinHandle<()>>) {
        let project = self.0.served.project.clone();
        let context = convert::context(|key| meta.get(key), project);
        match meta.get_progress_token() {
            None => (context, None),
            Some(token) => {
                let (sender, mut receiver) = tokio::sync::mpsc::channel::<Progress>(64);
                let peer = peer.clone();
                let telling = tokio::spawn(async move {
                    let mut steps = Steps::default();
                    while let Some(progress) = receiver.recv().await {
                        let step = steps.next(progress.progress);
                        let mut told = ProgressNotificationParam::new(token.clone(), step);
                        told.total = progress.total;
                        told.message = progress.message.or(progress.title);
                        if peer.notify_progress(told).await.is_err() {
                            break;
                        }
                    }
                });
                // A client that reads slowly loses steps, never the call.
                let context = context.with_progress(Arc::new(move |progress| {
                    let _ = sender.try_send(progress);
                }));
                (context, Some(telling))
            }
        }
    }
}

/// The same handler behind `/mcp`: sessions for clients of the old era, stateless answers for the new one.
fn http(served: &Arc<Served>) -> StreamableHttpService<Mcp, LocalSessionManager> {
    let handler = Mcp::with(served.clone(), true);
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(true)
        .with_json_response(true)
        .with_sse_retry(None)
        .with_cancellation_token(served.shutdown.clone())
        .with_max_request_body_bytes(MAX_BODY)
        // The guard in front of every route has already looked at both.
        .disable_allowed_hosts()
        .disable_allowed_origins();
    let mut sessions = LocalSessionManager::default();
    // The empty first event that announces a retry belongs to 2025-11-25; older clients (Gemini's) stumble over it.
    sessions.session_config.sse_retry = None;
    let sessions = Arc::new(sessions);
    StreamableHttpService::new(move || Ok(handler.clone()), sessions, config)
}

/// What stands at `/mcp`: the short way first, then the library.
pub fn door(
    served: Arc<Served>,
) -> impl Fn(axum::extract::Request) -> BoxFuture<'static, Response> + Clone + Send + 'static {
    let door = Arc::new((http(&served), Lean::default(), served));
    move |request| {
        let door = door.clone();
        Box::pin(async move {
            let (library, lean, served) = &*door;
            let Some(who) = request.extensions().get::<Who>().cloned() else {
                return refuse(missing(), None);
            };
            if let Some(refusal) = who.refuse_connection(request.method()) {
                return refusal;
            }
            if request.method() != Method::POST {
                return library.handle(request).await.into_response();
            }
            // Read here and not by the library, which closes on a large body so that its sender never sees why.
            let (parts, body) = request.into_parts();
            let body = match read(body).await {
                Ok(body) => body,
                Err(error) => return ErrorResponse::from(error).into_response(),
            };
            if let Some(refusal) = who.refuse_messages(&body) {
                return refusal;
            }
            if let Some(response) = lean.answer(served, &who, &parts.headers, &body).await {
                return response;
            }
            let request = axum::extract::Request::from_parts(parts, Body::from(body));
            library.handle(request).await.into_response()
        })
    }
}

/// Speaks MCP in lines on two streams until the client hangs up.
pub async fn lines(
    handler: Mcp,
    input: impl AsyncRead + Send + Sync + Unpin + 'static,
    output: impl AsyncWrite + Send + Sync + Unpin + 'static,
) -> Result<(), String> {
    let running = handler
        .serve(Lines::new(input, output))
        .await
        .map_err(|error| error.to_string())?;
    running
        .waiting()
        .await
        .map(drop)
        .map_err(|error| error.to_string())
}

/// The client's name, from its own words.
fn client(meta: &RequestMetaObject, peer: &Peer<RoleServer>) -> String {
    let told = meta.client_info().map(|info| info.name);
    let told = told.or_else(|| peer.peer_info().map(|info| info.client_info.name.clone()));
    let told = told.unwrap_or_else(|| "mcp".to_owned());
    told.chars().take(64).collect()
}

/// A result in the library's types.
fn typed(view: &ResultView) -> Result<CallToolResponse, ErrorData> {
    let mut result: CallToolResult = serde_json::to_value(view)
        .and_then(serde_json::from_value)
        .map_err(|error| {
            protocol_error(-32603, format!("the outcome is no MCP result: {error}"))
        })?;
    result.result_type = Some(rmcp::model::ResultType::COMPLETE);
    Ok(CallToolResponse::Complete(result))
}

fn protocol_error(code: i32, message: String) -> ErrorData {
    ErrorData::new(rmcp::model::ErrorCode(code), message, None)
}

impl ServerHandler for Mcp {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .build();
        let mut info = ServerConfig::new(capabilities);
        info.server_info = Implementation::new("toolcrib", crate::VERSION);
        info.instructions = Some(convert::instructions(&self.0.served.crib.tools()));
        info
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.who(&context, Scope::Read)?;
        let listed = self.tools();
        let mut result = ListToolsResult::with_all_items(listed.1.clone());
        result.ttl_ms = Some(TTL_MS);
        result.cache_scope = Some(rmcp::model::CacheScope::Private);
        Ok(result)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools()
            .1
            .iter()
            .find(|tool| tool.name == name)
            .cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let who = self.who(&context, Scope::Call)?;
        let name = request.name.into_owned();
        let catalog = self.0.served.crib.tools();
        let Some(tool) = catalog.get(&name) else {
            let error = toolcrib_core::crib::unknown_tool(&name, &catalog);
            return Err(protocol_error(-32602, format!("{error}{}", hint(&error))));
        };
        let _running = self.0.served.begin_call();
        let (known, telling) = self.context(&context.meta, &context.peer);
        let call = self.0.served.crib.call(Request {
            tool: name,
            arguments: request.arguments.unwrap_or_default().into(),
            caller: who.caller(&client(&context.meta, &context.peer)),
            context: known,
        });
        let ended = tokio::select! {
            ended = call => ended,
            // Dropping the call kills what it started; nobody waits for this answer any more.
            () = context.ct.cancelled() => return Err(protocol_error(-32603, "the call was cancelled".to_owned())),
        };
        if let Some(telling) = telling {
            // The last step must not come after the answer; a client that does not read gets no more of a wait.
            let _ = tokio::time::timeout(Duration::from_secs(1), telling).await;
        }
        match ended {
            Ok(outcome) => typed(&convert::outcome(outcome, tool)),
            Err(error) => match convert::error(&error) {
                ErrorReply::Result(view) => typed(&view),
                ErrorReply::Protocol(code, message) => Err(protocol_error(code, message)),
            },
        }
    }

    /// The library would answer with an empty list, but what is not declared is not there.
    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(protocol_error(-32601, "there are no prompts".to_owned()))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = json!({
            "uriTemplate": format!("{OUTPUTS}{{id}}"),
            "name": "output",
            "title": "Whole output of a call",
            "description": "The whole text of an output that was truncated; its notice gives the id",
            "mimeType": "text/plain",
        });
        let templates = serde_json::from_value(template).into_iter().collect();
        let mut result = ListResourceTemplatesResult::with_all_items(templates);
        result.ttl_ms = Some(TTL_MS);
        result.cache_scope = Some(rmcp::model::CacheScope::Private);
        Ok(result)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let unknown = || {
            let uri: String = request.uri.chars().take(200).collect();
            let message = format!("there is no resource `{uri}`");
            ErrorData::new(
                rmcp::model::ErrorCode(-32602),
                message,
                Some(json!({"uri": request.uri})),
            )
        };
        let id = request
            .uri
            .strip_prefix(OUTPUTS)
            .and_then(OutputId::parse)
            .ok_or_else(unknown)?;
        let who = self.who(&context, Scope::Read)?;
        let outputs = self.0.served.crib.outputs();
        let page = outputs
            .read(who.agent(), &id, 0, RESOURCE_PAGE)
            .await
            .map_err(|_| unknown())?;
        let mut text = String::from_utf8_lossy(&page.bytes).into_owned();
        if (page.bytes.len() as u64) < page.total {
            text.push_str("\n[more: read on with the tool `read-output`]");
        }
        let contents = json!({"uri": request.uri, "mimeType": "text/plain", "text": text});
        let contents = serde_json::from_value(contents).into_iter().collect();
        Ok(ReadResourceResponse::Complete(ReadResourceResult::new(
            contents,
        )))
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let mut accepted = SubscriptionFilter::new();
        accepted.tools_list_changed = requested.tools_list_changed;
        Some(accepted)
    }

    /// The new era: changes go to whoever subscribed, until they go away.
    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = Changes::of(&self.0.served.crib);
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                () = changes.next() => {
                    if context.sink().notify_tool_list_changed().await.is_err() {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// The old era: changes go to every client that said hello, until sending fails.
    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let (crib, peer) = (Arc::downgrade(&self.0), context.peer.clone());
        let Some(shared) = crib.upgrade() else { return };
        let mut changes = Changes::of(&shared.served.crib);
        drop(shared);
        tokio::spawn(async move {
            loop {
                // Nobody tells when a session has ended, so this looks now and then: ended ones must not pile up.
                let changed = tokio::time::timeout(LOOK_AGAIN, changes.next()).await;
                if changed.is_err() && !peer.is_transport_closed() {
                    continue;
                }
                if peer.is_transport_closed() || peer.notify_tool_list_changed().await.is_err() {
                    return;
                }
            }
        });
    }
}

fn hint(error: &toolcrib_core::CallError) -> String {
    error
        .hint
        .as_ref()
        .map(|hint| format!("\nhint: {hint}"))
        .unwrap_or_default()
}
