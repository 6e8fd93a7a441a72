//! Waiting for what others bring about.

use std::time::{Duration, Instant};

/// How long a test waits for something that must happen.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until something holds that others bring about.
pub async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    poll(PATIENCE, async || match holds() {
        true => Ok(()),
        false => Err(format!("waited in vain until {what}")),
    })
    .await;
}

/// Looks until all is well; says what is not when it takes too long.
pub async fn poll(limit: Duration, mut look: impl AsyncFnMut() -> Result<(), String>) {
    let deadline = Instant::now() + limit;
    while let Err(wrong) = look().await {
        assert!(Instant::now() < deadline, "{wrong}");
        // sleeps: how often it is looked at; nothing depends on it
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
