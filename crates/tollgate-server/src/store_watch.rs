//! What people hear of a store that fails: everything is counted, and little is logged.

use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tollgate::{Decision, LocalDecisions, Outage, Source, StoreError, StoreErrorKind, StoreEvent};
use tracing::{info, warn};

/// While something lasts, the log has it once in so long.
const SILENCE: Duration = Duration::from_secs(300);

/// What has lasted for no longer may be the beginning of an outage, of which the log has more.
const BRIEF: Duration = Duration::from_secs(2);

/// A loss soon after another is told of when it has lasted for so long: a store that comes and goes must not fill the
/// log, and one that stays away must be in it.
const LASTING: Duration = Duration::from_secs(60);

/// How the store has fared up to now.
#[derive(Debug, Default)]
pub(crate) struct StoreWatch {
    errors: AtomicU64,
    losses: AtomicU64,
    /// Whether it failed since it last answered. While it has not, an answer looks at nothing else.
    is_failing: AtomicBool,
    told: Mutex<Told>,
}

/// Whether the log has something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heard {
    Yes,
    No,
}

/// What the log has had, and what it has not.
#[derive(Debug, Default)]
struct Told {
    /// How it failed last, unless it has answered since.
    last: Option<String>,
    /// Since when it is not asked, and whether the log has that.
    lost: Option<(Instant, Heard)>,
    /// When the log last had that it is lost.
    lost_told: Option<Instant>,
    /// How often it was lost since, for a moment, without the log having it.
    flaps: u64,
    /// Questions that were not answered, and that the log has not had.
    unanswered: u64,
    /// Since the first of them.
    unanswered_since: Option<Instant>,
    unanswered_told: Option<Instant>,
    unreadable_told: Option<Instant>,
}

impl StoreWatch {
    /// Hears what happens between this node and its store.
    pub(crate) fn on_event(&self, event: StoreEvent<'_>) {
        match event {
            StoreEvent::Failed(error) => self.note_failure(error),
            StoreEvent::Lost { failures, reason, nodes } => {
                self.losses.fetch_add(1, Ordering::Relaxed);
                if let Some(flaps) = self.note_loss(Instant::now()) {
                    warn!(
                        %reason, failures, nodes, flaps,
                        "store lost: this node decides alone, by its share of each limit or as its rule says, \
                         until the store is back"
                    );
                }
            }
            StoreEvent::Restored(outage) => {
                self.note_answer();
                let lost = self.told.lock().lost.take();
                if lost.is_none_or(|(_, heard)| heard == Heard::Yes) {
                    tell_restored(&outage);
                }
            }
            _ => {}
        }
    }

    /// Notes that it is lost. Tells how often it was since the log last had it, if the log should have it now: of
    /// a store that comes and goes it has one line in a while, and of one that stays away always.
    fn note_loss(&self, now: Instant) -> Option<u64> {
        let mut told = self.told.lock();
        (told.unanswered, told.unanswered_since) = (0, None);
        if !is_due(told.lost_told, now) {
            told.flaps += 1;
            told.lost = Some((now, Heard::No));
            return None;
        }
        (told.lost, told.lost_told) = (Some((now, Heard::Yes)), Some(now));
        Some(mem::take(&mut told.flaps))
    }

    /// Notes a question that the store did not answer.
    pub(crate) fn note_failure(&self, error: &StoreError) {
        self.errors.fetch_add(1, Ordering::Relaxed);
        self.is_failing.store(true, Ordering::Relaxed);
        let mut told = self.told.lock();
        told.last = Some(error.to_string());
        if error.kind() != StoreErrorKind::Incompatible {
            // Probes of a lost store fail too, and of its loss the log has more.
            if told.lost.is_none() {
                told.unanswered += 1;
                told.unanswered_since.get_or_insert_with(Instant::now);
            }
        } else if is_due(told.unreadable_told, Instant::now()) {
            told.unreadable_told = Some(Instant::now());
            drop(told);
            warn!(reason = %error, "the store cannot answer for a key; more of this is counted and not logged");
        }
    }

    /// The store has decided, unless the decision needed no store.
    pub(crate) fn note_decision(&self, decision: &Decision<'_>) {
        let is_the_stores = decision.source() == Source::Store && !decision.statuses().is_empty();
        if self.is_failing.load(Ordering::Relaxed) && is_the_stores {
            self.note_answer();
        }
    }

    /// The store has answered.
    pub(crate) fn note_answer(&self) {
        if self.is_failing.swap(false, Ordering::Relaxed) {
            self.told.lock().last = None;
        }
    }

    /// The store is asked: whatever was heard last, it is not lost.
    pub(crate) fn note_breaker_closed(&self) {
        self.told.lock().lost = None;
    }

    /// Reminds of what lasts. To be called now and then.
    pub(crate) fn remind(&self, alone: LocalDecisions, now: Instant) {
        let mut told = self.told.lock();
        let reason = told.last.clone().unwrap_or_default();
        if let Some((lost, heard)) = told.lost {
            let gone = now.duration_since(lost);
            let is_news = heard == Heard::No && gone >= LASTING;
            if is_news || is_due(told.lost_told, now) {
                (told.lost, told.lost_told) = (Some((lost, Heard::Yes)), Some(now));
                let flaps = mem::take(&mut told.flaps);
                drop(told);
                let gone_s = gone.as_secs();
                let LocalDecisions { admitted, refused, .. } = alone;
                warn!(%reason, gone_s, admitted, refused, flaps, "store still lost: this node decides alone");
            }
        } else if told.unanswered_since.is_some_and(|since| now.duration_since(since) >= BRIEF)
            && is_due(told.unanswered_told, now)
        {
            let unanswered = mem::take(&mut told.unanswered);
            let reason = if reason.is_empty() { "it has answered since" } else { &*reason };
            (told.unanswered_since, told.unanswered_told) = (None, Some(now));
            drop(told);
            warn!(%reason, unanswered, "the store left questions unanswered; this node answered them alone");
        }
    }

    /// How many questions were not answered.
    pub(crate) fn errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
    }

    /// How often it was lost.
    pub(crate) fn losses(&self) -> u64 {
        self.losses.load(Ordering::Relaxed)
    }

    /// What an operator should know of it; none when all is well.
    pub(crate) fn warning(&self) -> Option<String> {
        let told = self.told.lock();
        let reason = told.last.as_deref();
        match told.lost {
            Some(_) => Some(format!(
                "the store is lost and this node decides alone: {}",
                reason.unwrap_or("it does not answer")
            )),
            None => reason.map(|reason| format!("the store fails: {reason}")),
        }
    }
}

fn is_due(told: Option<Instant>, now: Instant) -> bool {
    told.is_none_or(|at| now.duration_since(at) >= SILENCE)
}

fn tell_restored(outage: &Outage) {
    let gone_ms = u64::try_from(outage.lasted.as_millis()).unwrap_or(u64::MAX);
    let Outage { admitted, refused, keys_replayed, keys_dropped, .. } = outage;
    info!(
        gone_ms,
        admitted,
        refused,
        keys_replayed,
        keys_dropped,
        "store back: it knows what was spent without it, and decides again"
    );
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use tollgate::Timestamp;

    use super::*;

    fn error(kind: StoreErrorKind) -> StoreError {
        StoreError::new(kind, format!("{kind:?}"))
    }

    fn lose(watch: &StoreWatch) {
        let reason = &error(StoreErrorKind::Timeout);
        watch.on_event(StoreEvent::Failed(reason));
        watch.on_event(StoreEvent::Lost { failures: 5, reason, nodes: NonZeroU32::MIN });
    }

    #[test]
    fn each_failure_counts_once_and_the_last_is_known_until_an_answer() {
        let watch = StoreWatch::default();
        assert_eq!(watch.warning(), None);
        watch.on_event(StoreEvent::Failed(&error(StoreErrorKind::Timeout)));
        watch.on_event(StoreEvent::Failed(&error(StoreErrorKind::Incompatible)));
        assert_eq!(watch.errors(), 2);
        assert_eq!(watch.warning().as_deref(), Some("the store fails: Incompatible"));
        watch.note_decision(&Decision::new(Timestamp::EPOCH, []));
        assert!(watch.warning().is_some(), "that needed no store");
        watch.note_answer();
        assert_eq!(watch.warning(), None);
    }

    #[test]
    fn a_lost_store_is_told_until_it_is_back() {
        let watch = StoreWatch::default();
        lose(&watch);
        let warning = watch.warning().unwrap();
        assert_eq!(warning, "the store is lost and this node decides alone: Timeout");
        watch.on_event(StoreEvent::Restored(Outage::default()));
        assert_eq!(watch.warning(), None);
    }

    #[test]
    fn probes_of_a_lost_store_are_no_questions_left_unanswered() {
        let watch = StoreWatch::default();
        lose(&watch);
        watch.on_event(StoreEvent::Failed(&error(StoreErrorKind::Timeout)));
        watch.on_event(StoreEvent::Restored(Outage::default()));
        assert_eq!((watch.told.lock().unanswered_since, watch.errors()), (None, 2));
    }

    #[test]
    fn what_lasts_is_told_again_and_not_too_often() {
        let watch = StoreWatch::default();
        lose(&watch);
        let told = || watch.told.lock().lost_told.unwrap();
        let first = told();
        watch.remind(LocalDecisions::default(), first + SILENCE / 2);
        assert_eq!(told(), first);
        watch.remind(LocalDecisions::default(), first + SILENCE);
        assert_eq!(told(), first + SILENCE);
    }

    #[test]
    fn questions_that_some_answered_between_are_told_of_now_and_then() {
        let (watch, now) = (StoreWatch::default(), Instant::now());
        let unanswered = || watch.told.lock().unanswered;
        watch.on_event(StoreEvent::Failed(&error(StoreErrorKind::Timeout)));
        watch.remind(LocalDecisions::default(), now);
        assert_eq!(unanswered(), 1, "it may be lost in a moment");
        let later = Instant::now() + BRIEF;
        watch.remind(LocalDecisions::default(), later);
        assert_eq!(unanswered(), 0);
        watch.on_event(StoreEvent::Failed(&error(StoreErrorKind::Unavailable)));
        watch.remind(LocalDecisions::default(), later + SILENCE / 2);
        assert_eq!(unanswered(), 1);
        watch.remind(LocalDecisions::default(), later + SILENCE);
        assert_eq!(unanswered(), 0);
    }

    #[test]
    fn a_store_that_comes_and_goes_is_told_of_once_and_one_that_then_stays_away_too() {
        let (watch, now) = (StoreWatch::default(), Instant::now());
        assert_eq!(watch.note_loss(now), Some(0));
        let later = now + Duration::from_secs(1);
        for _ in 0..3 {
            watch.on_event(StoreEvent::Restored(Outage::default()));
            assert_eq!(watch.note_loss(later), None);
        }
        let heard = || watch.told.lock().lost.unwrap().1;
        watch.remind(LocalDecisions::default(), later + LASTING / 2);
        assert_eq!(heard(), Heard::No);
        watch.remind(LocalDecisions::default(), later + LASTING);
        assert_eq!((heard(), watch.told.lock().flaps), (Heard::Yes, 0));
        watch.on_event(StoreEvent::Restored(Outage::default()));
        assert_eq!(watch.note_loss(later + LASTING + SILENCE), Some(0));
    }
}
