//! What agents have to do, in the store that is open.

use toolcrib_core::BoxFuture;
use toolcrib_core::store::{StoreError, Todos};

use super::StoreHandle;

impl Todos for StoreHandle {
    fn replace<'a>(
        &'a self,
        thread: &'a str,
        list: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        Box::pin(async move { self.ready()?.todos().replace(thread, list).await })
    }
}
