//! Keeps the overrides of a node up to date: a change on one node applies on all others within moments.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tollgate::{Override, OverrideStorage, Overrides, StoreError, Subject, Timestamp, jittered};

use super::{Change, Directory, Event, StoredOverrides};

/// Interval of retries after a failure, and of polling without a subscription.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Bounds of the wait for the expiry of an override: no busy loop, and no timer out of range.
const MIN_WAIT: Duration = Duration::from_millis(1);
const MAX_WAIT: Duration = Duration::from_secs(3600);

/// Keeps overrides up to date until it is dropped. Created by [`Directory::follow_overrides`].
pub struct OverrideFollower {
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    directory: Directory,
    apply: Box<dyn Fn(&StoredOverrides) + Send + Sync>,
    /// Locked during a read from Redis, so that the result of the last read is applied last.
    known: tokio::sync::Mutex<StoredOverrides>,
    pending: Mutex<PendingChanges>,
    wake: Notify,
    last_error: Mutex<Option<String>>,
}

/// The changes that have not been read from Redis yet.
#[derive(Debug, Default)]
struct PendingChanges {
    all: bool,
    clients: BTreeSet<String>,
    /// Without a subscription, changes are polled.
    is_subscribed: bool,
    /// The id of the newest audit entry at the last poll.
    last_change: Option<String>,
}

impl fmt::Debug for OverrideFollower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OverrideFollower").finish_non_exhaustive()
    }
}

impl Drop for OverrideFollower {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Directory {
    /// Calls `apply` with all overrides, now and after every change: when a node stores, replaces or removes
    /// one, when one expires, and when Redis is available again. During an outage the known overrides stay
    /// active. `apply` must not block.
    ///
    /// ```no_run
    /// use std::sync::Arc;
    /// use tollgate::{Limiter, Policy};
    /// use tollgate_redis::{Address, RedisStore};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let store = RedisStore::new(Address::local());
    /// let limiter = Arc::new(Limiter::new(store.clone(), Policy::builtin()));
    /// let target = Arc::clone(&limiter);
    /// let apply = move |stored: &tollgate_redis::StoredOverrides| {
    ///     target.set_overrides(&stored.overrides);
    /// };
    /// let _follower = store.directory().follow_overrides(apply).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The overrides could not be read from Redis.
    pub async fn follow_overrides(
        &self,
        apply: impl Fn(&StoredOverrides) + Send + Sync + 'static,
    ) -> Result<OverrideFollower, StoreError> {
        let shared = Shared::new(self, StoredOverrides::default(), apply);
        shared.reload_all().await?;
        let task = tokio::spawn(Arc::clone(&shared).run());
        Ok(OverrideFollower { shared, task })
    }

    /// Like [`follow_overrides`](Self::follow_overrides), for a start while Redis is unavailable: begins with the
    /// overrides in `known` that have not expired, for example from a file. When Redis is available, its overrides
    /// replace them. Needs a Tokio runtime.
    ///
    /// ```no_run
    /// use tollgate::Overrides;
    /// use tollgate_redis::{Address, RedisStore, StoredOverrides};
    ///
    /// # async fn example(saved: Overrides) {
    /// let apply = |stored: &StoredOverrides| println!("{} overrides", stored.overrides.len());
    /// let directory = RedisStore::new(Address::local()).directory();
    /// let _follower = directory.follow_overrides_from(&saved, apply);
    /// # }
    /// ```
    pub fn follow_overrides_from(
        &self,
        known: &Overrides,
        apply: impl Fn(&StoredOverrides) + Send + Sync + 'static,
    ) -> OverrideFollower {
        let overrides = known.without_expired(self.now());
        let known = StoredOverrides { overrides, unreadable: Vec::new() };
        apply(&known);
        let shared = Shared::new(self, known, apply);
        shared.pending.lock().all = true;
        shared.wake.notify_one();
        let task = tokio::spawn(Arc::clone(&shared).run());
        OverrideFollower { shared, task }
    }
}

impl OverrideFollower {
    /// Returns why the active overrides may be outdated, or `None` if they are current.
    #[must_use]
    pub fn last_error(&self) -> Option<String> {
        self.shared.last_error.lock().clone()
    }

    /// Reads and applies the overrides of one client now, without waiting for the change event.
    ///
    /// # Errors
    /// The overrides could not be read from Redis. The follower retries.
    pub async fn refresh(&self, client: &Subject) -> Result<(), StoreError> {
        let result = self.shared.reload(vec![client.clone()]).await;
        if result.is_err() {
            self.shared.pending.lock().clients.insert(client.as_str().to_owned());
            self.shared.wake.notify_one();
        }
        result
    }
}

/// Stores overrides in Redis for all nodes, and applies a change here before it returns.
impl OverrideStorage for OverrideFollower {
    async fn set_overrides(
        &self,
        client: &Subject,
        overrides: &[Override],
        audit_entry: &str,
    ) -> Result<(), StoreError> {
        self.shared.directory.put_overrides(client, overrides, audit_entry).await?;
        // The change is stored; if it cannot be read now, the follower retries.
        let _ = self.refresh(client).await;
        Ok(())
    }

    async fn remove_overrides(
        &self,
        client: &Subject,
        rule: Option<&str>,
        audit_entry: &str,
    ) -> Result<bool, StoreError> {
        let removed = self.shared.directory.remove_overrides(client, rule, audit_entry).await?;
        let _ = self.refresh(client).await;
        Ok(!removed.is_empty())
    }

    async fn record_audit(&self, audit_entry: &str) -> Result<(), StoreError> {
        self.shared.directory.record(audit_entry).await
    }
}

impl Shared {
    /// Creates the state and subscribes to changes.
    fn new(
        directory: &Directory,
        known: StoredOverrides,
        apply: impl Fn(&StoredOverrides) + Send + Sync + 'static,
    ) -> Arc<Self> {
        let shared = Arc::new(Self {
            directory: directory.clone(),
            apply: Box::new(apply),
            known: tokio::sync::Mutex::new(known),
            pending: Mutex::default(),
            wake: Notify::new(),
            last_error: Mutex::default(),
        });
        let watching = Arc::downgrade(&shared);
        directory.watch(move |event| {
            if let Some(shared) = watching.upgrade() {
                shared.handle(event);
            }
        });
        shared
    }

    fn handle(&self, event: Event) {
        {
            let mut pending = self.pending.lock();
            match event {
                Event::Subscribed => (pending.all, pending.is_subscribed) = (true, true),
                Event::Changed(Change::Override { client }) => {
                    pending.clients.insert(client);
                }
                Event::SubscriptionLost => pending.is_subscribed = false,
                Event::Changed(Change::QuotaFreed { .. } | Change::ClientReset { .. }) => return,
            }
        }
        self.wake.notify_one();
    }

    async fn run(self: Arc<Self>) {
        let mut has_failed = false;
        loop {
            let is_subscribed = self.pending.lock().is_subscribed;
            let wait = self.until_next_expiry().await;
            let is_polling = has_failed || !is_subscribed;
            let wait = if is_polling { wait.min(jittered(RETRY_INTERVAL)) } else { wait };
            tokio::select! {
                () = self.wake.notified(), if !has_failed => {}
                () = sleep(wait) => {}
            }
            self.remove_expired().await;
            let result = self.read_changes().await;
            has_failed = result.is_err();
            *self.last_error.lock() =
                result.err().map(|error| format!("overrides may be outdated: {error}"));
        }
    }

    async fn until_next_expiry(&self) -> Duration {
        let expiry = self.known.lock().await.overrides.next_expiry();
        let wait = |expiry: Timestamp| {
            let now = self.directory.now();
            Duration::from_micros(expiry.as_micros().saturating_sub(now.as_micros()))
        };
        expiry.map_or(MAX_WAIT, wait).clamp(MIN_WAIT, MAX_WAIT)
    }

    async fn remove_expired(&self) {
        let now = self.directory.now();
        let before = {
            let mut known = self.known.lock().await;
            let before = known.overrides.clone();
            if before.next_expiry().is_none_or(|expiry| expiry > now) {
                return;
            }
            known.overrides = before.without_expired(now);
            (self.apply)(&known);
            before
        };
        // A read removes an expired override from Redis. A failed read is harmless: a later one removes it.
        for (client, stored) in before.after("") {
            let has_expired = stored.iter().any(|stored| stored.is_expired(now));
            if let Some(client) = Subject::from_escaped(client).filter(|_| has_expired) {
                let _ = self.directory.read_overrides(&client).await;
            }
        }
    }

    /// Reads all pending changes. A change that could not be read stays pending.
    async fn read_changes(&self) -> Result<(), StoreError> {
        self.poll_if_unsubscribed().await?;
        let (all, clients) = {
            let mut pending = self.pending.lock();
            (std::mem::take(&mut pending.all), std::mem::take(&mut pending.clients))
        };
        if all {
            return self.reload_all().await.inspect_err(|_| self.pending.lock().all = true);
        }
        let subjects: Vec<Subject> =
            clients.iter().filter_map(|client| Subject::from_escaped(client)).collect();
        let result = self.reload(subjects).await;
        result.inspect_err(|_| self.pending.lock().clients.extend(clients))
    }

    /// Without a subscription, detects changes by the newest audit entry: each change appends one.
    async fn poll_if_unsubscribed(&self) -> Result<(), StoreError> {
        if self.pending.lock().is_subscribed {
            return Ok(());
        }
        let last_change = self.directory.last_change().await?;
        let mut pending = self.pending.lock();
        pending.all |= pending.last_change != last_change;
        pending.last_change = last_change;
        Ok(())
    }

    async fn reload_all(&self) -> Result<(), StoreError> {
        let mut known = self.known.lock().await;
        *known = self.directory.overrides().await?;
        (self.apply)(&known);
        Ok(())
    }

    /// Reads the overrides of some clients and applies them together.
    async fn reload(&self, clients: Vec<Subject>) -> Result<(), StoreError> {
        if clients.is_empty() {
            return Ok(());
        }
        let mut known = self.known.lock().await;
        let mut changes = Vec::with_capacity(clients.len());
        let mut unreadable = known.unreadable.clone();
        for client in clients {
            let (stored, unreadable_count) = self.directory.read_overrides(&client).await?;
            unreadable.retain(|other| other != client.as_str());
            if unreadable_count > 0 {
                unreadable.push(client.as_str().to_owned());
            }
            changes.push((client, stored));
        }
        *known = StoredOverrides { overrides: known.overrides.with_clients(changes), unreadable };
        (self.apply)(&known);
        Ok(())
    }
}
