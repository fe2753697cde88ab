//! A response to come.

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

use super::admission::{Admission, Admitting};
use super::body::{AtEnd, ResponseBody};
use super::in_flight::{Ending, Pass, Settlement};

pin_project! {
    /// The response of a service behind a [`RateLimitLayer`](crate::RateLimitLayer), to come.
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
    #[project = Now]
    enum State<V, A, B, F, S, O>
    where
        S: Store,
        S: 'static,
        O: Observer,
        O: 'static,
    {
        // The store is being asked.
        Deciding { admission: Admitting<S, O>, waiting: Option<(V, A)> },
        // The service is at work.
        Serving { #[pin] future: F, pass: Option<Pass<S, O>> },
        // Something is given back or paid before the response goes out.
        Settling { settlement: Settlement, answer: Option<Answer<B, S, O>> },
        // The service never saw it.
        Refused { refusal: Option<Response<Bytes>> },
    }
}

impl<V, A, B, F, S: Store + 'static, O: Observer + 'static> ResponseFuture<V, A, B, F, S, O> {
    /// The service is asked, and no limit is for it.
    pub(super) const fn skipped(future: F) -> Self {
        Self { state: State::Serving { future, pass: None } }
    }

    pub(super) const fn served(future: F, pass: Pass<S, O>) -> Self {
        Self { state: State::Serving { future, pass: Some(pass) } }
    }

    /// The service is asked with this body if it may be.
    pub(super) const fn deciding(admission: Admitting<S, O>, service: V, body: A) -> Self {
        Self { state: State::Deciding { admission, waiting: Some((service, body)) } }
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
                Now::Deciding { admission, waiting } => {
                    let (head, admission) = ready!(admission.as_mut().poll(context));
                    let Some((mut service, body)) = waiting.take() else { return Poll::Pending };
                    match admission {
                        Admission::Refused(refusal) => State::Refused { refusal: Some(refusal) },
                        Admission::Passed(pass) => {
                            let future = service.call(Request::from_parts(head, body));
                            State::Serving { future, pass: Some(pass) }
                        }
                    }
                }
                Now::Serving { future, pass } => {
                    match answered(ready!(future.poll(context)), pass.take()) {
                        Answered::Now(response) => return Poll::Ready(response),
                        Answered::Later(settlement, answer) => {
                            State::Settling { settlement, answer: Some(answer) }
                        }
                    }
                }
                Now::Settling { settlement, answer } => {
                    let settled = ready!(Pin::new(settlement).poll(context));
                    let Some((head, body, ending)) = answer.take() else { return Poll::Pending };
                    return Poll::Ready(Ok(ending.respond(head, body, settled)));
                }
                Now::Refused { refusal } => {
                    let Some(refusal) = refusal.take() else { return Poll::Pending };
                    return Poll::Ready(Ok(refusal.map(ResponseBody::of_refusal)));
                }
            };
            state.set(next);
        }
    }
}

/// A response, and how it goes out.
type Answer<B, S, O> = (response::Parts, B, Ending<S, O>);

/// What the service said.
enum Answered<B, E, S: Store + 'static, O: Observer + 'static> {
    Now(Result<Response<ResponseBody<B>>, E>),
    Later(Settlement, Answer<B, S, O>),
}

fn answered<B: Body, E, S: Store + 'static, O: Observer + 'static>(
    result: Result<Response<B>, E>,
    pass: Option<Pass<S, O>>,
) -> Answered<B, E, S, O> {
    let (head, body) = match result {
        Ok(response) => response.into_parts(),
        Err(error) => {
            pass.into_iter().for_each(Pass::failed);
            return Answered::Now(Err(error));
        }
    };
    let Some(pass) = pass else {
        let body = ResponseBody::of_service(body, AtEnd::default());
        return Answered::Now(Ok(Response::from_parts(head, body)));
    };
    match pass.answered(&head, &body) {
        (ending, None) => Answered::Now(Ok(ending.respond(head, body, None))),
        (ending, Some(settlement)) => Answered::Later(settlement, (head, body, ending)),
    }
}
