//! Figures of the whole fleet, read from the node reports in Redis.

use std::collections::BTreeMap;
use std::time::Duration;

use tollgate::{StoreError, Timestamp};
use tollgate_redis::{Directory, Node, NodeState, ReportId};

use super::frame::{KnownNode, MAX_KNOWN_NODES};
use super::timeline::HISTORY;
use super::view::View;
use crate::node::report::{NodeReport, NodeStatus};

/// Maximum pages of node reports per read; the next read continues.
const MAX_PAGES: usize = 100;
/// Maximum difference between report times and the clock of Redis. Reports further ahead are ignored.
const MAX_CLOCK_SKEW: Duration = Duration::from_secs(60);
/// Maximum number of nodes shown.
const MAX_NODES: usize = 500;

/// Node reports read up to `last`.
#[derive(Debug)]
pub(crate) struct Fleet {
    pub(super) view: View,
    pub(super) nodes: Vec<Node>,
    /// Number of all nodes, shown or not.
    pub(super) total_nodes: usize,
    pub(super) statuses: BTreeMap<String, NodeStatus>,
    pub(super) now: Timestamp,
    last: ReportId,
}

impl Fleet {
    /// Creates an empty view whose first read covers the whole stored history.
    pub(crate) fn new(now: Timestamp) -> Self {
        Self {
            view: View::default(),
            nodes: Vec::new(),
            total_nodes: 0,
            statuses: BTreeMap::new(),
            now,
            last: ReportId::before(now - HISTORY),
        }
    }

    /// Returns whether reading can continue from the last report. It cannot if a new Redis has an earlier clock.
    pub(crate) fn can_continue(&self, now: Timestamp) -> bool {
        self.last.time() <= now + MAX_CLOCK_SKEW
    }

    /// Reads the reports since the last read, then the nodes and their statuses.
    pub(crate) async fn read(
        &mut self,
        directory: &Directory,
        now: Timestamp,
        report_interval: Duration,
    ) -> Result<(), StoreError> {
        (self.now, self.view.report_interval) = (now, report_interval);
        for _ in 0..MAX_PAGES {
            let page = directory.node_reports(&self.last).await?;
            let Some(last) = page.last else { break };
            self.last = last;
            for entry in &page.reports {
                // Ignores reports in a newer version's format and reports from the future.
                let report = serde_json::from_str::<NodeReport>(&entry.figures);
                if let (Ok(report), true) = (report, entry.id.time() <= now + MAX_CLOCK_SKEW) {
                    self.view.add(&entry.node, entry.id.time(), &report);
                }
            }
        }
        self.view.drop_expired(now);
        self.nodes = directory.nodes().await?;
        self.total_nodes = self.nodes.len();
        self.nodes.truncate(MAX_NODES);
        self.read_statuses(directory).await
    }

    /// Returns id and address of the nodes that are up.
    pub(super) fn known_nodes(&self) -> Vec<KnownNode> {
        let up = self.nodes.iter().filter(|node| node.state == NodeState::Up);
        let known = up.map(|node| KnownNode { id: node.id.clone(), address: node.address.clone() });
        known.take(MAX_KNOWN_NODES).collect()
    }

    async fn read_statuses(&mut self, directory: &Directory) -> Result<(), StoreError> {
        let ids: Vec<&str> = self.nodes.iter().map(|node| &*node.id).collect();
        let states = directory.node_states(&ids).await?;
        let parse = |text: Option<String>| serde_json::from_str::<NodeStatus>(&text?).ok();
        let parsed =
            ids.iter().zip(states).map(|(id, text)| Some(((*id).to_owned(), parse(text)?)));
        self.statuses = parsed.flatten().collect();
        Ok(())
    }
}
