//! Read operations for operators: limits, counters, blocks, clients, nodes, events, history and status.

mod chunks;
mod client;
mod counters;
mod events;
mod history;
mod limits;
mod nodes;
mod scan;
mod status;

pub(crate) use scan::PageRequest;

use super::Service;
use crate::error::ApiError;
use crate::node::history::HistoryRange;
use crate::node::overrides::Client;
pub(crate) use client::ClientView;
pub(crate) use counters::{BlocksPage, CountersPage};
pub(crate) use events::EventsPage;
pub(crate) use history::History;
pub(crate) use limits::Limits;
pub(crate) use nodes::Nodes;
pub(crate) use status::Status;

impl Service {
    /// Lists the counters with stored state.
    pub(crate) async fn counters(&self, request: &PageRequest) -> Result<CountersPage, ApiError> {
        counters::counters(self.node(), request).await
    }

    /// Lists the keys for which a request of cost 1 would be refused now.
    pub(crate) async fn blocks(&self, request: &PageRequest) -> Result<BlocksPage, ApiError> {
        counters::blocks(self.node(), request).await
    }

    /// Reads the recent refusals, the counters and the overrides of a client.
    pub(crate) async fn client_view<T>(
        &self,
        client: &Client,
        encode: impl FnOnce(&ClientView<'_>) -> T,
    ) -> T {
        client::client(self.node(), client, encode).await
    }

    /// Reads the limits of the policy and a page of the overrides.
    pub(crate) fn limits<T>(
        &self,
        request: &PageRequest,
        encode: impl FnOnce(&Limits<'_>) -> T,
    ) -> T {
        let active = self.node().limiter().active_policy();
        encode(&limits::limits(active.policy(), active.overrides(), request))
    }

    /// Lists the nodes that share the store.
    pub(crate) async fn nodes(&self, request: &PageRequest) -> Result<Nodes, ApiError> {
        nodes::nodes(self.node(), request).await
    }

    /// Returns up to `max` events of the last day, starting after the cursor of the previous page or at the newest
    /// event.
    pub(crate) async fn events(
        &self,
        cursor: Option<&str>,
        max: usize,
    ) -> Result<EventsPage, ApiError> {
        events::events(self.node(), cursor, max).await
    }

    /// Returns the counts of a time range.
    pub(crate) async fn history(&self, range: HistoryRange) -> History {
        history::history(self.node(), range).await
    }

    /// Reads the status of this node.
    pub(crate) fn status<T>(&self, encode: impl FnOnce(&Status<'_>) -> T) -> T {
        let active = self.node().limiter().active_policy();
        encode(&status::status(self.node(), active.policy()))
    }
}
