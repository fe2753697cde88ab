//! How a layer is made.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderName, Method, Response, response};
use tollgate::{HeaderStyle, Limiter, LimiterError, Observer, RefusalStyle, Store};

use super::cost::{Charging, Cost, Counting, Payment};
use super::headers::Telling;
use super::layer::RateLimitLayer;
use super::refused::{Refused, Refusing};
use super::settings::{OnError, Settings, Skip};
use crate::facts::{Head, Source, Sources};

/// A [`RateLimitLayer`] in the making.
///
/// ```
/// use tollgate::{HeaderStyle, Limiter, MemoryStore, Policy, RefusalStyle};
/// use tollgate_tower::{ApiKey, ClientAddress, RateLimitLayer, TrustedProxies};
///
/// let limiter = Limiter::new(MemoryStore::new(), Policy::builtin());
/// let address = ClientAddress::behind(TrustedProxies::parse(["10.0.0.0/8"])?);
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
    settings: Settings<S, O>,
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
            sources: Sources::default(),
            skips: Vec::new(),
            charging: Charging::default(),
            telling: Telling::default(),
            refusing: Refusing::default(),
            on_error: OnError::default(),
            hear: None,
        };
        Self { settings }
    }

    /// Where a fact that the policy looks at is found. Said again for the same fact, it is looked for there if it
    /// was not found before.
    ///
    /// `method`, `path`, `host` and headers (`header:x-plan`) need not be said. `ip` is the address at the other
    /// end of the connection unless said otherwise, and `client`, unless said, is `ip`, IPv6 by its first 64
    /// bits. axum knows that address only if it serves `into_make_service_with_connect_info::<SocketAddr>()`.
    ///
    /// What is not known is not an error: the rule's `missing` says what then happens; without it all of whom it
    /// is not known share one counter. A value that is empty or longer than 1024 bytes is not known.
    ///
    /// `path` is what the layer sees: within a nested router of axum, without the prefix. One of more than 1024
    /// bytes is known by its beginning.
    pub fn fact(mut self, name: &str, source: impl Source) -> Self {
        self.settings.sources.add(name, source);
        self
    }

    /// What a request costs; 1 unless said. What costs 0 passes and takes nothing. What costs more than 1 takes as
    /// many slots of concurrency limits: those are better in a layer of their own.
    pub fn cost(mut self, cost: impl Fn(&Head<'_>) -> u64 + Send + Sync + 'static) -> Self {
        self.settings.charging.cost = Cost::Of(Box::new(cost));
        self
    }

    /// What a request costs, as a header says that your gateway sets. Without it, or with what is no whole number
    /// from 1 on, it costs 1; of several the largest counts.
    pub fn cost_header(mut self, name: HeaderName) -> Self {
        self.settings.charging.cost = Cost::Header(name);
        self
    }

    /// Which responses count. Every request takes what it costs when it comes, so that a limit holds for all that
    /// are in flight; what does not count is given back when the response begins, unless it has left its window
    /// by then. A client that goes away before is not given anything back.
    pub fn count_only(self, counting: Counting) -> Self {
        match counting {
            Counting::Failures => self.count_where(super::cost::is_failure),
            Counting::Successes => self.count_where(|response| !super::cost::is_failure(response)),
        }
    }

    /// Which responses count, by what they are. See [`count_only`](Self::count_only).
    pub fn count_where(
        mut self,
        counts: impl Fn(&response::Parts) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.settings.charging.counts = Some(Box::new(counts));
        self
    }

    /// What a request costs is known from its response. A request passes while anything is left; when the response
    /// is there, its cost is taken, down to empty. So the limit is passed by what is in flight at most. A client
    /// that goes away before costs 1.
    pub fn charge_by_response(
        mut self,
        cost: impl Fn(&response::Parts) -> u64 + Send + Sync + 'static,
    ) -> Self {
        self.settings.charging.payment = Payment::ByHead(Box::new(cost));
        self
    }

    /// What a request costs is known from the size of its response in bytes. A body that says its size is paid
    /// when the response begins; another when it has ended, or when the client has gone away, as far as it was
    /// sent. See [`charge_by_response`](Self::charge_by_response).
    pub fn charge_by_size(mut self, cost: impl Fn(u64) -> u64 + Send + Sync + 'static) -> Self {
        self.settings.charging.payment = Payment::BySize(Arc::new(cost));
        self
    }

    /// How responses tell of limits; [`HeaderStyle::XUnix`] unless said, and not at all with none.
    pub fn header_styles(mut self, styles: impl IntoIterator<Item = HeaderStyle>) -> Self {
        self.settings.telling.set_styles(styles);
        self
    }

    /// Lets browsers read these headers, by `Access-Control-Expose-Headers` on every response. Not needed beside a
    /// CORS layer that exposes [`RateLimitLayer::exposed_headers`].
    pub fn expose_headers(mut self) -> Self {
        self.settings.telling.expose();
        self
    }

    /// What the body of a refusal looks like. gRPC requests are refused as gRPC does, whatever is said here.
    pub fn refusal_style(mut self, style: RefusalStyle) -> Self {
        self.settings.refusing.style = style;
        self
    }

    /// Answers refused requests in another way. [`Refused::response`] is what would have been said; what is
    /// returned is what is sent.
    pub fn on_refusal(
        mut self,
        respond: impl Fn(&Refused<'_>) -> Response<Bytes> + Send + Sync + 'static,
    ) -> Self {
        self.settings.refusing.respond = Some(Box::new(respond));
        self
    }

    /// Lets requests of this method pass uncounted, such as `OPTIONS`.
    pub fn skip_method(mut self, method: Method) -> Self {
        self.settings.skips.push(Skip::Method(method));
        self
    }

    /// Lets requests for this path pass uncounted, such as `/healthz`: the whole path, as the layer sees it.
    pub fn skip_path(mut self, path: &str) -> Self {
        self.settings.skips.push(Skip::Path(path.into()));
        self
    }

    /// Lets these requests pass uncounted.
    pub fn skip_if(
        mut self,
        is_skipped: impl Fn(&Head<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.settings.skips.push(Skip::If(Box::new(is_skipped)));
        self
    }

    /// What becomes of a request that the limiter cannot decide; it passes unless said.
    pub fn on_error(mut self, on_error: OnError) -> Self {
        self.settings.on_error = on_error;
        self
    }

    /// Who hears of what the limiter could not decide. It must not block.
    pub fn on_error_notify(mut self, hear: impl Fn(&LimiterError) + Send + Sync + 'static) -> Self {
        self.settings.hear = Some(Box::new(hear));
        self
    }

    /// The layer.
    #[must_use]
    pub fn build(self) -> RateLimitLayer<S, O> {
        RateLimitLayer::of(self.settings)
    }
}
