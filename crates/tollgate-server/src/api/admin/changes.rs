//! Changes by operators: set and remove overrides, reset a client, reload the policy. Each is audited.

use std::sync::Arc;

use serde::Serialize;
use tollgate::{Clock, Override, OverrideProposal, Overrides, SystemClock};

use super::reset::{self, CounterRules};
use crate::api::Service;
use crate::error::{ApiError, ApiErrorKind};
use crate::files::run_blocking;
use crate::node::NodeContext;
use crate::node::overrides::{
    Action, Author, Change, Client, EditOutcome, OverrideEdit, run_to_completion,
};
use crate::wire::override_body::{Freshness, ParsedOverride, override_error};
use crate::wire::override_effect_view::SetOverrideResponse;
use crate::wire::override_view::ClientOverridesResponse;

/// The author of a change, and the reason that the author gives.
#[derive(Debug, Clone)]
pub(crate) struct ChangeRequest {
    pub(crate) author: Author,
    pub(crate) reason: String,
}

/// Whether a change is made, or only its effect is returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Execution {
    Commit,
    DryRun,
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

    /// Sets the overrides of a client that a request body describes, and passes them to `encode` with their effect. A
    /// dry run changes nothing. Completes even if the caller is dropped.
    pub(crate) async fn put_override<T: Send + 'static>(
        &self,
        client: &Client,
        body: ParsedOverride,
        request: ChangeRequest,
        execution: Execution,
        encode: impl FnOnce(&SetOverrideResponse<'_>) -> T + Send,
    ) -> Result<T, ApiError> {
        let proposal = self.propose(client, &body, &request)?;
        if execution == Execution::Commit {
            let change = self.change(Action::SetOverride, request).of(client).with(body.fresh);
            let rules = proposal.rules().into_iter().map(str::to_owned).collect();
            let (node, client) = (Arc::clone(self.node()), client.clone());
            let edit = OverrideEdit::Set(proposal.overrides.clone());
            run_to_completion(async move {
                node.overrides().edit(&client, edit, change).await?;
                match body.fresh {
                    Freshness::KeepUsage => Ok(()),
                    Freshness::ResetUsage => reset_rules(&node, &client, rules).await,
                }
            })
            .await?;
        }
        let (active, subject) = (self.node().limiter().active_policy(), client.subject());
        // Not the active overrides: with Redis, the change may become active later.
        let with = |all: Overrides, new: &Override| all.with(&subject, new.clone());
        let all = proposal.overrides.iter().fold(active.overrides().clone(), with);
        let names = (client.id.as_str(), client.tenant.as_str());
        let response =
            SetOverrideResponse::new(names, &proposal, all.get(&subject), active.policy());
        response.as_ref().map(encode).ok_or_else(|| no_override(client))
    }

    /// Checks that an override can apply to the active policy, and adds its author, reason and time.
    fn propose(
        &self,
        client: &Client,
        body: &ParsedOverride,
        request: &ChangeRequest,
    ) -> Result<OverrideProposal, ApiError> {
        let now = SystemClock::new().now();
        let (new, expires_at) = (body.override_.clone(), body.override_.expires_at);
        if new.is_expired(now) {
            return Err(ApiError::invalid("must be in the future").at("expires_at"));
        }
        let new = new.recorded_by(request.author.name.clone(), request.reason.clone());
        let new = new.valid(now, expires_at);
        let active = self.node().limiter().active_policy();
        let proposal = client.id()?.propose_override(&new, &body.selection, &active);
        proposal.map_err(|error| override_error(&error))
    }

    /// Reads the overrides of a client.
    pub(crate) fn get_overrides<T>(
        &self,
        client: &Client,
        encode: impl FnOnce(&ClientOverridesResponse<'_>) -> T,
    ) -> Result<T, ApiError> {
        let active = self.node().limiter().active_policy();
        let (all, names) = (
            active.overrides().get(&client.subject()),
            (client.id.as_str(), client.tenant.as_str()),
        );
        let response = ClientOverridesResponse::new(names, all, active.policy());
        response.as_ref().map(encode).ok_or_else(|| no_override(client))
    }

    /// Removes the override of a client for `rule`, or all overrides of the client.
    pub(crate) async fn remove_overrides(
        &self,
        client: &Client,
        rule: Option<String>,
        request: ChangeRequest,
    ) -> Result<(), ApiError> {
        let change = self.change(Action::RemoveOverride, request).of(client);
        let edit = OverrideEdit::Remove { rule: rule.clone() };
        match (self.node().overrides().edit(client, edit, change).await?, rule) {
            (EditOutcome::Changed, _) => Ok(()),
            (EditOutcome::NotFound, None) => Err(no_override(client)),
            (EditOutcome::NotFound, Some(rule)) => Err(no_override_of_rule(client, &rule)),
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
        run_to_completion(async move { reset::reset(&node, &client, &CounterRules::All).await })
            .await
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

/// Resets the counters of a client in the rules of an override that is already stored.
async fn reset_rules(
    node: &NodeContext,
    client: &Client,
    rules: Vec<String>,
) -> Result<(), ApiError> {
    let reset = reset::reset(node, client, &CounterRules::Named(rules)).await;
    reset.map_err(|error| {
        let detail = format!("the override is set, but its counters are not all reset: {error}");
        ApiError::new(error.kind(), detail)
    })
}

fn no_override(client: &Client) -> ApiError {
    let id = shortened(&client.id);
    ApiError::new(ApiErrorKind::NotFound, format!("client {id:?} has no override"))
}

fn no_override_of_rule(client: &Client, rule: &str) -> ApiError {
    let (id, rule) = (shortened(&client.id), shortened(rule));
    let detail = format!("client {id:?} has no override for rule {rule:?}");
    ApiError::new(ApiErrorKind::NotFound, detail)
}

fn shortened(text: &str) -> String {
    text.chars().take(100).collect()
}
