//! Looking after the store, beside the answering.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::{sleep, timeout};

use crate::app::App;
use crate::shutdown::Awaited;

/// How long the store is told of what was spent when this node ends.
const LAST: Duration = Duration::from_secs(2);

/// Looks after a store that nodes share, until the end.
pub(crate) async fn keep(app: Arc<App>, every: Duration, mut end: Awaited) {
    let Some(store) = app.backend().fallback() else { return };
    while !end.has_come() {
        tokio::select! {
            () = end.wait() => {}
            () = sleep(jittered(every)) => {}
        }
        // At the end too: what was spent alone should be known to the others. But nobody waits for long then.
        if end.has_come() {
            let _ = timeout(LAST, store.attend()).await;
            return;
        }
        store.attend().await;
        let watch = app.metrics().store();
        if !app.is_alone() {
            watch.note_asked();
        }
        watch.remind(store.decided_alone(), Instant::now());
    }
}

/// About as long, and not as long for every node: when a store comes back they do not all come at once.
fn jittered(length: Duration) -> Duration {
    let drawn = RandomState::new().hash_one(0_u8) % 1024;
    // From 3/4 to 5/4.
    length * 3 / 4 + length / 2 * u32::try_from(drawn).unwrap_or_default() / 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_do_not_all_come_at_once() {
        let drawn: Vec<Duration> = (0..200).map(|_| jittered(Duration::from_secs(1))).collect();
        let (least, most) = (drawn.iter().min().unwrap(), drawn.iter().max().unwrap());
        assert!(*least >= Duration::from_millis(750) && *most < Duration::from_millis(1250));
        assert!(*most - *least > Duration::from_millis(100), "{least:?} {most:?}");
    }
}
