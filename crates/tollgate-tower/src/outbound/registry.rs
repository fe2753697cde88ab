//! A registry of limiters by name.

use std::collections::BTreeMap;

use tollgate::Store;
use tollgate::policy::{NamedLimits, Policy, PolicyError};

use super::counts::CallCounts;
use super::error::UnknownLimiter;
use super::event::{EventCallback, LimiterEvent};
use super::limiter::NamedLimiter;

/// A registry of limiters by name, over one store.
///
/// ```
/// use std::sync::Arc;
/// use tollgate::MemoryStore;
/// use tollgate_tower::outbound::Limiters;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let text = "version: 1\nlimiters: { mirror: 10/s }\n";
/// let limiters = Limiters::from_yaml(Arc::new(MemoryStore::new()), "policy.yaml", text)?;
/// assert_eq!(limiters.require("mirror")?.acquire().await?.remaining, 9);
/// assert_eq!(
///     limiters.require("miror").unwrap_err().to_string(),
///     "unknown limiter 'miror'; known limiters: mirror"
/// );
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Limiters<S> {
    by_name: BTreeMap<Box<str>, NamedLimiter<S>>,
}

impl<S> Clone for Limiters<S> {
    fn clone(&self) -> Self {
        Self { by_name: self.by_name.clone() }
    }
}

impl<S: Store + Clone> Limiters<S> {
    /// Returns a builder of limiters over this store.
    pub fn builder(store: S) -> LimitersBuilder<S> {
        LimitersBuilder {
            store,
            limits: Vec::new(),
            on_event: EventCallback::default(),
            #[cfg(feature = "metrics")]
            is_recorded: false,
        }
    }

    /// Creates the limiters of a policy.
    #[must_use]
    pub fn from_policy(store: S, policy: &Policy) -> Self {
        Self::builder(store).policy(policy).build()
    }

    /// Creates the limiters of a policy text. `file` is the file name for error messages.
    ///
    /// # Errors
    /// Returns the errors in the text, with line, column and field.
    pub fn from_yaml(store: S, file: &str, text: &str) -> Result<Self, PolicyError> {
        let policy = Policy::from_yaml(file, text, Policy::builtin_limit())?;
        Ok(Self::from_policy(store, &policy))
    }
}

impl<S> Limiters<S> {
    /// Returns the limiter with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<NamedLimiter<S>> {
        self.by_name.get(name).cloned()
    }

    /// Returns the limiter with this name.
    ///
    /// # Errors
    /// Returns an error that lists the known names if there is no such limiter.
    pub fn require(&self, name: &str) -> Result<NamedLimiter<S>, UnknownLimiter> {
        self.get(name).ok_or_else(|| UnknownLimiter {
            name: name.to_owned(),
            known: self.by_name.keys().map(ToString::to_string).collect(),
        })
    }

    /// Returns all limiters, in alphabetical order.
    pub fn iter(&self) -> impl Iterator<Item = &NamedLimiter<S>> {
        self.by_name.values()
    }

    /// Returns the call counts of each limiter, by name.
    #[must_use]
    pub fn counts(&self) -> Vec<(&str, CallCounts)> {
        self.iter().map(|limiter| (limiter.name(), limiter.counts())).collect()
    }
}

/// Builder of [`Limiters`]. A limiter replaces an earlier one with the same name, so that presets can be changed.
///
/// ```
/// use std::sync::Arc;
/// use tollgate::MemoryStore;
/// use tollgate::policy::NamedLimits;
/// use tollgate_tower::outbound::Limiters;
///
/// let store = Arc::new(MemoryStore::new());
/// let limiters = Limiters::builder(store).presets().limiter(NamedLimits::igdb().immediate()).build();
/// assert_eq!(limiters.iter().count(), 4);
/// ```
#[derive(Debug)]
#[must_use]
pub struct LimitersBuilder<S> {
    store: S,
    limits: Vec<NamedLimits>,
    on_event: EventCallback,
    #[cfg(feature = "metrics")]
    is_recorded: bool,
}

impl<S: Store + Clone> LimitersBuilder<S> {
    /// Adds a limiter.
    pub fn limiter(mut self, limits: NamedLimits) -> Self {
        self.limits.push(limits);
        self
    }

    /// Adds the presets for IGDB, `MusicBrainz`, TMDB and Spotify.
    pub fn presets(mut self) -> Self {
        self.limits.extend(NamedLimits::presets());
        self
    }

    /// Adds the limiters of a policy.
    pub fn policy(mut self, policy: &Policy) -> Self {
        self.limits.extend_from_slice(policy.limiters());
        self
    }

    /// Sets a callback for waits, refusals and pauses of all limiters. It must not block.
    pub fn on_event(self, callback: impl Fn(LimiterEvent<'_>) + Send + Sync + 'static) -> Self {
        Self { on_event: EventCallback::new(callback), ..self }
    }

    /// Records calls and waits of all limiters with the `metrics` facade, labelled with the name of the limiter.
    #[cfg(feature = "metrics")]
    pub fn record_metrics(mut self) -> Self {
        self.is_recorded = true;
        self
    }

    /// Builds the limiters.
    #[must_use]
    pub fn build(self) -> Limiters<S> {
        #[cfg(feature = "metrics")]
        let is_recorded = self.is_recorded;
        let Self { store, limits, on_event, .. } = self;
        let limiter = |limits: NamedLimits| {
            let name = limits.name().into();
            let builder =
                NamedLimiter::builder(store.clone(), limits).with_callback(on_event.clone());
            #[cfg(feature = "metrics")]
            let builder = if is_recorded { builder.record_metrics() } else { builder };
            (name, builder.build())
        };
        Limiters { by_name: limits.into_iter().map(limiter).collect() }
    }
}
