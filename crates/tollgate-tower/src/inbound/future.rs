//! The response future.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Request, Response, response};
use http_body::Body;
use pin_project_lite::pin_project;
use tollgate::{Observer, Store};
use tower_service::Service;

use super::admission::{Admission, AdmissionFuture};
use super::body::{BodyEnd, ResponseBody};
use super::in_flight::{FinishResponse, InFlight, Settlement};

pin_project! {
    /// The response future of [`RateLimit`](crate::RateLimit).
    pub struct ResponseFuture<V, A, B, F, S, O>
    where
        S: Store,
        S: 'static,
        O: Observer,
        O: 'static,
    {
        #[pin]
        state: State<V, A, B, F, S, O>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<V, A, B, F, S, O>
    where
        S: Store,
        S: 'static,
        O: Observer,
        O: 'static,
    {
        // Waiting for the decision of the store.
        Deciding { admission: AdmissionFuture<S, O>, service_and_body: Option<(V, A)> },
        // Waiting for the service.
        Serving { #[pin] future: F, in_flight: Option<InFlight<S, O>> },
        // Waiting for a refund or debit before the response is sent.
        Settling { settlement: Settlement, response: Option<UnsentResponse<B, S, O>> },
        // Refused without calling the service.
        Refused { refusal: Option<Response<Bytes>> },
    }
}

impl<V, A, B, F, S: Store + 'static, O: Observer + 'static> ResponseFuture<V, A, B, F, S, O> {
    /// Calls the service without a limit.
    pub(super) const fn skipped(future: F) -> Self {
        Self { state: State::Serving { future, in_flight: None } }
    }

    pub(super) const fn admitted(future: F, in_flight: InFlight<S, O>) -> Self {
        Self { state: State::Serving { future, in_flight: Some(in_flight) } }
    }

    /// Calls the service with this body if the request is admitted.
    pub(super) const fn deciding(admission: AdmissionFuture<S, O>, service: V, body: A) -> Self {
        Self { state: State::Deciding { admission, service_and_body: Some((service, body)) } }
    }

    pub(super) const fn refused(refusal: Response<Bytes>) -> Self {
        Self { state: State::Refused { refusal: Some(refusal) } }
    }
}

impl<V, A, B, F, S: Store + 'static, O: Observer + 'static> fmt::Debug
    for ResponseFuture<V, A, B, F, S, O>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}

impl<V, A, B, S, O> Future for ResponseFuture<V, A, B, V::Future, S, O>
where
    V: Service<Request<A>, Response = Response<B>>,
    S: Store + 'static,
    O: Observer + 'static,
    B: Body,
{
    type Output = Result<Response<ResponseBody<B>>, V::Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            let next = match state.as_mut().project() {
                StateProjection::Deciding { admission, service_and_body } => {
                    let (mut head, admission) = ready!(admission.as_mut().poll(context));
                    let Some((mut service, body)) = service_and_body.take() else {
                        return Poll::Pending;
                    };
                    match admission {
                        Admission::Refused(refusal) => State::Refused { refusal: Some(refusal) },
                        Admission::Admitted(in_flight, exposed) => {
                            if let Some(decision) = exposed {
                                head.extensions.insert(decision);
                            }
                            let future = service.call(Request::from_parts(head, body));
                            State::Serving { future, in_flight: Some(in_flight) }
                        }
                    }
                }
                StateProjection::Serving { future, in_flight } => {
                    match on_service_result(ready!(future.poll(context)), in_flight.take()) {
                        ServiceResult::Respond(response) => return Poll::Ready(response),
                        ServiceResult::Settle(settlement, response) => {
                            State::Settling { settlement, response: Some(response) }
                        }
                    }
                }
                StateProjection::Settling { settlement, response } => {
                    let settled = ready!(Pin::new(settlement).poll(context));
                    let Some((head, body, finish)) = response.take() else {
                        return Poll::Pending;
                    };
                    return Poll::Ready(Ok(finish.respond(head, body, settled)));
                }
                StateProjection::Refused { refusal } => {
                    let Some(refusal) = refusal.take() else { return Poll::Pending };
                    return Poll::Ready(Ok(refusal.map(ResponseBody::from_refusal)));
                }
            };
            state.set(next);
        }
    }
}

/// A response and what to add to it before it is sent.
type UnsentResponse<B, S, O> = (response::Parts, B, FinishResponse<S, O>);

/// What follows the result of the service.
enum ServiceResult<B, E, S: Store + 'static, O: Observer + 'static> {
    Respond(Result<Response<ResponseBody<B>>, E>),
    Settle(Settlement, UnsentResponse<B, S, O>),
}

fn on_service_result<B: Body, E, S: Store + 'static, O: Observer + 'static>(
    result: Result<Response<B>, E>,
    in_flight: Option<InFlight<S, O>>,
) -> ServiceResult<B, E, S, O> {
    let (head, body) = match result {
        Ok(response) => response.into_parts(),
        Err(error) => {
            in_flight.into_iter().for_each(InFlight::on_service_error);
            return ServiceResult::Respond(Err(error));
        }
    };
    let Some(in_flight) = in_flight else {
        let body = ResponseBody::from_service(body, BodyEnd::default());
        return ServiceResult::Respond(Ok(Response::from_parts(head, body)));
    };
    match in_flight.on_response(&head, &body) {
        (finish, None) => ServiceResult::Respond(Ok(finish.respond(head, body, None))),
        (finish, Some(settlement)) => ServiceResult::Settle(settlement, (head, body, finish)),
    }
}
