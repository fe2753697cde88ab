//! Random steps in a world, reproducible from a seed. Times and costs are drawn near the last figures, where off-by-one
//! errors show.

use std::time::Duration;

use tollgate::{Limit, Verdict};
use tollgate_testkit::random::Random;

use crate::random_world::{Outcome, Step, Verb, World, WorldTake};

/// Maximum time, so that no sum exceeds 2^53.
const LATEST: u64 = 1 << 52;

/// Draws the steps of a history.
#[derive(Debug)]
pub(crate) struct Events {
    pub(crate) random: Random,
    now: u64,
    /// The last figures of some limit.
    remaining: u64,
    retry: u64,
    reset: u64,
}

impl Events {
    pub(crate) fn new(mut random: Random) -> Self {
        let day = 86_400_000_000;
        let now = *random.pick(&[0, 1, 1_794_765_516_667_233, day * 20_000]).unwrap();
        Self { random, now, remaining: 1, retry: 1, reset: 1 }
    }

    /// Moves the time, also back, but not before `min_time`.
    pub(crate) fn next_time(&mut self, world: &World, min_time: u64) -> u64 {
        let window = scale(&world.limits[0][0]);
        let step = match self.random.within(0, 11) {
            0..=2 => 0,
            3 => 1,
            4 | 5 => self.retry,
            6 => self.retry.saturating_sub(1),
            7 => self.reset,
            8 => self.reset.saturating_sub(1),
            9 => self.random.magnitude(window),
            10 => self.random.magnitude(window / 10 + 1),
            _ => self.random.magnitude(window.saturating_mul(2)),
        };
        if self.random.one_in(12) {
            let back = self.random.magnitude(window.saturating_mul(3));
            self.now = self.now.saturating_sub(back).max(min_time);
        } else if self.now + step < LATEST {
            self.now += step;
        }
        self.now
    }

    /// Stores figures for the next draws.
    pub(crate) fn observe(&mut self, outcome: &Outcome<'_>) {
        let statuses = match outcome {
            Outcome::Decided(decision) => decision.statuses(),
            Outcome::Stats(status) => std::slice::from_ref(status),
            _ => return,
        };
        let Some(status) = self.random.pick(statuses) else { return };
        self.remaining = status.remaining();
        self.reset = micros(status.reset_after());
        if let Verdict::Deny { retry_after } = status.verdict() {
            self.retry = micros(retry_after);
        }
    }

    pub(crate) fn next_step(&mut self, world: &World) -> Step {
        let takes = self.draw_takes(world);
        let window = scale(world.limit(&takes[0]));
        let holds_slots = |world_take: &WorldTake| world.limit(world_take).ttl().is_some();
        let permit = self.random.within(1, 4);
        if takes.iter().any(holds_slots) && self.random.one_in(2) {
            let verb = match self.random.within(0, 5) {
                0 => Verb::Release(permit),
                1 | 2 => Verb::Renew(permit),
                _ => Verb::Hold(permit),
            };
            let of_permit =
                |world_take: &WorldTake| matches!(verb, Verb::Hold(_)) || holds_slots(world_take);
            return Step { verb, takes: takes.into_iter().filter(of_permit).collect() };
        }
        if self.random.one_in(3)
            && let Some(step) = self.draw_lease(world, &takes)
        {
            return step;
        }
        let verb = match self.random.within(0, 25) {
            13..=16 => Verb::Peek,
            17..=19 => Verb::Refund,
            20..=22 => Verb::Debit(self.draw_age(window)),
            23 if self.random.one_in(2) => Verb::Pause(short(self.random.magnitude(window))),
            24 if self.random.one_in(4) => Verb::Reset,
            25 => Verb::Stats,
            _ => Verb::Take,
        };
        Step { verb, takes }
    }

    /// Draws a lease of those takes that can be leased.
    fn draw_lease(&mut self, world: &World, takes: &[WorldTake]) -> Option<Step> {
        let is_leased = |take: &&WorldTake| world.limit(take).lease_hold().is_some();
        let takes: Vec<WorldTake> = takes
            .iter()
            .filter(is_leased)
            .map(|take| WorldTake { shadow: None, cost: take.cost.min(1 << 40), ..*take })
            .collect();
        let holds = takes.iter().filter_map(|take| world.limit(take).lease_hold());
        let hold = micros(holds.min()?);
        let hold = match self.random.within(0, 9) {
            0 => hold + 1,
            1 | 2 => self.random.magnitude(hold),
            _ => hold,
        };
        let verb = Verb::Lease(self.random.magnitude(1000), short(hold));
        Some(Step { verb, takes })
    }

    /// Draws one to four takes of distinct counters, most often one.
    fn draw_takes(&mut self, world: &World) -> Vec<WorldTake> {
        let count = if self.random.one_in(2) { 1 } else { self.random.within(1, 4) };
        let mut takes: Vec<WorldTake> = Vec::new();
        for _ in 0..count {
            let subject = index(&mut self.random, world.subjects.len());
            let limit = index(&mut self.random, world.limits.len());
            let is_same = |other: &WorldTake| (other.subject, other.limit) == (subject, limit);
            if takes.iter().any(is_same) {
                continue;
            }
            // Mostly the first version.
            let versions = &world.limits[limit];
            let version =
                if self.random.one_in(8) { index(&mut self.random, versions.len()) } else { 0 };
            let cost = self.draw_cost(versions[version].capacity());
            let shadow = self.random.one_in(5).then(|| u16::from(self.random.one_in(2)));
            takes.push(WorldTake { subject, limit, version, cost, shadow });
        }
        takes
    }

    fn draw_cost(&mut self, capacity: u64) -> u64 {
        match self.random.within(0, 9) {
            0..=2 => 1,
            3 => self.remaining,
            4 => self.remaining + 1,
            5 => capacity,
            6 if self.random.one_in(3) => capacity + 1,
            7 if self.random.one_in(3) => 0,
            _ => self.random.magnitude(capacity),
        }
    }

    fn draw_age(&mut self, window: u64) -> Duration {
        short(match self.random.within(0, 4) {
            0 | 1 => 0,
            2 => window,
            3 => window - 1,
            _ => self.random.magnitude(window.saturating_mul(2)),
        })
    }
}

fn index(random: &mut Random, length: usize) -> usize {
    usize::try_from(random.draw() % u64::try_from(length).unwrap()).unwrap()
}

/// Returns the approximate refill time of a limit in microseconds.
fn scale(limit: &Limit) -> u64 {
    micros(limit.ttl().unwrap_or(limit.window())).max(1)
}

fn short(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap()
}
