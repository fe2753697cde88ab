//! Plans whose keys are on one node, decided in one call. Without a cluster, that is every plan.

use smallvec::SmallVec;
use tollgate::StoreError;

use super::{Shared, Takes};
use crate::call::{EncodedTake, Figures, PlanReply, Verb};
use crate::failure::Failure;
use crate::router::Lane;
use crate::slot::Slot;

impl Shared {
    /// Returns the figures of takes that are in one slot.
    pub(super) async fn figures(
        &self,
        verb: Verb,
        takes: impl Fn() -> Takes,
    ) -> Result<Figures, StoreError> {
        let figures = self.figures_on_node(verb, takes).await?;
        figures.ok_or_else(|| Failure::unexpected().into_store_error())
    }

    /// Returns the figures of takes if one node has all their keys. Retries once if the calendar windows in the call
    /// were stale.
    pub(super) async fn figures_on_node(
        &self,
        verb: Verb,
        takes: impl Fn() -> Takes,
    ) -> Result<Option<Figures>, StoreError> {
        for _ in 0..2 {
            match self.decide_on_node(verb, takes()).await? {
                Some(PlanReply::Figures(figures)) => return Ok(Some(figures)),
                Some(PlanReply::Stale) => {}
                None | Some(PlanReply::OnSeveralNodes) => return Ok(None),
                Some(_) => return Err(Failure::unexpected().into_store_error()),
            }
        }
        let reason = "the clock of Redis changes too fast for calendar windows";
        Err(Failure::Unreachable(reason.to_owned()).into_store_error())
    }

    /// Returns the reply to a verb without figures if one node has all keys.
    pub(super) async fn number_on_node(
        &self,
        verb: Verb,
        takes: Takes,
    ) -> Result<Option<i64>, StoreError> {
        match self.decide_on_node(verb, takes).await? {
            Some(PlanReply::Number(number)) => Ok(Some(number)),
            None | Some(PlanReply::OnSeveralNodes) => Ok(None),
            Some(_) => Err(Failure::unexpected().into_store_error()),
        }
    }

    /// Returns the reply to a plan with one key.
    pub(super) async fn number(&self, verb: Verb, take: EncodedTake) -> Result<i64, StoreError> {
        let number = self.number_on_node(verb, SmallVec::from_iter([take])).await?;
        number.ok_or_else(|| Failure::unexpected().into_store_error())
    }

    /// Decides a plan, unless its keys are on several nodes.
    pub(super) async fn decide_on_node(
        &self,
        verb: Verb,
        takes: Takes,
    ) -> Result<Option<PlanReply>, StoreError> {
        let lane = self.lane_of(&takes).map_err(Failure::into_store_error)?;
        let Some(lane) = lane else { return Ok(None) };
        let reply = self.coalescer.decide(verb, takes, &lane).await;
        reply.map(Some).map_err(Failure::into_store_error)
    }

    /// Returns the lane of all takes, or `None` if they are on several nodes.
    fn lane_of(&self, takes: &[EncodedTake]) -> Result<Option<Lane>, Failure> {
        let slot_of = |take: &EncodedTake| self.router.slot(take.key());
        let first = takes.first().map_or(Slot::ONLY, slot_of);
        let lane = self.router.lane(first)?;
        for slot in takes.iter().skip(1).map(slot_of).filter(|slot| *slot != first) {
            if self.router.lane(slot)? != lane {
                return Ok(None);
            }
        }
        Ok(Some(lane))
    }
}
