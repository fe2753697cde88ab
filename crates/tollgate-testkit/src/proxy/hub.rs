//! State shared by the connections of one proxy.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::fault::Fault;
use super::link::Link;
use crate::wait::MAX_WAIT;

#[derive(Debug)]
pub(super) struct Hub {
    current: Mutex<Current>,
    /// Signals a new fault or a cut.
    changed: Condvar,
    links: Mutex<HashMap<u64, Arc<Link>>>,
    /// Signals that a link was removed.
    removed: Condvar,
    pub(super) accepted: AtomicU64,
    pub(super) cuts: AtomicU64,
    pub(super) answered: AtomicU64,
    pub(super) is_closing: AtomicBool,
}

/// The fault, and the number of changes so far.
#[derive(Debug, Clone)]
pub(super) struct Current {
    pub(super) fault: Arc<Fault>,
    pub(super) change: u64,
}

impl Hub {
    pub(super) fn new() -> Self {
        Self {
            current: Mutex::new(Current { fault: Arc::new(Fault::Pass), change: 0 }),
            changed: Condvar::new(),
            links: Mutex::default(),
            removed: Condvar::new(),
            accepted: AtomicU64::new(0),
            cuts: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            is_closing: AtomicBool::new(false),
        }
    }

    pub(super) fn set(&self, fault: Fault) {
        let is_blackhole = fault == Fault::Blackhole;
        let mut current = lock(&self.current);
        *current = Current { fault: Arc::new(fault), change: current.change + 1 };
        self.changed.notify_all();
        drop(current);
        if !is_blackhole {
            self.cut_where(Link::has_gap);
        }
    }

    /// Returns the current fault when there is nothing to forward.
    pub(super) fn current(&self) -> Current {
        lock(&self.current).clone()
    }

    /// Returns the fault for bytes of a request.
    pub(super) fn fault_for_request(&self, link: &Link) -> Current {
        Self::apply(&lock(&self.current), link)
    }

    /// Waits as long as a throttled server needs for this many bytes of requests.
    pub(super) fn throttle(&self, link: &Link, bytes: usize) {
        let (mut current, began) = (lock(&self.current), Instant::now());
        loop {
            let Fault::Throttle(per_second) = *current.fault else { return };
            let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
            let needed = Duration::from_secs(1) * bytes / per_second.max(1);
            let remaining = needed.saturating_sub(began.elapsed());
            if remaining.is_zero() || link.is_cut() {
                return;
            }
            let waited = self.changed.wait_timeout(current, remaining);
            current = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits for the delay of bytes of a reply. Returns the fault then.
    pub(super) fn fault_for_reply(&self, link: &Link, arrived: Instant) -> Current {
        let mut current = lock(&self.current);
        loop {
            let remaining = match *current.fault {
                Fault::Delay(by) => by.saturating_sub(arrived.elapsed()),
                _ => Duration::ZERO,
            };
            if remaining.is_zero() || link.is_cut() {
                return Self::apply(&current, link);
            }
            let waited = self.changed.wait_timeout(current, remaining);
            current = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Records a gap while the fault is locked, so that the next change of the fault sees it.
    fn apply(current: &Current, link: &Link) -> Current {
        if *current.fault == Fault::Blackhole {
            link.leave_gap();
        }
        current.clone()
    }

    pub(super) fn add(&self, link: &Arc<Link>) {
        lock(&self.links).insert(link.id, Arc::clone(link));
    }

    /// Removes a link whose sockets are closed.
    pub(super) fn remove(&self, id: u64) {
        lock(&self.links).remove(&id);
        self.removed.notify_all();
    }

    pub(super) fn cut(&self, link: &Link) {
        if self.close(link) {
            self.cuts.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Closes a link. Returns false if it was closed already.
    pub(super) fn close(&self, link: &Link) -> bool {
        let is_first = link.cut();
        // A thread that holds this lock is about to wait, and may not have seen the cut.
        drop(lock(&self.current));
        self.changed.notify_all();
        is_first
    }

    /// Cuts the matching links, and waits until they are closed.
    pub(super) fn cut_where(&self, matches: impl Fn(&Link) -> bool) {
        let links =
            lock(&self.links).values().filter(|link| matches(link)).cloned().collect::<Vec<_>>();
        let ids: Vec<u64> = links.iter().map(|link| link.id).collect();
        links.into_iter().for_each(|link| self.cut(&link));
        let open = |links: &mut HashMap<_, _>| ids.iter().any(|id| links.contains_key(id));
        let waited = self.removed.wait_timeout_while(lock(&self.links), MAX_WAIT, open);
        let (_links, result) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(!result.timed_out(), "cut connections were not closed in time");
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
