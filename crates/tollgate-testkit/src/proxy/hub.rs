//! What the connections of one proxy share.

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
    /// A new fault, or a cut.
    changed: Condvar,
    links: Mutex<HashMap<u64, Arc<Link>>>,
    /// A link is no more.
    ended: Condvar,
    pub(super) accepted: AtomicU64,
    pub(super) cuts: AtomicU64,
    pub(super) answered: AtomicU64,
    pub(super) is_closing: AtomicBool,
}

/// The fault, and how often it was changed.
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
            ended: Condvar::new(),
            accepted: AtomicU64::new(0),
            cuts: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            is_closing: AtomicBool::new(false),
        }
    }

    pub(super) fn set(&self, fault: Fault) {
        let keeps_gaps = fault == Fault::Blackhole;
        let mut current = lock(&self.current);
        *current = Current { fault: Arc::new(fault), change: current.change + 1 };
        self.changed.notify_all();
        drop(current);
        if !keeps_gaps {
            self.cut_where(Link::has_gap);
        }
    }

    /// What holds now, while there is nothing to be carried.
    pub(super) fn current(&self) -> Current {
        lock(&self.current).clone()
    }

    /// What is to be done with bytes that a link has for its server.
    pub(super) fn fate_of_request(&self, link: &Link) -> Current {
        Self::fate(&lock(&self.current), link)
    }

    /// What is to be done with bytes that a link has for its client since then, when it is time.
    pub(super) fn fate_of_answer(&self, link: &Link, since: Instant) -> Current {
        let mut current = lock(&self.current);
        loop {
            let left = match *current.fault {
                Fault::Delay(by) => by.saturating_sub(since.elapsed()),
                _ => Duration::ZERO,
            };
            if left.is_zero() || link.is_cut() {
                return Self::fate(&current, link);
            }
            let waited = self.changed.wait_timeout(current, left);
            current = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// While the fault is locked: who changes it then must know of the gap.
    fn fate(current: &Current, link: &Link) -> Current {
        if *current.fault == Fault::Blackhole {
            link.leave_gap();
        }
        current.clone()
    }

    pub(super) fn add(&self, link: &Arc<Link>) {
        lock(&self.links).insert(link.id, Arc::clone(link));
    }

    /// The last that is known of a link, so its sockets are closed now.
    pub(super) fn remove(&self, id: u64) {
        lock(&self.links).remove(&id);
        self.ended.notify_all();
    }

    pub(super) fn cut(&self, link: &Link) {
        if self.end(link) {
            self.cuts.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Ends a link, whoever wants that. False if it was ended already.
    pub(super) fn end(&self, link: &Link) -> bool {
        let is_first = link.cut();
        // Who holds this is about to wait, and has not seen the cut.
        drop(lock(&self.current));
        self.changed.notify_all();
        is_first
    }

    /// Cuts these, and waits until they are closed.
    pub(super) fn cut_where(&self, is_meant: impl Fn(&Link) -> bool) {
        let links =
            lock(&self.links).values().filter(|link| is_meant(link)).cloned().collect::<Vec<_>>();
        let ids: Vec<u64> = links.iter().map(|link| link.id).collect();
        links.into_iter().for_each(|link| self.cut(&link));
        let open = |links: &mut HashMap<_, _>| ids.iter().any(|id| links.contains_key(id));
        let waited = self.ended.wait_timeout_while(lock(&self.links), MAX_WAIT, open);
        let (_links, result) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(!result.timed_out(), "connections that are cut do not end");
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
