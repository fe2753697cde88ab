//! The service from start to end.

use std::fmt;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tracing::{info, warn};

use crate::app::App;
use crate::http::{Surface, listen};
use crate::membership::Membership;
use crate::opened::Opened;
use crate::policy_file::PolicyFile;
use crate::reload;
use crate::saved_state::SavedState;
use crate::settings::Settings;
use crate::shutdown::Shutdown;

/// Why the service could not start or go on.
#[derive(Debug)]
pub(crate) struct ServeError(String);

impl ServeError {
    pub(crate) fn new(reason: impl fmt::Display) -> Self {
        Self(reason.to_string())
    }
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Serves until it is told to end, then finishes what is under way.
pub(crate) async fn serve(settings: Settings) -> Result<(), ServeError> {
    let source = PolicyFile::new(settings.policy.clone(), settings.default_limit.clone());
    let text = source.read().map_err(ServeError::new)?;
    let policy = source.compile(text.as_deref()).map_err(ServeError::new)?;
    for warning in policy.warnings() {
        warn!(%warning, "policy");
    }
    let shutdown = Shutdown::on_signals().map_err(ServeError::new)?;
    // Before anything that takes time: unheeded, it would end the process.
    let hangup = signal(SignalKind::hangup()).map_err(ServeError::new)?;
    let store = Opened::open(&settings).await?;
    let listener = bind("--http", settings.http).await?;
    let operating = match settings.admin {
        Some(address) => Some(bind("--admin", address).await?),
        None => None,
    };
    let address = listener.local_addr().map_err(ServeError::new)?;
    let app = Arc::new(App::new(&settings, store, address, policy, source));
    let saved = SavedState::open(&settings, &app)?;
    tell_start(&app);
    let saving = saved.map(|saved| tokio::spawn(saved.keep(Arc::clone(&app), shutdown.finished())));
    let membership = Membership::begin(&app, &settings).await;
    let membership =
        membership.map(|node| tokio::spawn(node.keep(Arc::clone(&app), shutdown.finished())));
    let reloading =
        tokio::spawn(reload::watch(Arc::clone(&app), text, hangup, shutdown.requested()));

    // Before anyone can ask: an answer of a node that is not ready closes its connection.
    app.set_ready();
    let deciding = if operating.is_some() { Surface::Deciding } else { Surface::Whole };
    let mut listening = vec![listen(listener, deciding, Arc::clone(&app), &shutdown, &settings)];
    if let Some(operating) = operating {
        listening.push(listen(
            operating,
            Surface::Operating,
            Arc::clone(&app),
            &shutdown,
            &settings,
        ));
    }
    for listener in listening {
        listener.await.map_err(ServeError::new)?;
    }
    shutdown.finish();
    reloading.await.map_err(ServeError::new)?.map_err(ServeError::new)?;
    if let Some(membership) = membership {
        membership.await.map_err(ServeError::new)?;
    }
    if let Some(saving) = saving {
        saving.await.map_err(ServeError::new)??;
    }
    info!("stopped");
    Ok(())
}

/// Which store, why, and what it is: so that nobody must guess.
fn tell_start(app: &App) {
    let about = app.about_store();
    let (address, server) = (about.address.as_deref(), about.server.as_deref());
    info!(store = about.kind, address, server, node = app.node_id(), "starting");
}

async fn bind(setting: &str, address: std::net::SocketAddr) -> Result<TcpListener, ServeError> {
    let listener = TcpListener::bind(address).await;
    listener
        .map_err(|error| ServeError::new(format!("{setting}: cannot listen on {address}: {error}")))
}
