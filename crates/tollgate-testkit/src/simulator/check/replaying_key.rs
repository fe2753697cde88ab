//! Model of a key whose replay has begun.

use std::collections::VecDeque;

use super::CallResult;
use super::expected_ledger::{KeyLedger, Replay};
use crate::simulator::virtual_time::TaskId;
use crate::spec::LimitSpec;

/// A key whose replay has begun. A node replays a batch of keys; what did not run returns to the ledger when the
/// whole batch has ended.
#[derive(Debug)]
pub(super) struct ReplayingKey {
    pub(super) task: TaskId,
    spec: LimitSpec,
    ledger: KeyLedger,
    began_at: u64,
    /// Replays that were not sent yet.
    unsent: VecDeque<Replay>,
    /// Number of replays in flight.
    pub(super) in_flight: usize,
    /// Time of the last result.
    pub(super) ended_at: u64,
    /// Replays that did not run.
    kept: Vec<Replay>,
    pub(super) has_failed: bool,
}

impl ReplayingKey {
    pub(super) fn new(task: TaskId, spec: &LimitSpec, mut ledger: KeyLedger, now: u64) -> Self {
        let unsent = ledger.replays(spec, now).into();
        Self {
            task,
            spec: spec.clone(),
            ledger,
            began_at: now,
            unsent,
            in_flight: 0,
            ended_at: now,
            kept: Vec::new(),
            has_failed: false,
        }
    }

    /// Returns true if the key is in a batch. The keys of one batch begin at the same time.
    pub(super) fn is_in_batch(&self, task: TaskId, began_at: u64) -> bool {
        (self.task, self.began_at) == (task, began_at)
    }

    pub(super) fn is_done(&self) -> bool {
        self.in_flight == 0 && self.unsent.is_empty()
    }

    /// Returns the next replay, which is sent now.
    pub(super) fn send(&mut self) -> Option<Replay> {
        self.in_flight += 1;
        self.unsent.pop_front()
    }

    pub(super) fn end(&mut self, replay: Option<Replay>, result: CallResult, now: u64) {
        self.in_flight -= 1;
        self.ended_at = now;
        self.has_failed |= result != CallResult::Reply;
        self.kept.extend(replay.filter(|_| result == CallResult::NotRun));
    }

    /// Adds what did not run to the ledger of the key. Returns true if there was any.
    pub(super) fn restore(mut self, newer: &mut KeyLedger, now: u64) -> bool {
        self.kept.extend(self.unsent);
        let has_kept = !self.kept.is_empty();
        if has_kept {
            let newer_ledger = std::mem::replace(newer, KeyLedger::new(&self.spec));
            let kept = (self.began_at, self.kept);
            *newer = self.ledger.restore(&self.spec, kept, (now, newer_ledger));
        }
        has_kept
    }
}
