//! The whole fleet, as its nodes tell in the Redis they share.

use std::collections::BTreeMap;
use std::time::Duration;

use tollgate::{StoreError, Timestamp};
use tollgate_redis::{Directory, Node, ReportId};

use super::timeline::MEMORY;
use super::view::View;
use crate::node_report::{NodeReport, NodeStatus};

/// The most pages of pulses read at once; what is left is read the next time.
const MOST_PAGES: usize = 100;
/// By no more than this a moment of Redis is ahead of one that was read before.
const AHEAD: Duration = Duration::from_secs(60);
/// The most nodes that are shown.
const MOST_NODES: usize = 500;

/// What the nodes told, read up to some place.
#[derive(Debug)]
pub(crate) struct Fleet {
    pub(super) view: View,
    pub(super) nodes: Vec<Node>,
    /// How many there are, shown or not.
    pub(super) all_nodes: usize,
    pub(super) statuses: BTreeMap<String, NodeStatus>,
    pub(super) now: Timestamp,
    last: ReportId,
}

impl Fleet {
    /// Nothing read yet, of all that is remembered.
    pub(crate) fn since_long(now: Timestamp) -> Self {
        Self {
            view: View::default(),
            nodes: Vec::new(),
            all_nodes: 0,
            statuses: BTreeMap::new(),
            now,
            last: ReportId::before(now - MEMORY),
        }
    }

    /// Whether what was read is of before. A Redis that began anew may have an earlier clock.
    pub(crate) fn is_before(&self, now: Timestamp) -> bool {
        self.last.time() <= now + AHEAD
    }

    /// Reads what was told since it was last read.
    pub(crate) async fn read(
        &mut self,
        directory: &Directory,
        now: Timestamp,
        pause: Duration,
    ) -> Result<(), StoreError> {
        (self.now, self.view.pause) = (now, pause);
        for _ in 0..MOST_PAGES {
            let page = directory.node_reports(&self.last).await?;
            let Some(last) = page.last else { break };
            self.last = last;
            for told in &page.reports {
                // What a newer version tells in another way is left out, and so is what has not been yet.
                let pulse = serde_json::from_str::<NodeReport>(&told.figures);
                if let (Ok(pulse), true) = (pulse, told.id.time() <= now + AHEAD) {
                    self.view.add(&told.node, told.id.time(), &pulse);
                }
            }
        }
        self.view.forget(now);
        self.nodes = directory.nodes().await?;
        self.all_nodes = self.nodes.len();
        self.nodes.truncate(MOST_NODES);
        self.read_statuses(directory).await
    }

    async fn read_statuses(&mut self, directory: &Directory) -> Result<(), StoreError> {
        let ids: Vec<&str> = self.nodes.iter().map(|node| &*node.id).collect();
        let states = directory.node_states(&ids).await?;
        let read = |text: Option<String>| serde_json::from_str::<NodeStatus>(&text?).ok();
        let told = ids.iter().zip(states).map(|(id, text)| Some(((*id).to_owned(), read(text)?)));
        self.statuses = told.flatten().collect();
        Ok(())
    }
}
