//! Reading the policy again: when its file changes, and on SIGHUP.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval};
use tollgate::policy::Policy;
use tracing::{error, info};

use crate::app::App;
use crate::metrics::Reload;
use crate::policy_file::{self, LoadError};
use crate::shutdown::Awaited;

/// How often the file is looked at. Reading is sure where watching is not: on network file systems,
/// and where a whole directory is swapped beneath a link.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Keeps the policy that of its file until asked to stop.
pub(crate) async fn watch(app: Arc<App>, mut stop: Awaited) {
    let Some(path) = app.policy_file().path().map(PathBuf::from) else {
        return ignore_hangups(stop).await;
    };
    let Ok(mut hangup) = signal(SignalKind::hangup()) else { return };
    let mut looks = interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut seen = policy_file::read(&path).ok();
    loop {
        let forced = tokio::select! {
            () = stop.wait() => return,
            _ = hangup.recv() => true,
            _ = looks.tick() => false,
        };
        let text = policy_file::read(&path);
        if forced || text.as_ref().ok() != seen.as_ref() {
            seen = text.as_ref().ok().cloned();
            set(&app, text.and_then(|text| app.policy_file().compile(&path, &text)));
        }
    }
}

/// Without a policy file SIGHUP has nothing to do, and must not end the process.
async fn ignore_hangups(mut stop: Awaited) {
    if let Ok(mut hangup) = signal(SignalKind::hangup()) {
        loop {
            tokio::select! {
                () = stop.wait() => return,
                _ = hangup.recv() => info!("SIGHUP: there is no policy file to read again"),
            }
        }
    }
}

fn set(app: &App, loaded: Result<Policy, LoadError>) {
    match loaded {
        Ok(policy) => {
            info!(version = policy.version(), rules = policy.rules().len(), "policy reloaded");
            app.set_policy(policy);
            app.metrics().count_reload(Reload::Done);
        }
        Err(failure) => {
            error!(reason = %failure, "policy not reloaded; the old one serves on");
            app.note_policy_error(failure.to_string());
            app.metrics().count_reload(Reload::Failed);
        }
    }
}
