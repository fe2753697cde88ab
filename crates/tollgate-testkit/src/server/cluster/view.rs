//! What one node of a cluster knows of all.

use std::ops::RangeInclusive;

use super::super::Server;

/// Whom a node copies, and which slots it has.
pub(super) type Role = (u16, Option<String>, Vec<(u16, u16)>);

/// A node, as another sees it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Member {
    pub(super) port: u16,
    /// Whom it copies, if anybody.
    pub(super) primary: Option<String>,
    /// The first and the last of each run of slots that are its own.
    pub(super) slots: Vec<(u16, u16)>,
    pub(super) id: String,
    pub(super) epoch: u64,
    flags: Vec<String>,
}

impl Member {
    /// Whether there is this word on it.
    pub(super) fn is(&self, flag: &str) -> bool {
        self.flags.iter().any(|own| own == flag)
    }

    /// Whether its death is suspected, or it is hardly known.
    pub(super) fn is_doubted(&self) -> bool {
        ["fail", "fail?", "handshake", "noaddr"].iter().any(|flag| self.is(flag))
    }

    pub(super) fn role(self) -> Role {
        (self.port, self.primary, self.slots)
    }

    pub(super) fn has(&self, slot: u16) -> bool {
        self.slots.iter().any(|&(first, last)| RangeInclusive::new(first, last).contains(&slot))
    }
}

/// All members by their ports, as a node sees them; nothing if it does not answer.
pub(super) fn seen_by(node: &Server) -> Option<Vec<Member>> {
    let answer = node.try_call(&["CLUSTER", "NODES"])?;
    let mut members = answer.text().lines().map(parsed).collect::<Vec<_>>();
    members.sort();
    Some(members)
}

/// A line of `CLUSTER NODES`: id, address, flags, primary, two times, epoch, link, slots.
fn parsed(line: &str) -> Member {
    let fields = line.split(' ').collect::<Vec<_>>();
    let garbled = || panic!("this is no node: {line:?}");
    let port = fields[1].split([':', '@']).nth(1).and_then(|port| port.parse().ok());
    Member {
        id: fields[0].to_owned(),
        port: port.unwrap_or_else(garbled),
        flags: fields[2].split(',').map(str::to_owned).collect(),
        primary: Some(fields[3]).filter(|&id| id != "-").map(str::to_owned),
        epoch: fields[6].parse().expect("epochs are numbers"),
        slots: fields[8..].iter().filter_map(|slots| range(slots)).collect(),
    }
}

/// Nothing for a slot that comes or goes, which is in brackets.
fn range(slots: &str) -> Option<(u16, u16)> {
    let (first, last) = slots.split_once('-').unwrap_or((slots, slots));
    Some((first.parse().ok()?, last.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::parsed;

    #[test]
    fn a_line_is_read() {
        let line = "07c3 127.0.0.1:30004@31004,host myself,master - 0 1426238317239 4 connected \
                    0-5460 5462 [5461-<-292f] [77->-e7d1]";
        let member = parsed(line);
        assert_eq!((member.id.as_str(), member.port, member.epoch), ("07c3", 30004, 4));
        assert_eq!(
            (member.slots.as_slice(), &member.primary),
            (&[(0, 5460), (5462, 5462)][..], &None)
        );
        assert!(member.is("myself") && member.has(5462) && !member.has(5461));
        let line = "07c3 127.0.0.1:30004@31004 slave e7d1 0 1 4 connected";
        assert_eq!(parsed(line).primary.as_deref(), Some("e7d1"));
    }
}
