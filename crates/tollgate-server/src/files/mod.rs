//! Files: the data directory, bounded reads, atomic writes, change detection, and the policy file.

pub(crate) mod atomic_write;
pub(crate) mod bounded_line;
pub(crate) mod bounded_read;
pub(crate) mod data_directory;
pub(crate) mod file_change;
pub(crate) mod policy_file;

use std::io;

use tokio::task::spawn_blocking;

/// Runs blocking work on its own thread, so that a slow disk or a large policy delays no request.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    spawn_blocking(work).await.map_err(io::Error::other)
}
