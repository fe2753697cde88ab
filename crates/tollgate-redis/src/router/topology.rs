//! The owners of slots.

use std::collections::HashMap;
use std::sync::Arc;

use super::Server;
use crate::address::HostPort;
use crate::resp::Reply;
use crate::slot::{SLOTS, Slot};

/// The known owners of all slots.
#[derive(Debug)]
pub(super) struct Topology {
    members: HashMap<HostPort, Arc<Server>>,
    owners: Vec<Option<Arc<Server>>>,
}

/// A range of slots and their primary.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SlotRange {
    pub(super) slots: std::ops::RangeInclusive<usize>,
    pub(super) primary: HostPort,
}

impl Topology {
    pub(super) fn new() -> Self {
        Self { members: HashMap::new(), owners: vec![None; usize::from(SLOTS)] }
    }

    pub(super) fn owner(&self, slot: Slot) -> Option<Arc<Server>> {
        self.owners.get(slot.number()).cloned().flatten()
    }

    /// Returns any member. It redirects the call to the owner of its slot.
    pub(super) fn any_member(&self) -> Option<Arc<Server>> {
        self.members.values().next().cloned()
    }

    pub(super) fn members(&self) -> Vec<Arc<Server>> {
        self.members.values().cloned().collect()
    }

    /// Returns the members with slots, ordered by host and port.
    pub(super) fn primaries(&self) -> Vec<Arc<Server>> {
        let mut primaries: Vec<Arc<Server>> = Vec::new();
        for owner in self.owners.iter().flatten() {
            if !primaries.iter().any(|known| Arc::ptr_eq(known, owner)) {
                primaries.push(Arc::clone(owner));
            }
        }
        primaries.sort_by_key(|server| server.host_port().map(HostPort::to_string));
        primaries
    }

    /// Returns the member with this host and port, and creates it if necessary.
    pub(super) fn member(
        &mut self,
        host_port: &HostPort,
        new_server: impl FnOnce(&HostPort) -> Server,
    ) -> Arc<Server> {
        if let Some(member) = self.members.get(host_port) {
            return Arc::clone(member);
        }
        let member = Arc::new(new_server(host_port).at(host_port.clone()));
        self.members.insert(host_port.clone(), Arc::clone(&member));
        member
    }

    pub(super) fn assign(&mut self, slot: Slot, member: Arc<Server>) {
        if let Some(owner) = self.owners.get_mut(slot.number()) {
            *owner = Some(member);
        }
    }

    /// Replaces the owners of these slots. Removes members without slots.
    pub(super) fn update(
        &mut self,
        ranges: &[SlotRange],
        new_server: impl Fn(&HostPort) -> Server,
    ) {
        for range in ranges {
            let member = self.member(&range.primary, &new_server);
            for owner in self.owners.get_mut(range.slots.clone()).into_iter().flatten() {
                *owner = Some(Arc::clone(&member));
            }
        }
        let primaries = self.primaries();
        self.members.retain(|host_port, _| {
            primaries.iter().any(|known| known.host_port() == Some(host_port))
        });
    }
}

/// Parses the reply to `CLUSTER SLOTS`, or returns `None` if it is malformed. A node may not know its own host;
/// then it is the host of the `sender`.
pub(super) fn parse_slots(reply: &Reply, sender: &HostPort) -> Option<Vec<SlotRange>> {
    let Reply::Array(entries) = reply else { return None };
    entries.iter().map(|entry| parse_range(entry, sender)).collect()
}

fn parse_range(entry: &Reply, sender: &HostPort) -> Option<SlotRange> {
    let Reply::Array(parts) = entry else { return None };
    let [Reply::Integer(first), Reply::Integer(last), Reply::Array(primary), ..] = parts.as_slice()
    else {
        return None;
    };
    let [host, Reply::Integer(port), ..] = primary.as_slice() else { return None };
    let host = match host {
        Reply::Bulk(host) if !host.is_empty() => String::from_utf8(host.clone()).ok()?,
        Reply::Bulk(_) | Reply::Null => sender.host.clone(),
        _ => return None,
    };
    let number = |number: &i64| usize::try_from(*number).ok().filter(|n| *n < usize::from(SLOTS));
    let primary = HostPort { host, port: u16::try_from(*port).ok()? };
    Some(SlotRange { slots: number(first)?..=number(last)?, primary })
}
