//! An axum service with 10 requests per minute and 100 per hour for each `X-Client-Id`.
//!
//! ```console
//! $ export ADMIN_TOKEN=$(openssl rand -hex 32)
//! $ PORT=3000 cargo run -p tollgate-tower --features metrics --example axum_api
//! $ curl -i -H 'X-Client-Id: c1' localhost:3000
//! $ curl -H 'X-Client-Id: c1' localhost:3000/quota
//! $ curl localhost:3000/metrics
//! $ curl -X PUT -H "Authorization: Bearer $ADMIN_TOKEN" -H 'Content-Type: application/json' \
//!     -d '{"limits":[{"limit":20,"window_ms":60000}]}' localhost:3000/admin/external/clients/c1/limits
//! ```
//!
//! - `GET /quota` returns the limits of the client, from the decision that the layer exposes.
//! - `GET /metrics` returns Prometheus metrics.
//! - `/admin/external` is the admin API, if `ADMIN_TOKEN` is set.
//!
//! Without `REDIS_URL` it counts in memory; with it in Redis, shared by all processes, and in each process while Redis is
//! unavailable. Overrides are shared in the same way. `PORT` defaults to 3000; 0 selects a free port.

use std::env::{self, VarError};
use std::error::Error;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tokio::net::TcpListener;
use tollgate::{FallbackStore, Limiter, MemoryStore, Policy, Store, StoreEvent};
use tollgate_redis::{Address, RedisStore, StoredOverrides};
use tollgate_tower::admin::{AdminRouter, AdminToken};
use tollgate_tower::metrics::{MetricsObserver, record_store_event};
use tollgate_tower::{Header, RateLimitDecision, RateLimitLayer, run_store_maintenance};

const POLICY: &str = "
version: 1
rules:
  - name: external-api
    per: [client]
    limits: [10/min, 100/h]       # a request takes from both or from neither
    algorithm: token_bucket
";

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("axum_api: {error}");
            ExitCode::from(2)
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let port = match setting("PORT")? {
        Some(port) => port.parse::<u16>().map_err(|error| format!("PORT {port:?}: {error}"))?,
        None => 3000,
    };
    let token = match setting("ADMIN_TOKEN")? {
        Some(token) => {
            Some(AdminToken::new(&token).map_err(|error| format!("ADMIN_TOKEN: {error}"))?)
        }
        None => None,
    };
    // The recorder must be installed before the observer is created.
    let recorder = PrometheusBuilder::new().install_recorder()?;
    let policy = Policy::from_yaml("axum_api", POLICY, Policy::builtin_limit())?;
    let app = match setting("REDIS_URL")? {
        Some(url) => {
            let address = url.parse().map_err(|error| format!("REDIS_URL: {error}"))?;
            redis_app(address, policy, token).await?
        }
        None => {
            let observer = MetricsObserver::for_memory();
            let limiter = Limiter::with_observer(MemoryStore::new(), policy, observer);
            let limiter = Arc::new(limiter);
            let admin = token.map(|token| AdminRouter::new(Arc::clone(&limiter), token).build());
            app(limiter, admin)
        }
    };
    serve(port, app.merge(metrics_route(recorder))).await
}

/// The app over Redis: limits and overrides are shared by all processes.
async fn redis_app(
    address: Address,
    policy: Policy,
    token: Option<AdminToken>,
) -> Result<Router, Box<dyn Error>> {
    let redis = RedisStore::new(address);
    let directory = redis.directory();
    let store = Arc::new(FallbackStore::builder(redis).on_event(report).build());
    tokio::spawn(run_store_maintenance(&store));
    let limiter = Limiter::with_observer(store, policy, MetricsObserver::for_redis());
    let limiter = Arc::new(limiter);
    let updated = Arc::clone(&limiter);
    let update = move |stored: &StoredOverrides| updated.set_overrides(&stored.overrides);
    let follower = directory.follow_overrides(update).await?;
    let admin = token.map(|token| AdminRouter::new(Arc::clone(&limiter), token));
    match admin {
        Some(admin) => Ok(app(limiter, Some(admin.override_storage(follower).build()))),
        None => {
            // Follows overrides for as long as the process runs.
            tokio::spawn(async move {
                let _follower = follower;
                std::future::pending::<()>().await;
            });
            Ok(app(limiter, None))
        }
    }
}

fn app<S: Store + 'static>(
    limiter: Arc<Limiter<S, MetricsObserver>>,
    admin: Option<Router>,
) -> Router {
    let layer = RateLimitLayer::builder(limiter)
        .fact("client", Header::from_static("x-client-id"))
        .expose_decision()
        .build();
    let limited =
        Router::new().route("/", get(async || "Hello!\n")).route("/quota", get(quota)).layer(layer);
    match admin {
        Some(admin) => limited.nest("/admin/external", admin),
        None => limited,
    }
}

/// Shows the client its limits.
async fn quota(decision: RateLimitDecision) -> String {
    let lines = decision.statuses().map(|status| {
        format!(
            "{} {}: {} of {} left, full again in {} s\n",
            decision.rule(),
            status.limit().name(),
            status.remaining(),
            status.limit().capacity(),
            status.reset_after().as_secs_f64().ceil(),
        )
    });
    lines.collect()
}

fn metrics_route(recorder: PrometheusHandle) -> Router {
    Router::new().route("/metrics", get(async move || recorder.render()))
}

async fn serve(port: u16, app: Router) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], port))).await?;
    eprintln!("listening on http://{}", listener.local_addr()?);
    let shutdown = async { drop(tokio::signal::ctrl_c().await) };
    // The admin API limits failed attempts per peer address.
    let app = app.into_make_service_with_connect_info::<SocketAddr>();
    Ok(axum::serve(listener, app).with_graceful_shutdown(shutdown).await?)
}

/// Logs only the start and end of an outage; errors of single calls during it repeat the same reason.
fn report(event: StoreEvent<'_>) {
    record_store_event(&event);
    match event {
        StoreEvent::Lost { reason, .. } => {
            eprintln!("Redis unavailable, deciding locally: {reason}");
        }
        StoreEvent::Restored(outage) => eprintln!("Redis restored: {outage:?}"),
        _ => {}
    }
}

fn setting(name: &str) -> Result<Option<String>, String> {
    match env::var(name) {
        Ok(value) if value.is_empty() => Ok(None),
        Ok(value) => Ok(Some(value)),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => Err(format!("{name} is not valid Unicode")),
    }
}
