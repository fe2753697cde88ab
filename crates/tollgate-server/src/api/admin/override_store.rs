//! The book of overrides: where they are kept, and that they are in force here.

use std::fmt;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;
use tollgate::{Override, Overrides, StoreError, StoreErrorKind, Subject};
use tollgate_redis::{Directory, OverrideFollower, StoredOverrides};
use tracing::warn;

use super::change::Change;
use super::clients::Client;
use super::embedded::Embedded;
use crate::app::App;
use crate::error::{ApiError, ApiErrorKind};
use crate::serve::ServeError;
use crate::settings::{BadState, Settings};
use crate::shutdown::StageWaiter;

/// The most overrides: every node holds all of them.
const MOST: usize = 100_000;
/// However late the next of them ends.
const LONGEST_REST: Duration = Duration::from_secs(3600);

/// Where overrides are kept.
pub(crate) struct OverrideStore {
    place: Place,
    /// When the next to end has changed.
    changed: Notify,
}

pub(super) enum Place {
    /// In the Redis that nodes share.
    Shared { directory: Directory, following: OverrideFollower },
    /// With this node.
    Here(Embedded),
}

impl fmt::Debug for OverrideStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OverrideStore").field("kept_in", &self.kept_in()).finish_non_exhaustive()
    }
}

impl OverrideStore {
    /// Opens it, and puts what it says in force.
    pub(crate) async fn open(app: &Arc<App>, settings: &Settings) -> Result<Self, ServeError> {
        let place = match app.backend().redis() {
            Some(store) => {
                let directory = store.directory();
                let following = follow(app, &directory).await;
                let following = following.map_err(|error| {
                    ServeError::new(format!("the overrides could not be read: {error}"))
                })?;
                Place::Shared { directory, following }
            }
            None => {
                let embedded = open_here(settings.data_dir.as_deref(), settings.bad_state)?;
                embedded.forget_ended(|overrides| app.limiter().set_overrides(overrides)).await;
                Place::Here(embedded)
            }
        };
        Ok(Self { place, changed: Notify::new() })
    }

    pub(super) const fn place(&self) -> &Place {
        &self.place
    }

    /// Where overrides are kept, in a word.
    pub(crate) const fn kept_in(&self) -> &'static str {
        match &self.place {
            Place::Shared { .. } => "redis",
            Place::Here(embedded) if embedded.is_kept() => "data_dir",
            Place::Here(_) => "memory",
        }
    }

    /// Sets a client's own limits, or removes them. What was before; none where there was nothing to remove.
    /// It goes to its end whether anybody waits for it or not.
    pub(crate) async fn set(
        app: &Arc<App>,
        client: &Client,
        own: Option<Override>,
        change: Change,
    ) -> Result<Changed, ApiError> {
        let (app, client) = (Arc::clone(app), client.clone());
        to_its_end(async move { opened(&app)?.set_here(&app, &client, own, &change).await }).await
    }

    async fn set_here(
        &self,
        app: &App,
        client: &Client,
        own: Option<Override>,
        change: &Change,
    ) -> Result<Changed, ApiError> {
        let subject = client.subject();
        let known = app.limiter().active_policy();
        let is_new = own.is_some() && known.overrides().get(&subject).is_none();
        if is_new && known.overrides().len() >= MOST {
            let detail = format!("there are {MOST} overrides already; remove some");
            return Err(ApiError::invalid(detail));
        }
        let changed = match &self.place {
            Place::Shared { directory, following } => {
                let changed = store(app, directory, &subject, own.as_ref(), change).await?;
                // Stored it is; if it cannot be asked for now, it will be in a moment.
                let _ = following.refresh(&subject).await;
                changed
            }
            Place::Here(embedded) => {
                let obey = |overrides: &Overrides| app.limiter().set_overrides(overrides);
                let set = embedded.set(&subject, own.clone(), change, obey).await;
                self.changed.notify_one();
                set.map_err(|error| unwritten(&error))?.map_or(Changed::Nothing, Changed::From)
            }
        };
        if let Changed::From(old) = &changed {
            change.log(old.as_ref(), own.as_ref());
        }
        Ok(changed)
    }

    /// Notes a change that is about to be made, and is not of an override. If it cannot be noted it must not be
    /// made.
    pub(crate) async fn record(app: &Arc<App>, change: Change) -> Result<(), ApiError> {
        let app = Arc::clone(app);
        to_its_end(async move { opened(&app)?.record_here(&app, &change).await }).await
    }

    async fn record_here(&self, app: &App, change: &Change) -> Result<(), ApiError> {
        match &self.place {
            Place::Shared { directory, .. } => {
                ensure_available(app)?;
                let recorded = directory.record(&change.to_text()).await;
                recorded.map_err(|error| failed(app, &error))?;
            }
            Place::Here(embedded) => {
                embedded.record(change).await.map_err(|error| unwritten(&error))?;
            }
        }
        change.log(None, None);
        Ok(())
    }

    /// Why what is in force here may not be what is stored.
    pub(crate) fn last_error(&self) -> Option<String> {
        match &self.place {
            Place::Shared { following, .. } => following.last_error(),
            Place::Here(_) => None,
        }
    }

    /// Lets overrides end when they are to, until the service does. Those of a Redis are followed anyway.
    pub(crate) async fn keep(app: Arc<App>, mut end: StageWaiter) {
        let Some((book, embedded)) = app.override_store().and_then(|book| match &book.place {
            Place::Here(embedded) => Some((book, embedded)),
            Place::Shared { .. } => None,
        }) else {
            return;
        };
        loop {
            let next = embedded.overrides().await.next_expiry();
            let rest = next.map_or(LONGEST_REST, |next| {
                let micros = next.as_micros().saturating_sub(embedded.now().as_micros());
                Duration::from_micros(micros).min(LONGEST_REST)
            });
            tokio::select! {
                () = end.wait() => return,
                () = book.changed.notified() => {}
                () = sleep(rest) => {
                    let obey = |overrides: &Overrides| app.limiter().set_overrides(overrides);
                    embedded.forget_ended(obey).await;
                }
            }
        }
    }
}

/// What came of a change.
#[derive(Debug)]
pub(crate) enum Changed {
    /// It was made; this was before.
    From(Option<Override>),
    /// There was nothing to change.
    Nothing,
}

/// Goes on though whoever asked for it has gone: half of a change would be worse than none.
pub(crate) async fn to_its_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, ApiError>> + Send + 'static,
) -> Result<T, ApiError> {
    let ending = |_| ApiError::new(ApiErrorKind::Unavailable, "the service is ending");
    tokio::spawn(work).await.map_err(ending)?
}

fn opened(app: &App) -> Result<&OverrideStore, ApiError> {
    let unopened = || ApiError::new(ApiErrorKind::Unavailable, "the service is starting");
    app.override_store().ok_or_else(unopened)
}

async fn store(
    app: &App,
    directory: &Directory,
    subject: &Subject,
    own: Option<&Override>,
    change: &Change,
) -> Result<Changed, ApiError> {
    ensure_available(app)?;
    let entry = change.to_text();
    let before = match own {
        Some(own) => directory.put_override(subject, own, &entry).await,
        None => directory.remove_override(subject, &entry).await,
    };
    let before = before.map_err(|error| uncertain(app, &error))?;
    if own.is_none() && before.is_none() {
        return Ok(Changed::Nothing);
    }
    Ok(Changed::From(before.and_then(|text| Override::from_text(&text).ok())))
}

/// Where an answer was lost, nobody knows whether it was done.
fn uncertain(app: &App, error: &StoreError) -> ApiError {
    if error.kind() != StoreErrorKind::Timeout {
        return failed(app, error);
    }
    let told = failed(app, error);
    let detail =
        format!("{told}; it may have been stored all the same, so look before you repeat it");
    ApiError::new(told.kind(), detail)
}

async fn follow(app: &Arc<App>, directory: &Directory) -> Result<OverrideFollower, StoreError> {
    let obeying = Arc::downgrade(app);
    let told = parking_lot::Mutex::new(0);
    let obey = move |stored: &StoredOverrides| {
        let Some(app) = obeying.upgrade() else { return };
        app.limiter().set_overrides(&stored.overrides);
        let unreadable = stored.unreadable.len();
        if unreadable > std::mem::replace(&mut *told.lock(), unreadable) {
            warn!(unreadable, "overrides that this version cannot read are not in force");
        }
    };
    directory.follow_overrides(obey).await
}

fn open_here(directory: Option<&Path>, bad_state: BadState) -> Result<Embedded, ServeError> {
    let Some(path) = directory else { return Embedded::open(None).map_err(ServeError::new) };
    let named = |reason: &dyn fmt::Display| {
        ServeError::new(format!("--data-dir: {}: {reason}", path.display()))
    };
    match (Embedded::open(Some(path.to_owned())), bad_state) {
        (Ok(embedded), _) => Ok(embedded),
        (Err(reason), BadState::Refuse) => Err(named(&format!(
            "{reason}; to put it aside and start without overrides, say --discard-bad-state"
        ))),
        (Err(reason), BadState::PutAside) => {
            Embedded::put_aside(path).map_err(|error| named(&error))?;
            warn!(reason, "the stored overrides were put aside; starting without");
            Embedded::open(Some(path.to_owned())).map_err(|reason| named(&reason))
        }
    }
}

/// A store that is known to be lost is not asked.
pub(super) fn ensure_available(app: &App) -> Result<(), ApiError> {
    let fallback = app.backend().fallback();
    let asked = fallback.map_or(Ok(()), tollgate::FallbackStore::ensure_available);
    asked.map_err(|error| ApiError::from(&error))
}

pub(super) fn failed(app: &App, error: &StoreError) -> ApiError {
    app.metrics().store().note_failure(error);
    ApiError::from(error)
}

fn unwritten(error: &std::io::Error) -> ApiError {
    let detail = format!("it could not be stored, and is not in force: {error}");
    ApiError::new(ApiErrorKind::Unavailable, detail)
}
