//! The faults of a simulation, drawn from the seed.

use super::fleet::{Event, Fleet};
use super::{LENGTH, SECOND};
use crate::random::Random;

/// A fault, or its end.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fault {
    /// The process of a node ends, and a new one starts.
    Crash(usize),
    /// A node does nothing for this time, in microseconds.
    Pause(usize, u64),
    /// As `Pause`, and the monotonic clock stands still.
    Suspend(usize, u64),
    /// The wall clock of a node steps, in microseconds.
    StepWallClock(usize, i64),
    /// The store fails all calls, and nodes lose their subscription.
    StoreLost,
    StoreFound,
    /// The usage of all keys is reset.
    Reset,
    /// A node receives the event of a reset.
    ResetReceived(usize, u64),
    /// A node loads other limits.
    LoadLimits(usize, usize),
    /// All nodes have loaded the limits of this version, and leases of the other one have ended.
    LimitsLoaded(usize),
}

/// Draws faults with their times since the start.
pub(super) fn draw(random: &mut Random, nodes: u64) -> Vec<(u64, Fault)> {
    let mut faults = Vec::new();
    let can_suspend = random.one_in(2);
    for _ in 0..random.within(0, 12) {
        let at = random.within(0, LENGTH);
        let node = usize::try_from(random.within(0, nodes - 1)).unwrap_or(0);
        let length = random.magnitude(4 * SECOND);
        match random.within(0, 8) {
            0 => faults.push((at, Fault::Crash(node))),
            1 | 2 => faults.push((at, Fault::Pause(node, length))),
            3 if can_suspend => faults.push((at, Fault::Suspend(node, length))),
            4 => {
                let by = i64::try_from(length).unwrap_or(0);
                let is_back = random.one_in(2) && !can_suspend;
                let by = if is_back { -by } else { by };
                faults.push((at, Fault::StepWallClock(node, by)));
            }
            5 => faults.extend([(at, Fault::StoreLost), (at + length, Fault::StoreFound)]),
            6 | 7 => faults.push((at, Fault::Reset)),
            _ => {}
        }
    }
    // One change, so that nodes do not load versions in different orders.
    if random.one_in(3) {
        let begin = random.within(0, LENGTH / 2);
        for node in 0..nodes {
            let at = begin + random.magnitude(2 * SECOND);
            faults.push((at, Fault::LoadLimits(usize::try_from(node).unwrap_or(0), 1)));
        }
        faults.push((begin, Fault::LimitsLoaded(0)));
        faults.push((begin + 4 * SECOND, Fault::LimitsLoaded(1)));
    }
    faults
}

impl Fleet {
    pub(super) fn apply_fault(&mut self, fault: Fault) {
        let now = self.now;
        match fault {
            Fault::Crash(node) => {
                self.count_drops(node);
                self.nodes[node].crash();
                self.figures.crashes += 1;
            }
            Fault::Pause(node, length) => {
                self.nodes[node].pause(now + length);
                self.figures.pauses += 1;
            }
            Fault::Suspend(node, length) => {
                self.nodes[node].suspend(now, now + length);
                self.figures.suspends += 1;
            }
            Fault::StepWallClock(node, by) => {
                self.nodes[node].step_wall_clock(by);
                self.figures.clock_steps += 1;
            }
            Fault::StoreLost => {
                self.lost_stores += 1;
                self.figures.outages += 1;
                self.nodes.iter().for_each(|node| node.table.disable());
            }
            Fault::StoreFound => {
                self.lost_stores -= 1;
                // A subscription that begins ends all leases, so no event was missed.
                if self.lost_stores == 0 {
                    self.nodes.iter().for_each(|node| node.table.enable());
                }
            }
            Fault::Reset => self.reset(),
            Fault::ResetReceived(node, reset) => {
                let node = &mut self.nodes[node];
                node.missed_resets.retain(|missed| *missed != reset);
                node.table.end_subject(self.subject.as_str());
            }
            Fault::LoadLimits(node, version) => self.nodes[node].version = version,
            Fault::LimitsLoaded(version) => {
                self.figures.limit_changes += u64::from(version > 0);
                self.keys.iter_mut().for_each(|key| key.change(version));
            }
        }
    }

    fn reset(&mut self) {
        if self.lost_stores > 0 {
            return;
        }
        self.figures.resets += 1;
        self.reset_store();
        for node in 0..self.nodes.len() {
            self.nodes[node].missed_resets.push(self.figures.resets);
            let delay = self.random.magnitude(3 * SECOND / 2);
            let received = Event::Fault(Fault::ResetReceived(node, self.figures.resets));
            self.plan(self.now + delay, received);
        }
    }
}
