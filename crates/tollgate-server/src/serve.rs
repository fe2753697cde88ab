//! The service from start to end.

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
use crate::http::{Door, Surface, listen};
use crate::membership::Membership;
use crate::node_report;
use crate::notify;
use crate::policy_file::PolicyFile;
use crate::reload::{self, ReloadReply, ReloadRequests};
use crate::saved_state::SavedState;
use crate::settings::{Settings, TlsSettings};
use crate::shutdown::Shutdown;
use crate::store_maintenance;
use crate::store_setup::Opened;
use crate::telemetry::Traces;
use crate::tls::{self, CurrentConfig};

/// How many connections may wait to be accepted. One that finds no room tries again only after a second,
/// and the usual 128 are few when all clients come back at once.
const MOST_WAITING: u32 = 4096;

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
pub(crate) async fn serve(settings: Settings, traces: &Traces) -> Result<(), ServeError> {
    let source = PolicyFile::new(settings.policy.clone(), settings.default_limit.clone());
    let text = source.read().map_err(ServeError::new)?;
    let policy = source.compile(text.as_deref()).map_err(ServeError::new)?;
    for warning in policy.warnings() {
        warn!(%warning, "policy warning");
    }
    let shutdown = Shutdown::on_signals().map_err(ServeError::new)?;
    // Before anything that takes time: unheeded, it would end the process.
    let hangup = signal(SignalKind::hangup()).map_err(ServeError::new)?;
    let store = Opened::open(&settings).await?;
    let listeners = Listeners::bind(&settings)?;
    let (reloads, asked) = ReloadRequests::new();
    let address = listeners.address()?;
    let app = Arc::new(App::new(&settings, store, address, policy, source, reloads));
    let saved = SavedState::open(&settings, &app)?;
    app.set_override_store(OverrideStore::open(&app, &settings).await?);
    tell_start(&app, &settings);
    let membership = Membership::register(&app, &settings).await;
    let keeping = tokio::spawn(store_maintenance::run(
        Arc::clone(&app),
        settings.redis.probe,
        shutdown.finished(),
    ));
    let beside = Beside::start(&app, &shutdown, saved, membership, (hangup, asked, text));

    let tls = secured(settings.tls.as_ref(), &shutdown)?;

    // Before anyone can ask: an answer of a node that is not ready closes its connection.
    app.set_ready();
    let all = listeners.listen(tls.as_ref(), &app, traces, &shutdown, &settings);
    let telling = notify::start(&app, &shutdown);
    for listening in all {
        listening.await.map_err(ServeError::new)?;
    }
    shutdown.finish();
    telling.await.map_err(ServeError::new)?;
    keeping.await.map_err(ServeError::new)?;
    beside.end().await?;
    info!("stopped");
    Ok(())
}

/// Which store, why, and what it is: so that nobody must guess.
fn tell_start(app: &App, settings: &Settings) {
    let about = app.store_info();
    let (address, server) = (about.address.as_deref(), about.server.as_deref());
    info!(store = about.kind, why = about.why, address, server, node = app.node_id(), "starting");
    for warning in &settings.unprotected {
        warn!(%warning, "unprotected, as --allow-unprotected says");
    }
    if settings.tokens.is_shared() {
        warn!(
            "the admin token is also that for checking or reading: whoever may do that may change everything"
        );
    }
    let is_forgotten = app.override_store().is_some_and(|book| book.kept_in() == "memory");
    if app.guard().has_admin() && is_forgotten {
        warn!("overrides are forgotten when this service ends; --data-dir keeps them");
    }
}

/// What TLS is agreed on with, kept that of its files until the end.
fn secured(
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
            error!(%error, "certificates are no longer read again");
        }
    });
    Ok(Some(current))
}

/// What goes on beside the answering.
struct Beside {
    reloading: JoinHandle<io::Result<()>>,
    administering: JoinHandle<()>,
    beating: JoinHandle<()>,
    membership: Option<JoinHandle<()>>,
    saving: Option<JoinHandle<Result<(), ServeError>>>,
}

impl Beside {
    fn start(
        app: &Arc<App>,
        shutdown: &Shutdown,
        saved: Option<SavedState>,
        membership: Option<Membership>,
        (hangup, asked, text): (Signal, mpsc::Receiver<ReloadReply>, Option<String>),
    ) -> Self {
        let app = || Arc::clone(app);
        Self {
            reloading: tokio::spawn(reload::watch(
                app(),
                text,
                (hangup, asked),
                shutdown.requested(),
            )),
            administering: tokio::spawn(OverrideStore::keep(app(), shutdown.finished())),
            beating: tokio::spawn(node_report::run(app(), shutdown.requested())),
            membership: membership.map(|node| tokio::spawn(node.run(app(), shutdown.finished()))),
            saving: saved.map(|saved| tokio::spawn(saved.run(app(), shutdown.finished()))),
        }
    }

    /// Waits until all of it has ended.
    async fn end(self) -> Result<(), ServeError> {
        self.reloading.await.map_err(ServeError::new)?.map_err(ServeError::new)?;
        self.administering.await.map_err(ServeError::new)?;
        self.beating.await.map_err(ServeError::new)?;
        if let Some(membership) = self.membership {
            membership.await.map_err(ServeError::new)?;
        }
        if let Some(saving) = self.saving {
            saving.await.map_err(ServeError::new)??;
        }
        Ok(())
    }
}

/// Where questions come in.
struct Listeners {
    deciding: TcpListener,
    /// One of their own for operators, if they have one.
    operating: Option<TcpListener>,
}

impl Listeners {
    fn bind(settings: &Settings) -> Result<Self, ServeError> {
        let deciding = bind("--http", settings.http)?;
        let operating = match settings.admin {
            Some(address) => Some(bind("--admin", address)?),
            None => None,
        };
        Ok(Self { deciding, operating })
    }

    fn address(&self) -> Result<SocketAddr, ServeError> {
        self.deciding.local_addr().map_err(ServeError::new)
    }

    fn listen(
        self,
        tls: Option<&Arc<CurrentConfig>>,
        app: &Arc<App>,
        traces: &Traces,
        shutdown: &Shutdown,
        settings: &Settings,
    ) -> Vec<JoinHandle<()>> {
        let surface = if self.operating.is_some() { Surface::Deciding } else { Surface::Whole };
        let operating = self.operating.map(|listener| (listener, Surface::Operating));
        let all = [(self.deciding, surface)].into_iter().chain(operating);
        let doors = all.map(|(listener, surface)| Door { listener, surface, tls: tls.cloned() });
        doors.map(|door| listen(door, Arc::clone(app), traces, shutdown, settings)).collect()
    }
}

fn bind(setting: &str, address: SocketAddr) -> Result<TcpListener, ServeError> {
    listener(address)
        .map_err(|error| ServeError::new(format!("{setting}: cannot listen on {address}: {error}")))
}

fn listener(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // The next service need not wait until the last connections of this one are forgotten.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(MOST_WAITING)
}
