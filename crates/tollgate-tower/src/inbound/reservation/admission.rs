//! Admission with a reservation.

use std::sync::Arc;

use http::header::CONTENT_LENGTH;
use http::request::Parts;
use tollgate::{
    ActivePolicy, Facts, Observer, Query, Refusal, Request, ReserveError, ReserveOutcome, Store,
};

use super::open::OpenReservation;
use super::request::ReservedRequest;
use crate::background::RunToCompletion;
use crate::facts::RequestHead;
use crate::header_value::{parse_digits, single_value};
use crate::inbound::admission::{Admission, AdmissionFuture};
use crate::inbound::decision::RateLimitDecision;
use crate::inbound::exposed::Exposed;
use crate::inbound::held_slots::Upgrade;
use crate::inbound::in_flight::InFlight;
use crate::inbound::settings::Settings;

/// The number of bytes of a request that are estimated as one input token.
const BYTES_PER_TOKEN: u64 = 4;

/// Reserves the estimate of a request. If the client disconnects while the store decides, the reservation is settled
/// when the store replies.
pub(in crate::inbound) fn admit<S: Store + 'static, O: Observer + 'static>(
    settings: &Arc<Settings<S, O>>,
    head: Parts,
) -> AdmissionFuture<S, O> {
    let settings = Arc::clone(settings);
    Box::pin(RunToCompletion::new(async move {
        let admission = reserve(&settings, &RequestHead::from(&head)).await;
        (head, admission)
    }))
}

async fn reserve<S: Store + 'static, O: Observer + 'static>(
    settings: &Arc<Settings<S, O>>,
    request: &RequestHead<'_>,
) -> Admission<S, O> {
    if let Some(refused) = settings.refuse_long_path(request) {
        return refused;
    }
    let Some(estimate) = settings.reservation.estimate.as_ref().map(|estimate| estimate(request))
    else {
        return Admission::Admitted(InFlight::default(), None);
    };
    let policy = settings.limiter.active_policy();
    let mut facts = Facts::new();
    settings.sources.gather_into(&mut facts, policy.policy(), request);
    let costs = estimate.costs(policy.policy().prices());
    let query = Query::ByPolicy(Request::new(facts).with_costs(costs));
    let input_tokens = estimate.known_input_tokens().or_else(|| input_tokens(request));
    let read = |outcome: &ReserveOutcome<'_, '_>| {
        settings.on_reserved(outcome, request, (&policy, input_tokens))
    };
    match settings.limiter.reserve_under(&policy, (&query, &estimate.terms()), read).await {
        Ok(admission) => admission,
        Err(ReserveError::Limiter(error)) => settings.on_limiter_error(&error, request),
        // Not possible: the terms are valid and have no id.
        Err(_) => settings.refuse(Refusal::undecided(), request),
    }
}

/// Estimates the input tokens by the size of the request, if it is known.
fn input_tokens(request: &RequestHead<'_>) -> Option<u64> {
    let length = single_value(request.headers, CONTENT_LENGTH).and_then(parse_digits)?;
    Some(length.div_ceil(BYTES_PER_TOKEN))
}

impl<S: Store + 'static, O: Observer + 'static> Settings<S, O> {
    fn on_reserved(
        self: &Arc<Self>,
        reserved: &ReserveOutcome<'_, '_>,
        request: &RequestHead<'_>,
        (policy, input_tokens): (&Arc<ActivePolicy<O::Handles>>, Option<u64>),
    ) -> Admission<S, O> {
        let outcome = reserved.outcome;
        if let Some(refusal) = self.refusal(outcome, request) {
            return Admission::Refused(refusal);
        }
        let header_values = self.headers.values(outcome.decision);
        let in_flight = match reserved.record {
            Some(record) => {
                let open = OpenReservation::new(self, policy, record);
                let upgrade = match record.permit() {
                    Some(_) => Upgrade::of(request),
                    None => Upgrade::NotRequested,
                };
                let request = ReservedRequest { header_values, open, input_tokens, upgrade };
                InFlight::Reserved(Box::new(request))
            }
            None => InFlight::Headers(header_values),
        };
        let decision = || RateLimitDecision::new(outcome.to_owned_decision());
        Admission::Admitted(in_flight, Exposed::new(self.exposes_decision.then(decision), None))
    }
}
