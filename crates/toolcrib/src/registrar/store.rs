//! The store as the source of registered tools sees it: there, in trouble, or there again.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use toolcrib_core::BoxFuture;
use toolcrib_core::store::{
    CustomTool, RegisteredHealth, RegisteredStatus, Registrations, StoreError,
};

use crate::store_handle::StoreHandle;

/// How often a store that could not be opened is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(200);

impl Registrations for StoreHandle {
    fn active(&self) -> BoxFuture<'_, Result<Vec<CustomTool>, StoreError>> {
        Box::pin(async { Registrations::active(&self.store()?.custom_tools()).await })
    }

    fn set_status<'a>(
        &'a self,
        name: &'a str,
        status: RegisteredStatus,
        error_message: Option<&'a str>,
    ) -> BoxFuture<'a, Result<CustomTool, StoreError>> {
        Box::pin(async move {
            let tools = self.store()?.custom_tools();
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
            let tools = self.store()?.custom_tools();
            tools.set_health(name, health, at_ms).await
        })
    }
}

/// Rings when anybody changed anything, and when a store that could not be opened is there. Ends with its last
/// listener.
pub fn changes(memory: &Arc<StoreHandle>) -> watch::Receiver<u64> {
    let mut store = memory.store().ok().map(|store| store.watch());
    let first = store.as_mut().map_or(0, |store| *store.borrow_and_update());
    let (tell, told) = watch::channel(first);
    let memory = Arc::downgrade(memory);
    tokio::spawn(async move {
        loop {
            match &mut store {
                Some(changes) => tokio::select! {
                    changed = changes.changed() => match changed {
                        Ok(()) => { tell.send_replace(*changes.borrow_and_update()); }
                        Err(_) => store = None,
                    },
                    () = tell.closed() => return,
                },
                None => {
                    tokio::select! {
                        () = tokio::time::sleep(LOOK_EVERY) => {}
                        () = tell.closed() => return,
                    }
                    let Some(memory) = memory.upgrade() else {
                        return;
                    };
                    store = memory.store().ok().map(|store| store.watch());
                    if let Some(changes) = &mut store {
                        tell.send_replace(*changes.borrow_and_update());
                    }
                }
            }
        }
    });
    told
}
