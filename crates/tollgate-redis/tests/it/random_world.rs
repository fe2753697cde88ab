//! Random worlds, reproducible from a seed.
//!
//! A world has a few subjects and named limits. Each limit has several versions of its parameters, like nodes with
//! different policies. `random_events` draws the steps.

use std::fmt;
use std::time::Duration;

use tollgate::lease::{LeaseReply, WantedLease};
use tollgate::{
    Decision, Key, LeaseSize, Limit, Plan, Status, Store, StoreError, Subject, Take, Timestamp,
};
use tollgate_testkit::conformance::{permit_id, permit_on};
use tollgate_testkit::history::{History, HistoryLevel};
use tollgate_testkit::random::Random;
use tollgate_testkit::spec::Kind;

/// Subjects and limits: `limits[name][version]`.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) subjects: Vec<Subject>,
    pub(crate) limits: Vec<Vec<Limit>>,
}

/// One plan and its verb.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) verb: Verb,
    pub(crate) takes: Vec<WorldTake>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Verb {
    Take,
    Hold(u64),
    Peek,
    Refund,
    Debit(Duration),
    Pause(Duration),
    Reset,
    Release(u64),
    Renew(u64),
    Stats,
    /// Leases up to this many times the cost of each take, for this time.
    Lease(u64, Duration),
}

/// A take, by indexes into a world.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WorldTake {
    pub(crate) subject: usize,
    pub(crate) limit: usize,
    pub(crate) version: usize,
    pub(crate) cost: u64,
    pub(crate) shadow: Option<u16>,
}

/// The result of a step.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome<'w> {
    Decided(Decision<'w>),
    Stats(Status<'w>),
    Done,
    Released(bool),
    Renewed(Option<Timestamp>),
    Leased(Option<LeaseReply>),
}

impl World {
    /// Draws one to three subjects, and one to four limits of these kinds.
    pub(crate) fn draw(random: &mut Random, name: &str, kinds: &[Kind]) -> Self {
        let subjects = (0..random.within(1, 3)).map(|nth| Subject::of([name, &nth.to_string()]));
        let subjects = subjects.collect();
        let limits = (0..random.within(1, 4)).map(|nth| {
            let kind = *random.pick(kinds).unwrap();
            let versions = History::new(random.draw(), kind, HistoryLevel::Changes);
            // The state of an inline limit also contains its spec.
            let rule = if random.one_in(3) { "inline" } else { "drawn" };
            let name = format!("limit{nth}");
            let lease = if random.one_in(2) { LeaseSize::Auto } else { LeaseSize::Off };
            let built =
                versions.limits().iter().map(|spec| spec.build().unwrap().with_lease(lease));
            built.map(|limit| limit.named(&name).unwrap().in_rule(rule).unwrap()).collect()
        });
        Self { subjects, limits: limits.collect() }
    }

    pub(crate) fn key(&self, world_take: &WorldTake) -> Key<'_> {
        Key::new(&self.subjects[world_take.subject], self.limit(world_take))
    }

    pub(crate) fn limit(&self, world_take: &WorldTake) -> &Limit {
        &self.limits[world_take.limit][world_take.version]
    }

    fn plan(&self, step: &Step) -> Plan<'_> {
        let take = |world_take: &WorldTake| {
            let take = Take::new(self.key(world_take), world_take.cost);
            world_take.shadow.map_or(take, |group| take.shadow(group))
        };
        Plan::new(step.takes.iter().map(take)).unwrap()
    }

    /// Runs a step on a store.
    pub(crate) async fn request<S: Store>(
        &self,
        store: &S,
        step: &Step,
    ) -> Result<Outcome<'_>, StoreError> {
        let first = self.key(&step.takes[0]);
        let keys = || step.takes.iter().map(|world_take| self.key(world_take)).collect::<Vec<_>>();
        let plan = self.plan(step);
        Ok(match step.verb {
            Verb::Take => Outcome::Decided(store.take(&plan).await?),
            Verb::Hold(permit) => {
                Outcome::Decided(store.take(&plan.with_permit(permit_id(permit))).await?)
            }
            Verb::Peek => Outcome::Decided(store.peek(&plan).await?),
            Verb::Refund => Outcome::Decided(store.refund(&plan).await?),
            Verb::Debit(age) => Outcome::Decided(store.debit(&plan, age).await?),
            Verb::Pause(length) => store.pause(&first, length).await.map(|()| Outcome::Done)?,
            Verb::Reset => store.reset(&first).await.map(|()| Outcome::Done)?,
            Verb::Release(permit) => {
                Outcome::Released(store.release(&permit_on(&keys(), permit)).await?)
            }
            Verb::Renew(permit) => {
                Outcome::Renewed(store.renew(&permit_on(&keys(), permit)).await?)
            }
            Verb::Stats => Outcome::Stats(store.stats(&first).await?),
            Verb::Lease(times, hold) => {
                let takes = plan.takes().iter().map(|take| {
                    let is_background = times.is_multiple_of(2);
                    let cost = if is_background { 0 } else { take.cost() };
                    (cost, take.cost().saturating_mul(times))
                });
                let wanted = WantedLease::new(takes, hold);
                Outcome::Leased(store.lease(&plan, &wanted).await?)
            }
        })
    }
}

/// Displays the limits by index and version.
impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, versions) in self.limits.iter().enumerate() {
            for (version, limit) in versions.iter().enumerate() {
                writeln!(f, "limit {nth}.{version} {:?}", limit.parameters())?;
            }
        }
        Ok(())
    }
}
