//! An admitted request, from admission to the end of its response body.

use std::mem;
use std::sync::Arc;

use http::{Response, StatusCode, response};
use http_body::Body;
use tollgate::{Observer, Store};

use super::body::{BodyEnd, ResponseBody};
use super::body_mode::BodyMode;
use super::cost::{AdmissionCharge, ChargeTiming};
use super::deferred_charge::{DeferredCharge, UnpaidCharge};
use super::headers::HeaderValues;
use super::held_slots::{ServedSlots, refused_upgrade};
use super::reservation::ReservedRequest;
use super::settings::Settings;
use crate::background::{RunToCompletion, run_in_background};

/// A request that the service is processing. It is part of every response future, so it is small.
pub(super) enum InFlight<S: Store + 'static, O: Observer + 'static> {
    /// A request that needs nothing but headers on its response, as most do.
    Headers(HeaderValues),
    Duties(Box<Duties<S, O>>),
    Reserved(Box<ReservedRequest<S, O>>),
}

/// What the layer does when the response is known, or when its body ends.
pub(super) struct Duties<S: Store + 'static, O: Observer + 'static> {
    settings: Arc<Settings<S, O>>,
    header_values: HeaderValues,
    slots: Option<ServedSlots>,
    pending: PendingCharge<S, O>,
}

/// A request that is not limited.
impl<S: Store + 'static, O: Observer + 'static> Default for InFlight<S, O> {
    fn default() -> Self {
        Self::Headers(HeaderValues::None)
    }
}

/// What remains to be settled when the response is known.
pub(super) enum PendingCharge<S: Store + 'static, O: Observer + 'static> {
    None,
    /// Already taken; refunded if the response does not count.
    Refundable(Box<DeferredCharge<S, O>>),
    /// Nothing taken yet.
    Unpaid(UnpaidCharge<S, O>),
}

/// A refund or debit that must finish before the response is sent. It continues if the client disconnects, and returns
/// the header values after it.
pub(super) type Settlement = RunToCompletion<Option<HeaderValues>>;

/// The response to send, or a settlement that must complete first, and then the response.
type AfterService<B, M, S, O> =
    Result<Response<<M as BodyMode<B>>::Body>, (Settlement, Box<UnsentResponse<B, S, O>>)>;

impl<S: Store + 'static, O: Observer + 'static> PendingCharge<S, O> {
    pub(super) const fn new(
        charge: Box<DeferredCharge<S, O>>,
        at_admission: &AdmissionCharge,
    ) -> Self {
        match at_admission {
            AdmissionCharge::Take(_) | AdmissionCharge::TakeByUnit(_) => Self::Refundable(charge),
            AdmissionCharge::Admit => Self::Unpaid(UnpaidCharge::new(charge)),
        }
    }
}

impl<S: Store + 'static, O: Observer + 'static> InFlight<S, O> {
    pub(super) fn with_duties(
        settings: &Arc<Settings<S, O>>,
        header_values: HeaderValues,
        slots: Option<ServedSlots>,
        pending: PendingCharge<S, O>,
    ) -> Self {
        let settings = Arc::clone(settings);
        Self::Duties(Box::new(Duties { settings, header_values, slots, pending }))
    }

    /// Records that the service receives the request.
    pub(super) fn on_service_call(&mut self) {
        if let Self::Reserved(reserved) = self {
            reserved.on_service_call();
        }
    }

    /// Handles the response of the service. Called once.
    #[inline]
    pub(super) fn on_response<B: Body, M: BodyMode<B>>(
        &mut self,
        mut response: Response<B>,
    ) -> AfterService<B, M, S, O> {
        match self {
            Self::Headers(header_values) => {
                header_values.write(response.headers_mut());
                Ok(response.map(M::from_service))
            }
            Self::Duties(_) | Self::Reserved(_) => match mem::take(self) {
                Self::Duties(duties) => duties.on_response::<B, M>(response),
                Self::Reserved(reserved) => Ok(reserved.on_response::<B, M>(response)),
                Self::Headers(_) => Ok(response.map(M::from_service)),
            },
        }
    }

    /// Handles an error of the service, which counts as a response with status 500. Called once.
    pub(super) fn on_service_error(&mut self) {
        let duties = match mem::take(self) {
            Self::Headers(_) => return,
            Self::Reserved(reserved) => return reserved.on_service_error(),
            Self::Duties(duties) => duties,
        };
        duties.settle_as(StatusCode::INTERNAL_SERVER_ERROR);
    }
}

impl<S: Store + 'static, O: Observer + 'static> Duties<S, O> {
    #[inline(never)]
    fn on_response<B: Body, M: BodyMode<B>>(
        self,
        response: Response<B>,
    ) -> AfterService<B, M, S, O> {
        if self.slots.as_ref().is_some_and(|slots| slots.would_end_early(&response)) {
            let refused = refused_upgrade();
            self.settle_as(refused.status());
            return Ok(refused.map(|text| M::from_layer(ResponseBody::from_refusal(text))));
        }
        let Self { settings, header_values, slots, pending } = self;
        let (head, body) = response.into_parts();
        let (settlement, unpaid) = match pending {
            PendingCharge::None => (None, None),
            PendingCharge::Refundable(_) if settings.cost.counts(&head) => (None, None),
            PendingCharge::Refundable(charge) => {
                (Some(RunToCompletion::new(charge.refund())), None)
            }
            PendingCharge::Unpaid(unpaid) => {
                match (settings.response_cost(&head, &body), unpaid.into_charge()) {
                    (ResponseCost::Known(cost), Some(charge)) => {
                        (Some(RunToCompletion::new(charge.debit(cost))), None)
                    }
                    (_, charge) => (None, charge),
                }
            }
        };
        let response = Response::from_parts(head, body);
        let unsent = UnsentResponse { response, settings, header_values, slots, unpaid };
        match settlement {
            Some(settlement) => Err((settlement, Box::new(unsent))),
            None => Ok(unsent.finish::<M>(None)),
        }
    }
}

impl<S: Store + 'static, O: Observer + 'static> Duties<S, O> {
    /// Settles the charge in the background, for a response of the layer with this status.
    fn settle_as(self, status: StatusCode) {
        let (mut head, ()) = Response::new(()).into_parts();
        head.status = status;
        if self.settings.cost.counts(&head) {
            // Dropping an unpaid charge debits it.
            return;
        }
        match self.pending {
            PendingCharge::None => {}
            PendingCharge::Refundable(charge) => {
                run_in_background(async move { drop(charge.refund().await) });
            }
            PendingCharge::Unpaid(unpaid) => drop(unpaid.into_charge()),
        }
    }
}

/// A response and what to add to it before it is sent.
pub(super) struct UnsentResponse<B, S: Store + 'static, O: Observer + 'static> {
    response: Response<B>,
    settings: Arc<Settings<S, O>>,
    header_values: HeaderValues,
    slots: Option<ServedSlots>,
    unpaid: Option<Box<DeferredCharge<S, O>>>,
}

impl<B, S: Store + 'static, O: Observer + 'static> UnsentResponse<B, S, O> {
    /// Adds the headers (those after a settlement if there was one) and the action for the end of the body.
    pub(super) fn finish<M: BodyMode<B>>(self, settled: Option<HeaderValues>) -> Response<M::Body> {
        let Self { mut response, settings, header_values, slots, unpaid } = self;
        settled.unwrap_or(header_values).write(response.headers_mut());
        match settings.body_end(slots, unpaid) {
            Some(end) => response.map(|body| M::from_layer(ResponseBody::with_end(body, end))),
            None => response.map(M::from_service),
        }
    }
}

/// The cost of a response.
enum ResponseCost {
    Known(u64),
    KnownAtBodyEnd,
}

impl<S: Store + 'static, O: Observer + 'static> Settings<S, O> {
    fn response_cost<B: Body>(&self, head: &response::Parts, body: &B) -> ResponseCost {
        let cost = match &self.cost.timing {
            ChargeTiming::Admission => 0,
            _ if !self.cost.counts(head) => 0,
            ChargeTiming::ResponseHead(cost) => cost(head),
            ChargeTiming::ResponseSize(cost) => match body.size_hint().exact() {
                Some(size) => cost(size),
                None => return ResponseCost::KnownAtBodyEnd,
            },
        };
        ResponseCost::Known(cost)
    }

    fn body_end(
        &self,
        slots: Option<ServedSlots>,
        unpaid: Option<Box<DeferredCharge<S, O>>>,
    ) -> Option<BodyEnd> {
        let cost_of_size = match &self.cost.timing {
            ChargeTiming::ResponseSize(cost) => Some(Arc::clone(cost)),
            _ => None,
        };
        match (unpaid, cost_of_size) {
            (Some(charge), Some(cost)) => Some(BodyEnd::new(move |sent_bytes| {
                drop(slots);
                charge.debit_in_background(cost(sent_bytes));
            })),
            _ => slots.map(|slots| BodyEnd::new(move |_| drop(slots))),
        }
    }
}
