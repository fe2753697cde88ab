//! All overrides, page by page.

use serde::Serialize;
use tollgate::policy::Policy;
use tollgate::{Override, Overrides};

use super::clients::Client;
use crate::api::read::Wanted;
use crate::wire::override_view::{ToldOverride, told};

/// A page of all overrides.
#[derive(Debug, Serialize)]
pub(crate) struct OverrideList<'a> {
    overrides: Vec<ToldOverride<'a>>,
    cursor: Option<String>,
    /// Where they are kept.
    kept_in: &'static str,
}

impl<'a> OverrideList<'a> {
    /// Some of them, behind a cursor: of clients that begin so.
    pub(crate) fn page(
        (overrides, policy): (&'a Overrides, &'a Policy),
        wanted: &Wanted,
        kept_in: &'static str,
    ) -> Self {
        let (page, cursor) = page(overrides, wanted, wanted.tenant.as_deref());
        let overrides =
            page.into_iter().map(|(client, own)| told((&client.id, &client.tenant), own, policy));
        Self { overrides: overrides.collect(), cursor, kept_in }
    }
}

/// The overrides of clients that begin so, of one tenant or of all, behind a cursor; and where the next page begins.
pub(crate) fn page<'a>(
    overrides: &'a Overrides,
    wanted: &Wanted,
    tenant: Option<&str>,
) -> (Vec<(Client, &'a Override)>, Option<String>) {
    let all = overrides.after(wanted.cursor.as_deref().unwrap_or_default());
    let mut found = all.filter_map(|(text, own)| {
        let client = Client::from_text(text)?;
        let is_wanted = tenant.is_none_or(|tenant| tenant == client.tenant)
            && client.id.starts_with(&wanted.prefix);
        is_wanted.then_some((text, client, &**own))
    });
    let page: Vec<(&str, Client, &Override)> = found.by_ref().take(wanted.page_size).collect();
    let is_last = found.next().is_none();
    let cursor = page.last().filter(|_| !is_last).map(|(text, ..)| (*text).to_owned());
    (page.into_iter().map(|(_, client, own)| (client, own)).collect(), cursor)
}
