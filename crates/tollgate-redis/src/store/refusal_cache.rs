//! The refusal cache: repeats refusals without a call to Redis.
//!
//! An entry is a whole plan (keys, limits, costs and modes), stored under the subject of the limit with the longest
//! wait. A plan with another cost would be refused too, but only the store knows for how long. Refunds and resets
//! are published and remove entries on all nodes. Without a subscription the cache is empty.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use smallvec::SmallVec;
use tollgate::algorithm::Reply;
use tollgate::{Algorithm, Decision, Limit, Mode, Plan, Source, Status, Take, Timestamp, Verdict};

use crate::subscription::Listener;

const SHARDS: usize = 16;

/// Shorter refusals are not cached: they would expire before their first use.
const MIN_WAIT: Duration = Duration::from_millis(2);

/// Maximum age of an entry. Changed limits and manually deleted keys also free quota, but are not published. One
/// call per second and plan costs Redis little.
const MAX_AGE: Duration = Duration::from_secs(1);

/// The refusal cache of a store.
#[derive(Debug)]
pub(crate) struct RefusalCache {
    shards: [Mutex<Shard>; SHARDS],
    hasher: RandomState,
    /// Whether published changes are received.
    is_subscribed: AtomicBool,
    max_per_shard: usize,
}

#[derive(Debug, Default)]
struct Shard {
    by_subject: HashMap<Box<str>, Vec<CachedRefusal>>,
    count: usize,
    /// Number of removals because of published changes.
    changes: u64,
}

/// A refused plan, its figures, and the end of its validity.
#[derive(Debug)]
struct CachedRefusal {
    takes: SmallVec<[CachedTake; 2]>,
    at: Timestamp,
    /// When the reply arrived. Redis decided at this time or before, so that a wait counted from it is never too short.
    received_at: Instant,
    until: Instant,
}

#[derive(Debug)]
struct CachedTake {
    subject: Box<str>,
    limit: Limit,
    cost: u64,
    mode: Mode,
    reply: Reply,
}

/// The state of the cache before a call. A refusal is not cached if a change was published since.
#[derive(Debug)]
pub(crate) struct Epoch {
    at: Instant,
    /// The change count of the shard of each take.
    changes: SmallVec<[u64; 2]>,
}

impl RefusalCache {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            hasher: RandomState::new(),
            is_subscribed: AtomicBool::new(false),
            max_per_shard: max.div_ceil(SHARDS),
        }
    }

    /// Returns the cached refusal of a plan, or the epoch for [`Self::insert`].
    pub(crate) fn find<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, Option<Epoch>> {
        if !self.is_subscribed() {
            return Err(None);
        }
        let now = Instant::now();
        let mut changes = SmallVec::new();
        let mut last: Option<(&str, u64)> = None;
        for take in plan.takes() {
            let subject = take.key().subject();
            let seen = match last {
                Some((same, seen)) if same == subject => seen,
                _ => {
                    let shard = self.shard(subject).lock();
                    if let Some(refusal) = shard.find(subject, plan, now) {
                        return Ok(refusal.decision(plan, now));
                    }
                    shard.changes
                }
            };
            last = Some((subject, seen));
            changes.push(seen);
        }
        Err(Some(Epoch { at: now, changes }))
    }

    /// Caches a refusal, unless a change was published since the epoch.
    pub(crate) fn insert(&self, plan: &Plan<'_>, decision: &Decision<'_>, epoch: &Epoch) {
        let Some(retry_after) = decision.retry_after().filter(|wait| *wait >= MIN_WAIT) else {
            return;
        };
        let mut takes = plan.takes().iter().zip(decision.statuses()).zip(&epoch.changes);
        let is_decisive = |status: &Status<'_>| {
            status.mode() == Mode::Enforce && status.verdict().retry_after() == Some(retry_after)
        };
        let Some(((take, _), changes)) = takes.find(|((_, status), _)| is_decisive(status)) else {
            return;
        };
        let subject = take.key().subject();
        let mut shard = self.shard(subject).lock();
        let is_current = shard.changes == *changes && self.is_subscribed();
        if is_current && is_cacheable(plan) && shard.has_capacity(self.max_per_shard) {
            // Redis decided after the request was sent: the entry ends no later than the refusal.
            let until = epoch.at + retry_after.min(MAX_AGE);
            let refusal = CachedRefusal::new(plan, decision, Instant::now(), until);
            shard.insert(subject, plan, refusal);
        }
    }

    /// Removes the entries of a subject whose quota was freed.
    pub(crate) fn remove(&self, subject: &str) {
        let mut shard = self.shard(subject).lock();
        shard.changes += 1;
        if let Some(refusals) = shard.by_subject.remove(subject) {
            shard.count -= refusals.len();
        }
    }

    fn is_subscribed(&self) -> bool {
        self.is_subscribed.load(Ordering::Acquire)
    }

    fn shard(&self, subject: &str) -> &Mutex<Shard> {
        let number = usize::try_from(self.hasher.hash_one(subject) >> 32).unwrap_or(0);
        let [first, ..] = &self.shards;
        self.shards.get(number % SHARDS).unwrap_or(first)
    }

    fn clear(&self) {
        for shard in &self.shards {
            let mut shard = shard.lock();
            *shard = Shard { changes: shard.changes + 1, ..Shard::default() };
        }
    }
}

/// Slots may be released at any time, so plans with concurrency limits are not cached.
fn is_cacheable(plan: &Plan<'_>) -> bool {
    let mut limits = plan.takes().iter().map(|take| take.key().limit());
    limits.all(|limit| limit.algorithm() != Algorithm::Concurrency)
}

impl Shard {
    fn find(&self, subject: &str, plan: &Plan<'_>, now: Instant) -> Option<&CachedRefusal> {
        if self.count == 0 {
            return None;
        }
        let refusals = self.by_subject.get(subject)?;
        refusals.iter().find(|refusal| now < refusal.until && refusal.matches(plan))
    }

    /// Replaces an entry of the same plan.
    fn insert(&mut self, subject: &str, plan: &Plan<'_>, refusal: CachedRefusal) {
        let refusals = self.by_subject.entry(subject.into()).or_default();
        let before = refusals.len();
        refusals.retain(|cached| !cached.matches(plan));
        refusals.push(refusal);
        self.count = self.count + refusals.len() - before;
    }

    /// Returns whether there is space for one more entry. Removes expired entries first.
    fn has_capacity(&mut self, max: usize) -> bool {
        if self.count >= max {
            let now = Instant::now();
            self.by_subject.retain(|_, refusals| {
                refusals.retain(|refusal| now < refusal.until);
                !refusals.is_empty()
            });
            self.count = self.by_subject.values().map(Vec::len).sum();
        }
        self.count < max
    }
}

impl CachedRefusal {
    fn new(plan: &Plan<'_>, decision: &Decision<'_>, received_at: Instant, until: Instant) -> Self {
        let pairs = plan.takes().iter().zip(decision.statuses());
        let takes = pairs.map(|(take, status)| CachedTake::new(take, status)).collect();
        Self { takes, at: decision.at(), received_at, until }
    }

    fn matches(&self, plan: &Plan<'_>) -> bool {
        self.takes.len() == plan.takes().len()
            && self.takes.iter().zip(plan.takes()).all(|(cached, take)| cached.matches(take))
    }

    /// Returns the cached decision as of now.
    fn decision<'a>(&self, plan: &Plan<'a>, now: Instant) -> Decision<'a> {
        // Whole microseconds, so that no time is rounded down.
        let elapsed = now.saturating_duration_since(self.received_at);
        let elapsed = Duration::from_micros(u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX));
        let status = |(cached, take): (&CachedTake, &Take<'a>)| {
            Status::new(take.key().limit(), take.mode(), aged(cached.reply, elapsed))
        };
        let statuses = self.takes.iter().zip(plan.takes()).map(status);
        Decision::new(self.at + elapsed, statuses).from_source(Source::Cache)
    }
}

impl CachedTake {
    fn new(take: &Take<'_>, status: &Status<'_>) -> Self {
        Self {
            subject: take.key().subject().into(),
            limit: take.key().limit().clone(),
            cost: take.cost(),
            mode: take.mode(),
            reply: Reply::new(status.verdict(), status.remaining(), status.reset_after()),
        }
    }

    fn matches(&self, take: &Take<'_>) -> bool {
        self.cost == take.cost()
            && self.mode == take.mode()
            && &*self.subject == take.key().subject()
            && self.limit == *take.key().limit()
    }
}

/// Returns a reply as of a later time, if nothing was taken since.
fn aged(reply: Reply, elapsed: Duration) -> Reply {
    let verdict = match reply.verdict() {
        Verdict::Deny { retry_after } if retry_after > elapsed => {
            Verdict::Deny { retry_after: retry_after - elapsed }
        }
        Verdict::Deny { .. } => Verdict::Allow,
        other => other,
    };
    Reply::new(verdict, reply.remaining(), reply.reset_after().saturating_sub(elapsed))
}

impl Listener for RefusalCache {
    fn subscribed(&self) {
        self.clear();
        self.is_subscribed.store(true, Ordering::Release);
    }

    fn message(&self, payload: &[u8]) {
        match payload.split_first() {
            Some((b's', subject)) => {
                if let Ok(subject) = std::str::from_utf8(subject) {
                    self.remove(subject);
                }
            }
            // An override may change the limits of any client.
            _ => self.clear(),
        }
    }

    fn lost(&self) {
        self.is_subscribed.store(false, Ordering::Release);
        self.clear();
    }
}

#[cfg(test)]
mod tests;
