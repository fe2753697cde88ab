//! The inbound rate limit layer.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use http::HeaderName;
use tollgate::{Limiter, Observer, Store};
use tower_layer::Layer;

use super::body_mode::{KeepBody, WrapBody};
use super::builder::RateLimitLayerBuilder;
use super::service::RateLimit;
use super::settings::Settings;
use crate::address::ClientAddress;

/// A tower layer that decides every request with a [`Limiter`] before the service receives it.
///
/// Clones and their services share one limiter, so a limit is never multiplied by workers, connections or routes. Every
/// response carries rate limit headers. A refused request does not reach the service.
///
/// ```
/// use tollgate::{Limit, Limiter, MemoryStore, Policy};
/// use tollgate_tower::{Header, RateLimitLayer};
///
/// let text = "
/// version: 1
/// rules:
///   - name: external-api
///     per: [client]
///     limits: [10/min, 100/h]
///     algorithm: token_bucket
/// ";
/// let policy = Policy::from_yaml("policy.yaml", text, Limit::block())?;
/// let limiter = Limiter::new(MemoryStore::new(), policy);
/// let layer = RateLimitLayer::builder(limiter)
///     .fact("client", Header::from_static("x-client-id"))
///     .build();
/// let app: axum::Router = axum::Router::new().layer(layer);
/// # Ok::<(), tollgate::PolicyError>(())
/// ```
pub struct RateLimitLayer<S, O: Observer = (), M = WrapBody> {
    settings: Arc<Settings<S, O>>,
    mode: PhantomData<fn() -> M>,
}

impl<S: Store, O: Observer> RateLimitLayer<S, O> {
    /// Creates a layer with default settings. Clients are identified by their peer address; requests without one share
    /// one counter. See [`fact`](RateLimitLayerBuilder::fact) for how axum provides the peer address.
    #[must_use]
    pub fn new(limiter: impl Into<Arc<Limiter<S, O>>>) -> Self {
        Self::builder(limiter).build()
    }

    /// Creates a layer that identifies clients as the section `facts` of the policy defines. See
    /// [`facts_from_policy`](RateLimitLayerBuilder::facts_from_policy) for a layer with further settings.
    ///
    /// ```
    /// use tollgate::{Limiter, MemoryStore, Policy};
    /// use tollgate_tower::{ClientAddress, RateLimitLayer, TrustedProxies};
    ///
    /// let text = "
    /// version: 1
    /// facts:
    ///   client: [{ header: x-client-id }, { header: authorization, digest: true }, ip]
    /// defaults: { limit: 100/min }
    /// ";
    /// let policy = Policy::from_yaml("policy.yaml", text, Policy::builtin_limit())?;
    /// let limiter = Limiter::new(MemoryStore::new(), policy);
    /// let addresses = ClientAddress::behind_proxies(TrustedProxies::parse(["10.0.0.0/8"])?);
    /// let layer = RateLimitLayer::from_policy(limiter, addresses);
    /// let app: axum::Router = axum::Router::new().layer(layer);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn from_policy(limiter: impl Into<Arc<Limiter<S, O>>>, addresses: ClientAddress) -> Self {
        Self::builder(limiter).facts_from_policy(addresses).build()
    }

    /// Returns a builder for a layer with this limiter.
    pub fn builder(limiter: impl Into<Arc<Limiter<S, O>>>) -> RateLimitLayerBuilder<S, O> {
        RateLimitLayerBuilder::new(limiter.into())
    }

    pub(super) fn from_settings(settings: Settings<S, O>) -> Self {
        Self { settings: Arc::new(settings), mode: PhantomData }
    }

    /// Returns the layer with responses that have the body type of the service, instead of a
    /// [`ResponseBody`](crate::ResponseBody). Use it with axum, which boxes every response body of another type than its
    /// own. Another body type must implement `From<ResponseBody<Self>>`, which is used for refusals, and for responses
    /// that hold concurrency slots or are charged by their size.
    ///
    /// ```
    /// use tollgate::{Limiter, MemoryStore, Policy};
    /// use tollgate_tower::RateLimitLayer;
    ///
    /// let layer = RateLimitLayer::new(Limiter::new(MemoryStore::new(), Policy::builtin())).keep_body();
    /// let app: axum::Router = axum::Router::new().layer(layer);
    /// ```
    #[must_use]
    pub fn keep_body(self) -> RateLimitLayer<S, O, KeepBody> {
        RateLimitLayer { settings: self.settings, mode: PhantomData }
    }
}

impl<S: Store, O: Observer, M> RateLimitLayer<S, O, M> {
    /// Returns the limiter, for example to replace its policy at run time.
    #[must_use]
    pub fn limiter(&self) -> &Arc<Limiter<S, O>> {
        &self.settings.limiter
    }

    /// Returns the names of the headers that this layer adds, for the exposed headers of a CORS layer. See also
    /// [`RateLimitLayerBuilder::expose_headers`].
    ///
    /// ```
    /// use tollgate::{Limiter, MemoryStore, Policy};
    /// use tollgate_tower::RateLimitLayer;
    ///
    /// let layer = RateLimitLayer::new(Limiter::new(MemoryStore::new(), Policy::builtin()));
    /// let names: Vec<String> = layer.exposed_headers().map(|name| name.to_string()).collect();
    /// assert_eq!(names.join(" "), "x-ratelimit-limit x-ratelimit-remaining x-ratelimit-reset retry-after");
    /// ```
    pub fn exposed_headers(&self) -> impl Iterator<Item = HeaderName> {
        self.settings.headers.exposed_names().into_iter()
    }
}

impl<S, O: Observer, M> Clone for RateLimitLayer<S, O, M> {
    fn clone(&self) -> Self {
        Self { settings: Arc::clone(&self.settings), mode: PhantomData }
    }
}

impl<S, O: Observer, M> fmt::Debug for RateLimitLayer<S, O, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitLayer").field("settings", &self.settings).finish()
    }
}

impl<S, O: Observer, M, V> Layer<V> for RateLimitLayer<S, O, M> {
    type Service = RateLimit<V, S, O, M>;

    fn layer(&self, inner: V) -> Self::Service {
        RateLimit::new(inner, Arc::clone(&self.settings))
    }
}
