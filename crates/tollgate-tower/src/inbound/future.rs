//! The response future.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use tollgate::{Observer, Store};
use tower_service::Service;

use super::admission::{Admission, AdmissionFuture};
use super::body::ResponseBody;
use super::body_mode::{BodyMode, WrapBody};
use super::in_flight::{InFlight, Settlement, UnsentResponse};

pin_project! {
    /// The response future of [`RateLimit`](crate::RateLimit).
    pub struct ResponseFuture<V, A, B, F, S, O, M = WrapBody>
    where
        S: Store,
        S: 'static,
        O: Observer,
        O: 'static,
    {
        #[pin]
        state: State<V, A, B, F, S, O>,
        mode: PhantomData<fn() -> M>,
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
        Serving { #[pin] future: F, in_flight: InFlight<S, O> },
        // Waiting for a refund or debit before the response is sent.
        Settling { settlement: Settlement, response: Option<Box<UnsentResponse<B, S, O>>> },
        // Refused without calling the service.
        Refused { refusal: Option<Box<Response<Bytes>>> },
    }
}

impl<V, A, B, F, S, O, M> ResponseFuture<V, A, B, F, S, O, M>
where
    S: Store + 'static,
    O: Observer + 'static,
{
    #[inline(always)]
    const fn new(state: State<V, A, B, F, S, O>) -> Self {
        Self { state, mode: PhantomData }
    }

    #[inline(always)]
    pub(super) const fn admitted(future: F, in_flight: InFlight<S, O>) -> Self {
        Self::new(State::Serving { future, in_flight })
    }

    /// Calls the service with this body if the request is admitted.
    pub(super) const fn deciding(admission: AdmissionFuture<S, O>, service: V, body: A) -> Self {
        Self::new(State::Deciding { admission, service_and_body: Some((service, body)) })
    }

    pub(super) const fn refused(refusal: Box<Response<Bytes>>) -> Self {
        Self::new(State::Refused { refusal: Some(refusal) })
    }
}

impl<V, A, B, F, S: Store + 'static, O: Observer + 'static, M> fmt::Debug
    for ResponseFuture<V, A, B, F, S, O, M>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}

impl<V, A, B, S, O, M> Future for ResponseFuture<V, A, B, V::Future, S, O, M>
where
    V: Service<Request<A>, Response = Response<B>>,
    S: Store + 'static,
    O: Observer + 'static,
    B: Body,
    M: BodyMode<B>,
{
    type Output = Result<Response<M::Body>, V::Error>;

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
                        Admission::Admitted(mut in_flight, exposed) => {
                            if let Some(exposed) = exposed {
                                exposed.insert_into(&mut head.extensions);
                            }
                            in_flight.on_service_call();
                            let future = service.call(Request::from_parts(head, body));
                            State::Serving { future, in_flight }
                        }
                    }
                }
                StateProjection::Serving { future, in_flight } => {
                    let response = match ready!(future.poll(context)) {
                        Ok(response) => response,
                        Err(error) => {
                            in_flight.on_service_error();
                            return Poll::Ready(Err(error));
                        }
                    };
                    match in_flight.on_response::<B, M>(response) {
                        Ok(response) => return Poll::Ready(Ok(response)),
                        Err((settlement, response)) => {
                            State::Settling { settlement, response: Some(response) }
                        }
                    }
                }
                StateProjection::Settling { settlement, response } => {
                    let settled = ready!(Pin::new(settlement).poll(context));
                    let Some(response) = response.take() else { return Poll::Pending };
                    return Poll::Ready(Ok(response.finish::<M>(settled)));
                }
                StateProjection::Refused { refusal } => {
                    let Some(refusal) = refusal.take() else { return Poll::Pending };
                    let body = |text| M::from_layer(ResponseBody::from_refusal(text));
                    return Poll::Ready(Ok(refusal.map(body)));
                }
            };
            state.set(next);
        }
    }
}
