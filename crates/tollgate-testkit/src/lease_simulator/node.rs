//! A node: a lease table, and clocks that can differ from the simulated time.

use std::time::Duration;

use tollgate::lease::{LeaseTable, LeaseTime};

/// Number of plans of a table.
const MAX_PLANS: usize = 64;

#[derive(Debug)]
pub(super) struct Node {
    pub(super) table: LeaseTable,
    /// Number of crashes: replies to earlier processes are lost.
    pub(super) process: u64,
    /// The version of the limits that the node has loaded.
    pub(super) version: usize,
    /// The node does nothing before this time.
    pub(super) paused_until: u64,
    /// Time for which the monotonic clock stood still, because the machine was suspended.
    suspended: u64,
    /// Steps of the wall clock, added with wrapping.
    wall_offset: i64,
    /// Resets whose events the process has not received.
    pub(super) missed_resets: Vec<u64>,
}

impl Node {
    pub(super) fn new() -> Self {
        Self {
            table: enabled_table(),
            process: 0,
            version: 0,
            paused_until: 0,
            suspended: 0,
            wall_offset: 0,
            missed_resets: Vec::new(),
        }
    }

    /// The readings of the clocks at a simulated time.
    pub(super) fn time(&self, now: u64) -> LeaseTime {
        let wall = now.saturating_add_signed(self.wall_offset);
        LeaseTime::new(Duration::from_micros(now - self.suspended), Duration::from_micros(wall))
    }

    /// Starts a new process, which knows of no lease.
    pub(super) fn crash(&mut self) {
        self.table = enabled_table();
        self.process += 1;
        self.missed_resets.clear();
    }

    pub(super) fn pause(&mut self, until: u64) {
        self.paused_until = self.paused_until.max(until);
    }

    /// Pauses the node and its monotonic clock.
    pub(super) fn suspend(&mut self, now: u64, until: u64) {
        if self.paused_until <= now {
            self.pause(until);
            self.suspended += until - now;
        }
    }

    pub(super) fn step_wall_clock(&mut self, by: i64) {
        self.wall_offset += by;
    }
}

fn enabled_table() -> LeaseTable {
    let table = LeaseTable::new(MAX_PLANS);
    table.enable();
    table
}
