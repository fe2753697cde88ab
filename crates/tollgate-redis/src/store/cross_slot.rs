//! Plans over several slots of a cluster, which one call cannot decide.
//!
//! They are taken slot by slot, and refunded if a later slot refuses: all or nothing in the end, but not
//! atomic. Meanwhile another request may be refused by quota that is about to be refunded. All limits of one
//! subject share a slot, so this concerns only plans over several subjects.

use smallvec::SmallVec;
use tollgate::algorithm::Reply as StepReply;
use tollgate::{PermitId, StoreError, Timestamp};

use super::Shared;
use crate::call::{EncodedTake, Figures, Verb};
use crate::failure::Failure;
use crate::limit_code::Letter;
use crate::slot::Slot;

type Takes = SmallVec<[EncodedTake; 2]>;

/// Takes that pass or fail together: one list of take indexes per slot.
struct TakeGroup {
    by_slot: Vec<Vec<usize>>,
}

/// A plan over several slots, with the replies so far.
struct CrossSlotPlan<'s, F> {
    shared: &'s Shared,
    takes: F,
    at: Timestamp,
    replies: Vec<Option<StepReply>>,
}

impl Shared {
    /// Returns the step replies of all takes of a plan, in whatever slots.
    pub(super) async fn figures_across_slots(
        &self,
        verb: Verb,
        takes: impl Fn() -> Takes,
    ) -> Result<Figures, StoreError> {
        if !self.router.is_cluster() {
            return self.figures(verb, takes).await;
        }
        let encoded = takes();
        if self.slots_of(&encoded).len() < 2 {
            return self.figures(verb, takes).await;
        }
        let replies = vec![None; encoded.len()];
        let plan = CrossSlotPlan { shared: self, takes, at: Timestamp::EPOCH, replies };
        match verb {
            Verb::Take | Verb::Hold(_) => plan.take(verb, &encoded).await,
            verb => plan.run_on_each_slot(verb, &encoded).await,
        }
    }

    /// Runs a verb with a number as the reply on each slot of a permit's keys.
    pub(super) async fn numbers_across_slots(
        &self,
        verb: Verb,
        takes: Takes,
    ) -> Result<Vec<i64>, StoreError> {
        let mut numbers = Vec::new();
        for slot in self.slots_of(&takes) {
            let in_slot = takes.iter().filter(|take| self.slot_of(take) == slot).cloned().collect();
            numbers.push(self.number(verb, in_slot).await?);
        }
        Ok(numbers)
    }

    fn slot_of(&self, take: &EncodedTake) -> Slot {
        self.router.slot(take.key())
    }

    fn slots_of(&self, takes: &[EncodedTake]) -> Vec<Slot> {
        let mut slots: Vec<Slot> = takes.iter().map(|take| self.slot_of(take)).collect();
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    /// Returns the takes of one group, or of all groups, slot by slot.
    fn take_group(&self, takes: &[EncodedTake], group: Option<u8>) -> TakeGroup {
        let is_in = |take: &EncodedTake| group.is_none_or(|group| take.group() == group);
        let indexes = |slot: Slot| -> Vec<usize> {
            let takes = takes.iter().enumerate();
            let in_slot = takes.filter(|(_, take)| is_in(take) && self.slot_of(take) == slot);
            in_slot.map(|(index, _)| index).collect()
        };
        let by_slot = self.slots_of(takes).into_iter().map(indexes);
        TakeGroup { by_slot: by_slot.filter(|indexes| !indexes.is_empty()).collect() }
    }
}

impl<F: Fn() -> Takes> CrossSlotPlan<'_, F> {
    /// Runs a verb on each slot, independently of the other slots.
    async fn run_on_each_slot(
        mut self,
        verb: Verb,
        takes: &[EncodedTake],
    ) -> Result<Figures, StoreError> {
        for indexes in self.shared.take_group(takes, None).by_slot {
            self.run(verb, &indexes).await?;
        }
        self.figures()
    }

    /// Takes the enforced limits first, then, if they pass, each shadow group on its own.
    async fn take(mut self, verb: Verb, takes: &[EncodedTake]) -> Result<Figures, StoreError> {
        // A refund of slots needs a permit.
        let has_slots = takes.iter().any(|take| take.letter() == Letter::Concurrency);
        let verb = match verb {
            Verb::Take if has_slots => Verb::Hold(PermitId::random()),
            verb => verb,
        };
        let mut groups: Vec<u8> = takes.iter().map(EncodedTake::group).collect();
        groups.sort_unstable();
        groups.dedup();
        let mut is_refused = false;
        for number in groups {
            let group = self.shared.take_group(takes, Some(number));
            let verb = if is_refused { Verb::Peek } else { verb };
            let passed = self.take_all_or_none(verb, &group).await?;
            is_refused |= number == 0 && !passed;
        }
        self.figures()
    }

    /// Takes slot by slot, and refunds if one refuses. Returns whether all passed.
    async fn take_all_or_none(
        &mut self,
        verb: Verb,
        group: &TakeGroup,
    ) -> Result<bool, StoreError> {
        let mut passed = true;
        for (done, indexes) in group.by_slot.iter().enumerate() {
            let verb = if passed { verb } else { Verb::Peek };
            let result = self.run(verb, indexes).await;
            let is_refused = !matches!(result, Ok(true));
            if passed && is_refused {
                passed = false;
                if verb != Verb::Peek {
                    self.refund(verb, group.by_slot.get(..done).unwrap_or_default()).await;
                }
            }
            result?;
        }
        Ok(passed)
    }

    /// Refunds what was taken. A failed refund stays spent: too few requests pass then, never too many.
    async fn refund(&mut self, verb: Verb, by_slot: &[Vec<usize>]) {
        for indexes in by_slot {
            if let Verb::Hold(permit) = verb {
                let takes = self.takes_at(indexes).into_iter();
                let held: Takes =
                    takes.filter(|take| take.letter() == Letter::Concurrency).collect();
                if !held.is_empty() {
                    let _ = self.shared.number(Verb::Release(permit), held).await;
                }
            }
            let _ = self.run(Verb::Refund, indexes).await;
        }
    }

    fn takes_at(&self, indexes: &[usize]) -> Takes {
        let takes = (self.takes)();
        indexes.iter().filter_map(|index| takes.get(*index).cloned()).collect()
    }

    /// Runs a verb on the takes of one slot and stores their replies. Returns whether all allow.
    async fn run(&mut self, verb: Verb, indexes: &[usize]) -> Result<bool, StoreError> {
        let figures = self.shared.figures(verb, || self.takes_at(indexes)).await?;
        self.at = self.at.max(figures.at);
        let is_allowed = figures.replies.iter().all(StepReply::is_allowed);
        for (index, reply) in indexes.iter().zip(figures.replies) {
            if let Some(stored) = self.replies.get_mut(*index) {
                *stored = Some(reply);
            }
        }
        Ok(is_allowed)
    }

    fn figures(self) -> Result<Figures, StoreError> {
        let replies = self.replies.into_iter().collect::<Option<_>>();
        let replies = replies.ok_or_else(|| Failure::unexpected().into_store_error())?;
        Ok(Figures { at: self.at, replies })
    }
}
