//! The service.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response};
use tollgate::Store;
use tower_service::Service;

use super::learn::Learner;

/// What a paced client fails with: the error of the client within, or an
/// [`AcquireError`](crate::outbound::AcquireError). Both can be had back by `downcast`.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// A client that waits for its limiter. See [`PaceLayer`](super::PaceLayer).
///
/// It waits when it is called, holding its place in the client within; dropped while it waits, it takes
/// nothing.
#[derive(Debug)]
pub struct Pace<Svc, S> {
    inner: Svc,
    learner: Learner<S>,
}

impl<Svc: Clone, S> Clone for Pace<Svc, S> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), learner: self.learner.clone() }
    }
}

impl<Svc, S> Pace<Svc, S> {
    pub(super) const fn new(inner: Svc, learner: Learner<S>) -> Self {
        Self { inner, learner }
    }

    /// The client within.
    pub const fn inner(&self) -> &Svc {
        &self.inner
    }
}

impl<Svc, S, Body, Answer> Service<Request<Body>> for Pace<Svc, S>
where
    Svc: Service<Request<Body>, Response = Response<Answer>> + Clone + Send + 'static,
    Svc::Future: Send,
    Svc::Error: Into<BoxError>,
    S: Store + 'static,
    Body: Send + 'static,
    Answer: Send + 'static,
{
    type Response = Response<Answer>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Answer>, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        // The one that said it is ready must be the one that is called.
        let next = self.inner.clone();
        let mut ready = std::mem::replace(&mut self.inner, next);
        let learner = self.learner.clone();
        Box::pin(async move {
            learner.acquire().await?;
            let response = ready.call(request).await.map_err(Into::into)?;
            learner.learn(response.status(), response.headers()).await;
            Ok(response)
        })
    }
}
