//! What agents have to do: a list per thread, as text.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::StoreError;
use crate::BoxFuture;

/// Lists of what agents have to do. One that nobody touched for a month is forgotten.
pub trait Todos: Send + Sync {
    /// Keeps the list of a thread in place of the earlier one, and gives that.
    fn replace<'a>(
        &'a self,
        thread: &'a str,
        list: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, StoreError>>;
}

/// Lists that live as long as the process.
#[derive(Debug, Default)]
pub struct TodosInMemory(Mutex<HashMap<String, String>>);

impl Todos for TodosInMemory {
    fn replace<'a>(
        &'a self,
        thread: &'a str,
        list: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = kept.insert(thread.to_owned(), list.to_owned());
        Box::pin(std::future::ready(Ok(before)))
    }
}
