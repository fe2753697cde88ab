//! The view of one cluster node of all nodes.

use std::ops::RangeInclusive;

use super::super::Server;

/// The port, the id of the primary (of replicas) and the slot ranges of a node.
pub(super) type Role = (u16, Option<String>, Vec<(u16, u16)>);

/// A node as another node sees it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Member {
    pub(super) port: u16,
    /// The id of its primary; `None` for a primary.
    pub(super) primary: Option<String>,
    /// The first and last slot of each range that it has.
    pub(super) slots: Vec<(u16, u16)>,
    pub(super) id: String,
    pub(super) epoch: u64,
    flags: Vec<String>,
}

impl Member {
    /// Returns whether it has a flag.
    pub(super) fn is(&self, flag: &str) -> bool {
        self.flags.iter().any(|own_flag| own_flag == flag)
    }

    /// Returns whether it is suspected to be down, or not yet fully known.
    pub(super) fn is_suspected(&self) -> bool {
        ["fail", "fail?", "handshake", "noaddr"].iter().any(|flag| self.is(flag))
    }

    pub(super) fn role(self) -> Role {
        (self.port, self.primary, self.slots)
    }

    pub(super) fn has(&self, slot: u16) -> bool {
        self.slots.iter().any(|&(first, last)| RangeInclusive::new(first, last).contains(&slot))
    }
}

/// Returns all members sorted by port, as a node sees them; `None` without a reply.
pub(super) fn members_of(node: &Server) -> Option<Vec<Member>> {
    let reply = node.try_call(&["CLUSTER", "NODES"])?;
    let mut members = reply.text().lines().map(parse_line).collect::<Vec<_>>();
    members.sort();
    Some(members)
}

/// Parses a line of `CLUSTER NODES`: id, address, flags, primary, two times, epoch, link, slots.
fn parse_line(line: &str) -> Member {
    let fields = line.split(' ').collect::<Vec<_>>();
    let invalid = || panic!("invalid line: {line:?}");
    let port = fields[1].split([':', '@']).nth(1).and_then(|port| port.parse().ok());
    Member {
        id: fields[0].to_owned(),
        port: port.unwrap_or_else(invalid),
        flags: fields[2].split(',').map(str::to_owned).collect(),
        primary: Some(fields[3]).filter(|&id| id != "-").map(str::to_owned),
        epoch: fields[6].parse().expect("epochs are numbers"),
        slots: fields[8..].iter().filter_map(|slots| range(slots)).collect(),
    }
}

/// Parses a slot range; `None` for a migrating slot, which is in brackets.
fn range(slots: &str) -> Option<(u16, u16)> {
    let (first, last) = slots.split_once('-').unwrap_or((slots, slots));
    Some((first.parse().ok()?, last.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::parse_line;

    #[test]
    fn parses_a_line() {
        let line = "07c3 127.0.0.1:30004@31004,host myself,master - 0 1426238317239 4 connected \
                    0-5460 5462 [5461-<-292f] [77->-e7d1]";
        let member = parse_line(line);
        assert_eq!((member.id.as_str(), member.port, member.epoch), ("07c3", 30004, 4));
        assert_eq!(
            (member.slots.as_slice(), &member.primary),
            (&[(0, 5460), (5462, 5462)][..], &None)
        );
        assert!(member.is("myself") && member.has(5462) && !member.has(5461));
        let line = "07c3 127.0.0.1:30004@31004 slave e7d1 0 1 4 connected";
        assert_eq!(parse_line(line).primary.as_deref(), Some("e7d1"));
    }
}
