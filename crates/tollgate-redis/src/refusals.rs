//! Remembered refusals: who was refused until a moment need not ask again before it.
//!
//! Room that comes earlier by a refund or a reset is told to every node, and a node that cannot hear
//! remembers nothing. What is remembered is the whole plan, under the subject of the limit that is most
//! in its way: the same request under the same numbers. Another cost would be refused as well, but for how
//! long only the store can tell.

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

/// Below this a refusal is forgotten before it could be of use.
const SHORTEST: Duration = Duration::from_millis(2);

/// For how long a refusal is remembered at most. Limits that change, and keys that somebody deletes by hand, make
/// room as well, and nobody tells of those. Asking once a second costs Redis next to nothing.
const LONGEST: Duration = Duration::from_secs(1);

/// The refusals that this process remembers.
#[derive(Debug)]
pub(crate) struct Refusals {
    shards: [Mutex<Shard>; SHARDS],
    hasher: RandomState,
    /// Whether changes are heard of.
    is_live: AtomicBool,
    most_in_shard: usize,
}

#[derive(Debug, Default)]
struct Shard {
    by_subject: HashMap<Box<str>, Vec<Refusal>>,
    count: usize,
    /// How often something was forgotten because of a change.
    changes: u64,
}

/// A refused plan, until when it stays refused, and the figures it was told.
#[derive(Debug)]
struct Refusal {
    takes: SmallVec<[Refused; 2]>,
    at: Timestamp,
    asked: Instant,
    until: Instant,
}

#[derive(Debug)]
struct Refused {
    subject: Box<str>,
    limit: Limit,
    cost: u64,
    mode: Mode,
    reply: Reply,
}

/// How things stood before a plan was sent. A refusal that a change has overtaken is not remembered.
#[derive(Debug)]
pub(crate) struct Epoch {
    at: Instant,
    /// Of the shard of each take's subject.
    changes: SmallVec<[u64; 2]>,
}

impl Refusals {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            hasher: RandomState::new(),
            is_live: AtomicBool::new(false),
            most_in_shard: most.div_ceil(SHARDS),
        }
    }

    /// The remembered refusal of this plan, or how things stand before it is asked.
    pub(crate) fn find<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, Option<Epoch>> {
        if !self.is_live() {
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

    /// Remembers a refusal, unless something has changed since it was asked.
    pub(crate) fn note(&self, plan: &Plan<'_>, decision: &Decision<'_>, asked: &Epoch) {
        let Some(retry_after) = decision.retry_after().filter(|wait| *wait >= SHORTEST) else {
            return;
        };
        let mut takes = plan.takes().iter().zip(decision.statuses()).zip(&asked.changes);
        let is_in_the_way = |status: &Status<'_>| {
            status.mode() == Mode::Enforce && status.verdict().retry_after() == Some(retry_after)
        };
        let Some(((take, _), changes)) = takes.find(|((_, status), _)| is_in_the_way(status))
        else {
            return;
        };
        let subject = take.key().subject();
        let mut shard = self.shard(subject).lock();
        let is_current = shard.changes == *changes && self.is_live();
        if is_current && is_lasting(plan) && shard.has_place(self.most_in_shard) {
            let until = asked.at + retry_after.min(LONGEST);
            let refusal = Refusal::new(plan, decision, asked.at, until);
            shard.remember(subject, plan, refusal);
        }
    }

    /// Something has made room for this subject.
    pub(crate) fn forget(&self, subject: &str) {
        let mut shard = self.shard(subject).lock();
        shard.changes += 1;
        if let Some(refusals) = shard.by_subject.remove(subject) {
            shard.count -= refusals.len();
        }
    }

    fn is_live(&self) -> bool {
        self.is_live.load(Ordering::Acquire)
    }

    fn shard(&self, subject: &str) -> &Mutex<Shard> {
        let number = usize::try_from(self.hasher.hash_one(subject) >> 32).unwrap_or(0);
        let [first, ..] = &self.shards;
        self.shards.get(number % SHARDS).unwrap_or(first)
    }

    fn forget_all(&self) {
        for shard in &self.shards {
            let mut shard = shard.lock();
            *shard = Shard { changes: shard.changes + 1, ..Shard::default() };
        }
    }
}

/// Slots may be given back at any moment, so nothing is remembered of a plan that wants some.
fn is_lasting(plan: &Plan<'_>) -> bool {
    let mut limits = plan.takes().iter().map(|take| take.key().limit());
    limits.all(|limit| limit.algorithm() != Algorithm::Concurrency)
}

impl Shard {
    fn find(&self, subject: &str, plan: &Plan<'_>, now: Instant) -> Option<&Refusal> {
        if self.count == 0 {
            return None;
        }
        let refusals = self.by_subject.get(subject)?;
        refusals.iter().find(|refusal| now < refusal.until && refusal.is_of(plan))
    }

    /// In place of what was remembered of the same plan.
    fn remember(&mut self, subject: &str, plan: &Plan<'_>, refusal: Refusal) {
        let refusals = self.by_subject.entry(subject.into()).or_default();
        let before = refusals.len();
        refusals.retain(|other| !other.is_of(plan));
        refusals.push(refusal);
        self.count = self.count + refusals.len() - before;
    }

    /// Whether one more may be remembered, once those that have ended are gone.
    fn has_place(&mut self, most: usize) -> bool {
        if self.count >= most {
            let now = Instant::now();
            self.by_subject.retain(|_, refusals| {
                refusals.retain(|refusal| now < refusal.until);
                !refusals.is_empty()
            });
            self.count = self.by_subject.values().map(Vec::len).sum();
        }
        self.count < most
    }
}

impl Refusal {
    fn new(plan: &Plan<'_>, decision: &Decision<'_>, asked: Instant, until: Instant) -> Self {
        let pairs = plan.takes().iter().zip(decision.statuses());
        let takes = pairs.map(|(take, status)| Refused::new(take, status)).collect();
        Self { takes, at: decision.at(), asked, until }
    }

    fn is_of(&self, plan: &Plan<'_>) -> bool {
        self.takes.len() == plan.takes().len()
            && self.takes.iter().zip(plan.takes()).all(|(refused, take)| refused.is_of(take))
    }

    /// What was told then, as it has become by now.
    fn decision<'a>(&self, plan: &Plan<'a>, now: Instant) -> Decision<'a> {
        let elapsed = now.saturating_duration_since(self.asked);
        let status = |(refused, take): (&Refused, &Take<'a>)| {
            Status::new(take.key().limit(), take.mode(), aged(refused.reply, elapsed))
        };
        let statuses = self.takes.iter().zip(plan.takes()).map(status);
        Decision::new(self.at + elapsed, statuses).from_source(Source::Cache)
    }
}

impl Refused {
    fn new(take: &Take<'_>, status: &Status<'_>) -> Self {
        Self {
            subject: take.key().subject().into(),
            limit: take.key().limit().clone(),
            cost: take.cost(),
            mode: take.mode(),
            reply: Reply::new(status.verdict(), status.remaining(), status.reset_after()),
        }
    }

    fn is_of(&self, take: &Take<'_>) -> bool {
        self.cost == take.cost()
            && self.mode == take.mode()
            && &*self.subject == take.key().subject()
            && self.limit == *take.key().limit()
    }
}

/// A reply some time later, if nothing was taken since.
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

impl Listener for Refusals {
    fn live(&self) {
        self.forget_all();
        self.is_live.store(true, Ordering::Release);
    }

    fn message(&self, payload: &[u8]) {
        match payload.split_first() {
            Some((b's', subject)) => {
                if let Ok(subject) = std::str::from_utf8(subject) {
                    self.forget(subject);
                }
            }
            // Another override may mean other limits for anyone.
            _ => self.forget_all(),
        }
    }

    fn lost(&self) {
        self.is_live.store(false, Ordering::Release);
        self.forget_all();
    }
}

#[cfg(test)]
mod tests {
    use tollgate::{Key, Quota, Subject};

    use super::*;

    #[test]
    fn only_so_many_are_remembered() {
        let refusals = Refusals::new(32);
        refusals.live();
        let limit = Limit::sliding_window(Quota::per_hour(3)).unwrap();
        let denied = Verdict::Deny { retry_after: Duration::from_secs(3600) };
        let status = Status::new(&limit, Mode::Enforce, Reply::new(denied, 0, Duration::ZERO));
        let decision = Decision::new(Timestamp::EPOCH, [status]);
        for nth in 0..2000 {
            let subject = Subject::of([nth.to_string()]);
            let plan = Plan::new([Take::new(Key::new(&subject, &limit), 1)]).unwrap();
            let asked = refusals.find(&plan).unwrap_err().unwrap();
            refusals.note(&plan, &decision, &asked);
            let remembered: usize = refusals.shards.iter().map(|shard| shard.lock().held()).sum();
            assert!((1..=32).contains(&remembered), "{remembered} after {nth}");
        }
    }

    impl Shard {
        fn held(&self) -> usize {
            self.by_subject.values().map(Vec::len).sum()
        }
    }
}
