//! OverrideFollower the overrides of a deployment: what one node stores is in force on every other in a moment.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tollgate::{StoreError, Subject, Timestamp, jittered};

use super::{Change, Directory, Event, StoredOverrides};

/// How long after a failure Redis is asked again.
const AGAIN: Duration = Duration::from_secs(1);

/// However soon an override ends, or however late: nobody turns in circles, and no timer is beyond its range.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(3600);

/// Overrides that are kept up to date for as long as this lives.
pub struct OverrideFollower {
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    directory: Directory,
    obey: Box<dyn Fn(&StoredOverrides) + Send + Sync>,
    /// Held while Redis is asked, so that what is asked last is in force last.
    known: tokio::sync::Mutex<StoredOverrides>,
    missed: Mutex<Missed>,
    news: Notify,
    trouble: Mutex<Option<String>>,
}

/// What may have changed since it was last asked for.
#[derive(Debug)]
struct Missed {
    all: bool,
    clients: BTreeSet<String>,
    /// Nobody tells: changes must be looked for.
    is_deaf: bool,
    /// The newest entry of the audit, as last looked at.
    last_change: Option<String>,
}

impl Default for Missed {
    fn default() -> Self {
        Self { all: false, clients: BTreeSet::new(), is_deaf: true, last_change: None }
    }
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
    /// Hands the overrides to `obey`, now and whenever they change: because some node stores, replaces or
    /// removes one, because one ends, or because Redis is back. While Redis is lost those that are known stay.
    /// `obey` must not block.
    ///
    /// ```no_run
    /// use std::sync::Arc;
    /// use tollgate::{Limiter, Policy};
    /// use tollgate_redis::{Address, RedisStore};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let store = RedisStore::new(Address::local());
    /// let limiter = Arc::new(Limiter::new(store.clone(), Policy::builtin()));
    /// let obeying = Arc::clone(&limiter);
    /// let obey = move |stored: &tollgate_redis::StoredOverrides| {
    ///     obeying.set_overrides(&stored.overrides);
    /// };
    /// let _following = store.directory().follow_overrides(obey).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Redis could not be asked for the overrides there are.
    pub async fn follow_overrides(
        &self,
        obey: impl Fn(&StoredOverrides) + Send + Sync + 'static,
    ) -> Result<OverrideFollower, StoreError> {
        let shared = Arc::new(Shared {
            directory: self.clone(),
            obey: Box::new(obey),
            known: tokio::sync::Mutex::default(),
            missed: Mutex::default(),
            news: Notify::new(),
            trouble: Mutex::default(),
        });
        let watching = Arc::downgrade(&shared);
        self.watch(move |event| {
            if let Some(shared) = watching.upgrade() {
                shared.note(event);
            }
        });
        shared.ask_all().await?;
        let task = tokio::spawn(Arc::clone(&shared).follow());
        Ok(OverrideFollower { shared, task })
    }
}

impl OverrideFollower {
    /// Why what is in force here may not be what is stored; none if all is well.
    #[must_use]
    pub fn last_error(&self) -> Option<String> {
        self.shared.trouble.lock().clone()
    }

    /// Asks for one client's override now, and puts what there is in force here: whoever has just changed it
    /// need not wait for the news of it.
    ///
    /// # Errors
    /// Redis could not be asked. It will be again.
    pub async fn refresh(&self, client: &Subject) -> Result<(), StoreError> {
        let asked = self.shared.ask(vec![client.clone()]).await;
        if asked.is_err() {
            self.shared.missed.lock().clients.insert(client.as_str().to_owned());
            self.shared.news.notify_one();
        }
        asked
    }
}

impl Shared {
    fn note(&self, event: Event) {
        {
            let mut missed = self.missed.lock();
            match event {
                Event::Subscribed => (missed.all, missed.is_deaf) = (true, false),
                Event::Changed(Change::Override { client }) => {
                    missed.clients.insert(client);
                }
                Event::SubscriptionLost => missed.is_deaf = true,
                Event::Changed(Change::QuotaFreed { .. }) => return,
            }
        }
        self.news.notify_one();
    }

    async fn follow(self: Arc<Self>) {
        let mut has_failed = false;
        loop {
            let is_deaf = self.missed.lock().is_deaf;
            let rest = self.until_next_end().await;
            let rest = if has_failed || is_deaf { rest.min(jittered(AGAIN)) } else { rest };
            tokio::select! {
                () = self.news.notified(), if !has_failed => {}
                () = sleep(rest) => {}
            }
            self.forget_ended().await;
            let caught_up = self.catch_up().await;
            has_failed = caught_up.is_err();
            *self.trouble.lock() = caught_up
                .err()
                .map(|error| format!("overrides may be others than are stored: {error}"));
        }
    }

    async fn until_next_end(&self) -> Duration {
        let end = self.known.lock().await.overrides.next_expiry();
        let rest = |end: Timestamp| {
            Duration::from_micros(end.as_micros().saturating_sub(self.directory.now().as_micros()))
        };
        end.map_or(LONGEST, rest).clamp(SHORTEST, LONGEST)
    }

    async fn forget_ended(&self) {
        let now = self.directory.now();
        let ended = {
            let mut known = self.known.lock().await;
            let all = known.overrides.clone();
            if all.next_expiry().is_none_or(|end| end > now) {
                return;
            }
            known.overrides = all.without_expired(now);
            (self.obey)(&known);
            all
        };
        // Redis forgets them when it is asked for them. If it cannot be, then another time.
        for (client, own) in ended.after("") {
            if let Some(client) = Subject::from_escaped(client).filter(|_| own.is_expired(now)) {
                let _ = self.directory.get_override(&client).await;
            }
        }
    }

    /// Asks for what was missed; what could not be asked for is still missed.
    async fn catch_up(&self) -> Result<(), StoreError> {
        self.look_if_deaf().await?;
        let (all, clients) = {
            let mut missed = self.missed.lock();
            (std::mem::take(&mut missed.all), std::mem::take(&mut missed.clients))
        };
        if all {
            return self.ask_all().await.inspect_err(|_| self.missed.lock().all = true);
        }
        let subjects: Vec<Subject> =
            clients.iter().filter_map(|client| Subject::from_escaped(client)).collect();
        let asked = self.ask(subjects).await;
        asked.inspect_err(|_| self.missed.lock().clients.extend(clients))
    }

    /// Where nobody tells of changes, the audit does: each leaves an entry.
    async fn look_if_deaf(&self) -> Result<(), StoreError> {
        if !self.missed.lock().is_deaf {
            return Ok(());
        }
        let last = self.directory.last_change().await?;
        let mut missed = self.missed.lock();
        missed.all |= missed.last_change != last;
        missed.last_change = last;
        Ok(())
    }

    async fn ask_all(&self) -> Result<(), StoreError> {
        let mut known = self.known.lock().await;
        *known = self.directory.overrides().await?;
        (self.obey)(&known);
        Ok(())
    }

    /// Asks for some, and puts them in force together.
    async fn ask(&self, clients: Vec<Subject>) -> Result<(), StoreError> {
        if clients.is_empty() {
            return Ok(());
        }
        let mut known = self.known.lock().await;
        let mut changes = Vec::with_capacity(clients.len());
        let mut unreadable = known.unreadable.clone();
        for client in clients {
            let own = match self.directory.get_override(&client).await {
                Err(error) if error.is_transient() => return Err(error),
                other => other,
            };
            unreadable.retain(|other| other != client.as_str());
            if own.is_err() {
                unreadable.push(client.as_str().to_owned());
            }
            changes.push((client, own.ok().flatten()));
        }
        *known = StoredOverrides { overrides: known.overrides.with_all(changes), unreadable };
        (self.obey)(&known);
        Ok(())
    }
}
