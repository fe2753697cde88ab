//! Counters that survive a restart: saved every few seconds and at the end, whole or not at all.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tollgate::SnapshotErrorKind;
use tracing::{error, info, warn};

use crate::app::App;
use crate::atomic_write;
use crate::serve::ServeError;
use crate::settings::{BadState, Settings};
use crate::shutdown::StageWaiter;

const FILE: &str = "counters";
const BAD_FILE: &str = "counters.bad";
const LOCK_FILE: &str = "lock";

/// How long after one save the next begins, at the least.
const EVERY: Duration = Duration::from_secs(2);

/// Saving may take this share of the time of one core: a twentieth.
const REST_PER_WORK: u32 = 20;

/// A data directory, held by this process alone.
#[derive(Debug)]
pub(crate) struct SavedState {
    directory: PathBuf,
    /// Two services in one directory would overwrite each other's counters.
    _lock: File,
}

impl SavedState {
    /// Opens the data directory, if there is to be one, and restores what is in it.
    pub(crate) fn open(settings: &Settings, app: &App) -> Result<Option<Self>, ServeError> {
        let Some(directory) = settings.data_dir.clone() else { return Ok(None) };
        let named = |reason: String| {
            ServeError::new(format!("--data-dir: {}: {reason}", directory.display()))
        };
        std::fs::create_dir_all(&directory).map_err(|error| named(error.to_string()))?;
        let lock = lock(&directory).map_err(named)?;
        restore(&directory, settings.bad_state, app).map_err(named)?;
        // Now rather than at the first save: a directory that cannot be written to is told at once.
        save(&directory, app).map_err(|error| named(format!("cannot save: {error}")))?;
        Ok(Some(Self { directory, _lock: lock }))
    }

    /// Saves every few seconds until the end, and then once more.
    pub(crate) async fn keep(self, app: Arc<App>, mut end: StageWaiter) -> Result<(), ServeError> {
        let mut rest = EVERY;
        let mut failing = false;
        while !end.is_reached() {
            tokio::select! {
                () = end.wait() => break,
                () = sleep(rest) => {}
            }
            let began = Instant::now();
            failing = tell(&app, self.save(&app).await, failing);
            rest = EVERY.max(began.elapsed() * REST_PER_WORK);
        }
        let saved = self.save(&app).await;
        let keys = saved.map_err(|error| {
            ServeError::new(format!("the counters could not be saved at the end: {error}"))
        })?;
        info!(keys, "counters saved");
        Ok(())
    }

    async fn save(&self, app: &Arc<App>) -> io::Result<u64> {
        let (directory, app) = (self.directory.clone(), Arc::clone(app));
        spawn_blocking(move || save(&directory, &app)).await.map_err(io::Error::other)?
    }
}

/// Says that saving fails, once, and that it succeeds again.
fn tell(app: &App, saved: io::Result<u64>, failing: bool) -> bool {
    match saved {
        Ok(_) if failing => info!("counters are saved again"),
        Ok(_) => {}
        Err(reason) => {
            app.metrics().count_failed_save();
            if !failing {
                error!(%reason, "counters cannot be saved; checks go on");
            }
            return true;
        }
    }
    false
}

fn lock(directory: &Path) -> Result<File, String> {
    let path = directory.join(LOCK_FILE);
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(path);
    let file = file.map_err(|error| error.to_string())?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err("another process uses it".to_owned()),
        Err(TryLockError::Error(error)) => Err(error.to_string()),
    }
}

fn restore(directory: &Path, bad_state: BadState, app: &App) -> Result<(), String> {
    let path = directory.join(FILE);
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(format!("{FILE}: {error}")),
    };
    let Some(memory) = app.backend().memory() else { return Ok(()) };
    match (memory.restore(&bytes), bad_state) {
        (Ok(keys), _) => info!(keys, "counters restored"),
        (Err(error), _) if error.kind() == SnapshotErrorKind::TooMany => {
            return Err(format!("{FILE}: {error}; raise --max-keys"));
        }
        (Err(error), BadState::Refuse) => {
            return Err(format!(
                "{FILE}: {error}; to put it aside and start empty, say --discard-bad-state"
            ));
        }
        (Err(error), BadState::PutAside) => {
            std::fs::rename(&path, directory.join(BAD_FILE)).map_err(|error| error.to_string())?;
            warn!(reason = %error, "the saved counters were put aside as {BAD_FILE}; starting empty");
        }
    }
    Ok(())
}

fn save(directory: &Path, app: &App) -> io::Result<u64> {
    atomic_write::replace(directory, FILE, |out| {
        app.backend().memory().map_or(Ok(0), |memory| memory.save(out))
    })
}
