//! Reading certificates again: when their files change, and on SIGHUP.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::Signal;
use tokio::time::{MissedTickBehavior, interval};
use tracing::{error, info};

use super::current_config::CurrentConfig;
use super::server::{ServerPems, ServerTlsFiles};
use crate::file_change::{DebouncedFile, ReadTrigger};
use crate::reload::run_blocking;
use crate::settings::SettingsError;
use crate::shutdown::StageWaiter;

/// How often the files are looked at. A certificate is replaced days before it expires.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// What the files were last seen to hold, or why they could not be read.
type Seen = Result<ServerPems, SettingsError>;

/// Keeps what is in force that of its files until asked to stop. `pems` is what it was made of.
///
/// Certificate and key are two files, replaced one after the other: what does not fit together is often
/// just not whole yet. It is told once, and what was in force stays so until they fit.
pub(crate) async fn watch(
    current: Arc<CurrentConfig>,
    files: ServerTlsFiles,
    pems: ServerPems,
    mut hangup: Signal,
    mut stop: StageWaiter,
) -> io::Result<()> {
    let mut looks = interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut all: DebouncedFile<Seen> = DebouncedFile::new(Ok(pems));
    loop {
        let look = tokio::select! {
            () = stop.wait() => return Ok(()),
            _ = hangup.recv() => ReadTrigger::Requested,
            _ = looks.tick() => ReadTrigger::Poll,
        };
        let read = files.clone();
        let now = run_blocking(move || read.read()).await?;
        if all.takes(look, &now) {
            let (files, current) = (files.clone(), Arc::clone(&current));
            run_blocking(move || set(&files, &current, now)).await?;
        }
    }
}

fn set(files: &ServerTlsFiles, current: &CurrentConfig, seen: Seen) {
    match seen.and_then(|pems| files.config(&pems)) {
        Ok(config) => {
            current.replace(config);
            info!("certificates reloaded");
        }
        Err(reason) => error!(%reason, "certificates not reloaded; the old ones serve on"),
    }
}
