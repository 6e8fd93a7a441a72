//! The store as the source of registered tools sees it: there, in trouble, or there again.

use std::sync::Arc;

use tokio::sync::watch;
use toolcrib_core::BoxFuture;
use toolcrib_core::store::{
    CustomTool, RegisteredHealth, RegisteredStatus, Registrations, StoreError,
};

use crate::store_handle::{StoreHandle, StoreState};

impl Registrations for StoreHandle {
    fn active(&self) -> BoxFuture<'_, Result<Vec<CustomTool>, StoreError>> {
        Box::pin(async { Registrations::active(&self.ready()?.custom_tools()).await })
    }

    fn set_status<'a>(
        &'a self,
        name: &'a str,
        status: RegisteredStatus,
        error_message: Option<&'a str>,
    ) -> BoxFuture<'a, Result<CustomTool, StoreError>> {
        Box::pin(async move {
            let tools = self.ready()?.custom_tools();
            tools.set_status(name, status, error_message).await
        })
    }

    fn set_health<'a>(
        &'a self,
        name: &'a str,
        health: RegisteredHealth,
        at_ms: u64,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let tools = self.ready()?.custom_tools();
            tools.set_health(name, health, at_ms).await
        })
    }
}

/// Changes with every change to registrations, and when the store is another one. Ends with its last listener.
pub fn changes(store: &Arc<StoreHandle>) -> watch::Receiver<u64> {
    let mut store = store.changes();
    let mut known = number(*store.borrow_and_update());
    let (tell, told) = watch::channel(0);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                changed = store.changed() => if changed.is_err() { return },
                () = tell.closed() => return,
            }
            let now = number(*store.borrow_and_update());
            if std::mem::replace(&mut known, now) != now {
                tell.send_modify(|changes| *changes += 1);
            }
        }
    });
    told
}

/// The number of the last change to registrations.
fn number(state: StoreState) -> (u64, Option<u64>) {
    state.number(|revisions| revisions.custom_tools)
}
