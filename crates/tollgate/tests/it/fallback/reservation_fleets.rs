//! Random fleets that lose their store between reservations and settlements. Every settlement counts once: nothing is charged
//! less than it used, and nothing more than that or its estimate.
//!
//! A debit whose reply is lost can count twice, like a take. A part of an estimate can stay charged. A refund before the replay of its debit gives back no more than the store has
//! counted until then, and a fixed window that the store has opened since gives back nothing.

use smallvec::SmallVec;
use tollgate::Costs;
use tollgate::reservation::{Draft, FinalCosts, ReservationToken, Reserved};
use tollgate_testkit::random::Random;

use super::*;

/// Default number of fleets for each limit; `TOLLGATE_FLEETS` sets another one.
const FLEETS: u64 = 300;
const STEPS: u64 = 80;
const NODES: u64 = 3;

/// A reservation, and the amount that it is charged.
struct Charge {
    token: ReservationToken,
    estimate: u64,
    /// The amount of its first settlement.
    settled: Option<u64>,
}

struct World {
    fleet: Fleet,
    limit: Limit,
    subject: Subject,
    charges: Vec<Charge>,
    random: Random,
    is_lost: bool,
    /// Excess of settlements whose reply was lost.
    uncertain: u64,
}

/// Limits under which all takes count until the end.
fn long_limits() -> [Limit; 3] {
    let quota = || Quota::new(30_000, Duration::from_secs(36_525 * 86_400));
    [Limit::sliding_window(quota()), Limit::sliding_counter(quota()), Limit::fixed_window(quota())]
        .map(Result::unwrap)
}

impl World {
    fn new(seed: u64, limit: Limit) -> Self {
        let fleet = Fleet::of(u32::try_from(NODES).unwrap());
        let (subject, random) = (Subject::of(["k"]), Random::new(seed));
        Self { fleet, limit, subject, charges: Vec::new(), random, is_lost: false, uncertain: 0 }
    }

    fn draw(&mut self, count: usize) -> usize {
        usize::try_from(self.random.within(0, count as u64 - 1)).unwrap()
    }

    fn node(&mut self) -> usize {
        self.draw(usize::try_from(NODES).unwrap())
    }

    fn step(&mut self) {
        match self.random.within(0, 11) {
            0 | 1 => self.set_lost(true),
            2 | 3 => self.set_lost(false),
            4 => {
                let node = self.node();
                block_on(self.fleet.nodes[node].maintain());
            }
            5 => self.fleet.wait(1 + self.random.magnitude(200)),
            6..=8 => self.reserve(),
            _ => self.settle(),
        }
    }

    fn set_lost(&mut self, is_lost: bool) {
        self.is_lost = is_lost;
        self.fleet.shared.set(if is_lost { StoreFault::Unreachable } else { StoreFault::None });
    }

    fn reserve(&mut self) {
        let (node, estimate) = (self.node(), self.random.within(1, 50));
        let draft = Draft {
            token: ReservationToken::random(),
            tenant: Box::default(),
            ttl: Duration::from_secs(86_400),
            costs: Costs::requests(estimate),
            factors: SmallVec::new(),
        };
        let plan = Plan::new([Take::new(Key::new(&self.subject, &self.limit), estimate)]).unwrap();
        let reserved = block_on(self.fleet.nodes[node].reserve(&plan, &draft)).unwrap();
        let Reserved::Decided(_, Some(record)) = reserved else {
            panic!("the limit is not reached")
        };
        self.charges.push(Charge { token: record.token(), estimate, settled: None });
    }

    /// Settles on a random node, sometimes again with the same amount. The reply may be lost.
    fn settle(&mut self) {
        if self.charges.is_empty() {
            return;
        }
        let (node, index) = (self.node(), self.draw(self.charges.len()));
        let Charge { token, estimate, settled } = self.charges[index];
        let amount = settled.unwrap_or_else(|| self.random.within(0, 2 * estimate));
        let is_reply_lost = !self.is_lost && self.random.one_in(6);
        if is_reply_lost {
            self.uncertain += amount.saturating_sub(estimate);
            self.fleet.shared.set(StoreFault::ReplyLost);
        }
        let finals = FinalCosts::of(Costs::requests(amount));
        // Unknown: the node that granted it in an outage has not sent its record.
        if block_on(self.fleet.nodes[node].settle(&token, None, &finals)).unwrap().is_some() {
            self.charges[index].settled = Some(amount);
        }
        if is_reply_lost {
            self.fleet.shared.set(StoreFault::None);
        }
    }

    fn used(&self) -> u64 {
        self.charges.iter().map(|charge| charge.settled.unwrap_or(charge.estimate)).sum()
    }

    fn most(&self) -> u64 {
        let most = |charge: &Charge| charge.settled.unwrap_or(0).max(charge.estimate);
        self.charges.iter().map(most).sum::<u64>() + self.uncertain
    }
}

fn fleets() -> u64 {
    std::env::var("TOLLGATE_FLEETS").map_or(FLEETS, |count| count.parse().unwrap())
}

#[test]
fn every_settlement_counts_once_whatever_the_outages() {
    for limit in long_limits() {
        for seed in 0..fleets() {
            let mut world = World::new(seed, limit.clone());
            (0..STEPS).for_each(|_| world.step());
            // The first round sends the records, the second one the settlements of other nodes.
            for _ in 0..3 {
                world.fleet.wait(2);
                world.fleet.restore();
            }
            let (counted, kind) = (world.fleet.counted(&limit), limit.algorithm());
            let (used, most) = (world.used(), world.most());
            assert!(counted >= used, "{kind}, seed {seed}: {counted} of {used} are charged");
            assert!(counted <= most, "{kind}, seed {seed}: {counted} are charged, {most} used");
        }
    }
}
