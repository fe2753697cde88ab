//! Paged listing of overrides.

use std::sync::Arc;

use serde::Serialize;
use tollgate::{Override, Overrides};

use crate::api::Service;
use crate::api::read::PageRequest;
use crate::node::overrides::Client;
#[cfg(test)]
use crate::reference_tests::{names, overrides::AdminOverride};
use crate::wire::override_view::OverrideResponse;

/// A page of overrides: all overrides of up to `limit` clients.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Overrides"))]
pub(crate) struct OverrideList<'a> {
    #[cfg_attr(test, schemars(with = "Vec<AdminOverride>"))]
    overrides: Vec<OverrideResponse<'a>>,
    /// The cursor of the next page; null on the last page.
    cursor: Option<String>,
    /// Where overrides are stored.
    #[cfg_attr(test, schemars(with = "names::KeptIn"))]
    kept_in: &'static str,
}

impl Service {
    /// Lists the active overrides.
    pub(crate) fn overrides<T>(
        &self,
        request: &PageRequest,
        encode: impl FnOnce(&OverrideList<'_>) -> T,
    ) -> T {
        let active = self.node().limiter().active_policy();
        let (page, cursor) = page(active.overrides(), request, request.tenant.as_deref());
        let overrides = page.into_iter().flat_map(|(client, all)| {
            OverrideResponse::all((&client.id, &client.tenant), all, active.policy())
        });
        let kept_in = self.node().overrides().kept_in();
        encode(&OverrideList { overrides: overrides.collect(), cursor, kept_in })
    }
}

/// A client and its overrides.
type OverriddenClient<'a> = (Client, &'a [Arc<Override>]);

/// Returns the requested page of the clients of one tenant, or of all tenants, with their overrides, and the cursor of
/// the next page.
pub(in crate::api) fn page<'a>(
    overrides: &'a Overrides,
    request: &PageRequest,
    tenant: Option<&str>,
) -> (Vec<OverriddenClient<'a>>, Option<String>) {
    let rest = overrides.after(request.cursor.as_deref().unwrap_or_default());
    let mut matching = rest.filter_map(|(text, overrides)| {
        let client = Client::from_text(text)?;
        let matches = tenant.is_none_or(|tenant| tenant == client.tenant)
            && client.id.starts_with(&request.prefix);
        matches.then_some((text, client, overrides))
    });
    let page: Vec<_> = matching.by_ref().take(request.page_size).collect();
    let is_last = matching.next().is_none();
    let cursor = page.last().filter(|_| !is_last).map(|(text, ..)| (*text).to_owned());
    (page.into_iter().map(|(_, client, overrides)| (client, overrides)).collect(), cursor)
}
