//! The whole fleet, as its nodes tell in the Redis they share.

use std::collections::BTreeMap;

use tollgate::{StoreError, Timestamp};
use tollgate_redis::{Directory, Node, PulseId};

use super::timeline::MEMORY;
use super::view::View;
use crate::pulse::{Condition, Pulse};

/// The most pages of pulses read at once; what is left is read the next time.
const MOST_PAGES: usize = 100;

/// What the nodes told, read up to some place.
#[derive(Debug)]
pub(crate) struct Fleet {
    pub(super) view: View,
    pub(super) nodes: Vec<Node>,
    pub(super) conditions: BTreeMap<String, Condition>,
    pub(super) now: Timestamp,
    last: PulseId,
}

impl Fleet {
    /// Nothing read yet, of all that is remembered.
    pub(crate) fn since_long(now: Timestamp) -> Self {
        Self {
            view: View::default(),
            nodes: Vec::new(),
            conditions: BTreeMap::new(),
            now,
            last: PulseId::before(now - MEMORY),
        }
    }

    /// Whether what was read is of before. A Redis that began anew may have an earlier clock.
    pub(crate) fn is_before(&self, now: Timestamp) -> bool {
        self.last.moment() <= now
    }

    /// Reads what was told since it was last read.
    pub(crate) async fn read(
        &mut self,
        directory: &Directory,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.now = now;
        for _ in 0..MOST_PAGES {
            let page = directory.pulses(&self.last).await?;
            let Some(last) = page.last() else { break };
            self.last = last.id.clone();
            for told in &page {
                // What a newer version tells in another way is left out.
                if let Ok(pulse) = serde_json::from_str::<Pulse>(&told.pulse) {
                    self.view.add(&told.node, told.id.moment(), &pulse);
                }
            }
        }
        self.view.forget(now);
        self.nodes = directory.nodes().await?;
        self.read_conditions(directory).await
    }

    async fn read_conditions(&mut self, directory: &Directory) -> Result<(), StoreError> {
        let ids: Vec<&str> = self.nodes.iter().map(|node| &*node.id).collect();
        let states = directory.node_states(&ids).await?;
        let read = |text: Option<String>| serde_json::from_str::<Condition>(&text?).ok();
        let told = ids.iter().zip(states).map(|(id, text)| Some(((*id).to_owned(), read(text)?)));
        self.conditions = told.flatten().collect();
        Ok(())
    }
}
