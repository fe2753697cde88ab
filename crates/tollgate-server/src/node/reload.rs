//! Reloads the policy when its file changes, on SIGHUP, and on request.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::Signal;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{MissedTickBehavior, interval};
use tollgate::policy::Policy;
use tracing::{error, info, warn};

use crate::files::file_change::{DebouncedFile, ReadTrigger};
use crate::files::policy_file::LoadError;
use crate::files::run_blocking;
use crate::metrics::ReloadResult;
use crate::node::NodeContext;
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
    context: Arc<NodeContext>,
    text: Option<String>,
    (mut hangup, mut requests): (Signal, mpsc::Receiver<ReloadReply>),
    mut stop: StageWaiter,
) -> io::Result<()> {
    let mut polls = interval(POLL_INTERVAL);
    polls.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let has_file = context.policy_file().path().is_some();
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
        let reader = Arc::clone(&context);
        let read = move || reader.policy_file().read().map_err(|error| error.to_string());
        let content = run_blocking(read).await?;
        if debounced.accept(trigger, &content) {
            let context = Arc::clone(&context);
            let result = run_blocking(move || reload(&context, &content)).await?;
            if let Some(reply) = reply {
                drop(reply.send(result));
            }
        }
    }
}

fn reload(context: &NodeContext, content: &ReadResult) -> Result<(), String> {
    let compiled = match content {
        Ok(text) => context.policy_file().compile(text.as_deref()),
        Err(reason) => Err(LoadError::Unreadable(reason.clone())),
    };
    match compiled {
        Ok(policy) => {
            activate(context, policy);
            Ok(())
        }
        Err(error) => {
            error!(
                %error,
                "policy not reloaded; the previous policy stays active. Fix the file (tollgate policy validate FILE)"
            );
            context.note_policy_error(error.to_string());
            context.metrics().count_reload(ReloadResult::Failed);
            Err(error.list())
        }
    }
}

fn activate(context: &NodeContext, policy: Policy) {
    info!(version = policy.version(), rules = policy.rules().len(), "policy reloaded");
    for warning in policy.warnings() {
        warn!(%warning, "policy warning");
    }
    context.set_policy(policy);
    context.metrics().count_reload(ReloadResult::Activated);
}
