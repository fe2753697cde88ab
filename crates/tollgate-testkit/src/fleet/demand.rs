//! The requests of clients: when, for which key, and to which node.

use super::popularity::Popularity;
use super::scenario::{SECOND, Scenario};
use crate::random::Random;

/// Distance by which hot spots move. A prime, so that they come back late.
const MOVE: u32 = 7919;

/// A request of a client.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    /// Microseconds since the start.
    pub at: u64,
    /// The number of its key.
    pub key: u32,
    /// The number of the node that receives it.
    pub node: usize,
}

/// The requests of a scenario at random times (a Poisson process), without end.
#[derive(Debug)]
pub struct Demand {
    scenario: Scenario,
    popularity: Popularity,
    random: Random,
    /// Time of the last request, in microseconds.
    time: f64,
    /// Mean time between requests outside and within a flash crowd.
    gaps: [f64; 2],
    /// Probability that a request within the flash crowd is one of it.
    flash_part: f64,
}

impl Demand {
    /// Returns the requests that a simulation of this scenario has.
    #[must_use]
    pub fn new(scenario: &Scenario) -> Self {
        let popularity = Popularity::zipf(scenario.keys, scenario.zipf);
        let flash = scenario.flash.map_or(0.0, |flash| {
            let (first, count) = flash.ranks;
            let usual: f64 = (first..first + count).map(|rank| popularity.of(rank)).sum();
            usual * (flash.factor - 1.0)
        });
        let gap = SECOND as f64 / scenario.rate;
        Self {
            popularity,
            random: Random::new(scenario.seed),
            time: 0.0,
            gaps: [gap, gap / (1.0 + flash)],
            flash_part: flash / (1.0 + flash),
            scenario: scenario.clone(),
        }
    }

    /// Draws the next request.
    pub fn draw(&mut self) -> Arrival {
        let is_flash = self.is_flash();
        self.time -= self.gaps[usize::from(is_flash)] * self.part().ln();
        let at = self.time as u64;
        let is_of_flash = is_flash && self.part() < self.flash_part;
        let rank = match self.scenario.flash {
            Some(flash) if is_of_flash => {
                let (first, count) = flash.ranks;
                first + (self.random.draw() % u64::from(count)) as u32
            }
            _ => self.popularity.draw(&mut self.random),
        };
        let key = self.moved(rank, at);
        Arrival { at, key, node: self.node_of(key) }
    }

    /// Returns a number above 0 and up to 1.
    fn part(&mut self) -> f64 {
        ((self.random.draw() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    fn is_flash(&self) -> bool {
        let Scenario { warm_up, length, .. } = self.scenario;
        let now = self.time as u64;
        self.scenario.flash.is_some()
            && (warm_up + length / 3..warm_up + 2 * length / 3).contains(&now)
    }

    /// Returns the key that has a rank at a time.
    fn moved(&self, rank: u32, at: u64) -> u32 {
        let moves = at.checked_div(self.scenario.move_every).unwrap_or(0) as u32;
        (rank + moves.wrapping_mul(MOVE) % self.scenario.keys) % self.scenario.keys
    }

    /// Returns one of the nodes that receive the requests of a key.
    fn node_of(&mut self, key: u32) -> usize {
        let Scenario { nodes, spread, .. } = self.scenario;
        if spread >= nodes {
            return (self.random.draw() % nodes as u64) as usize;
        }
        let first = u64::from(key).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let offset = if spread > 1 { self.random.draw() % spread as u64 } else { 0 };
        ((first + offset) % nodes as u64) as usize
    }
}
