//! `subscriptions/listen`: changes go to whoever asks for them, until they go away or the crib stops.

use std::sync::Arc;

use serde_json::{Value, json};

use super::conversation::Outlet;
use super::message::{Fields, Request};
use super::methods::{Channel, Reply};
use super::notices::{Changes, LIST_CHANGED};
use super::reply::notification;
use super::{Mcp, codes, reply};

pub fn begin(mcp: &Arc<Mcp>, channel: Channel, request: Request) -> Reply {
    let Some(outlet) = channel.outlet else {
        return Reply::error(
            &request,
            codes::INTERNAL,
            "there is nowhere to tell changes",
        );
    };
    let wanted: Fields = request
        .params
        .fields
        .read("notifications")
        .unwrap_or_default();
    let tools = wanted.read("toolsListChanged") == Some(true);
    let id = reply::raw(&request.id);
    let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
    let changes = tools.then(|| Changes::of(&mcp.served.crib));
    let shutdown = mcp.served.shutdown.clone();
    Reply::Later(Box::pin(async move {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = tell(&outlet, meta, changes) => {}
        }
        None
    }))
}

/// Tells that the subscription stands, and then every change.
async fn tell(outlet: &Outlet, meta: Value, changes: Option<Changes>) {
    let mut accepted = json!({});
    if changes.is_some() {
        accepted["toolsListChanged"] = true.into();
    }
    let params = json!({"_meta": meta, "notifications": accepted});
    let acknowledged = notification("notifications/subscriptions/acknowledged", Some(&params));
    if outlet.send(acknowledged).await.is_err() {
        return;
    }
    let Some(mut changes) = changes else {
        return outlet.closed().await;
    };
    let params = json!({"_meta": meta});
    loop {
        tokio::select! {
            () = outlet.closed() => return,
            () = changes.next() => {}
        }
        if outlet
            .send(notification(LIST_CHANGED, Some(&params)))
            .await
            .is_err()
        {
            return;
        }
    }
}
