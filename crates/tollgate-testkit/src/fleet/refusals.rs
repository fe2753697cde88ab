//! The refusal cache of a node, as `tollgate-redis` has it, on virtual time and for plans of one take.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use tollgate::algorithm::Reply;
use tollgate::{Mode, Status};

/// Shorter refusals are not cached, as in `RefusalCache`.
const MIN_WAIT: u64 = 2_000;

/// Maximum age of an entry, as in `RefusalCache`.
const MAX_AGE: u64 = 1_000_000;

/// Refused keys of one process. Times are microseconds.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    by_key: Mutex<HashMap<u32, Refusal>>,
}

#[derive(Debug, Clone, Copy)]
struct Refusal {
    until: u64,
    reply: Reply,
}

impl Refusals {
    pub(super) fn find(&self, key: u32, now: u64) -> Option<Reply> {
        let by_key = self.by_key.lock().expect("lock is not poisoned");
        by_key.get(&key).filter(|refusal| now < refusal.until).map(|refusal| refusal.reply)
    }

    /// Caches a refusal that was requested at `begun`.
    pub(super) fn insert(&self, key: u32, begun: u64, status: &Status<'_>) {
        let Some(wait) = status.verdict().retry_after().map(micros) else { return };
        if status.mode() == Mode::Enforce && wait >= MIN_WAIT {
            let reply = Reply::new(status.verdict(), status.remaining(), status.reset_after());
            let refusal = Refusal { until: begun + wait.min(MAX_AGE), reply };
            self.by_key.lock().expect("lock is not poisoned").insert(key, refusal);
        }
    }

    pub(super) fn clear(&self) {
        self.by_key.lock().expect("lock is not poisoned").clear();
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
