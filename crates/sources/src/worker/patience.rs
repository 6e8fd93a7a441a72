//! A clock that is generous while the machine is busy: a process that gets no processor is not to blame.

use std::pin::pin;
use std::time::Duration;

/// How many times the usual limit is waited at most.
pub const AT_MOST: u32 = 6;
/// The share of the last ten seconds in which something waited for a processor, in percent.
const PRESSED: f64 = 20.0;
/// How many processes want to run on each processor of a busy machine.
const CROWDED: f64 = 1.5;

/// Waits for this as long as the limit says, and longer while the machine is busy; else gives how long it has waited.
pub async fn patiently<T>(limit: Duration, work: impl Future<Output = T>) -> Result<T, Duration> {
    patiently_while(limit, work, is_busy).await
}

async fn patiently_while<T>(
    limit: Duration,
    work: impl Future<Output = T>,
    busy: impl Fn() -> bool,
) -> Result<T, Duration> {
    let mut work = pin!(work);
    let mut waited = Duration::ZERO;
    for _ in 0..AT_MOST {
        if let Ok(done) = tokio::time::timeout(limit, &mut work).await {
            return Ok(done);
        }
        waited += limit;
        if !busy() {
            break;
        }
    }
    Err(waited)
}

/// Do processes have to wait for their turn? What the kernel does not tell counts as no.
fn is_busy() -> bool {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let pressure = pressure(&read("/proc/pressure/cpu")).unwrap_or(0.0);
    let crowd = load(&read("/proc/loadavg")).unwrap_or(0.0) / cores as f64;
    pressure > PRESSED || crowd > CROWDED
}

fn pressure(text: &str) -> Option<f64> {
    let some = text.lines().find(|line| line.starts_with("some"))?;
    let mut fields = some.split_whitespace();
    fields
        .find_map(|field| field.strip_prefix("avg10="))?
        .parse()
        .ok()
}

fn load(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::sync::Notify;

    use super::*;

    #[test]
    fn what_the_kernel_says_is_read() {
        let said = "some avg10=20.04 avg60=31.23 avg300=44.03 total=1\nfull avg10=0.00 total=0\n";
        assert_eq!(pressure(said), Some(20.04));
        assert_eq!(pressure(""), None);
        assert_eq!(load("3.24 3.99 3.73 1/201 3334\n"), Some(3.24));
        assert_eq!(load(""), None);
    }

    #[tokio::test]
    async fn a_busy_machine_has_more_time_but_not_for_ever() {
        let limit = Duration::from_millis(5);
        let never = std::future::pending::<()>;
        assert_eq!(patiently_while(limit, never(), || false).await, Err(limit));
        let waited = patiently_while(limit, never(), || true).await;
        assert_eq!(waited, Err(limit * AT_MOST));
        // It is ready when the limit has passed twice.
        let (ready, asked) = (Notify::new(), Cell::new(0));
        let busy = || {
            asked.set(asked.get() + 1);
            if asked.get() == 2 {
                ready.notify_one();
            }
            true
        };
        assert_eq!(patiently_while(limit, ready.notified(), busy).await, Ok(()));
    }
}
