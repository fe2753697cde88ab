//! Published node reports: the figures of every node for the last minutes, so that each node can show all of them.

use std::time::Duration;

use tollgate::{StoreError, Timestamp};

use super::Directory;
use super::stream::{field, id_and_fields};
use crate::failure::Failure;
use crate::resp::{Command, Reply};

/// How long node reports are kept.
pub const REPORT_HISTORY: Duration = Duration::from_secs(15 * 60);

/// Maximum number of reports per page, and their maximum size in bytes.
const PAGE_SIZE: usize = 1000;
const MAX_PAGE_BYTES: usize = 16 << 20;
/// Number of nodes whose states are read in one call.
const STATES_PER_CALL: usize = 16;

/// A published node report.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeReport {
    /// Position among all reports.
    pub id: ReportId,
    /// Unique name of the node.
    pub node: String,
    /// The figures, as published.
    pub figures: String,
}

/// A page of node reports.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReportPage {
    /// The readable reports, oldest first.
    pub reports: Vec<NodeReport>,
    /// The end of the page, or `None` if there are no more reports.
    pub last: Option<ReportId>,
}

/// A position among the node reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportId(String);

impl ReportId {
    /// Returns the position before all reports of this time.
    #[must_use]
    pub fn before(time: Timestamp) -> Self {
        let millis = (time.as_micros() / 1000).saturating_sub(1);
        Self(format!("{millis}-{}", u64::MAX))
    }

    /// Returns the time of the report, by the clock of Redis.
    #[must_use]
    pub fn time(&self) -> Timestamp {
        let millis = self.0.split('-').next().and_then(|text| text.parse().ok());
        Timestamp::EPOCH + Duration::from_millis(millis.unwrap_or_default())
    }
}

impl Directory {
    /// Returns the next page of reports after a position, oldest first.
    ///
    /// # Errors
    /// The call to Redis failed.
    pub async fn node_reports(&self, after: &ReportId) -> Result<ReportPage, StoreError> {
        let key = self.keys.node_reports();
        let command = Command::new("XRANGE").arg(&key).arg(format!("({}", after.0)).arg("+");
        let command = command.arg("COUNT").number(PAGE_SIZE as u64).reply_up_to(MAX_PAGE_BYTES);
        match self.request(&key, command).await? {
            Reply::Array(entries) => Ok(ReportPage {
                reports: entries.iter().filter_map(parse).collect(),
                last: entries.last().and_then(id_of),
            }),
            _ => Err(Failure::unexpected().into_store_error()),
        }
    }

    /// Returns the current state of each node, or `None` if its state has expired.
    ///
    /// # Errors
    /// The call to Redis failed.
    pub async fn node_states(&self, nodes: &[&str]) -> Result<Vec<Option<String>>, StoreError> {
        let mut states = Vec::with_capacity(nodes.len());
        for chunk in nodes.chunks(STATES_PER_CALL) {
            states.extend(self.read_states(chunk).await?);
        }
        Ok(states)
    }

    async fn read_states(&self, nodes: &[&str]) -> Result<Vec<Option<String>>, StoreError> {
        let keys: Vec<String> = nodes.iter().map(|node| self.keys.node_state(node)).collect();
        let Some(first) = keys.first() else { return Ok(Vec::new()) };
        let command = Command::new("MGET").reply_up_to(MAX_PAGE_BYTES);
        let command = keys.iter().fold(command, Command::arg);
        match self.request(first, command).await? {
            Reply::Array(states) => Ok(states.into_iter().map(parse_state).collect()),
            _ => Err(Failure::unexpected().into_store_error()),
        }
    }
}

/// Returns the state, which follows the number of the report.
fn parse_state(reply: Reply) -> Option<String> {
    let Reply::Bulk(bytes) = reply else { return None };
    let stored = String::from_utf8(bytes).ok()?;
    stored.split_once(' ').map(|(_, state)| state.to_owned())
}

fn id_of(reply: &Reply) -> Option<ReportId> {
    id_and_fields(reply).map(|(id, _)| ReportId(id.to_owned()))
}

fn parse(reply: &Reply) -> Option<NodeReport> {
    let (id, fields) = id_and_fields(reply)?;
    let text_field = |name: &str| field(fields, name).map(str::to_owned);
    Some(NodeReport {
        id: ReportId(id.to_owned()),
        node: text_field("node")?,
        figures: text_field("figures")?,
    })
}
