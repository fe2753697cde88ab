//! The router of the admin API.

use std::fmt;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{get, post};
use http::StatusCode;
use tollgate::{Limiter, Observer, OverrideStorage, Store};

use super::auth::{AdminToken, Guard};
use super::handlers;
use super::in_process::InProcessOverrides;
use super::problem::Problem;
use crate::facts::{RequestHead, peer_ip};

/// Called with every audit entry, as one line of JSON.
type ChangeCallback = Box<dyn Fn(&str) + Send + Sync>;

/// Builds the admin API of a limiter as an axum router. It cannot be built without a token.
///
/// Overrides are kept in process by default. Over Redis, give it the follower of `tollgate_redis`, which stores them for
/// all nodes (see the example `axum_api`). Serve the app with `into_make_service_with_connect_info::<SocketAddr>()`, so
/// that failed attempts are limited per peer.
///
/// ```
/// use std::sync::Arc;
/// use tollgate::{Limiter, MemoryStore, Policy};
/// use tollgate_tower::RateLimitLayer;
/// use tollgate_tower::admin::{AdminRouter, AdminToken};
///
/// # let token_from_environment = "0123456789abcdef0123456789abcdef";
/// let limiter = Arc::new(Limiter::new(MemoryStore::new(), Policy::builtin()));
/// let admin = AdminRouter::new(Arc::clone(&limiter), AdminToken::new(token_from_environment)?)
///     .on_change(|entry| println!("audit: {entry}"))
///     .build();
/// let app: axum::Router = axum::Router::new()
///     .layer(RateLimitLayer::new(limiter))
///     .nest("/admin/external", admin);
/// # Ok::<(), tollgate_tower::admin::AdminTokenError>(())
/// ```
#[must_use]
pub struct AdminRouter<S, O: Observer = (), R = InProcessOverrides<S, O>> {
    state: AdminState<S, O, R>,
}

/// The state of the handlers.
pub(super) struct AdminState<S, O: Observer, R> {
    pub(super) limiter: Arc<Limiter<S, O>>,
    pub(super) storage: R,
    pub(super) guard: Guard,
    pub(super) node: String,
    pub(super) on_change: Option<ChangeCallback>,
}

impl<S, O: Observer, R> fmt::Debug for AdminRouter<S, O, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdminRouter").field("guard", &self.state.guard).finish_non_exhaustive()
    }
}

impl<S: Store, O: Observer> AdminRouter<S, O> {
    /// Creates the admin API of this limiter. Overrides are kept in process.
    pub fn new(limiter: Arc<Limiter<S, O>>, token: AdminToken) -> Self {
        let storage = InProcessOverrides::new(Arc::clone(&limiter));
        let (guard, node) = (Guard::new(token), "tollgate-tower".to_owned());
        Self { state: AdminState { limiter, storage, guard, node, on_change: None } }
    }
}

impl<S, O, R> AdminRouter<S, O, R>
where
    S: Store + 'static,
    O: Observer + 'static,
    R: OverrideStorage + 'static,
{
    /// Sets where overrides are stored. The storage must also make them active in this limiter.
    pub fn override_storage<T: OverrideStorage>(self, storage: T) -> AdminRouter<S, O, T> {
        let AdminState { limiter, guard, node, on_change, .. } = self.state;
        AdminRouter { state: AdminState { limiter, storage, guard, node, on_change } }
    }

    /// Sets the node name in audit entries; the default is `tollgate-tower`.
    pub fn node_id(mut self, node: impl Into<String>) -> Self {
        self.state.node = node.into();
        self
    }

    /// Sets a callback that receives every audit entry as one line of JSON, for example to log it. It must not block.
    pub fn on_change(mut self, callback: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.state.on_change = Some(Box::new(callback));
        self
    }

    /// Builds the router, to be nested into an app.
    pub fn build<T: Clone + Send + Sync + 'static>(self) -> Router<T> {
        let state = Arc::new(self.state);
        let limits = get(handlers::get_limits::<S, O, R>)
            .put(handlers::put_limits::<S, O, R>)
            .delete(handlers::delete_limits::<S, O, R>);
        Router::new()
            .route("/clients/{id}/limits", limits)
            .route("/clients/{id}/stats", get(handlers::stats::<S, O, R>))
            .route("/clients/{id}/reset", post(handlers::reset::<S, O, R>))
            .fallback(async || Problem::new(StatusCode::NOT_FOUND, "unknown path"))
            .method_not_allowed_fallback(async || {
                Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method not allowed")
            })
            .layer(from_fn_with_state(Arc::clone(&state), authenticate::<S, O, R>))
            .with_state(state)
    }
}

async fn authenticate<S, O, R>(
    State(state): State<Arc<AdminState<S, O, R>>>,
    request: Request,
    next: Next,
) -> Result<Response, Problem>
where
    S: Store + 'static,
    O: Observer + 'static,
    R: OverrideStorage + 'static,
{
    state.guard.check(request.headers(), peer_ip(&RequestHead::from(&request)))?;
    Ok(next.run(request).await)
}
