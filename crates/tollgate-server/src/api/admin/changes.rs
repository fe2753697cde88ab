//! Changes by operators: set and remove overrides, reset a client, reload the policy. Each is audited.

use std::sync::Arc;

use serde::Serialize;
use tollgate::policy::Policy;
use tollgate::{Clock, Override, SystemClock};

use super::clients;
use crate::api::Service;
use crate::error::{ApiError, ApiErrorKind};
use crate::files::run_blocking;
use crate::node::overrides::{Action, Author, Change, ChangeOutcome, Client, run_to_completion};
use crate::wire::override_body::override_error;

/// The author of a change, and the reason that the author gives.
#[derive(Debug, Clone)]
pub(crate) struct ChangeRequest {
    pub(crate) author: Author,
    pub(crate) reason: String,
}

/// The policy that a reload activated.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "ReloadResponse"))]
pub(crate) struct ReloadReply {
    pub(crate) version: String,
    pub(crate) rules: usize,
    pub(crate) warnings: Vec<String>,
}

impl Service {
    /// Returns a client of a tenant, by default the tenant of the policy.
    pub(crate) fn client(&self, id: String, tenant: Option<String>) -> Result<Client, ApiError> {
        let policy_tenant = || self.node().limiter().active_policy().policy().tenant().to_owned();
        Client::new(id, tenant.unwrap_or_else(policy_tenant))
    }

    /// Sets the override of a client. Returns it as stored, with its author, reason and time.
    pub(crate) async fn put_override(
        &self,
        client: &Client,
        override_: Override,
        request: ChangeRequest,
    ) -> Result<Override, ApiError> {
        let override_ = self.validated(override_, &request)?;
        let change = self.change(Action::SetOverride, request).of(client);
        self.node().overrides().set(client, Some(override_.clone()), change).await?;
        Ok(override_)
    }

    /// Checks that an override can apply to the active policy, and adds its author, reason and time.
    fn validated(
        &self,
        override_: Override,
        request: &ChangeRequest,
    ) -> Result<Override, ApiError> {
        let now = SystemClock::new().now();
        if override_.is_expired(now) {
            return Err(ApiError::invalid("must be in the future").at("expires_at"));
        }
        let active = self.node().limiter().active_policy();
        override_.applies_to(active.policy()).map_err(|error| override_error(&error))?;
        let expires_at = override_.expires_at;
        let recorded = override_.recorded_by(request.author.name.clone(), request.reason.clone());
        Ok(recorded.valid(now, expires_at))
    }

    /// Reads the override of a client.
    pub(crate) fn get_override<T>(
        &self,
        client: &Client,
        encode: impl FnOnce(&Override, &Policy) -> T,
    ) -> Result<T, ApiError> {
        let active = self.node().limiter().active_policy();
        match active.overrides().get(&client.subject()) {
            Some(override_) => Ok(encode(override_, active.policy())),
            None => Err(no_override(client)),
        }
    }

    /// Reads the active policy.
    pub(crate) fn with_policy<T>(&self, encode: impl FnOnce(&Policy) -> T) -> T {
        encode(self.node().limiter().active_policy().policy())
    }

    /// Removes the override of a client.
    pub(crate) async fn remove_override(
        &self,
        client: &Client,
        request: ChangeRequest,
    ) -> Result<(), ApiError> {
        let change = self.change(Action::RemoveOverride, request).of(client);
        match self.node().overrides().set(client, None, change).await? {
            ChangeOutcome::Replaced(_) => Ok(()),
            ChangeOutcome::NotFound => Err(no_override(client)),
        }
    }

    /// Resets all counters of a client. Completes even if the caller is dropped.
    pub(crate) async fn reset(
        &self,
        client: Client,
        request: ChangeRequest,
    ) -> Result<(), ApiError> {
        let change = self.change(Action::Reset, request).of(&client);
        self.node().overrides().record(change).await?;
        let node = Arc::clone(self.node());
        run_to_completion(async move { clients::reset(&node, &client).await }).await
    }

    /// Reloads the policy file.
    pub(crate) async fn reload(&self, request: ChangeRequest) -> Result<ReloadReply, ApiError> {
        let unprocessable = |reason: String| ApiError::new(ApiErrorKind::Unprocessable, reason);
        let version = || self.node().limiter().active_policy().policy().version().to_owned();
        let before = version();
        let next = match self.file_version().await {
            Ok(next) => next,
            // Reload anyway, so that the file watcher reports the error until the file is repaired.
            Err(_) => self.reloads().send().await.map(|()| version()).map_err(unprocessable)?,
        };
        let change = self.change(Action::Reload, request).between(&before, &next);
        self.node().overrides().record(change).await?;
        self.reloads().send().await.map_err(unprocessable)?;
        let active = self.node().limiter().active_policy();
        let policy = active.policy();
        Ok(ReloadReply {
            version: policy.version().to_owned(),
            rules: policy.rules().len(),
            warnings: policy.warnings().to_vec(),
        })
    }

    /// Returns the version of the policy that the file currently contains.
    async fn file_version(&self) -> Result<String, String> {
        let file = self.node().policy_file().clone();
        if file.path().is_none() {
            return Err("no policy file is configured".to_owned());
        }
        let version = run_blocking(move || file.load().map(|policy| policy.version().to_owned()));
        let version = version.await.map_err(|_| "the server is shutting down".to_owned())?;
        version.map_err(|error| error.to_string())
    }

    fn change(&self, action: Action, request: ChangeRequest) -> Change {
        Change::new(action, request.author, self.node().node_id(), request.reason)
    }
}

fn no_override(client: &Client) -> ApiError {
    let id: String = client.id.chars().take(100).collect();
    ApiError::new(ApiErrorKind::NotFound, format!("client {id:?} has no override"))
}
