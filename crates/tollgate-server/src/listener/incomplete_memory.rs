//! The memory of requests that have not arrived completely, shared by all connections of all front ends.
//!
//! A request is charged for memory that its bytes need, not for a length that it announces. When the memory is used up, the
//! requests that arrive slowest are dropped, so that clients that stall cannot delay others.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit, oneshot};
use tokio::time::{Instant, sleep};

/// Maximum memory of all long incomplete requests together, in KiB.
const MAX_KIB: u32 = 64 * 1024;
/// Minimum age of a request that is dropped: before, its speed is unknown.
const MIN_AGE: Duration = Duration::from_secs(1);
/// Time after which a waiting request looks again for requests to drop.
const RECHECK: Duration = Duration::from_millis(100);

static MEMORY: Memory = Memory::new(MAX_KIB);

/// The request was dropped, because it arrived slower than others that needed its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooSlow;

/// A limited amount of memory and the requests that use it.
#[derive(Debug)]
struct Memory {
    free_kib: Semaphore,
    max_kib: u32,
    requests: Mutex<Requests>,
}

#[derive(Debug)]
struct Requests {
    next_id: u64,
    all: BTreeMap<u64, Charged>,
    /// What requests wait for.
    wanted_kib: u64,
}

/// A request that is charged for memory.
#[derive(Debug)]
struct Charged {
    began: Instant,
    kib: u32,
    /// Drops the request. `None` if it is being dropped.
    drop_request: Option<oneshot::Sender<()>>,
}

impl Charged {
    /// Received memory per second, a little too low for the first milliseconds.
    fn kib_per_second(&self, now: Instant) -> u64 {
        let millis = u64::try_from((now - self.began).as_millis()).unwrap_or(u64::MAX);
        u64::from(self.kib) * 1000 / millis.saturating_add(1)
    }
}

impl Memory {
    const fn new(max_kib: u32) -> Self {
        let requests = Requests { next_id: 0, all: BTreeMap::new(), wanted_kib: 0 };
        let requests = Mutex::new(requests);
        Self { free_kib: Semaphore::const_new(max_kib as usize), max_kib, requests }
    }

    /// Drops the slowest requests until what they return is enough for all requests that wait.
    fn drop_slowest(&self) {
        let now = Instant::now();
        let mut requests = self.requests.lock();
        let wanted = requests.wanted_kib;
        let being_dropped = requests.all.values().filter(|request| request.drop_request.is_none());
        let mut returned: u64 = being_dropped.map(|request| u64::from(request.kib)).sum();
        while returned < wanted {
            let may_be_dropped = |request: &&mut Charged| {
                request.drop_request.is_some() && request.kib > 0 && now - request.began >= MIN_AGE
            };
            let candidates = requests.all.values_mut().filter(may_be_dropped);
            let Some(slowest) = candidates.min_by_key(|request| request.kib_per_second(now)) else {
                return;
            };
            returned += u64::from(slowest.kib);
            if let Some(drop_request) = slowest.drop_request.take() {
                // Fails if the request has ended meanwhile.
                let _ = drop_request.send(());
            }
        }
    }
}

/// The memory of one long request that has not arrived completely. Dropping it returns the memory.
#[derive(Debug)]
pub(crate) struct IncompleteRequest {
    memory: &'static Memory,
    id: u64,
    charged: Option<SemaphorePermit<'static>>,
    dropped: oneshot::Receiver<()>,
}

impl IncompleteRequest {
    pub(crate) fn new() -> Self {
        Self::of(&MEMORY)
    }

    fn of(memory: &'static Memory) -> Self {
        let (drop_request, dropped) = oneshot::channel();
        let mut requests = memory.requests.lock();
        let id = requests.next_id;
        requests.next_id = id.wrapping_add(1);
        let request = Charged { began: Instant::now(), kib: 0, drop_request: Some(drop_request) };
        requests.all.insert(id, request);
        Self { memory, id, charged: None, dropped }
    }

    /// Waits until there is memory for so many bytes in all. An error if this request is dropped meanwhile.
    pub(crate) async fn charge(&mut self, bytes: usize) -> Result<(), TooSlow> {
        let kib = u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX).min(self.memory.max_kib);
        let charged = self.charged.as_ref().map_or(0, SemaphorePermit::num_permits);
        let more = kib.saturating_sub(u32::try_from(charged).unwrap_or(u32::MAX));
        if more == 0 {
            return Ok(());
        }
        let permit = match self.memory.free_kib.try_acquire_many(more) {
            Ok(permit) => permit,
            Err(_) => self.wait_for(more).await?,
        };
        match &mut self.charged {
            Some(charged) => charged.merge(permit),
            None => self.charged = Some(permit),
        }
        if let Some(request) = self.memory.requests.lock().all.get_mut(&self.id) {
            request.kib = kib;
        }
        Ok(())
    }

    /// Returns when other requests need the memory of this one.
    pub(crate) async fn dropped(&mut self) -> TooSlow {
        poll_fn(|context| self.poll_dropped(context)).await
    }

    pub(crate) fn poll_dropped(&mut self, context: &mut Context<'_>) -> Poll<TooSlow> {
        if self.dropped.is_terminated() {
            return Poll::Ready(TooSlow);
        }
        Pin::new(&mut self.dropped).poll(context).map(|_| TooSlow)
    }

    async fn wait_for(&mut self, kib: u32) -> Result<SemaphorePermit<'static>, TooSlow> {
        let memory = self.memory;
        let _waiting = Waiting::new(memory, kib);
        let mut acquiring = pin!(memory.free_kib.acquire_many(kib));
        loop {
            memory.drop_slowest();
            tokio::select! {
                biased;
                // The semaphore is never closed.
                permit = acquiring.as_mut() => return permit.map_err(|_| TooSlow),
                too_slow = self.dropped() => return Err(too_slow),
                () = sleep(RECHECK) => {}
            }
        }
    }
}

impl Drop for IncompleteRequest {
    fn drop(&mut self) {
        self.memory.requests.lock().all.remove(&self.id);
    }
}

/// Counts what a request waits for.
#[derive(Debug)]
struct Waiting {
    memory: &'static Memory,
    kib: u64,
}

impl Waiting {
    fn new(memory: &'static Memory, kib: u32) -> Self {
        memory.requests.lock().wanted_kib += u64::from(kib);
        Self { memory, kib: u64::from(kib) }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.memory.requests.lock().wanted_kib -= self.kib;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: usize = 1024;

    fn memory(max_kib: u32) -> &'static Memory {
        Box::leak(Box::new(Memory::new(max_kib)))
    }

    async fn request(memory: &'static Memory, bytes: usize) -> IncompleteRequest {
        let mut request = IncompleteRequest::of(memory);
        request.charge(bytes).await.unwrap();
        request
    }

    #[tokio::test(start_paused = true)]
    async fn slowest_requests_are_dropped_for_others() {
        let memory = memory(64);
        let mut slow = request(memory, 30 * KIB).await;
        let mut fast = request(memory, 31 * KIB).await;
        let began = Instant::now();
        let mut next = IncompleteRequest::of(memory);
        let (next_result, too_slow) = tokio::join!(next.charge(8 * KIB), async {
            let too_slow = slow.dropped().await;
            drop(slow);
            too_slow
        });
        assert_eq!((next_result, too_slow), (Ok(()), TooSlow));
        let took = began.elapsed();
        assert!((MIN_AGE..MIN_AGE + 2 * RECHECK).contains(&took), "{took:?}");
        // What was returned is enough, so nothing else was dropped.
        fast.charge(40 * KIB).await.unwrap();
        assert_eq!(memory.free_kib.available_permits(), 64 - 40 - 8);
    }

    #[tokio::test(start_paused = true)]
    async fn requests_that_wait_for_each_other_make_progress() {
        let memory = memory(64);
        let (mut first, mut second) =
            (request(memory, 31 * KIB).await, request(memory, 33 * KIB).await);
        let results = tokio::join!(
            async {
                let result = first.charge(50 * KIB).await;
                drop(first);
                result
            },
            async {
                let result = second.charge(50 * KIB).await;
                drop(second);
                result
            }
        );
        assert_eq!(results, (Err(TooSlow), Ok(())));
        assert_eq!(memory.free_kib.available_permits(), 64);
        assert_eq!(memory.requests.lock().wanted_kib, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn enough_is_dropped_for_all_that_wait() {
        let memory = memory(64);
        let mut slow = Vec::new();
        for _ in 0..64 {
            slow.push(request(memory, KIB).await);
        }
        let stalled: Vec<_> = slow
            .into_iter()
            .map(|mut request| tokio::spawn(async move { request.dropped().await }))
            .collect();
        tokio::time::advance(MIN_AGE).await;
        let began = Instant::now();
        let (mut one, mut other) = (IncompleteRequest::of(memory), IncompleteRequest::of(memory));
        let results = tokio::join!(one.charge(20 * KIB), other.charge(20 * KIB));
        assert_eq!(results, (Ok(()), Ok(())));
        assert!(began.elapsed() <= RECHECK, "{:?}", began.elapsed());
        tokio::task::yield_now().await;
        let dropped = stalled.iter().filter(|request| request.is_finished()).count();
        assert_eq!(dropped, 40);
    }

    #[tokio::test(start_paused = true)]
    async fn request_that_stops_waiting_is_forgotten() {
        let memory = memory(8);
        let _held = request(memory, 8 * KIB).await;
        let mut waiting = IncompleteRequest::of(memory);
        let waited = tokio::time::timeout(MIN_AGE / 2, waiting.charge(KIB)).await;
        assert!(waited.is_err());
        drop(waiting);
        let requests = memory.requests.lock();
        assert_eq!((requests.wanted_kib, requests.all.len()), (0, 1));
    }
}
