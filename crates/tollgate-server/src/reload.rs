//! Reloads the policy when its file changes, on SIGHUP, and on request.

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

/// How often the file is read. Polling works where file notifications do not: on network file systems, and when a
/// symbolic link to a directory is replaced.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Sends requests to reload the policy file.
#[derive(Debug, Clone)]
pub(crate) struct ReloadRequests(mpsc::Sender<ReloadReply>);

/// Receives the result of a requested reload.
pub(crate) type ReloadReply = oneshot::Sender<Result<(), String>>;

impl ReloadRequests {
    /// Creates a channel for reload requests.
    pub(crate) fn new() -> (Self, mpsc::Receiver<ReloadReply>) {
        let (sender, receiver) = mpsc::channel(1);
        (Self(sender), receiver)
    }

    /// Requests a reload and waits for its result.
    pub(crate) async fn send(&self) -> Result<(), String> {
        let (reply, result) = oneshot::channel();
        let stopping = || "the service is shutting down".to_owned();
        self.0.send(reply).await.map_err(|_| stopping())?;
        result.await.map_err(|_| stopping())?
    }
}

/// Text of the file, or why it could not be read.
type ReadResult = Result<Option<String>, String>;

/// Watches the policy file until shutdown. `text` is the text that the active policy was compiled from, so that every
/// later change is detected.
pub(crate) async fn watch(
    app: Arc<App>,
    text: Option<String>,
    (mut hangup, mut requests): (Signal, mpsc::Receiver<ReloadReply>),
    mut stop: StageWaiter,
) -> io::Result<()> {
    let mut polls = interval(POLL_INTERVAL);
    polls.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let has_file = app.policy_file().path().is_some();
    let mut debounced: DebouncedFile<ReadResult> = DebouncedFile::new(Ok(text));
    loop {
        let mut reply = None;
        let trigger = tokio::select! {
            () = stop.wait() => return Ok(()),
            _ = hangup.recv() => ReadTrigger::Requested,
            Some(request) = requests.recv() => {
                reply = Some(request);
                ReadTrigger::Requested
            }
            _ = polls.tick(), if has_file => ReadTrigger::Poll,
        };
        if !has_file {
            let reason = "no policy file is configured (--policy)";
            match reply {
                Some(reply) => drop(reply.send(Err(reason.to_owned()))),
                None => info!("policy not reloaded on SIGHUP: {reason}"),
            }
            continue;
        }
        let reader = Arc::clone(&app);
        let read = move || reader.policy_file().read().map_err(|error| error.to_string());
        let content = run_blocking(read).await?;
        if debounced.accept(trigger, &content) {
            let app = Arc::clone(&app);
            let result = run_blocking(move || reload(&app, &content)).await?;
            if let Some(reply) = reply {
                drop(reply.send(result));
            }
        }
    }
}

/// Runs blocking work on its own thread, so that a slow disk or a large policy delays no request.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    spawn_blocking(work).await.map_err(io::Error::other)
}

fn reload(app: &App, content: &ReadResult) -> Result<(), String> {
    let compiled = match content {
        Ok(text) => app.policy_file().compile(text.as_deref()),
        Err(reason) => Err(LoadError::Unreadable(reason.clone())),
    };
    match compiled {
        Ok(policy) => {
            activate(app, policy);
            Ok(())
        }
        Err(error) => {
            error!(
                %error,
                "policy not reloaded; the previous policy stays active. Fix the file (tollgate policy validate FILE)"
            );
            app.note_policy_error(error.to_string());
            app.metrics().count_reload(ReloadResult::Failed);
            Err(error.to_string())
        }
    }
}

fn activate(app: &App, policy: Policy) {
    info!(version = policy.version(), rules = policy.rules().len(), "policy reloaded");
    for warning in policy.warnings() {
        warn!(%warning, "policy warning");
    }
    app.set_policy(policy);
    app.metrics().count_reload(ReloadResult::Activated);
}
