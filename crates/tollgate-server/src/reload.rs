//! Reading the policy again: when its file changes, and on SIGHUP.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::Signal;
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};
use tollgate::policy::Policy;
use tracing::{error, info, warn};

use crate::app::App;
use crate::file_change::{DebouncedFile, ReadTrigger};
use crate::metrics::ReloadResult;
use crate::policy_file::LoadError;
use crate::shutdown::StageWaiter;

/// How often the file is looked at. Reading is sure where watching is not: on network file systems,
/// and where a whole directory is swapped beneath a link.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Asks for the policy file to be read again.
#[derive(Debug, Clone)]
pub(crate) struct ReloadRequests(mpsc::Sender<ReloadReply>);

/// Where it is told what came of that.
pub(crate) type ReloadReply = oneshot::Sender<Result<(), String>>;

impl ReloadRequests {
    /// The asking and the hearing end.
    pub(crate) fn new() -> (Self, mpsc::Receiver<ReloadReply>) {
        let (sender, receiver) = mpsc::channel(1);
        (Self(sender), receiver)
    }

    /// Asks, and waits for what comes of it.
    pub(crate) async fn send(&self) -> Result<(), String> {
        let (answer, told) = oneshot::channel();
        let ending = || "the service is ending".to_owned();
        self.0.send(answer).await.map_err(|_| ending())?;
        told.await.map_err(|_| ending())?
    }
}

/// What the file was last seen to say, or why it could not be read.
type Seen = Result<Option<String>, String>;

/// Keeps the policy that of its file until asked to stop. `text` is what the policy in force was
/// compiled from, so that no change after that goes unnoticed.
pub(crate) async fn watch(
    app: Arc<App>,
    text: Option<String>,
    (mut hangup, mut requests): (Signal, mpsc::Receiver<ReloadReply>),
    mut stop: StageWaiter,
) -> io::Result<()> {
    let mut looks = interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let has_file = app.policy_file().path().is_some();
    let mut file: DebouncedFile<Seen> = DebouncedFile::new(Ok(text));
    loop {
        let mut answer = None;
        let look = tokio::select! {
            () = stop.wait() => return Ok(()),
            _ = hangup.recv() => ReadTrigger::Requested,
            Some(asked) = requests.recv() => {
                answer = Some(asked);
                ReadTrigger::Requested
            }
            _ = looks.tick(), if has_file => ReadTrigger::Poll,
        };
        if !has_file {
            let reason = "there is no policy file to read again";
            match answer {
                Some(answer) => drop(answer.send(Err(reason.to_owned()))),
                None => info!("SIGHUP: {reason}"),
            }
            continue;
        }
        let looking = Arc::clone(&app);
        let read = move || looking.policy_file().read().map_err(|error| error.to_string());
        let now = run_blocking(read).await?;
        if file.takes(look, &now) {
            let app = Arc::clone(&app);
            let done = run_blocking(move || set(&app, &now)).await?;
            if let Some(answer) = answer {
                drop(answer.send(done));
            }
        }
    }
}

/// Where a slow disk or a long policy holds no request up.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    spawn_blocking(work).await.map_err(io::Error::other)
}

fn set(app: &App, seen: &Seen) -> Result<(), String> {
    let loaded = match seen {
        Ok(text) => app.policy_file().compile(text.as_deref()),
        Err(reason) => Err(LoadError::Unreadable(reason.clone())),
    };
    match loaded {
        Ok(policy) => {
            put_in_force(app, policy);
            Ok(())
        }
        Err(failure) => {
            error!(reason = %failure, "policy not reloaded; the old one serves on");
            app.note_policy_error(failure.to_string());
            app.metrics().count_reload(ReloadResult::Failed);
            Err(failure.to_string())
        }
    }
}

fn put_in_force(app: &App, policy: Policy) {
    info!(version = policy.version(), rules = policy.rules().len(), "policy reloaded");
    for warning in policy.warnings() {
        warn!(%warning, "policy");
    }
    app.set_policy(policy);
    app.metrics().count_reload(ReloadResult::Activated);
}
