//! The builder of the inbound layer.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderName, Method, Response, response};
use tollgate::{Costs, HeaderStyle, Limiter, LimiterError, Observer, RefusalStyle, Store};

use super::cost::{ChargeTiming, Cost, CostSettings, CountedResponses};
use super::headers::HeaderWriter;
use super::layer::RateLimitLayer;
use super::refusal::{RefusalResponder, RefusedRequest};
use super::reservation::ReservationSettings;
use super::settings::{ErrorAction, Settings, Skip};
use crate::address::ClientAddress;
use crate::facts::{FactSource, FactSources, RequestHead};

/// Builder of a [`RateLimitLayer`].
///
/// ```
/// use tollgate::{HeaderStyle, Limiter, MemoryStore, Policy, RefusalStyle};
/// use tollgate_tower::{ApiKey, ClientAddress, RateLimitLayer, TrustedProxies};
///
/// let limiter = Limiter::new(MemoryStore::new(), Policy::builtin());
/// let address = ClientAddress::behind_proxies(TrustedProxies::parse(["10.0.0.0/8"])?);
/// let layer = RateLimitLayer::builder(limiter)
///     .fact("api_key", ApiKey::bearer())
///     .fact("client", address)
///     .header_styles([HeaderStyle::Draft11, HeaderStyle::XUnix])
///     .refusal_style(RefusalStyle::Problem)
///     .skip_method(http::Method::OPTIONS)
///     .skip_path("/healthz")
///     .build();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub struct RateLimitLayerBuilder<S, O: Observer = ()> {
    pub(super) settings: Settings<S, O>,
}

impl<S, O: Observer> fmt::Debug for RateLimitLayerBuilder<S, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitLayerBuilder").field("settings", &self.settings).finish()
    }
}

impl<S: Store, O: Observer> RateLimitLayerBuilder<S, O> {
    pub(super) fn new(limiter: Arc<Limiter<S, O>>) -> Self {
        let settings = Settings {
            limiter,
            sources: FactSources::default(),
            skips: Vec::new(),
            cost: CostSettings::default(),
            reservation: ReservationSettings::default(),
            headers: HeaderWriter::default(),
            refusals: RefusalResponder::default(),
            exposes_decision: false,
            error_action: ErrorAction::default(),
            on_error: None,
        };
        Self { settings }
    }

    /// Adds a source for a fact of the policy. Repeat it for the same fact to add fallback sources.
    ///
    /// `method`, `path`, `host` and headers (`header:x-plan`) have built-in sources. `ip` defaults to the peer address,
    /// and `client` to `ip` with IPv6 addresses truncated to their /64. axum provides the peer address only if the
    /// app is served with `into_make_service_with_connect_info::<SocketAddr>()`.
    ///
    /// A missing fact is not an error: the rule's `missing` decides, and by default all requests without the fact share
    /// one counter. An empty value, or one longer than 1024 bytes, counts as missing.
    ///
    /// `path` is the path that the layer receives: in a nested axum router, without the prefix. A request whose path is
    /// longer than 1024 bytes is refused with 414, because a truncated path could miss its rule.
    pub fn fact(mut self, name: &str, source: impl FactSource) -> Self {
        self.settings.sources.add(name, source);
        self
    }

    /// Uses the sources of facts that the section `facts` of the policy defines. Sources of [`fact`](Self::fact) come
    /// before them. `addresses` determines the client address, which is the fact `ip`, the source `ip`, and the fact
    /// `client` if the policy does not define it. After a change of the policy, its new sources are used.
    pub fn facts_from_policy(mut self, addresses: ClientAddress) -> Self {
        self.settings.sources.use_policy(addresses);
        self
    }

    /// Sets the cost of a request in requests; the default is 1. A cost of 0 passes and takes nothing. A cost above 1 also takes that
    /// many concurrency slots, so put concurrency limits into a separate layer.
    pub fn cost(mut self, cost: impl Fn(&RequestHead<'_>) -> u64 + Send + Sync + 'static) -> Self {
        self.settings.cost.cost = Cost::Function(Box::new(cost));
        self
    }

    /// Sets the costs of a request by unit, in place of [`cost`](Self::cost): each limit takes the amount of its unit.
    ///
    /// ```
    /// use tollgate::{Costs, Limiter, MemoryStore, Policy};
    /// use tollgate_tower::{RateLimitLayer, RequestHead};
    ///
    /// let text = "
    /// version: 1
    /// rules: [{ name: uploads, limits: [60/min, { rate: 100000/min, unit: bytes, algorithm: token_bucket }] }]
    /// ";
    /// let policy = Policy::from_yaml("policy.yaml", text, Policy::builtin_limit())?;
    /// let bytes = |request: &RequestHead<'_>| {
    ///     let length = request.headers.get("content-length").and_then(|value| value.to_str().ok());
    ///     length.and_then(|length| length.parse().ok()).unwrap_or(0)
    /// };
    /// let layer = RateLimitLayer::builder(Limiter::new(MemoryStore::new(), policy))
    ///     .costs(move |request| {
    ///         let one = Costs::requests(1);
    ///         one.clone().and("bytes", bytes(request)).unwrap_or(one)
    ///     })
    ///     .build();
    /// # drop(layer);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn costs(
        mut self,
        costs: impl Fn(&RequestHead<'_>) -> Costs + Send + Sync + 'static,
    ) -> Self {
        self.settings.cost.cost = Cost::ByUnit(Box::new(costs));
        self
    }

    /// Reads the cost of a request from a header that your gateway sets. A missing header, or a value that is not an
    /// integer of at least 1, costs 1. Of several values the largest counts.
    pub fn cost_header(mut self, name: HeaderName) -> Self {
        self.settings.cost.cost = Cost::Header(name);
        self
    }

    /// Selects the responses that count. Every request takes its cost at admission, so that the limit also holds for
    /// requests in flight. A response that does not count is refunded when its head arrives, unless the take has left
    /// its window by then. A client that disconnects before that receives no refund.
    pub fn count_responses(self, counted: CountedResponses) -> Self {
        match counted {
            CountedResponses::Failures => self.count_responses_if(super::cost::is_failure),
            CountedResponses::Successes => {
                self.count_responses_if(|response| !super::cost::is_failure(response))
            }
        }
    }

    /// Selects the responses that count with a predicate. See [`count_responses`](Self::count_responses).
    pub fn count_responses_if(
        mut self,
        is_counted: impl Fn(&response::Parts) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.settings.cost.is_counted = Some(Box::new(is_counted));
        self
    }

    /// Charges a cost computed from the response head. A request passes while any quota is left; the layer debits the
    /// cost when the response head arrives, down to empty. The limit can therefore be exceeded by the cost of the
    /// requests in flight. A client that disconnects before that is charged 1.
    pub fn charge_by_response(
        mut self,
        cost: impl Fn(&response::Parts) -> u64 + Send + Sync + 'static,
    ) -> Self {
        self.settings.cost.timing = ChargeTiming::ResponseHead(Box::new(cost));
        self
    }

    /// Charges a cost computed from the size of the response body in bytes. A body of known size is charged when the
    /// response head arrives; any other when it ends, or when the client disconnects, for the bytes sent. See
    /// [`charge_by_response`](Self::charge_by_response).
    pub fn charge_by_size(mut self, cost: impl Fn(u64) -> u64 + Send + Sync + 'static) -> Self {
        self.settings.cost.timing = ChargeTiming::ResponseSize(Arc::new(cost));
        self
    }

    /// Sets the styles of the rate limit headers; the default is [`HeaderStyle::XUnix`]. An empty list disables them.
    pub fn header_styles(mut self, styles: impl IntoIterator<Item = HeaderStyle>) -> Self {
        self.settings.headers.set_styles(styles);
        self
    }

    /// Lets browsers read the headers, by adding `Access-Control-Expose-Headers` to every response. Not necessary with a
    /// CORS layer that exposes [`RateLimitLayer::exposed_headers`].
    pub fn expose_headers(mut self) -> Self {
        self.settings.headers.expose();
        self
    }

    /// Inserts a [`RateLimitDecision`](crate::RateLimitDecision) into the extensions of every admitted request, for handlers that show or use the
    /// remaining quota. Off by default, because it copies the decision. With a cost that is charged after the response,
    /// it is the decision at admission.
    pub fn expose_decision(mut self) -> Self {
        self.settings.exposes_decision = true;
        self
    }

    /// Sets the body style of refusals. gRPC requests always receive a gRPC status.
    pub fn refusal_style(mut self, style: RefusalStyle) -> Self {
        self.settings.refusals.style = style;
        self
    }

    /// Replaces the response to refused requests. [`RefusedRequest::response`] returns the default response.
    pub fn on_refusal(
        mut self,
        callback: impl Fn(&RefusedRequest<'_>) -> Response<Bytes> + Send + Sync + 'static,
    ) -> Self {
        self.settings.refusals.on_refusal = Some(Box::new(callback));
        self
    }

    /// Does not limit requests with this method, such as `OPTIONS`.
    pub fn skip_method(mut self, method: Method) -> Self {
        self.settings.skips.push(Skip::Method(method));
        self
    }

    /// Does not limit requests for this path, such as `/healthz`. It must equal the whole path that the layer receives.
    pub fn skip_path(mut self, path: &str) -> Self {
        self.settings.skips.push(Skip::Path(path.into()));
        self
    }

    /// Does not limit requests for which the predicate returns true.
    pub fn skip_if(
        mut self,
        is_skipped: impl Fn(&RequestHead<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.settings.skips.push(Skip::If(Box::new(is_skipped)));
        self
    }

    /// Sets what happens to a request that the limiter cannot decide; the default is [`ErrorAction::Allow`].
    pub fn error_action(mut self, action: ErrorAction) -> Self {
        self.settings.error_action = action;
        self
    }

    /// Sets a callback for errors of the limiter, for example to log them. It must not block.
    pub fn on_error(mut self, callback: impl Fn(&LimiterError) + Send + Sync + 'static) -> Self {
        self.settings.on_error = Some(Box::new(callback));
        self
    }

    /// Builds the layer.
    #[must_use]
    pub fn build(self) -> RateLimitLayer<S, O> {
        RateLimitLayer::from_settings(self.settings)
    }
}
