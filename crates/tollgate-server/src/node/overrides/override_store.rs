//! The override store: stores overrides and audit entries, and activates overrides on this node.

use std::fmt;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;
use tollgate::{Override, Overrides, StoreError, Subject};
use tollgate_redis::{Directory, OverrideFollower};
use tracing::warn;

use super::change::{Change, ChangedOverride, OverrideEdit};
use super::change_event::change_event;
use super::client::Client;
use super::follow::follow;
use super::local_storage::LocalStorage;
use crate::error::{ApiError, ApiErrorKind, ServeError};
use crate::node::{NodeLimiter, RedisCopy};
use crate::settings::{BadState, Settings};
use crate::shutdown::StageWaiter;

/// Maximum number of overrides. Every node keeps all of them in memory.
const MAX_OVERRIDES: usize = 100_000;
/// Maximum time between two checks for expired overrides.
const MAX_EXPIRY_SLEEP: Duration = Duration::from_secs(3600);

/// The overrides and the audit log.
pub(crate) struct OverrideStore {
    limiter: Arc<NodeLimiter>,
    storage: Storage,
    /// Notified when the next expiry may have changed.
    changed: Notify,
}

/// The outcome of a change to the overrides of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EditOutcome {
    Changed,
    /// There was nothing to remove.
    NotFound,
}

pub(super) enum Storage {
    /// In Redis, shared by all nodes.
    Redis { directory: Directory, follower: OverrideFollower },
    /// On this node only.
    Local(LocalStorage),
}

impl fmt::Debug for OverrideStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OverrideStore").field("kept_in", &self.kept_in()).finish_non_exhaustive()
    }
}

impl OverrideStore {
    /// Opens the store and activates the overrides in it.
    pub(crate) async fn open(
        limiter: Arc<NodeLimiter>,
        settings: &Settings,
        copy: Option<&Arc<RedisCopy>>,
    ) -> Result<Self, ServeError> {
        let storage = match limiter.store().redis() {
            Some(store) => {
                let directory = store.directory();
                let follower = follow(&limiter, &directory, settings, copy).await?;
                Storage::Redis { directory, follower }
            }
            None => {
                let local = open_local(settings.data_dir.as_deref(), settings.bad_state)?;
                local.remove_expired(|overrides| limiter.set_overrides(overrides)).await;
                Storage::Local(local)
            }
        };
        Ok(Self { limiter, storage, changed: Notify::new() })
    }

    pub(super) const fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Returns the kind of storage: `redis`, `data_dir` or `memory`.
    pub(crate) const fn kept_in(&self) -> &'static str {
        match &self.storage {
            Storage::Redis { .. } => "redis",
            Storage::Local(local) if local.is_persistent() => "data_dir",
            Storage::Local(_) => "memory",
        }
    }

    /// Stores and activates a change to the overrides of a client. Returns `NotFound` if there is nothing to remove.
    /// Completes even if the caller is dropped.
    pub(crate) async fn edit(
        self: &Arc<Self>,
        client: &Client,
        edit: OverrideEdit,
        change: Change,
    ) -> Result<EditOutcome, ApiError> {
        let (store, client) = (Arc::clone(self), client.clone());
        run_to_completion(async move { store.store_and_activate(&client, edit, &change).await })
            .await
    }

    async fn store_and_activate(
        &self,
        client: &Client,
        edit: OverrideEdit,
        change: &Change,
    ) -> Result<EditOutcome, ApiError> {
        let subject = client.subject();
        self.ensure_space(&subject, &edit)?;
        let changed = match &self.storage {
            Storage::Redis { directory, follower } => {
                let changed = self.store_in_redis(directory, &subject, edit, change).await?;
                // The change is stored. If this fails, the follower activates it later.
                let _ = follower.refresh(&subject).await;
                changed
            }
            Storage::Local(local) => {
                let activate = |overrides: &Overrides| self.limiter.set_overrides(overrides);
                let changed = local.edit(&subject, edit, change, activate).await;
                self.changed.notify_one();
                changed.map_err(|error| write_error(&error))?
            }
        };
        for ChangedOverride { old, new } in &changed {
            change.log(old.as_ref(), new.as_ref());
            self.add_event(change, old.as_ref(), new.as_ref());
        }
        Ok(if changed.is_empty() { EditOutcome::NotFound } else { EditOutcome::Changed })
    }

    /// Returns an error if the change would exceed the maximum number of overrides.
    fn ensure_space(&self, subject: &Subject, edit: &OverrideEdit) -> Result<(), ApiError> {
        let OverrideEdit::Set(new) = edit else { return Ok(()) };
        let active = self.limiter.active_policy();
        let stored = active.overrides().get(subject);
        let is_added = |new: &&Override| stored.iter().all(|stored| stored.rule != new.rule);
        let added = new.iter().filter(is_added).count();
        if added > 0 && active.overrides().len() + added > MAX_OVERRIDES {
            let detail = format!("the maximum of {MAX_OVERRIDES} overrides is reached; remove one");
            return Err(ApiError::invalid(detail));
        }
        Ok(())
    }

    /// Audits a change that does not concern an override. Call it before the change: if it fails, the change must not
    /// be made.
    pub(crate) async fn record(self: &Arc<Self>, change: Change) -> Result<(), ApiError> {
        let store = Arc::clone(self);
        run_to_completion(async move { store.store_record(&change).await }).await
    }

    async fn store_record(&self, change: &Change) -> Result<(), ApiError> {
        match &self.storage {
            Storage::Redis { directory, .. } => {
                self.ensure_available()?;
                let recorded = directory.record(&change.to_text()).await;
                recorded.map_err(|error| self.store_failure(&error))?;
            }
            Storage::Local(local) => {
                local.record(change).await.map_err(|error| write_error(&error))?;
            }
        }
        change.log(None, None);
        self.add_event(change, None, None);
        Ok(())
    }

    /// Adds a change to the events of this node.
    fn add_event(&self, change: &Change, old: Option<&Override>, new: Option<&Override>) {
        if let Some((kind, detail)) = change_event(change, old, new) {
            self.limiter.observer().store().events().add(kind, &detail);
        }
    }

    async fn store_in_redis(
        &self,
        directory: &Directory,
        subject: &Subject,
        edit: OverrideEdit,
        change: &Change,
    ) -> Result<Vec<ChangedOverride>, ApiError> {
        self.ensure_available()?;
        let entry = change.to_text();
        let parse = |text: &str| Override::from_text(text).ok();
        let changed = match edit {
            OverrideEdit::Set(new) => {
                let old = directory.put_overrides(subject, &new, &entry).await;
                old.map(|old| {
                    let changed = new.into_iter().zip(old).map(|(new, old)| ChangedOverride {
                        old: old.as_deref().and_then(parse),
                        new: Some(new),
                    });
                    changed.collect()
                })
            }
            OverrideEdit::Remove { rule } => {
                let removed = directory.remove_overrides(subject, rule.as_deref(), &entry).await;
                removed.map(|removed| {
                    let changed =
                        removed.iter().map(|old| ChangedOverride { old: parse(old), new: None });
                    changed.collect()
                })
            }
        };
        changed.map_err(|error| self.write_failure(&error))
    }

    /// Converts the error of a write. Without a reply, it is unknown whether Redis stored the change.
    fn write_failure(&self, error: &StoreError) -> ApiError {
        let failure = self.store_failure(error);
        if !error.may_have_run() {
            return failure;
        }
        let detail = format!(
            "{failure}; the change may have been stored: read the override before you retry"
        );
        ApiError::new(failure.kind(), detail)
    }

    /// Returns an error if the breaker is open.
    pub(super) fn ensure_available(&self) -> Result<(), ApiError> {
        self.limiter.store().ensure_available().map_err(|error| ApiError::from(&error))
    }

    /// Counts a failed store call and converts its error.
    pub(super) fn store_failure(&self, error: &StoreError) -> ApiError {
        self.limiter.observer().store().note_failure(error);
        ApiError::from(error)
    }

    /// Returns why the active overrides may differ from the stored ones.
    pub(crate) fn last_error(&self) -> Option<String> {
        match &self.storage {
            Storage::Redis { follower, .. } => follower.last_error(),
            Storage::Local(_) => None,
        }
    }

    /// Removes overrides when they expire, until shutdown. With Redis, the follower does this.
    pub(crate) async fn run_expiry(self: Arc<Self>, mut end: StageWaiter) {
        let Storage::Local(local) = &self.storage else { return };
        loop {
            let next = local.overrides().await.next_expiry();
            let delay = next.map_or(MAX_EXPIRY_SLEEP, |next| {
                let micros = next.as_micros().saturating_sub(local.now().as_micros());
                Duration::from_micros(micros).min(MAX_EXPIRY_SLEEP)
            });
            tokio::select! {
                () = end.wait() => return,
                () = self.changed.notified() => {}
                () = sleep(delay) => {
                    let activate = |overrides: &Overrides| self.limiter.set_overrides(overrides);
                    local.remove_expired(activate).await;
                }
            }
        }
    }
}

/// Runs a change in a task of its own, so that it completes even if the client disconnects.
pub(crate) async fn run_to_completion<T: Send + 'static>(
    work: impl Future<Output = Result<T, ApiError>> + Send + 'static,
) -> Result<T, ApiError> {
    let aborted = |_| ApiError::new(ApiErrorKind::Unavailable, "the server is shutting down");
    tokio::spawn(work).await.map_err(aborted)?
}

fn open_local(directory: Option<&Path>, bad_state: BadState) -> Result<LocalStorage, ServeError> {
    let Some(path) = directory else { return LocalStorage::open(None).map_err(ServeError::new) };
    let in_directory = |reason: &dyn fmt::Display| {
        ServeError::new(format!("--data-dir: {}: {reason}", path.display()))
    };
    match (LocalStorage::open(Some(path.to_owned())), bad_state) {
        (Ok(local), _) => Ok(local),
        (Err(reason), BadState::Refuse) => Err(in_directory(&format!(
            "{reason}; use --discard-bad-state to set the file aside and start without overrides"
        ))),
        (Err(reason), BadState::PutAside) => {
            LocalStorage::set_aside(path).map_err(|error| in_directory(&error))?;
            warn!(reason, "set the unreadable overrides aside; starting without overrides");
            LocalStorage::open(Some(path.to_owned())).map_err(|reason| in_directory(&reason))
        }
    }
}

fn write_error(error: &std::io::Error) -> ApiError {
    let detail = format!("the change was not made, because it could not be stored: {error}");
    ApiError::new(ApiErrorKind::Unavailable, detail)
}
