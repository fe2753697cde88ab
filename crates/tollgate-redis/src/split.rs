//! Plans over several slots of a cluster, which no single call can decide.
//!
//! They are taken slot by slot, and given back when a later slot refuses: still all or nothing in the end, but
//! not in one moment. Another request may meanwhile find room taken that is about to return. All limits of one
//! subject share a slot, so only plans over several subjects come here.

use smallvec::SmallVec;
use tollgate::algorithm::Reply as StepReply;
use tollgate::{PermitId, StoreError, Timestamp};

use crate::call::{AskedTake, Figures, Verb};
use crate::failure::Failure;
use crate::limit_code::Letter;
use crate::slot::Slot;
use crate::store::Shared;

type Takes = SmallVec<[AskedTake; 2]>;

/// Takes that pass or fail together, by their numbers in the plan, one share a slot.
struct Party {
    shares: Vec<Vec<usize>>,
}

/// A plan that is decided piece by piece.
struct Split<'s, F> {
    shared: &'s Shared,
    takes: F,
    at: Timestamp,
    replies: Vec<Option<StepReply>>,
}

impl Shared {
    /// The replies to all takes of a plan, wherever their keys are.
    pub(crate) async fn figures_anywhere(
        &self,
        verb: Verb,
        takes: impl Fn() -> Takes,
    ) -> Result<Figures, StoreError> {
        if !self.coalescer.router().is_cluster() {
            return self.figures(verb, takes).await;
        }
        let first = takes();
        if self.slots_of(&first).len() < 2 {
            return self.figures(verb, takes).await;
        }
        let replies = vec![None; first.len()];
        let split = Split { shared: self, takes, at: Timestamp::EPOCH, replies };
        match verb {
            Verb::Take | Verb::Hold(_) => split.take(verb, &first).await,
            other => split.each(other, &first).await,
        }
    }

    /// The numbers of one verb for each slot that a permit's keys are in.
    pub(crate) async fn numbers_anywhere(
        &self,
        verb: Verb,
        takes: Takes,
    ) -> Result<Vec<i64>, StoreError> {
        let mut numbers = Vec::new();
        for slot in self.slots_of(&takes) {
            let here = takes.iter().filter(|take| self.slot_of(take) == slot).cloned().collect();
            numbers.push(self.number(verb, here).await?);
        }
        Ok(numbers)
    }

    fn slot_of(&self, take: &AskedTake) -> Slot {
        self.coalescer.router().slot(take.key())
    }

    fn slots_of(&self, takes: &[AskedTake]) -> Vec<Slot> {
        let mut slots: Vec<Slot> = takes.iter().map(|take| self.slot_of(take)).collect();
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    /// The takes of one group, slot by slot.
    fn party(&self, takes: &[AskedTake], group: Option<u8>) -> Party {
        let is_in = |take: &AskedTake| group.is_none_or(|group| take.group() == group);
        let share = |slot: Slot| -> Vec<usize> {
            let numbered = takes.iter().enumerate();
            let here = numbered.filter(|(_, take)| is_in(take) && self.slot_of(take) == slot);
            here.map(|(number, _)| number).collect()
        };
        let shares = self.slots_of(takes).into_iter().map(share);
        Party { shares: shares.filter(|share| !share.is_empty()).collect() }
    }
}

impl<F: Fn() -> Takes> Split<'_, F> {
    /// Does to each slot's takes what needs no agreement among them.
    async fn each(mut self, verb: Verb, takes: &[AskedTake]) -> Result<Figures, StoreError> {
        for share in self.shared.party(takes, None).shares {
            self.ask(verb, &share).await?;
        }
        self.figures()
    }

    /// First what is enforced; then, if that passes, each shadow group by itself.
    async fn take(mut self, verb: Verb, takes: &[AskedTake]) -> Result<Figures, StoreError> {
        // Slots are given back by their permit, so they need one.
        let has_slots = takes.iter().any(|take| take.letter() == Letter::Concurrency);
        let verb = match verb {
            Verb::Take if has_slots => Verb::Hold(PermitId::random()),
            other => other,
        };
        let mut groups: Vec<u8> = takes.iter().map(AskedTake::group).collect();
        groups.sort_unstable();
        groups.dedup();
        let mut is_refused = false;
        for group in groups {
            let party = self.shared.party(takes, Some(group));
            let verb = if is_refused { Verb::Peek } else { verb };
            let passed = self.take_party(verb, &party).await?;
            is_refused |= group == 0 && !passed;
        }
        self.figures()
    }

    /// Takes share by share, and gives back if one refuses; whether all passed.
    async fn take_party(&mut self, verb: Verb, party: &Party) -> Result<bool, StoreError> {
        let mut passed = true;
        for (done, share) in party.shares.iter().enumerate() {
            let verb = if passed { verb } else { Verb::Peek };
            let asked = self.ask(verb, share).await;
            let refuses = !matches!(asked, Ok(true));
            if passed && refuses {
                passed = false;
                if verb != Verb::Peek {
                    self.refund_receipt(verb, party.shares.get(..done).unwrap_or_default()).await;
                }
            }
            asked?;
        }
        Ok(passed)
    }

    /// What cannot be given back is spent: too few pass then, never too many.
    async fn refund_receipt(&mut self, verb: Verb, shares: &[Vec<usize>]) {
        for share in shares {
            if let Verb::Hold(permit) = verb {
                let slots = self.share(share).into_iter();
                let slots: Takes =
                    slots.filter(|take| take.letter() == Letter::Concurrency).collect();
                if !slots.is_empty() {
                    let _ = self.shared.number(Verb::Release(permit), slots).await;
                }
            }
            let _ = self.ask(Verb::Refund, share).await;
        }
    }

    fn share(&self, share: &[usize]) -> Takes {
        let takes = (self.takes)();
        share.iter().filter_map(|number| takes.get(*number).cloned()).collect()
    }

    /// Asks one slot and notes its replies; whether all of them allow.
    async fn ask(&mut self, verb: Verb, share: &[usize]) -> Result<bool, StoreError> {
        let figures = self.shared.figures(verb, || self.share(share)).await?;
        self.at = self.at.max(figures.at);
        let allowed = figures.replies.iter().all(StepReply::is_allowed);
        for (number, reply) in share.iter().zip(figures.replies) {
            if let Some(place) = self.replies.get_mut(*number) {
                *place = Some(reply);
            }
        }
        Ok(allowed)
    }

    fn figures(self) -> Result<Figures, StoreError> {
        let replies = self.replies.into_iter().collect::<Option<_>>();
        let replies = replies.ok_or_else(|| Failure::unexpected().into_store_error())?;
        Ok(Figures { at: self.at, replies })
    }
}
