//! Admission: decides a request before the service receives it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use http::request::Parts;
use tollgate::policy::SingleLimit;
use tollgate::{
    ActivePolicy, Costs, Facts, LimiterError, MAX_FACT_LENGTH, Observer, Outcome, PathError, Query,
    Receipt, Refusal, Request, SingleRequest, Status, Store, StoreErrorKind,
};

use super::cost::AdmissionCharge;
use super::decision::RateLimitDecision;
use super::deferred_charge::DeferredCharge;
use super::exposed::Exposed;
use super::held_slots::ServedSlots;
use super::in_flight::{InFlight, PendingCharge};
use super::reservation;
use super::settings::{ErrorAction, Settings};
use super::slot_guard::{AcquiredSlots, SlotGuard};
use crate::background::RunToCompletion;
use crate::facts::RequestHead;

/// The result of admission. Refusals are boxed, so that admissions, which are more frequent, are cheap to move.
pub(super) enum Admission<S: Store + 'static, O: Observer + 'static> {
    Refused(Box<Response<Bytes>>),
    /// With what the service receives in the request extensions.
    Admitted(InFlight<S, O>, Option<Box<Exposed>>),
}

/// An admission in progress. It owns the request head and returns it with the result.
pub(super) type AdmissionFuture<S, O> =
    Pin<Box<dyn Future<Output = (Parts, Admission<S, O>)> + Send>>;

/// What a request is decided by: the policy, the facts, and the charge at admission.
type Basis<'a, 'f, O> =
    (&'a Arc<ActivePolicy<<O as Observer>::Handles>>, &'a Facts<'f>, &'a AdmissionCharge);

impl<S: Store + 'static, O: Observer + 'static> Admission<S, O> {
    /// Decides with a store that may have to wait for a reply.
    pub(super) fn decide_async(
        settings: &Arc<Settings<S, O>>,
        head: Parts,
    ) -> AdmissionFuture<S, O> {
        if settings.reservation.is_enabled() {
            return reservation::admit(settings, head);
        }
        let (settings, policy) = (Arc::clone(settings), settings.limiter.active_policy());
        let holds_slots = policy.policy().holds_slots();
        let admission = async move {
            let admission = Self::decide(&settings, &policy, &RequestHead::from(&head)).await;
            (head, admission)
        };
        if holds_slots {
            // Releases the slot if the client disconnects while the store grants it.
            return Box::pin(RunToCompletion::new(admission));
        }
        Box::pin(admission)
    }

    async fn decide(
        settings: &Arc<Settings<S, O>>,
        policy: &Arc<ActivePolicy<O::Handles>>,
        request: &RequestHead<'_>,
    ) -> Self {
        if let Some(refused) = settings.refuse_long_path(request) {
            return refused;
        }
        let charge = settings.cost.at_admission(request);
        // Filled in place: facts are costly to move.
        let mut facts = Facts::new();
        settings.sources.gather_into(&mut facts, policy.policy(), request);
        let facts = &facts;
        let read = |outcome: &Outcome<'_, '_>| {
            settings.on_outcome(outcome, request, (policy, facts, &charge))
        };
        let (limiter, verb) = (&settings.limiter, charge.verb());
        let decided = match charge.by_unit() {
            None => limiter.decide_facts(policy, verb, (facts, charge.requests()), read).await,
            Some(costs) => {
                limiter.decide_with(policy, verb, &query_by_unit(facts, costs), read).await
            }
        };
        decided.unwrap_or_else(|error| settings.on_limiter_error(&error, request))
    }

    /// Decides with a store that replies in one poll. This avoids boxing a future and cloning the service.
    pub(super) fn decide_now(settings: &Arc<Settings<S, O>>, request: &RequestHead<'_>) -> Self {
        if settings.is_skipped(request) {
            return Self::Admitted(InFlight::default(), None);
        }
        if let Some(refused) = settings.refuse_long_path(request) {
            return refused;
        }
        settings.limiter.with_active_policy(|policy| {
            match settings.limiter.single_limit(policy).filter(|_| settings.needs_only_status()) {
                Some(single) => settings.take_single(policy, single, request),
                None => Self::decide_by_rules(settings, policy, request),
            }
        })
    }

    // Not inlined: the decision by a single limit needs little stack.
    #[inline(never)]
    fn decide_by_rules(
        settings: &Arc<Settings<S, O>>,
        policy: &Arc<ActivePolicy<O::Handles>>,
        request: &RequestHead<'_>,
    ) -> Self {
        let charge = settings.cost.at_admission(request);
        // Filled in place: facts are costly to move.
        let mut facts = Facts::new();
        settings.sources.gather_into(&mut facts, policy.policy(), request);
        let facts = &facts;
        let read = |outcome: &Outcome<'_, '_>| {
            settings.on_outcome(outcome, request, (policy, facts, &charge))
        };
        let (limiter, verb) = (&settings.limiter, charge.verb());
        let decided = match charge.by_unit() {
            None => limiter.decide_now(policy, verb, (facts, charge.requests()), read),
            Some(costs) => {
                limiter.decide_query_now(policy, verb, &query_by_unit(facts, costs), read)
            }
        };
        decided.unwrap_or_else(|error| settings.on_limiter_error(&error, request))
    }
}

fn query_by_unit<'f>(facts: &Facts<'f>, costs: &Costs) -> Query<'f> {
    Query::ByPolicy(Request::new(facts.clone()).with_costs(costs.clone()))
}

impl<S: Store + 'static, O: Observer + 'static> Settings<S, O> {
    /// Decides by the only limit of a policy.
    #[inline(always)]
    fn take_single(
        &self,
        policy: &ActivePolicy<O::Handles>,
        single: SingleLimit<'_>,
        request: &RequestHead<'_>,
    ) -> Admission<S, O> {
        let value = self.sources.value_by(policy.policy(), single.fact().as_str(), request);
        let tenant = self.sources.tenant(policy.policy(), request);
        // The only limit counts requests, so other units do not matter.
        let cost = self.cost.at_admission(request).requests();
        let query = SingleRequest { value: value.as_ref(), tenant: tenant.as_ref(), cost };
        let admit = |header_values| Admission::Admitted(InFlight::Headers(header_values), None);
        let allowed = |status: Status<'_>, at| admit(self.headers.status_values(status, at));
        let read = |outcome: Result<&Outcome<'_, '_>, LimiterError>| match outcome {
            Ok(outcome) => match self.refusal(outcome, request) {
                Some(refusal) => Admission::Refused(refusal),
                None => admit(self.headers.values(outcome.decision)),
            },
            Err(error) => self.on_limiter_error(&error, request),
        };
        self.limiter.take_single(policy, single, query, allowed, read)
    }

    /// Refuses a path that is too long for a fact, because a truncated path could miss its rule.
    #[inline]
    pub(super) fn refuse_long_path(&self, request: &RequestHead<'_>) -> Option<Admission<S, O>> {
        let is_long = request.uri.path().len() > MAX_FACT_LENGTH;
        is_long.then(|| self.refuse(Refusal::of_path(PathError::TooLong), request))
    }

    /// Refuses a request that the limiter did not decide.
    #[inline(never)]
    pub(super) fn refuse(
        &self,
        refusal: Refusal<'_>,
        request: &RequestHead<'_>,
    ) -> Admission<S, O> {
        let response = self.refusals.respond_undecided(refusal, request, &self.headers);
        Admission::Refused(Box::new(response))
    }

    /// Returns the response to a refused request; `None` if the request is allowed.
    #[inline]
    pub(super) fn refusal(
        &self,
        outcome: &Outcome<'_, '_>,
        request: &RequestHead<'_>,
    ) -> Option<Box<Response<Bytes>>> {
        if outcome.decision.is_allowed() {
            return None;
        }
        self.refusals.respond_to(outcome, request, &self.headers).map(Box::new)
    }

    #[inline]
    fn on_outcome(
        self: &Arc<Self>,
        outcome: &Outcome<'_, '_>,
        request: &RequestHead<'_>,
        basis: Basis<'_, '_, O>,
    ) -> Admission<S, O> {
        if let Some(refusal) = self.refusal(outcome, request) {
            return Admission::Refused(refusal);
        }
        let header_values = self.headers.values(outcome.decision);
        let mut for_handler = None;
        let in_flight = if outcome.permit.is_some() || self.cost.is_settled_after_response() {
            let slots = AcquiredSlots::from_outcome(outcome);
            let slots =
                slots.map(|slots| ServedSlots::new(SlotGuard::new(&self.limiter, slots), request));
            for_handler = slots.as_ref().and_then(ServedSlots::for_handler);
            let pending = self.pending_charge(outcome, basis);
            InFlight::with_duties(self, header_values, slots, pending)
        } else {
            InFlight::Headers(header_values)
        };
        let decision = || RateLimitDecision::new(outcome.to_owned_decision());
        let exposed = Exposed::new(self.exposes_decision.then(decision), for_handler);
        Admission::Admitted(in_flight, exposed)
    }

    /// Returns the charge that is settled after the response, with its own copy of the facts.
    fn pending_charge(
        self: &Arc<Self>,
        outcome: &Outcome<'_, '_>,
        (policy, facts, charge): Basis<'_, '_, O>,
    ) -> PendingCharge<S, O> {
        if !self.cost.is_settled_after_response() {
            return PendingCharge::None;
        }
        let facts = Box::new(facts.clone().into_owned());
        let taken = (charge.costs(), Receipt::of(outcome));
        let (settings, policy) = (Arc::clone(self), Arc::clone(policy));
        let deferred = DeferredCharge::new(settings, policy, facts, taken);
        PendingCharge::new(Box::new(deferred), charge)
    }

    #[inline(never)]
    pub(super) fn on_limiter_error(
        &self,
        error: &LimiterError,
        request: &RequestHead<'_>,
    ) -> Admission<S, O> {
        self.report_error(error);
        match (self.error_action, error) {
            // The store still counts: passing the request on would exceed limits whenever there are many requests.
            (_, LimiterError::Store(error)) if error.kind() == StoreErrorKind::Overloaded => {
                self.refuse(Refusal::overloaded(), request)
            }
            // Otherwise a client could bypass its limits by matching more rules than a plan can hold.
            (ErrorAction::Refuse, _) | (_, LimiterError::Plan(_)) => {
                self.refuse(Refusal::undecided(), request)
            }
            (ErrorAction::Allow, _) => {
                let in_flight = InFlight::Headers(self.headers.values_without_decision());
                Admission::Admitted(in_flight, None)
            }
        }
    }
}
