//! Epochs: counters of the events that end leases.

use smallvec::SmallVec;

use crate::plan::Plan;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Number of counters. Subjects with the same counter end each other's leases, which only costs a call.
const COUNTERS: usize = 1024;

/// Counts resets and other changes by subject. A lease is valid while the counters of its subjects are those of its
/// request, so that a change also ends leases that are being granted.
#[derive(Debug)]
pub(super) struct Epochs {
    counters: Box<[AtomicU64]>,
    all: AtomicU64,
    is_receiving: AtomicBool,
}

/// The epochs of the subjects of a plan at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EpochStamp {
    all: u64,
    subjects: SmallVec<[(usize, u64); 1]>,
}

impl Epochs {
    pub(super) fn new() -> Self {
        Self {
            counters: (0..COUNTERS).map(|_| AtomicU64::new(0)).collect(),
            all: AtomicU64::new(0),
            is_receiving: AtomicBool::new(false),
        }
    }

    /// Whether changes are received. Otherwise nothing may be leased.
    pub(super) fn is_receiving(&self) -> bool {
        self.is_receiving.load(Ordering::Acquire)
    }

    pub(super) fn set_receiving(&self, is_receiving: bool) {
        self.end_all();
        self.is_receiving.store(is_receiving, Ordering::Release);
    }

    pub(super) fn end_all(&self) {
        self.all.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn end_subject(&self, subject_hash: u64) {
        self.counter(index(subject_hash)).fetch_add(1, Ordering::AcqRel);
    }

    /// Returns the epochs of a plan. `hash` returns the hash of a subject.
    pub(super) fn stamp(&self, plan: &Plan<'_>, hash: impl Fn(&str) -> u64) -> EpochStamp {
        let mut subjects: SmallVec<[(usize, u64); 1]> = SmallVec::new();
        for take in plan.takes() {
            let index = index(hash(take.key().subject()));
            if subjects.iter().all(|(known, _)| *known != index) {
                subjects.push((index, self.counter(index).load(Ordering::Acquire)));
            }
        }
        EpochStamp { all: self.all.load(Ordering::Acquire), subjects }
    }

    /// Returns whether nothing has ended since the stamp was made.
    pub(super) fn is_current(&self, stamp: &EpochStamp) -> bool {
        self.is_receiving()
            && self.all.load(Ordering::Acquire) == stamp.all
            && stamp
                .subjects
                .iter()
                .all(|(index, seen)| self.counter(*index).load(Ordering::Acquire) == *seen)
    }

    fn counter(&self, index: usize) -> &AtomicU64 {
        self.counters.get(index).unwrap_or(&self.all)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "any bits of the hash will do")]
const fn index(hash: u64) -> usize {
    hash as usize % COUNTERS
}
