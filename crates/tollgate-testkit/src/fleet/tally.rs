//! What a simulation counts, and the check of every admission against the limit of its key.

use std::collections::HashMap;

use tollgate::{Limit, Quota, Source};

use super::figures::{Figures, HotKeys, RankFigures, Sources};
use super::key_bucket::{BucketRate, KeyBucket};
use super::latency_histogram::LatencyHistogram;
use super::scenario::{SECOND, Scenario};

/// Number of hottest keys whose admissions are counted by node.
const TRACKED: u32 = 16;

/// Requests per second on each node from which on a key is busy.
const BUSY_RATE: u64 = 100;

/// Interval of the timeline, in microseconds.
const INTERVAL: u64 = SECOND / 100;

/// A key: its admissions, and those of an ideal store that every node reaches without delay.
#[derive(Debug, Clone, Default)]
struct KeyTally {
    admitted_bound: KeyBucket,
    ideal_state: KeyBucket,
    demanded: u32,
    admitted: u32,
    ideal: u32,
    requests: u32,
}

/// The end of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Decided {
    pub(super) key: u32,
    pub(super) node: usize,
    pub(super) process: u64,
    pub(super) begun: u64,
    /// `None` if the request failed.
    pub(super) decision: Option<(bool, Source)>,
}

#[derive(Debug)]
pub(super) struct Tally {
    keys: Vec<KeyTally>,
    rate: BucketRate,
    share_rate: BucketRate,
    shares: HashMap<(usize, u64, u32), KeyBucket>,
    by_node: Vec<[u32; 2]>,
    nodes: usize,
    latencies: LatencyHistogram,
    is_measuring: bool,
    /// Requests to the store by interval of the whole simulation.
    pub(super) timeline: Vec<u32>,
    figures: Figures,
}

impl Tally {
    pub(super) fn new(scenario: &Scenario, limit: &Limit) -> Self {
        let nodes = scenario.nodes as u64;
        let quota = Quota::per_second(scenario.limit_rate.div_ceil(nodes));
        let share = Limit::token_bucket(quota.burst(scenario.limit_burst.div_ceil(nodes)));
        Self {
            keys: vec![KeyTally::default(); scenario.keys as usize],
            rate: BucketRate::of(limit),
            share_rate: BucketRate::of(&share.expect("a valid share")),
            shares: HashMap::new(),
            by_node: vec![[0; 2]; scenario.nodes * TRACKED as usize],
            nodes: scenario.nodes,
            latencies: LatencyHistogram::default(),
            is_measuring: false,
            timeline: Vec::new(),
            figures: Figures::default(),
        }
    }

    pub(super) fn begin_measurement(&mut self) {
        self.is_measuring = true;
    }

    /// A client sends a request.
    pub(super) fn arrived(&mut self, key: u32, node: usize, now: u64) {
        let tally = &mut self.keys[key as usize];
        let is_possible = tally.ideal_state.try_admit(now, self.rate);
        self.figures.all_decisions += 1;
        if self.is_measuring {
            tally.demanded += 1;
            tally.ideal += u32::from(is_possible);
            if key < TRACKED {
                self.by_node[node * TRACKED as usize + key as usize][0] += 1;
            }
        }
    }

    /// A node sends a request to the store.
    pub(super) fn requested(&mut self, key: u32, elapsed: u64) {
        let interval = (elapsed / INTERVAL) as usize;
        if interval >= self.timeline.len() {
            self.timeline.resize(interval + 1, 0);
        }
        self.timeline[interval] += 1;
        if self.is_measuring {
            self.keys[key as usize].requests += 1;
            self.figures.requests += 1;
        }
    }

    /// The store or a lease admitted a request: checks the limit.
    pub(super) fn admitted(&mut self, key: u32, now: u64) {
        self.figures.checked += 1;
        let is_within = self.keys[key as usize].admitted_bound.admit(now, self.rate);
        self.figures.violations += u64::from(!is_within);
    }

    /// A caller receives its decision.
    pub(super) fn decided(&mut self, of: Decided, now: u64) {
        let Some((is_allowed, source)) = of.decision else {
            self.figures.failed += u64::from(self.is_measuring);
            return;
        };
        if source == Source::Local && is_allowed {
            let share = self.shares.entry((of.node, of.process, of.key)).or_default();
            let is_within = share.admit(now, self.share_rate);
            self.figures.share_violations += u64::from(!is_within);
        }
        if !self.is_measuring {
            return;
        }
        self.latencies.record(now - of.begun);
        self.figures.sources.add(source);
        if is_allowed {
            self.keys[of.key as usize].admitted += 1;
            if of.key < TRACKED {
                self.by_node[of.node * TRACKED as usize + of.key as usize][1] += 1;
            }
        }
    }

    pub(super) fn figures(mut self, scenario: &Scenario) -> Figures {
        let mut ranked: Vec<u32> =
            (0..scenario.keys).filter(|key| self.keys[*key as usize].demanded > 0).collect();
        ranked.sort_by_key(|key| std::cmp::Reverse(self.keys[*key as usize].demanded));
        let mut figures = std::mem::take(&mut self.figures);
        figures.decisions = figures.sources.total();
        figures.hot_tenth = self.hot_keys(ranked.iter().take(scenario.keys as usize / 10));
        let nodes = scenario.nodes.min(scenario.spread) as u64;
        let busy = BUSY_RATE * nodes * scenario.length / SECOND;
        let is_busy = |key: &&u32| u64::from(self.keys[**key as usize].demanded) >= busy;
        figures.busy_keys = self.hot_keys(ranked.iter().filter(is_busy));
        figures.by_rank = self.by_rank(&ranked);
        self.count_use(&ranked, &mut figures);
        figures.fairness = self.fairness();
        let quantile = |part| self.latencies.quantile(part);
        figures.latency_us = [0.5, 0.99, 0.999, 1.0].map(quantile);
        figures.store.set_peaks(&self.timeline, (scenario.warm_up / INTERVAL) as usize);
        figures.timeline = self.timeline.chunks(10).map(|part| part.iter().sum()).collect();
        figures
    }

    fn hot_keys<'k>(&self, keys: impl Iterator<Item = &'k u32>) -> HotKeys {
        let mut hot = HotKeys::default();
        for key in keys {
            let tally = &self.keys[*key as usize];
            hot.keys += 1;
            hot.decisions += u64::from(tally.demanded);
            hot.requests += u64::from(tally.requests);
        }
        hot.requests_per_decision = ratio(hot.requests, hot.decisions);
        hot
    }

    /// Returns figures by powers of ten of the rank.
    fn by_rank(&self, ranked: &[u32]) -> Vec<RankFigures> {
        let (mut parts, mut first) = (Vec::new(), 0);
        while first < ranked.len() {
            let last = (first.max(1) * 10).min(ranked.len()).max(first + 1);
            let last = if first == 0 { 1.min(ranked.len()) } else { last };
            let keys = self.hot_keys(ranked[first..last].iter());
            parts.push(RankFigures { ranks: (first + 1, last), keys });
            first = last;
        }
        parts
    }

    /// Counts how much of the limits that demand exceeds was used, and how many requests were refused below their limit.
    fn count_use(&self, ranked: &[u32], figures: &mut Figures) {
        for key in ranked {
            let tally = &self.keys[*key as usize];
            let (admitted, ideal) = (u64::from(tally.admitted), u64::from(tally.ideal));
            if tally.ideal < tally.demanded {
                figures.exceeded_limits += 1;
                figures.possible += ideal;
                figures.used += admitted.min(ideal);
            } else {
                figures.below_limit += ideal;
                figures.wrongly_refused += ideal.saturating_sub(admitted);
            }
        }
        figures.used_part = ratio(figures.used, figures.possible);
    }

    /// Returns Jain's index of the admitted part of the demand of each node, averaged over the tracked keys: 1 is fair.
    fn fairness(&self) -> f64 {
        let of_key = |key: usize| {
            let nodes = (0..self.nodes).map(|node| self.by_node[node * TRACKED as usize + key]);
            let parts: Vec<f64> = nodes
                .filter(|[demanded, _]| *demanded > 0)
                .map(|[demanded, admitted]| f64::from(admitted) / f64::from(demanded))
                .collect();
            let (sum, squares) =
                (parts.iter().sum::<f64>(), parts.iter().map(|part| part * part).sum::<f64>());
            (squares > 0.0).then(|| sum * sum / (parts.len() as f64 * squares))
        };
        let indices: Vec<f64> = (0..TRACKED as usize).filter_map(of_key).collect();
        indices.iter().sum::<f64>() / indices.len().max(1) as f64
    }
}

impl Sources {
    fn add(&mut self, source: Source) {
        *match source {
            Source::Lease => &mut self.lease,
            Source::Cache => &mut self.cache,
            Source::Local => &mut self.local,
            _ => &mut self.store,
        } += 1;
    }

    fn total(&self) -> u64 {
        self.lease + self.cache + self.local + self.store
    }
}

pub(super) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
