//! Limiters by name.

use std::collections::BTreeMap;

use tollgate::Store;
use tollgate::policy::{NamedLimits, Policy, PolicyError};

use super::counts::Counts;
use super::error::UnknownLimiter;
use super::event::{LimiterEvent, Listener};
use super::limiter::NamedLimiter;

/// The limiters of a program, by name, over one store.
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
///     "there is no limiter called 'miror'; there are mirror"
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
    /// Limiters over this store, from code.
    pub fn builder(store: S) -> LimitersBuilder<S> {
        LimitersBuilder { store, limits: Vec::new(), listener: Listener::default() }
    }

    /// The limiters of a policy.
    #[must_use]
    pub fn from_policy(store: S, policy: &Policy) -> Self {
        Self::builder(store).policy(policy).build()
    }

    /// The limiters of a policy's text. `file` is what errors call it.
    ///
    /// # Errors
    /// All that is wrong with the text, with line, column and field.
    pub fn from_yaml(store: S, file: &str, text: &str) -> Result<Self, PolicyError> {
        let policy = Policy::from_yaml(file, text, Policy::builtin_limit())?;
        Ok(Self::from_policy(store, &policy))
    }
}

impl<S> Limiters<S> {
    /// The limiter of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<NamedLimiter<S>> {
        self.by_name.get(name).cloned()
    }

    /// The limiter of this name, or an error that tells which there are.
    ///
    /// # Errors
    /// There is none.
    pub fn require(&self, name: &str) -> Result<NamedLimiter<S>, UnknownLimiter> {
        self.get(name).ok_or_else(|| UnknownLimiter {
            name: name.to_owned(),
            known: self.by_name.keys().map(ToString::to_string).collect(),
        })
    }

    /// All of them, in alphabetical order.
    pub fn iter(&self) -> impl Iterator<Item = &NamedLimiter<S>> {
        self.by_name.values()
    }

    /// What came of the calls of each so far, by name.
    #[must_use]
    pub fn counts(&self) -> Vec<(&str, Counts)> {
        self.iter().map(|limiter| (limiter.name(), limiter.counts())).collect()
    }
}

/// [`Limiters`] in the making. A limiter replaces an earlier one of its name, so that what is ready can be
/// changed.
///
/// ```
/// use std::sync::Arc;
/// use tollgate::MemoryStore;
/// use tollgate::policy::NamedLimits;
/// use tollgate_tower::outbound::Limiters;
///
/// let store = Arc::new(MemoryStore::new());
/// let limiters = Limiters::builder(store).ready().limiter(NamedLimits::igdb().immediate()).build();
/// assert_eq!(limiters.iter().count(), 4);
/// ```
#[derive(Debug)]
#[must_use]
pub struct LimitersBuilder<S> {
    store: S,
    limits: Vec<NamedLimits>,
    listener: Listener,
}

impl<S: Store + Clone> LimitersBuilder<S> {
    /// One more.
    pub fn limiter(mut self, limits: NamedLimits) -> Self {
        self.limits.push(limits);
        self
    }

    /// Those of IGDB, `MusicBrainz`, TMDB and Spotify.
    pub fn ready(mut self) -> Self {
        self.limits.extend(NamedLimits::presets());
        self
    }

    /// Those of a policy.
    pub fn policy(mut self, policy: &Policy) -> Self {
        self.limits.extend_from_slice(policy.limiters());
        self
    }

    /// Who hears of waits, refusals and pauses of all of them. It must not block.
    pub fn on_event(self, hear: impl Fn(LimiterEvent<'_>) + Send + Sync + 'static) -> Self {
        Self { listener: Listener::new(hear), ..self }
    }

    /// The limiters.
    #[must_use]
    pub fn build(self) -> Limiters<S> {
        let Self { store, limits, listener } = self;
        let limiter = |limits: NamedLimits| {
            let name = limits.name().into();
            let builder = NamedLimiter::builder(store.clone(), limits);
            (name, builder.heard_by(listener.clone()).build())
        };
        Limiters { by_name: limits.into_iter().map(limiter).collect() }
    }
}
