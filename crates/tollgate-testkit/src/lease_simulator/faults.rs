//! The faults of a simulation, drawn from the seed.

use super::SECOND;
use super::fleet::{Event, Fleet};

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

/// Plans up to two faults of one node, or of the store. Returns when they are over.
pub(super) fn draw(fleet: &mut Fleet, at: u64) -> u64 {
    let random = &mut fleet.random;
    let node = usize::try_from(random.draw() % fleet.nodes.len() as u64).unwrap_or(0);
    let length = random.magnitude(4 * SECOND);
    let mut faults = Vec::new();
    match random.within(0, 9) {
        0 => faults.push((at, Fault::Crash(node))),
        1 => faults.push((at, Fault::Pause(node, length))),
        2 => faults.push((at, Fault::Suspend(node, length))),
        3 => {
            let by = i64::try_from(length).unwrap_or(0);
            let by = if random.one_in(2) { -by } else { by };
            faults.push((at, Fault::StepWallClock(node, by)));
        }
        // The step hides almost all of the pause from the wall clock.
        4 => {
            let by = -i64::try_from(length - length / 8).unwrap_or(0);
            let step = Fault::StepWallClock(node, by);
            faults.extend([(at, Fault::Pause(node, length)), (at + length / 2, step)]);
        }
        5 => faults.extend([(at, Fault::StoreLost), (at + length, Fault::StoreFound)]),
        6 | 7 => faults.push((at, Fault::Reset)),
        _ => {}
    }
    let end = faults.iter().map(|(at, _)| *at).max().unwrap_or(at).max(at + length);
    for (at, fault) in faults {
        fleet.plan(at, Event::Fault(fault));
    }
    end
}

/// Plans one change of the limits within a simulation that ends at `end`, or none.
pub(super) fn draw_limit_change(fleet: &mut Fleet, end: u64) {
    if !fleet.random.one_in(3) {
        return;
    }
    let begin = fleet.random.within(fleet.now, end);
    for node in 0..fleet.nodes.len() {
        let at = begin + fleet.random.magnitude(2 * SECOND);
        fleet.plan(at, Event::Fault(Fault::LoadLimits(node, 1)));
    }
    fleet.plan(begin, Event::Fault(Fault::LimitsLoaded(0)));
    fleet.plan(begin + 4 * SECOND, Event::Fault(Fault::LimitsLoaded(1)));
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
