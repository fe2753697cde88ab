//! Plans over several nodes of a cluster, which one call cannot decide.
//!
//! They are taken node by node, and refunded if a later node refuses: all or nothing in the end, but not atomic.
//! Meanwhile another request may be refused by quota that is about to be refunded. All limits of one subject share a
//! slot, so this concerns only plans over several subjects. A part whose slots turn out to be on several nodes, because
//! one of them migrates, was not decided, and is taken slot by slot.

use std::collections::VecDeque;

use smallvec::SmallVec;
use tollgate::algorithm::Reply as StepReply;
use tollgate::{PermitId, StoreError, StoreErrorKind, Timestamp};

use super::{Shared, Takes};
use crate::call::{EncodedTake, Figures, Verb};
use crate::failure::Failure;
use crate::limit_code::Letter;
use crate::router::Lane;
use crate::slot::Slot;

/// Indexes of the takes that one call decides.
type Part = Vec<usize>;

/// A plan over several nodes, with the replies so far.
struct CrossNodePlan<'s, F> {
    shared: &'s Shared,
    takes: F,
    at: Timestamp,
    replies: Vec<Option<StepReply>>,
    /// The parts that were taken and not refunded.
    taken: Vec<Part>,
    /// Whether a refund failed, so that some of the plan stays spent.
    has_failed_refund: bool,
}

impl Shared {
    /// Returns the step replies of all takes of a plan, on whatever nodes.
    pub(super) async fn figures_across_nodes(
        &self,
        verb: Verb,
        takes: impl Fn() -> Takes,
    ) -> Result<Figures, StoreError> {
        if let Some(figures) = self.figures_on_node(verb, &takes).await? {
            return Ok(figures);
        }
        let encoded = takes();
        let plan = CrossNodePlan {
            shared: self,
            takes,
            at: Timestamp::EPOCH,
            replies: vec![None; encoded.len()],
            taken: Vec::new(),
            has_failed_refund: false,
        };
        match verb {
            Verb::Take | Verb::Hold(_) => plan.take(verb, &encoded).await,
            verb => plan.run_on_each_node(verb, &encoded).await,
        }
    }

    /// Runs a verb with a number as the reply on each node of a permit's keys.
    pub(super) async fn numbers_across_nodes(
        &self,
        verb: Verb,
        takes: Takes,
    ) -> Result<Vec<i64>, StoreError> {
        let mut numbers = Vec::new();
        let mut parts = self.parts_by_node(&takes, (0..takes.len()).collect())?;
        while let Some(part) = parts.pop_front() {
            match self.number_on_node(verb, select(&takes, &part)).await? {
                Some(number) => numbers.push(number),
                None => self.split_by_slot(&takes, &part, &mut parts),
            }
        }
        Ok(numbers)
    }

    fn slot_of(&self, takes: &[EncodedTake], index: usize) -> Slot {
        takes.get(index).map_or(Slot::ONLY, |take| self.router.slot(take.key()))
    }

    /// Divides takes by the node of their keys.
    fn parts_by_node(
        &self,
        takes: &[EncodedTake],
        indexes: Part,
    ) -> Result<VecDeque<Part>, StoreError> {
        let mut parts: Vec<(Lane, Part)> = Vec::new();
        for index in indexes {
            let lane = self.router.lane(self.slot_of(takes, index));
            let lane = lane.map_err(Failure::into_store_error)?;
            match parts.iter_mut().find(|(known, _)| *known == lane) {
                Some((_, part)) => part.push(index),
                None => parts.push((lane, vec![index])),
            }
        }
        Ok(parts.into_iter().map(|(_, part)| part).collect())
    }

    /// Puts the slots of a part in front of the other parts. A part of one slot is always decided.
    fn split_by_slot(&self, takes: &[EncodedTake], part: &[usize], parts: &mut VecDeque<Part>) {
        let mut by_slot: Vec<(Slot, Part)> = Vec::new();
        for index in part {
            let slot = self.slot_of(takes, *index);
            match by_slot.iter_mut().find(|(known, _)| *known == slot) {
                Some((_, part)) => part.push(*index),
                None => by_slot.push((slot, vec![*index])),
            }
        }
        by_slot.into_iter().rev().for_each(|(_, part)| parts.push_front(part));
    }
}

/// Returns the error of a plan whose earlier parts have run: the plan is not to be run again.
fn partly_run(error: StoreError, has_run: bool) -> StoreError {
    match has_run && !error.may_have_run() {
        true => StoreError::new(
            StoreErrorKind::Lost,
            format!("{error}; other nodes have run their part"),
        ),
        false => error,
    }
}

fn select(takes: &[EncodedTake], indexes: &[usize]) -> Takes {
    indexes.iter().filter_map(|index| takes.get(*index).cloned()).collect()
}

impl<F: Fn() -> Takes> CrossNodePlan<'_, F> {
    /// Runs a verb on each node, independently of the other nodes.
    async fn run_on_each_node(
        mut self,
        verb: Verb,
        takes: &[EncodedTake],
    ) -> Result<Figures, StoreError> {
        let parts = self.shared.parts_by_node(takes, (0..takes.len()).collect())?;
        self.run_all(verb, takes, parts).await?;
        self.figures()
    }

    async fn run_all(
        &mut self,
        verb: Verb,
        takes: &[EncodedTake],
        mut parts: VecDeque<Part>,
    ) -> Result<(), StoreError> {
        let mut has_run = false;
        while let Some(part) = parts.pop_front() {
            match self.run(verb, &part).await {
                Ok(None) => self.shared.split_by_slot(takes, &part, &mut parts),
                Ok(Some(_)) => has_run = true,
                Err(error) => return Err(partly_run(error, has_run)),
            }
        }
        Ok(())
    }

    /// Takes a plan, or refunds all of it after an error.
    async fn take(mut self, verb: Verb, takes: &[EncodedTake]) -> Result<Figures, StoreError> {
        // A refund of slots needs a permit.
        let has_slots = takes.iter().any(|take| take.letter() == Letter::Concurrency);
        let verb = match verb {
            Verb::Take if has_slots => Verb::Hold(PermitId::random()),
            verb => verb,
        };
        if let Err(error) = self.take_groups(verb, takes).await {
            self.refund(verb, takes, 0).await;
            return Err(partly_run(error, self.has_failed_refund));
        }
        self.figures()
    }

    /// Takes the enforced limits first, then, if they pass, each shadow group on its own.
    async fn take_groups(&mut self, verb: Verb, takes: &[EncodedTake]) -> Result<(), StoreError> {
        let mut groups: Vec<u8> = takes.iter().map(EncodedTake::group).collect();
        groups.sort_unstable();
        groups.dedup();
        let mut is_refused = false;
        for number in groups {
            let in_group = takes.iter().enumerate().filter(|(_, take)| take.group() == number);
            let indexes = in_group.map(|(index, _)| index).collect();
            let verb = if is_refused { Verb::Peek } else { verb };
            let passed = self.take_all_or_none(verb, takes, indexes).await?;
            is_refused |= number == 0 && !passed;
        }
        Ok(())
    }

    /// Takes part by part, and refunds if one refuses. Returns whether all passed. After an error, the caller refunds.
    async fn take_all_or_none(
        &mut self,
        verb: Verb,
        takes: &[EncodedTake],
        indexes: Part,
    ) -> Result<bool, StoreError> {
        let mut parts = self.shared.parts_by_node(takes, indexes)?;
        let (mut passed, taken_before) = (true, self.taken.len());
        while let Some(part) = parts.pop_front() {
            let verb = if passed { verb } else { Verb::Peek };
            match self.run(verb, &part).await? {
                None => self.shared.split_by_slot(takes, &part, &mut parts),
                Some(true) if verb == Verb::Peek => {}
                Some(true) => self.taken.push(part),
                Some(false) => {
                    self.refund(verb, takes, taken_before).await;
                    passed = false;
                }
            }
        }
        Ok(passed)
    }

    /// Refunds the taken parts from a number on. A failed refund stays spent: too few requests pass then, never too
    /// many.
    async fn refund(&mut self, verb: Verb, takes: &[EncodedTake], from: usize) {
        let parts = self.taken.split_off(from);
        if let Verb::Hold(permit) = verb {
            let held = parts.iter().flatten().filter_map(|index| takes.get(*index));
            let held: Takes =
                held.filter(|take| take.letter() == Letter::Concurrency).cloned().collect();
            if !held.is_empty() {
                let released = self.shared.numbers_across_nodes(Verb::Release(permit), held).await;
                self.has_failed_refund |= released.is_err();
            }
        }
        for part in parts {
            let refunded = self.run_all(Verb::Refund, takes, VecDeque::from([part])).await;
            self.has_failed_refund |= refunded.is_err();
        }
    }

    /// Runs a verb on a part and stores the replies. Returns whether all allow, or `None` if the keys are on several
    /// nodes.
    async fn run(&mut self, verb: Verb, part: &[usize]) -> Result<Option<bool>, StoreError> {
        let takes = || select(&(self.takes)(), part);
        let Some(figures) = self.shared.figures_on_node(verb, takes).await? else {
            return Ok(None);
        };
        self.at = self.at.max(figures.at);
        let is_allowed = figures.replies.iter().all(StepReply::is_allowed);
        for (index, reply) in part.iter().zip(figures.replies) {
            if let Some(stored) = self.replies.get_mut(*index) {
                *stored = Some(reply);
            }
        }
        Ok(Some(is_allowed))
    }

    fn figures(self) -> Result<Figures, StoreError> {
        let replies = self.replies.into_iter().collect::<Option<_>>();
        let replies = replies.ok_or_else(|| Failure::unexpected().into_store_error())?;
        Ok(Figures { at: self.at, replies, leased: SmallVec::new(), outcomes: Vec::new() })
    }
}
