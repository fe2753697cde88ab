//! Settings of reservations on the builder of the layer.

use http::{HeaderName, response};
use tollgate::{Costs, Observer, Store, Unit};

use super::estimate::Estimate;
use super::settings::SettleBy;
use crate::facts::RequestHead;
use crate::inbound::builder::RateLimitLayerBuilder;

/// Reservations: an estimate is taken at admission, and settled with the final amounts after the response.
impl<S: Store, O: Observer> RateLimitLayerBuilder<S, O> {
    /// Reserves an estimate of every request at admission, all of it or nothing, and settles it when the response body
    /// ends: unused amounts are returned, and amounts above the estimate are charged. Until then the request holds its
    /// concurrency slots; the layer renews them. In place of the settings that set or settle a
    /// cost, such as [`costs`](Self::costs) and [`count_responses`](Self::count_responses), which then have no effect.
    ///
    /// Where the final amounts are found: [`settle_by_usage`](Self::settle_by_usage),
    /// [`settle_by_header`](Self::settle_by_header) or [`settle_by`](Self::settle_by). The last one set is used. For
    /// units whose final amount is not found:
    ///
    /// | request | charged |
    /// |---|---|
    /// | success | the estimate |
    /// | failure: status 400 or above, error of the service | 0; the estimate of `requests` |
    /// | the client disconnects before the response head | the estimate: the service may have used it |
    /// | the client disconnects before the service is called | 0; the estimate of `requests` |
    ///
    /// The headers of a response show the decision about the estimate. A store without reservations fails with
    /// [`Unsupported`](tollgate::StoreErrorKind::Unsupported); see [`error_action`](Self::error_action). A settlement runs
    /// in the background. If it fails, the estimate stays charged, slots expire, and
    /// [`on_error`](Self::on_error) receives the error.
    ///
    /// ```
    /// use tollgate::{Limiter, MemoryStore, Policy};
    /// use tollgate_tower::usage::TokenUsage;
    /// use tollgate_tower::{ApiKey, Estimate, RateLimitLayer, RequestHead};
    ///
    /// let text = "
    /// version: 1
    /// rules:
    ///   - name: llm
    ///     per: [api_key]
    ///     algorithm: token_bucket
    ///     limits:
    ///       - 60/min
    ///       - { rate: 90000/min, unit: tokens }
    ///       - { rate: 5000000/d, unit: usd_micros }
    ///       - { concurrency: 5, ttl: 60s }
    /// prices:
    ///   usd_micros: { input: 150, output: 600, per: 1000 }
    /// ";
    /// let policy = Policy::from_yaml("policy.yaml", text, Policy::builtin_limit())?;
    /// let layer = RateLimitLayer::builder(Limiter::new(MemoryStore::new(), policy))
    ///     .fact("api_key", ApiKey::bearer())
    ///     .reserve(|_: &RequestHead<'_>| Estimate::of_usage(TokenUsage { input: 500, output: 1000 }))
    ///     .settle_by_usage()
    ///     .build();
    /// # drop(layer);
    /// # Ok::<(), tollgate::PolicyError>(())
    /// ```
    pub fn reserve(
        mut self,
        estimate: impl Fn(&RequestHead<'_>) -> Estimate + Send + Sync + 'static,
    ) -> Self {
        self.settings.reservation.estimate = Some(Box::new(estimate));
        self
    }

    /// Settles reservations by the token [usage](crate::usage) of the response: JSON or server-sent events of OpenAI,
    /// Anthropic and Gemini, by its content type. The final amounts are `tokens` (input and output together) and the units
    /// of [`Policy::prices`](tollgate::Policy::prices).
    ///
    /// If the client disconnects during a stream, the output that was streamed is charged, and the input that the
    /// response reported or that the [estimate](Estimate::input_tokens) has. If neither is known, or the response has no usage, the estimate
    /// stays charged; a failure without usage is charged only for its requests.
    pub fn settle_by_usage(mut self) -> Self {
        self.settings.reservation.settle_by = SettleBy::Usage;
        self
    }

    /// Settles reservations by a response header with the final amount of a unit. Repeat it for further units. A header
    /// that is missing, repeated or not a decimal number has no amount.
    ///
    /// ```
    /// use http::HeaderName;
    /// use tollgate::{Costs, Limiter, MemoryStore, Policy, Unit};
    /// use tollgate_tower::{Estimate, RateLimitLayer};
    ///
    /// let estimate = Costs::requests(1).and("rows", 1000)?;
    /// let layer = RateLimitLayer::builder(Limiter::new(MemoryStore::new(), Policy::builtin()))
    ///     .reserve(move |_| Estimate::of(estimate.clone()))
    ///     .settle_by_header(HeaderName::from_static("x-rows"), Unit::new("rows")?)
    ///     .build();
    /// # drop(layer);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn settle_by_header(mut self, name: HeaderName, unit: Unit) -> Self {
        self.settings.reservation.add_header(name, unit);
        self
    }

    /// Settles reservations by the response head: the function returns the final amounts. It is also called with status
    /// 500 for an error of the service.
    ///
    /// ```
    /// use tollgate::{Costs, Limiter, MemoryStore, Policy};
    /// use tollgate_tower::{Estimate, RateLimitLayer};
    ///
    /// // A response from the cache of the service costs nothing.
    /// let layer = RateLimitLayer::builder(Limiter::new(MemoryStore::new(), Policy::builtin()))
    ///     .reserve(|_| Estimate::of(Costs::requests(1)))
    ///     .settle_by(|response| Costs::requests(u64::from(!response.headers.contains_key("age"))))
    ///     .build();
    /// # drop(layer);
    /// ```
    pub fn settle_by(
        mut self,
        costs: impl Fn(&response::Parts) -> Costs + Send + Sync + 'static,
    ) -> Self {
        self.settings.reservation.settle_by = SettleBy::Head(Box::new(costs));
        self
    }
}
