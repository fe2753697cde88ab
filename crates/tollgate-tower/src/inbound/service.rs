//! The service that a layer makes of another.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};
use http_body::Body;
use tollgate::{Observer, Store};
use tower_service::Service;

use super::admission::Admission;
use super::body::{AtEnd, ResponseBody};
use super::settings::Settings;
use crate::detach::Carried;

/// A service behind a [`RateLimitLayer`](crate::RateLimitLayer).
pub struct RateLimit<V, S, O: Observer = ()> {
    inner: V,
    settings: Arc<Settings<S, O>>,
}

impl<V, S, O: Observer> RateLimit<V, S, O> {
    pub(super) const fn new(inner: V, settings: Arc<Settings<S, O>>) -> Self {
        Self { inner, settings }
    }
}

impl<V: Clone, S, O: Observer> Clone for RateLimit<V, S, O> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), settings: Arc::clone(&self.settings) }
    }
}

impl<V, S, O: Observer> fmt::Debug for RateLimit<V, S, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimit").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// A response to come.
pub type ResponseFuture<B, E> =
    Pin<Box<dyn Future<Output = Result<Response<ResponseBody<B>>, E>> + Send>>;

impl<V, S, O, A, B> Service<Request<A>> for RateLimit<V, S, O>
where
    V: Service<Request<A>, Response = Response<B>> + Clone + Send + 'static,
    V::Future: Send,
    V::Error: Send,
    S: Store + 'static,
    O: Observer + 'static,
    A: Send + 'static,
    B: Body + Send + 'static,
    B::Data: From<Bytes>,
{
    type Response = Response<ResponseBody<B>>;
    type Error = V::Error;
    type Future = ResponseFuture<B, V::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), V::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        // The one that is ready must be the one that is called.
        let next = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, next);
        Box::pin(serve(Arc::clone(&self.settings), inner, request))
    }
}

async fn serve<V, S, O, A, B>(
    settings: Arc<Settings<S, O>>,
    mut inner: V,
    request: Request<A>,
) -> Result<Response<ResponseBody<B>>, V::Error>
where
    V: Service<Request<A>, Response = Response<B>>,
    S: Store + 'static,
    O: Observer + 'static,
    B: Body,
{
    let (head, body) = request.into_parts();
    if settings.skips(&head) {
        let response = inner.call(Request::from_parts(head, body)).await?;
        return Ok(response.map(|body| ResponseBody::of_service(body, AtEnd::default())));
    }
    let (head, admission) = admit(settings, head).await;
    match admission {
        Admission::Refused(refusal) => Ok(refusal.map(ResponseBody::of_refusal)),
        Admission::Passed(pass) => match inner.call(Request::from_parts(head, body)).await {
            Ok(response) => Ok(pass.settle(response).await),
            Err(error) => {
                pass.settle_failure().await;
                Err(error)
            }
        },
    }
}

/// A client that goes away while a slot is being taken for it does not take it along.
async fn admit<S: Store + 'static, O: Observer + 'static>(
    settings: Arc<Settings<S, O>>,
    head: Parts,
) -> (Parts, Admission<S, O>) {
    let holds_slots = settings.limiter.current().policy().holds_slots();
    let admission = async move {
        let admission = Admission::of(&settings, &head).await;
        (head, admission)
    };
    if holds_slots { Carried::new(admission).await } else { admission.await }
}
