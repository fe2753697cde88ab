//! The paced client service.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response};
use tollgate::Store;
use tower_service::Service;

use super::upstream_limiter::UpstreamLimiter;

/// The error of a paced client: that of the inner client, or an [`AcquireError`](crate::outbound::AcquireError). Use
/// `downcast` to obtain it.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// An HTTP client that acquires a limiter before each request. See [`PaceLayer`](super::PaceLayer).
///
/// It waits in `call`, after the inner client reported readiness. A call that is dropped while it waits takes nothing.
#[derive(Debug)]
pub struct Pace<Svc, S> {
    inner: Svc,
    limiter: UpstreamLimiter<S>,
}

impl<Svc: Clone, S> Clone for Pace<Svc, S> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), limiter: self.limiter.clone() }
    }
}

impl<Svc, S> Pace<Svc, S> {
    pub(super) const fn new(inner: Svc, limiter: UpstreamLimiter<S>) -> Self {
        Self { inner, limiter }
    }

    /// Returns the inner client.
    pub const fn inner(&self) -> &Svc {
        &self.inner
    }
}

impl<Svc, S, Body, ResponseBody> Service<Request<Body>> for Pace<Svc, S>
where
    Svc: Service<Request<Body>, Response = Response<ResponseBody>> + Clone + Send + 'static,
    Svc::Future: Send,
    Svc::Error: Into<BoxError>,
    S: Store + 'static,
    Body: Send + 'static,
    ResponseBody: Send + 'static,
{
    type Response = Response<ResponseBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<ResponseBody>, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        // Call the instance that reported readiness, not its clone.
        let next = self.inner.clone();
        let mut ready = std::mem::replace(&mut self.inner, next);
        let limiter = self.limiter.clone();
        Box::pin(async move {
            limiter.acquire().await?;
            let response = ready.call(request).await.map_err(Into::into)?;
            limiter.apply_response(response.status(), response.headers()).await;
            Ok(response)
        })
    }
}
