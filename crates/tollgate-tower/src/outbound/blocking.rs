//! Limiters for programs without a runtime.
//!
//! Each is the limiter of [`outbound`](super) with a thread beside it that keeps its connections and timers
//! going; no decision is made twice.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tollgate::Store;

use super::answers::{Acquired, Checked, Stats};
use super::counts::Counts;
use super::error::{AcquireError, UnknownLimiter};
use super::limiter::NamedLimiter;
use super::registry::Limiters;

/// A [`NamedLimiter`] whose verbs block the calling thread. A clone is the same limiter.
///
/// Within a Tokio runtime every verb is an [error](AcquireError::WithinRuntime), also on the threads of
/// `spawn_blocking`: use the [`NamedLimiter`] there.
///
/// ```
/// use tollgate::MemoryStore;
/// use tollgate::policy::NamedLimits;
/// use tollgate_tower::outbound::NamedLimiter;
/// use tollgate_tower::outbound::blocking::BlockingLimiter;
///
/// let limiter = NamedLimiter::new(MemoryStore::new(), NamedLimits::igdb());
/// let limiter = BlockingLimiter::new(limiter)?;
/// assert_eq!(limiter.acquire()?.remaining, 3);
/// assert_eq!(limiter.stats()?.count, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct BlockingLimiter<S> {
    limiter: NamedLimiter<S>,
    driver: Arc<Driver>,
}

impl<S> Clone for BlockingLimiter<S> {
    fn clone(&self) -> Self {
        Self { limiter: self.limiter.clone(), driver: Arc::clone(&self.driver) }
    }
}

impl<S: Store + 'static> BlockingLimiter<S> {
    /// A blocking shell around this limiter, with a thread of its own. For several limiters over one store
    /// use [`BlockingLimiters`]: connections live on the thread that made them.
    ///
    /// # Errors
    /// The system has no thread or no file to give.
    pub fn new(limiter: NamedLimiter<S>) -> io::Result<Self> {
        Ok(Self { limiter, driver: Arc::new(Driver::start()?) })
    }

    /// As [`NamedLimiter::acquire`].
    ///
    /// # Errors
    /// As there, and when called within a runtime.
    pub fn acquire(&self) -> Result<Acquired, AcquireError> {
        self.driver.run(self.limiter.acquire())
    }

    /// As [`NamedLimiter::acquire_many`].
    ///
    /// # Errors
    /// As there, and when called within a runtime.
    pub fn acquire_many(&self, n: u64) -> Result<Acquired, AcquireError> {
        self.driver.run(self.limiter.acquire_many(n))
    }

    /// As [`NamedLimiter::acquire_within`].
    ///
    /// # Errors
    /// As there, and when called within a runtime.
    pub fn acquire_within(&self, longest: Duration) -> Result<Acquired, AcquireError> {
        self.driver.run(self.limiter.acquire_within(longest))
    }

    /// As [`NamedLimiter::acquire_many_within`].
    ///
    /// # Errors
    /// As there, and when called within a runtime.
    pub fn acquire_many_within(&self, n: u64, longest: Duration) -> Result<Acquired, AcquireError> {
        self.driver.run(self.limiter.acquire_many_within(n, longest))
    }

    /// As [`NamedLimiter::try_acquire`].
    ///
    /// # Errors
    /// As there, and when called within a runtime.
    pub fn try_acquire(&self) -> Result<Acquired, AcquireError> {
        self.driver.run(self.limiter.try_acquire())
    }

    /// As [`NamedLimiter::try_acquire_many`].
    ///
    /// # Errors
    /// As there, and when called within a runtime.
    pub fn try_acquire_many(&self, n: u64) -> Result<Acquired, AcquireError> {
        self.driver.run(self.limiter.try_acquire_many(n))
    }

    /// As [`NamedLimiter::peek`].
    ///
    /// # Errors
    /// As there, and when called within a runtime.
    pub fn peek(&self) -> Result<Checked, AcquireError> {
        self.driver.run(self.limiter.peek())
    }

    /// As [`NamedLimiter::stats`].
    ///
    /// # Errors
    /// As there, and when called within a runtime.
    pub fn stats(&self) -> Result<Stats, AcquireError> {
        self.driver.run(self.limiter.stats())
    }

    /// As [`NamedLimiter::reset`].
    ///
    /// # Errors
    /// As there, and when called within a runtime.
    pub fn reset(&self) -> Result<(), AcquireError> {
        self.driver.run(self.limiter.reset())
    }

    /// As [`NamedLimiter::pause`].
    ///
    /// # Errors
    /// As there, and when called within a runtime.
    pub fn pause(&self, length: Duration) -> Result<(), AcquireError> {
        self.driver.run(self.limiter.pause(length))
    }

    /// As [`NamedLimiter::counts`].
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.limiter.counts()
    }

    /// The limiter within.
    #[must_use]
    pub const fn limiter(&self) -> &NamedLimiter<S> {
        &self.limiter
    }
}

/// [`Limiters`] whose verbs block, with one thread beside them all.
///
/// ```
/// use std::sync::Arc;
/// use tollgate::MemoryStore;
/// use tollgate_tower::outbound::Limiters;
/// use tollgate_tower::outbound::blocking::BlockingLimiters;
///
/// let limiters = Limiters::builder(Arc::new(MemoryStore::new())).ready().build();
/// let limiters = BlockingLimiters::new(limiters)?;
/// assert_eq!(limiters.require("tmdb")?.acquire()?.remaining, 39);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct BlockingLimiters<S> {
    limiters: Limiters<S>,
    driver: Arc<Driver>,
}

impl<S: Store + 'static> BlockingLimiters<S> {
    /// A blocking shell around these limiters.
    ///
    /// # Errors
    /// The system has no thread or no file to give.
    pub fn new(limiters: Limiters<S>) -> io::Result<Self> {
        Ok(Self { limiters, driver: Arc::new(Driver::start()?) })
    }

    /// The limiter of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<BlockingLimiter<S>> {
        self.require(name).ok()
    }

    /// The limiter of this name, or an error that tells which there are.
    ///
    /// # Errors
    /// There is none.
    pub fn require(&self, name: &str) -> Result<BlockingLimiter<S>, UnknownLimiter> {
        let limiter = self.limiters.require(name)?;
        Ok(BlockingLimiter { limiter, driver: Arc::clone(&self.driver) })
    }

    /// The limiters within.
    #[must_use]
    pub const fn limiters(&self) -> &Limiters<S> {
        &self.limiters
    }
}

/// A thread that keeps connections and timers going, until this is dropped. A runtime that only ran while
/// somebody calls would not hear what a server says in between.
#[derive(Debug)]
struct Driver {
    runtime: Handle,
    _running: oneshot::Sender<()>,
}

impl Driver {
    fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (running, ended) = oneshot::channel();
        let named = thread::Builder::new().name("tollgate-blocking".to_owned());
        named.spawn(move || runtime.block_on(ended))?;
        Ok(Self { runtime: handle, _running: running })
    }

    fn run<T>(
        &self,
        work: impl Future<Output = Result<T, AcquireError>>,
    ) -> Result<T, AcquireError> {
        match Handle::try_current() {
            Ok(_) => Err(AcquireError::WithinRuntime),
            Err(_) => self.runtime.block_on(work),
        }
    }
}
