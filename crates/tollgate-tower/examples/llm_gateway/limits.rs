//! The limits of the gateway. Only this file uses Tollgate.

use std::error::Error;
use std::sync::Arc;

use axum::extract::Request;
use serde_json::{Map, Value, json};
use tollgate::{DynStore, FallbackStore, HeaderStyle, Limiter, MemoryStore, Policy};
use tollgate_redis::{Address, RedisStore};
use tollgate_tower::usage::TokenUsage;
use tollgate_tower::{
    ClientAddress, Estimate, RateLimitDecision, RateLimitLayer, RateLimitLayerBuilder, RequestHead,
    run_store_maintenance,
};

const POLICY: &str = include_str!("policy.yaml");

/// The estimate for a request that does not have one.
const DEFAULT_USAGE: TokenUsage = TokenUsage { input: 0, output: 1000 };

/// The limits of each API key.
pub(crate) struct Limits {
    limiter: Arc<Limiter<DynStore>>,
}

impl Limits {
    /// Creates the limits, shared over Redis if there is a URL. While Redis is lost, each gateway enforces its share.
    pub(crate) fn new(redis_url: Option<&str>) -> Result<Self, Box<dyn Error>> {
        let policy = Policy::from_yaml("policy.yaml", POLICY, Policy::builtin_limit())?;
        let store = match redis_url {
            Some(url) => {
                let address: Address =
                    url.parse().map_err(|error| format!("REDIS_URL: {error}"))?;
                let store = Arc::new(FallbackStore::builder(RedisStore::new(address)).build());
                tokio::spawn(run_store_maintenance(&store));
                DynStore::new(store)
            }
            None => DynStore::new(MemoryStore::new()),
        };
        Ok(Self { limiter: Arc::new(Limiter::new(store, policy)) })
    }

    /// Returns the layer that reserves the estimate of each request, and settles it with the usage of the response.
    pub(crate) fn reserving(&self) -> RateLimitLayer<DynStore> {
        self.layer().reserve(estimate).settle_by_usage().build()
    }

    /// Returns the layer of requests that only read their limits.
    pub(crate) fn reading(&self) -> RateLimitLayer<DynStore> {
        self.layer().cost(|_| 0).expose_decision().build()
    }

    fn layer(&self) -> RateLimitLayerBuilder<DynStore> {
        RateLimitLayer::builder(Arc::clone(&self.limiter))
            .facts_from_policy(ClientAddress::peer())
            .header_styles([HeaderStyle::Provider])
            .on_error(|error| eprintln!("rate limiter failed: {error}"))
    }
}

fn estimate(request: &RequestHead<'_>) -> Estimate {
    Estimate::of_usage(request.extensions.get().copied().unwrap_or(DEFAULT_USAGE))
}

/// Adds the estimated tokens to a request, for its reservation: one token per 4 bytes of the body, and as much output as it
/// allows. A request without a body, such as `GET /v1/models`, uses none.
pub(crate) fn add_estimate(request: &mut Request, size: usize, max_output: Option<u64>) {
    let input = u64::try_from(size.div_ceil(4)).unwrap_or(u64::MAX);
    let default_output = if size == 0 { 0 } else { DEFAULT_USAGE.output };
    let output = max_output.unwrap_or(default_output);
    request.extensions_mut().insert(TokenUsage { input, output });
}

/// Returns what is left of each limit.
pub(crate) fn usage(decision: &RateLimitDecision) -> Value {
    let entry = |status: tollgate::Status<'_>| {
        let limit = status.limit();
        let figures = json!({ "limit": limit.capacity(), "remaining": status.remaining() });
        (limit.name().to_owned(), figures)
    };
    Value::Object(decision.statuses().map(entry).collect::<Map<_, _>>())
}
