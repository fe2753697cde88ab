//! A copy of what a node must know to start without Redis: the last node count and the last overrides, in `--data-dir`.
//! The counters are only in Redis.

mod copy_files;
mod count_to_save;

use std::io;
use std::mem;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::sleep;
use tollgate::Overrides;
use tracing::{error, info};

use super::NodeLimiter;
use crate::files::data_directory::DataDirectory;
use crate::files::run_blocking;
use crate::shutdown::StageWaiter;
use count_to_save::CountToSave;

/// Minimum time between the end of one save and the start of the next.
const SAVE_INTERVAL: Duration = Duration::from_secs(1);
/// Pause per duration of a save: saving takes at most 1/20 of one core.
const PAUSE_PER_SAVE: u32 = 20;

/// The copy and its directory.
#[derive(Debug)]
pub(crate) struct RedisCopy {
    directory: DataDirectory,
    /// The node count when the copy was opened.
    nodes: Option<NonZeroU32>,
    count: Mutex<CountToSave>,
    /// The overrides in the file; `None` if it is missing or unreadable.
    overrides: Mutex<Option<Overrides>>,
    /// The values to save.
    unsaved: Mutex<Unsaved>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Unsaved {
    nodes: Option<NonZeroU32>,
    overrides: Option<Overrides>,
}

impl RedisCopy {
    /// Reads the files of the directory. An unreadable file is ignored, with a warning.
    pub(crate) fn open(directory: DataDirectory, node_lifetime: Duration) -> Self {
        let nodes = copy_files::read_nodes(directory.path());
        let overrides = copy_files::read_overrides(directory.path());
        Self {
            directory,
            nodes,
            count: Mutex::new(CountToSave::new(nodes, node_lifetime)),
            overrides: Mutex::new(overrides),
            unsaved: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// Returns the last known number of nodes of the previous process.
    pub(crate) const fn nodes(&self) -> Option<NonZeroU32> {
        self.nodes
    }

    /// Returns the last known overrides. Some may have expired.
    pub(crate) fn overrides(&self) -> Overrides {
        self.overrides.lock().clone().unwrap_or_default()
    }

    /// Notes the number of live nodes.
    pub(crate) fn note_nodes(&self, count: NonZeroU32, now: Instant) {
        if let Some(count) = self.count.lock().update(count, now) {
            self.unsaved.lock().nodes = Some(count);
            self.changed.notify_one();
        }
    }

    /// Notes the overrides in Redis.
    pub(crate) fn note_overrides(&self, overrides: &Overrides) {
        self.unsaved.lock().overrides = Some(overrides.clone());
        self.changed.notify_one();
    }

    /// Saves changes until shutdown, and then a last time.
    pub(crate) async fn run(self: Arc<Self>, limiter: Arc<NodeLimiter>, mut shutdown: StageWaiter) {
        let mut is_failing = false;
        while !shutdown.is_reached() {
            tokio::select! {
                () = shutdown.wait() => {}
                () = self.changed.notified(), if !is_failing => {}
                () = sleep(SAVE_INTERVAL), if is_failing => {}
            }
            let start = Instant::now();
            let copy = Arc::clone(&self);
            let saved = run_blocking(move || copy.save()).await.flatten();
            is_failing = log_result(&limiter, saved, is_failing);
            tokio::select! {
                () = shutdown.wait() => {}
                () = sleep(SAVE_INTERVAL.max(start.elapsed() * PAUSE_PER_SAVE)) => {}
            }
        }
        let saved = run_blocking(move || self.save()).await.flatten();
        log_result(&limiter, saved, is_failing);
    }

    /// Writes the files that have changed. A value that could not be written stays unsaved.
    fn save(&self) -> io::Result<()> {
        let Unsaved { nodes, overrides } = mem::take(&mut *self.unsaved.lock());
        let nodes_saved = nodes.map_or(Ok(()), |nodes| {
            let saved = copy_files::write_nodes(self.directory.path(), nodes);
            saved.inspect_err(|_| {
                self.unsaved.lock().nodes.get_or_insert(nodes);
            })
        });
        let overrides_saved = overrides.map_or(Ok(()), |overrides| {
            let saved = self.save_overrides(&overrides);
            saved.inspect_err(|_| {
                self.unsaved.lock().overrides.get_or_insert(overrides);
            })
        });
        nodes_saved.and(overrides_saved)
    }

    fn save_overrides(&self, overrides: &Overrides) -> io::Result<()> {
        let mut saved = self.overrides.lock();
        if saved.as_ref().is_some_and(|saved| saved.after("").eq(overrides.after(""))) {
            return Ok(());
        }
        copy_files::write_overrides(self.directory.path(), overrides)?;
        *saved = Some(overrides.clone());
        Ok(())
    }
}

/// Logs when saving starts to fail and when it works again. Returns whether this save failed.
fn log_result(limiter: &NodeLimiter, saved: io::Result<()>, was_failing: bool) -> bool {
    match saved {
        Ok(()) if was_failing => info!("node count and overrides are saved again"),
        Ok(()) => {}
        Err(error) => {
            limiter.observer().count_failed_save();
            if !was_failing {
                error!(
                    %error,
                    "node count or overrides not saved to --data-dir: a start without Redis would use older ones. \
                     Saving is retried"
                );
            }
            return true;
        }
    }
    false
}
