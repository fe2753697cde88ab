//! The owners of slots.

use std::collections::HashMap;
use std::sync::Arc;

use super::ProgramRunner;
use crate::address::HostPort;
use crate::resp::Reply;
use crate::slot::{SLOTS, Slot};

/// A node and its program runner.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) host_port: HostPort,
    pub(super) runner: Arc<ProgramRunner>,
}

/// The known owners of all slots.
#[derive(Debug)]
pub(super) struct Topology {
    members: HashMap<HostPort, Arc<Member>>,
    owners: Vec<Option<Arc<Member>>>,
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

    pub(super) fn owner(&self, slot: Slot) -> Option<Arc<Member>> {
        self.owners.get(slot.number()).cloned().flatten()
    }

    /// Returns any member. It redirects the call to the owner of its slot.
    pub(super) fn any_member(&self) -> Option<Arc<Member>> {
        self.members.values().next().cloned()
    }

    pub(super) fn members(&self) -> Vec<Arc<Member>> {
        self.members.values().cloned().collect()
    }

    /// Returns the members with slots, ordered by host and port.
    pub(super) fn primaries(&self) -> Vec<Arc<Member>> {
        let mut primaries: Vec<Arc<Member>> = Vec::new();
        for owner in self.owners.iter().flatten() {
            if !primaries.iter().any(|known| Arc::ptr_eq(known, owner)) {
                primaries.push(Arc::clone(owner));
            }
        }
        primaries.sort_by_key(|member| member.host_port.to_string());
        primaries
    }

    /// Returns the member with this host and port, and creates it if necessary.
    pub(super) fn member(
        &mut self,
        host_port: &HostPort,
        new_runner: impl FnOnce(&HostPort) -> ProgramRunner,
    ) -> Arc<Member> {
        if let Some(member) = self.members.get(host_port) {
            return Arc::clone(member);
        }
        let runner = Arc::new(new_runner(host_port));
        let member = Arc::new(Member { host_port: host_port.clone(), runner });
        self.members.insert(host_port.clone(), Arc::clone(&member));
        member
    }

    pub(super) fn assign(&mut self, slot: Slot, member: Arc<Member>) {
        if let Some(owner) = self.owners.get_mut(slot.number()) {
            *owner = Some(member);
        }
    }

    /// Replaces the owners of these slots. Removes members without slots.
    pub(super) fn update(
        &mut self,
        ranges: &[SlotRange],
        new_runner: impl Fn(&HostPort) -> ProgramRunner,
    ) {
        for range in ranges {
            let member = self.member(&range.primary, &new_runner);
            for owner in self.owners.get_mut(range.slots.clone()).into_iter().flatten() {
                *owner = Some(Arc::clone(&member));
            }
        }
        let primaries = self.primaries();
        self.members
            .retain(|host_port, _| primaries.iter().any(|member| member.host_port == *host_port));
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
