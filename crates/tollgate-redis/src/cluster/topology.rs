//! Who has which slots.

use std::collections::HashMap;
use std::sync::Arc;

use crate::address::Place;
use crate::caller::Caller;
use crate::resp::Reply;
use crate::slot::{SLOTS, Slot};

/// A node and how it is called.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) place: Place,
    pub(super) caller: Arc<Caller>,
}

/// Who has which slots, as far as is known.
#[derive(Debug)]
pub(super) struct Topology {
    members: HashMap<Place, Arc<Member>>,
    owners: Vec<Option<Arc<Member>>>,
}

/// A stretch of slots and the place of their primary.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) slots: std::ops::RangeInclusive<usize>,
    pub(super) primary: Place,
}

impl Topology {
    pub(super) fn new() -> Self {
        Self { members: HashMap::new(), owners: vec![None; usize::from(SLOTS)] }
    }

    pub(super) fn owner(&self, slot: Slot) -> Option<Arc<Member>> {
        self.owners.get(slot.number()).cloned().flatten()
    }

    /// Any of them; it will know better.
    pub(super) fn anyone(&self) -> Option<Arc<Member>> {
        self.members.values().next().cloned()
    }

    pub(super) fn members(&self) -> Vec<Arc<Member>> {
        self.members.values().cloned().collect()
    }

    /// Those that have slots, in the order of their places.
    pub(super) fn primaries(&self) -> Vec<Arc<Member>> {
        let mut primaries: Vec<Arc<Member>> = Vec::new();
        for owner in self.owners.iter().flatten() {
            if !primaries.iter().any(|known| Arc::ptr_eq(known, owner)) {
                primaries.push(Arc::clone(owner));
            }
        }
        primaries.sort_by_key(|member| member.place.to_string());
        primaries
    }

    /// The member at this place, made if it is new.
    pub(super) fn member(
        &mut self,
        place: &Place,
        make: impl FnOnce(&Place) -> Caller,
    ) -> Arc<Member> {
        if let Some(member) = self.members.get(place) {
            return Arc::clone(member);
        }
        let caller = Arc::new(make(place));
        let member = Arc::new(Member { place: place.clone(), caller });
        self.members.insert(place.clone(), Arc::clone(&member));
        member
    }

    pub(super) fn assign(&mut self, slot: Slot, member: Arc<Member>) {
        if let Some(owner) = self.owners.get_mut(slot.number()) {
            *owner = Some(member);
        }
    }

    /// Takes over what a node told. Members that have nothing any more are forgotten.
    pub(super) fn adopt(&mut self, stretches: &[Stretch], make: impl Fn(&Place) -> Caller) {
        for stretch in stretches {
            let member = self.member(&stretch.primary, &make);
            for owner in self.owners.get_mut(stretch.slots.clone()).into_iter().flatten() {
                *owner = Some(Arc::clone(&member));
            }
        }
        let primaries = self.primaries();
        self.members.retain(|place, _| primaries.iter().any(|member| member.place == *place));
    }
}

/// Reads the answer to `CLUSTER SLOTS`; none if it is not one. A node that does not know its own host is where it
/// was asked.
pub(super) fn stretches(reply: &Reply, asked: &Place) -> Option<Vec<Stretch>> {
    let Reply::Array(entries) = reply else { return None };
    entries.iter().map(|entry| stretch(entry, asked)).collect()
}

fn stretch(entry: &Reply, asked: &Place) -> Option<Stretch> {
    let Reply::Array(parts) = entry else { return None };
    let [Reply::Integer(first), Reply::Integer(last), Reply::Array(primary), ..] = parts.as_slice()
    else {
        return None;
    };
    let [host, Reply::Integer(port), ..] = primary.as_slice() else { return None };
    let host = match host {
        Reply::Bulk(host) if !host.is_empty() => String::from_utf8(host.clone()).ok()?,
        Reply::Bulk(_) | Reply::Null => asked.host.clone(),
        _ => return None,
    };
    let number = |number: &i64| usize::try_from(*number).ok().filter(|n| *n < usize::from(SLOTS));
    let primary = Place { host, port: u16::try_from(*port).ok()? };
    Some(Stretch { slots: number(first)?..=number(last)?, primary })
}
