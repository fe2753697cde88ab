//! Reloads certificates when their files change and on SIGHUP.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::Signal;
use tokio::time::{MissedTickBehavior, interval};
use tracing::{error, info};

use super::current_config::CurrentConfig;
use super::server::{ServerPems, ServerTlsFiles};
use crate::error::SettingsError;
use crate::files::file_change::{DebouncedFile, ReadTrigger};
use crate::files::run_blocking;
use crate::shutdown::StageWaiter;

/// How often the files are read. Certificates are replaced days before they expire.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Content of the files, or why they could not be read.
type ReadResult = Result<ServerPems, SettingsError>;

/// Watches the files until shutdown. `pems` is the content that the active configuration was built from.
///
/// Certificate and key are two files that are replaced one after the other, so a mismatch is often temporary. It is
/// logged once, and the active configuration stays until the files match.
pub(crate) async fn watch(
    current: Arc<CurrentConfig>,
    files: ServerTlsFiles,
    pems: ServerPems,
    mut hangup: Signal,
    mut stop: StageWaiter,
) -> io::Result<()> {
    let mut polls = interval(POLL_INTERVAL);
    polls.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut debounced: DebouncedFile<ReadResult> = DebouncedFile::new(Ok(pems));
    loop {
        let trigger = tokio::select! {
            () = stop.wait() => return Ok(()),
            _ = hangup.recv() => ReadTrigger::Requested,
            _ = polls.tick() => ReadTrigger::Poll,
        };
        let reader = files.clone();
        let content = run_blocking(move || reader.read()).await?;
        if debounced.accept(trigger, &content) {
            let (files, current) = (files.clone(), Arc::clone(&current));
            run_blocking(move || activate(&files, &current, content)).await?;
        }
    }
}

fn activate(files: &ServerTlsFiles, current: &CurrentConfig, content: ReadResult) {
    match content.and_then(|pems| files.config(&pems)) {
        Ok(config) => {
            current.replace(config);
            info!("certificates reloaded");
        }
        Err(error) => {
            error!(%error, "certificates not reloaded; the previous ones stay active. Fix the files");
        }
    }
}
