//! Blocking limiters for programs without an async runtime.
//!
//! Each wraps a limiter of [`outbound`](super) and a background thread that runs its connections and timers.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tollgate::Store;

use super::counts::CallCounts;
use super::error::{AcquireError, UnknownLimiter};
use super::limiter::NamedLimiter;
use super::registry::Limiters;
use super::results::{Acquired, PeekResult, Stats};

/// A [`NamedLimiter`] whose methods block the calling thread. Clones share the same limiter.
///
/// Inside a Tokio runtime, including `spawn_blocking` threads, every method returns
/// [`AcquireError::WithinRuntime`]: use the [`NamedLimiter`] there.
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
    runtime_thread: Arc<RuntimeThread>,
}

impl<S> Clone for BlockingLimiter<S> {
    fn clone(&self) -> Self {
        Self { limiter: self.limiter.clone(), runtime_thread: Arc::clone(&self.runtime_thread) }
    }
}

impl<S: Store + 'static> BlockingLimiter<S> {
    /// Wraps a limiter and starts its background thread. For several limiters over one store use
    /// [`BlockingLimiters`], because connections belong to the thread that opened them.
    ///
    /// # Errors
    /// Returns an error if the thread or the runtime cannot be created.
    pub fn new(limiter: NamedLimiter<S>) -> io::Result<Self> {
        Ok(Self { limiter, runtime_thread: Arc::new(RuntimeThread::start()?) })
    }

    /// Blocking version of [`NamedLimiter::acquire`].
    ///
    /// # Errors
    /// As the async method; also when called inside a Tokio runtime.
    pub fn acquire(&self) -> Result<Acquired, AcquireError> {
        self.runtime_thread.run(self.limiter.acquire())
    }

    /// Blocking version of [`NamedLimiter::acquire_many`].
    ///
    /// # Errors
    /// As the async method; also when called inside a Tokio runtime.
    pub fn acquire_many(&self, n: u64) -> Result<Acquired, AcquireError> {
        self.runtime_thread.run(self.limiter.acquire_many(n))
    }

    /// Blocking version of [`NamedLimiter::acquire_within`].
    ///
    /// # Errors
    /// As the async method; also when called inside a Tokio runtime.
    pub fn acquire_within(&self, max_wait: Duration) -> Result<Acquired, AcquireError> {
        self.runtime_thread.run(self.limiter.acquire_within(max_wait))
    }

    /// Blocking version of [`NamedLimiter::acquire_many_within`].
    ///
    /// # Errors
    /// As the async method; also when called inside a Tokio runtime.
    pub fn acquire_many_within(
        &self,
        n: u64,
        max_wait: Duration,
    ) -> Result<Acquired, AcquireError> {
        self.runtime_thread.run(self.limiter.acquire_many_within(n, max_wait))
    }

    /// Blocking version of [`NamedLimiter::try_acquire`].
    ///
    /// # Errors
    /// As the async method; also when called inside a Tokio runtime.
    pub fn try_acquire(&self) -> Result<Acquired, AcquireError> {
        self.runtime_thread.run(self.limiter.try_acquire())
    }

    /// Blocking version of [`NamedLimiter::try_acquire_many`].
    ///
    /// # Errors
    /// As the async method; also when called inside a Tokio runtime.
    pub fn try_acquire_many(&self, n: u64) -> Result<Acquired, AcquireError> {
        self.runtime_thread.run(self.limiter.try_acquire_many(n))
    }

    /// Blocking version of [`NamedLimiter::peek`].
    ///
    /// # Errors
    /// As the async method; also when called inside a Tokio runtime.
    pub fn peek(&self) -> Result<PeekResult, AcquireError> {
        self.runtime_thread.run(self.limiter.peek())
    }

    /// Blocking version of [`NamedLimiter::stats`].
    ///
    /// # Errors
    /// As the async method; also when called inside a Tokio runtime.
    pub fn stats(&self) -> Result<Stats, AcquireError> {
        self.runtime_thread.run(self.limiter.stats())
    }

    /// Blocking version of [`NamedLimiter::reset`].
    ///
    /// # Errors
    /// As the async method; also when called inside a Tokio runtime.
    pub fn reset(&self) -> Result<(), AcquireError> {
        self.runtime_thread.run(self.limiter.reset())
    }

    /// Blocking version of [`NamedLimiter::pause`].
    ///
    /// # Errors
    /// As the async method; also when called inside a Tokio runtime.
    pub fn pause(&self, length: Duration) -> Result<(), AcquireError> {
        self.runtime_thread.run(self.limiter.pause(length))
    }

    /// Same as [`NamedLimiter::counts`].
    #[must_use]
    pub fn counts(&self) -> CallCounts {
        self.limiter.counts()
    }

    /// Returns the wrapped limiter.
    #[must_use]
    pub const fn limiter(&self) -> &NamedLimiter<S> {
        &self.limiter
    }
}

/// [`Limiters`] whose methods block, with one background thread for all.
///
/// ```
/// use std::sync::Arc;
/// use tollgate::MemoryStore;
/// use tollgate_tower::outbound::Limiters;
/// use tollgate_tower::outbound::blocking::BlockingLimiters;
///
/// let limiters = Limiters::builder(Arc::new(MemoryStore::new())).presets().build();
/// let limiters = BlockingLimiters::new(limiters)?;
/// assert_eq!(limiters.require("tmdb")?.acquire()?.remaining, 39);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct BlockingLimiters<S> {
    limiters: Limiters<S>,
    runtime_thread: Arc<RuntimeThread>,
}

impl<S: Store + 'static> BlockingLimiters<S> {
    /// Wraps a registry of limiters and starts the background thread.
    ///
    /// # Errors
    /// Returns an error if the thread or the runtime cannot be created.
    pub fn new(limiters: Limiters<S>) -> io::Result<Self> {
        Ok(Self { limiters, runtime_thread: Arc::new(RuntimeThread::start()?) })
    }

    /// Returns the limiter with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<BlockingLimiter<S>> {
        self.require(name).ok()
    }

    /// Returns the limiter with this name.
    ///
    /// # Errors
    /// Returns an error that lists the known names if there is no such limiter.
    pub fn require(&self, name: &str) -> Result<BlockingLimiter<S>, UnknownLimiter> {
        let limiter = self.limiters.require(name)?;
        Ok(BlockingLimiter { limiter, runtime_thread: Arc::clone(&self.runtime_thread) })
    }

    /// Returns the wrapped limiters.
    #[must_use]
    pub const fn limiters(&self) -> &Limiters<S> {
        &self.limiters
    }
}

/// A thread that runs a Tokio runtime until this is dropped. A runtime that ran only during calls would not read from
/// connections between them.
#[derive(Debug)]
struct RuntimeThread {
    runtime: Handle,
    _stop_on_drop: oneshot::Sender<()>,
}

impl RuntimeThread {
    fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let builder = thread::Builder::new().name("tollgate-blocking".to_owned());
        builder.spawn(move || runtime.block_on(stopped))?;
        Ok(Self { runtime: handle, _stop_on_drop: stop })
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
