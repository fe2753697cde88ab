//! `tollgate serve`: startup, background tasks and shutdown of the server.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpSocket};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tracing::{error, info, warn};

use crate::api::admin::OverrideStore;
use crate::app::App;
use crate::http::{Listener, Surface, listen};
use crate::membership::Membership;
use crate::node_report;
use crate::notify;
use crate::policy_file::PolicyFile;
use crate::reload::{self, ReloadReply, ReloadRequests};
use crate::saved_state::SavedState;
use crate::settings::{Settings, TlsSettings};
use crate::shutdown::Shutdown;
use crate::store_maintenance;
use crate::store_setup::StoreSetup;
use crate::telemetry::Traces;
use crate::tls::{self, CurrentConfig};

/// Length of the accept queue. A client that finds it full retries after a second, and the usual 128 is too short when
/// all clients reconnect at the same time.
const ACCEPT_QUEUE: u32 = 4096;

/// The reason why the server could not start or continue.
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

/// Serves until a shutdown is requested, then finishes the requests in progress.
pub(crate) async fn serve(settings: Settings, traces: &Traces) -> Result<(), ServeError> {
    let source = PolicyFile::new(settings.policy.clone(), settings.default_limit.clone());
    let text = source.read().map_err(ServeError::new)?;
    let policy = source.compile(text.as_deref()).map_err(ServeError::new)?;
    for warning in policy.warnings() {
        warn!(%warning, "policy warning");
    }
    let shutdown = Shutdown::on_signals().map_err(ServeError::new)?;
    // Register the handler before slow steps: an unhandled SIGHUP terminates the process.
    let hangup = signal(SignalKind::hangup()).map_err(ServeError::new)?;
    let store = StoreSetup::open(&settings).await?;
    let listeners = Listeners::bind(&settings)?;
    let (reloads, reload_requests) = ReloadRequests::new();
    let address = listeners.address()?;
    let app = Arc::new(App::new(&settings, store, address, policy, source, reloads));
    let saved = SavedState::open(&settings, &app)?;
    app.set_override_store(OverrideStore::open(&app, &settings).await?);
    log_start(&app, &settings);
    let membership = Membership::register(&app, &settings).await;
    let maintenance = tokio::spawn(store_maintenance::run(
        Arc::clone(&app),
        settings.redis.probe,
        shutdown.finished(),
    ));
    let reload = (hangup, reload_requests, text);
    let background = BackgroundTasks::start(&app, &shutdown, saved, membership, reload);

    let tls = watch_tls(settings.tls.as_ref(), &shutdown)?;

    // Before the first request, because a response of a node that is not ready closes its connection.
    app.set_ready();
    let listening = listeners.listen(tls.as_ref(), &app, traces, &shutdown, &settings);
    let notifier = notify::start(&app, &shutdown);
    for listener in listening {
        listener.await.map_err(ServeError::new)?;
    }
    shutdown.finish();
    notifier.await.map_err(ServeError::new)?;
    maintenance.await.map_err(ServeError::new)?;
    background.join().await?;
    info!("stopped");
    Ok(())
}

/// Logs the store and the setting that selected it, and warnings about the settings.
fn log_start(app: &App, settings: &Settings) {
    let info = app.store_info();
    let (address, server) = (info.address.as_deref(), info.server.as_deref());
    info!(store = info.kind, why = info.why, address, server, node = app.node_id(), "starting");
    for warning in &settings.unprotected {
        warn!(%warning, "unprotected (--allow-unprotected)");
    }
    if settings.tokens.is_shared() {
        warn!("the admin token is also a check or read token: its holders can change everything");
    }
    let is_volatile = app.override_store().is_some_and(|store| store.kept_in() == "memory");
    if app.guard().has_admin() && is_volatile {
        warn!("overrides are stored in memory only and lost on exit; use --data-dir to keep them");
    }
}

/// Returns the current TLS configuration, and starts a task that reloads it when its files change.
fn watch_tls(
    settings: Option<&TlsSettings>,
    shutdown: &Shutdown,
) -> Result<Option<Arc<CurrentConfig>>, ServeError> {
    let Some(TlsSettings { files, pems, config }) = settings else { return Ok(None) };
    let current = Arc::new(CurrentConfig::new(Arc::clone(config)));
    let hangup = signal(SignalKind::hangup()).map_err(ServeError::new)?;
    let (files, pems, stop) = (files.clone(), pems.clone(), shutdown.requested());
    let watching = tls::watch(Arc::clone(&current), files, pems, hangup, stop);
    tokio::spawn(async {
        if let Err(error) = watching.await {
            error!(%error, "certificate reloading stopped");
        }
    });
    Ok(Some(current))
}

/// The background tasks of the server.
struct BackgroundTasks {
    policy_reload: JoinHandle<io::Result<()>>,
    override_expiry: JoinHandle<()>,
    node_report: JoinHandle<()>,
    membership: Option<JoinHandle<()>>,
    saved_state: Option<JoinHandle<Result<(), ServeError>>>,
}

impl BackgroundTasks {
    fn start(
        app: &Arc<App>,
        shutdown: &Shutdown,
        saved: Option<SavedState>,
        membership: Option<Membership>,
        (hangup, requests, text): (Signal, mpsc::Receiver<ReloadReply>, Option<String>),
    ) -> Self {
        let app = || Arc::clone(app);
        Self {
            policy_reload: tokio::spawn(reload::watch(
                app(),
                text,
                (hangup, requests),
                shutdown.requested(),
            )),
            override_expiry: tokio::spawn(OverrideStore::run_expiry(app(), shutdown.finished())),
            node_report: tokio::spawn(node_report::run(app(), shutdown.requested())),
            membership: membership.map(|node| tokio::spawn(node.run(app(), shutdown.finished()))),
            saved_state: saved.map(|saved| tokio::spawn(saved.run(app(), shutdown.finished()))),
        }
    }

    /// Waits until all tasks have stopped.
    async fn join(self) -> Result<(), ServeError> {
        self.policy_reload.await.map_err(ServeError::new)?.map_err(ServeError::new)?;
        self.override_expiry.await.map_err(ServeError::new)?;
        self.node_report.await.map_err(ServeError::new)?;
        if let Some(membership) = self.membership {
            membership.await.map_err(ServeError::new)?;
        }
        if let Some(saved_state) = self.saved_state {
            saved_state.await.map_err(ServeError::new)??;
        }
        Ok(())
    }
}

/// The bound sockets of the server.
struct Listeners {
    main: TcpListener,
    /// The separate socket of `--admin`.
    admin: Option<TcpListener>,
}

impl Listeners {
    fn bind(settings: &Settings) -> Result<Self, ServeError> {
        let main = bind("--http", settings.http)?;
        let admin = match settings.admin {
            Some(address) => Some(bind("--admin", address)?),
            None => None,
        };
        Ok(Self { main, admin })
    }

    fn address(&self) -> Result<SocketAddr, ServeError> {
        self.main.local_addr().map_err(ServeError::new)
    }

    fn listen(
        self,
        tls: Option<&Arc<CurrentConfig>>,
        app: &Arc<App>,
        traces: &Traces,
        shutdown: &Shutdown,
        settings: &Settings,
    ) -> Vec<JoinHandle<()>> {
        let surface = if self.admin.is_some() { Surface::Decisions } else { Surface::All };
        let admin = self.admin.map(|socket| (socket, Surface::Operations));
        let sockets = [(self.main, surface)].into_iter().chain(admin);
        let listeners =
            sockets.map(|(socket, surface)| Listener { socket, surface, tls: tls.cloned() });
        listeners
            .map(|listener| listen(listener, Arc::clone(app), traces, shutdown, settings))
            .collect()
    }
}

fn bind(setting: &str, address: SocketAddr) -> Result<TcpListener, ServeError> {
    listener(address)
        .map_err(|error| ServeError::new(format!("{setting}: cannot listen on {address}: {error}")))
}

fn listener(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Allows an immediate restart while old connections are in TIME_WAIT.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(ACCEPT_QUEUE)
}
