//! Saves the memory store to `--data-dir` every few seconds and at shutdown, atomically, and restores it at start.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tollgate::SnapshotErrorKind;
use tracing::{error, info, warn};

use crate::error::ServeError;
use crate::files::atomic_write;
use crate::files::data_directory::DataDirectory;
use crate::node::NodeLimiter;
use crate::settings::BadState;
use crate::shutdown::StageWaiter;

const FILE: &str = "counters";
const BAD_FILE: &str = "counters.bad";

/// Minimum time between the end of one save and the start of the next.
const SAVE_INTERVAL: Duration = Duration::from_secs(2);

/// Pause per duration of a save: saving takes at most 1/20 of one core.
const PAUSE_PER_SAVE: u32 = 20;

/// The snapshot of the memory store in the data directory.
#[derive(Debug)]
pub(crate) struct SavedState {
    directory: DataDirectory,
}

impl SavedState {
    /// Restores the snapshot in the data directory.
    pub(crate) fn open(
        directory: DataDirectory,
        bad_state: BadState,
        limiter: &NodeLimiter,
    ) -> Result<Self, ServeError> {
        let failed = |reason: String| ServeError::new(directory.error(&reason));
        restore(directory.path(), bad_state, limiter).map_err(failed)?;
        // Fails the start immediately if the directory is not writable.
        save(directory.path(), limiter).map_err(|error| failed(format!("cannot save: {error}")))?;
        Ok(Self { directory })
    }

    /// Saves every few seconds until shutdown, and then a last time.
    pub(crate) async fn run(
        self,
        limiter: Arc<NodeLimiter>,
        mut shutdown: StageWaiter,
    ) -> Result<(), ServeError> {
        let mut pause = SAVE_INTERVAL;
        let mut is_failing = false;
        while !shutdown.is_reached() {
            tokio::select! {
                () = shutdown.wait() => break,
                () = sleep(pause) => {}
            }
            let start = Instant::now();
            is_failing = log_result(&limiter, self.save(&limiter).await, is_failing);
            pause = SAVE_INTERVAL.max(start.elapsed() * PAUSE_PER_SAVE);
        }
        let saved = self.save(&limiter).await;
        let keys = saved.map_err(|error| {
            ServeError::new(self.directory.error(&format!("counters not saved at exit: {error}")))
        })?;
        info!(keys, "counters saved");
        Ok(())
    }

    async fn save(&self, limiter: &Arc<NodeLimiter>) -> io::Result<u64> {
        let (directory, limiter) = (self.directory.path().to_owned(), Arc::clone(limiter));
        spawn_blocking(move || save(&directory, &limiter)).await.map_err(io::Error::other)?
    }
}

/// Logs when saving starts to fail and when it works again. Returns whether this save failed.
fn log_result(limiter: &NodeLimiter, saved: io::Result<u64>, was_failing: bool) -> bool {
    match saved {
        Ok(_) if was_failing => info!("counters are saved again"),
        Ok(_) => {}
        Err(error) => {
            limiter.observer().count_failed_save();
            if !was_failing {
                error!(
                    %error,
                    "counters not saved to --data-dir: a restart loses usage since the last save. \
                     Checks continue, saving is retried"
                );
            }
            return true;
        }
    }
    false
}

fn restore(directory: &Path, bad_state: BadState, limiter: &NodeLimiter) -> Result<(), String> {
    let path = directory.join(FILE);
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(format!("{FILE}: {error}")),
    };
    let Some(memory) = limiter.store().memory() else { return Ok(()) };
    match (memory.restore(&bytes), bad_state) {
        (Ok(keys), _) => info!(keys, "counters restored"),
        (Err(error), _) if error.kind() == SnapshotErrorKind::TooMany => {
            return Err(format!("{FILE}: {error}; raise --max-keys"));
        }
        (Err(error), BadState::Refuse) => {
            return Err(format!(
                "{FILE}: {error}; use --discard-bad-state to rename it to {BAD_FILE} and start empty"
            ));
        }
        (Err(error), BadState::PutAside) => {
            std::fs::rename(&path, directory.join(BAD_FILE)).map_err(|error| error.to_string())?;
            warn!(%error, "saved counters are unreadable: renamed to {BAD_FILE}, starting empty");
        }
    }
    Ok(())
}

fn save(directory: &Path, limiter: &NodeLimiter) -> io::Result<u64> {
    atomic_write::replace(directory, FILE, |out| {
        limiter.store().memory().map_or(Ok(0), |memory| memory.save(out))
    })
}
