//! A node: its leases, its call to the store, and its clocks, relative to the current time.

use std::time::Duration;

use tollgate::lease::LeaseTime;

use crate::numbers::{TICK, ticks};

/// Number of leases of a node at a time: one to spend, and the next one.
pub(crate) const MAX_LEASES: usize = 2;

/// By how much a wall clock steps: more than a hold.
pub(crate) const STEP: i8 = 4;

/// A reading of both clocks from which ages count.
const BEGUN: Duration = Duration::from_micros(1_000);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Node {
    pub(crate) leases: [Option<Lease>; MAX_LEASES],
    pub(crate) call: Option<Call>,
    pub(crate) activity: Activity,
    /// The key was reset, and the node has not received the event.
    pub(crate) is_reset_missed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) enum Activity {
    #[default]
    Running,
    /// The process does nothing. Its clocks continue.
    Paused,
    /// The machine does nothing, and its monotonic clock stands still.
    Suspended,
}

/// A lease that a node has not spent, and may have to drop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Lease {
    pub(crate) grant: Grant,
    pub(crate) age: Age,
}

/// What the store granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Grant {
    pub(crate) left: u8,
    /// A reset has erased the debit.
    pub(crate) is_erased: bool,
    /// Nanoseconds for which the node may spend it, from before its request.
    nanos: u16,
}

impl Grant {
    pub(crate) fn new(left: u8, length: Duration) -> Self {
        let nanos = u16::try_from(length.as_nanos()).expect("a short time");
        Self { left, is_erased: false, nanos }
    }

    pub(crate) fn length(&self) -> Duration {
        Duration::from_nanos(self.nanos.into())
    }
}

/// A request for a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Call {
    pub(crate) age: Age,
    /// The node received an event since the request, so it drops the lease.
    pub(crate) is_revoked: bool,
    /// The reply, once the store has granted the request.
    pub(crate) reply: Option<Grant>,
}

/// Time that has passed since before a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Age {
    real: u8,
    monotonic: u8,
    /// Steps of the wall clock since then.
    stepped: i8,
}

impl Age {
    /// One tick passes. Ages beyond `max` are equal: no clock brings the lease back.
    fn tick(&mut self, activity: Activity, max: u8) {
        self.real = (self.real + 1).min(max);
        self.monotonic += u8::from(activity != Activity::Suspended);
        if self.monotonic >= max {
            *self = Self { real: max, monotonic: max, stepped: 0 };
        }
    }

    /// Time that the monotonic clock has not seen.
    pub(crate) const fn hidden(&self) -> u8 {
        self.real - self.monotonic
    }

    pub(crate) const fn stepped(&self) -> i8 {
        self.stepped
    }

    fn step_clock(&mut self, by: i8) {
        self.stepped += by;
    }

    /// Returns whether the clocks of the node show less than this time, by the rule of the product.
    pub(crate) fn is_within(&self, length: Duration, clocks: Clocks) -> bool {
        let begun = LeaseTime::new(BEGUN, BEGUN);
        let monotonic = BEGUN + ticks(self.monotonic.into());
        let wall = match clocks {
            Clocks::Both => BEGUN + ticks(self.real.into()),
            Clocks::Monotonic => monotonic,
        };
        let by = TICK * u32::from(self.stepped.unsigned_abs());
        let wall = match clocks {
            Clocks::Both if self.stepped < 0 => wall - by,
            Clocks::Both => wall + by,
            Clocks::Monotonic => wall,
        };
        LeaseTime::new(monotonic, wall).is_within(begun, length)
    }

    /// Returns whether the monotonic clock has not reached this length, so that the lease may be or become spendable.
    pub(crate) fn can_be_within(&self, length: Duration) -> bool {
        ticks(self.monotonic.into()) < length
    }

    /// What a trace shows.
    pub(crate) const fn ticks(&self) -> u8 {
        self.real
    }
}

/// The clocks that a node reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clocks {
    Both,
    Monotonic,
}

impl Node {
    pub(crate) const fn is_idle(&self) -> bool {
        self.call.is_none() && self.leases[0].is_none() && self.leases[1].is_none()
    }

    pub(crate) fn is_running(&self) -> bool {
        self.activity == Activity::Running
    }

    /// Ages of the leases and of the request.
    fn ages(&mut self) -> impl Iterator<Item = &mut Age> {
        let leases = self.leases.iter_mut().flatten().map(|lease| &mut lease.age);
        leases.chain(self.call.iter_mut().map(|call| &mut call.age))
    }

    /// What is granted and not spent, received or not.
    pub(crate) fn grants(&mut self) -> impl Iterator<Item = &mut Grant> {
        let leases = self.leases.iter_mut().flatten().map(|lease| &mut lease.grant);
        leases.chain(self.call.iter_mut().filter_map(|call| call.reply.as_mut()))
    }

    /// One tick passes. Leases that are over are dropped, if they end at all. Returns what was not spent.
    pub(crate) fn tick(&mut self, hold: u8, is_ended: bool) -> u8 {
        let activity = self.activity;
        self.ages().for_each(|age| age.tick(activity, hold));
        let mut dropped = 0;
        for slot in &mut self.leases {
            if let Some(lease) = slot
                && is_ended
                && !lease.age.can_be_within(lease.grant.length())
            {
                dropped += lease.grant.left;
                *slot = None;
            }
        }
        self.normalize();
        dropped
    }

    pub(crate) fn step_clock(&mut self, by: i8) {
        self.ages().for_each(|age| age.step_clock(by));
    }

    /// Returns whether a step of the wall clock by this and a suspension can hide time from both clocks. That is outside
    /// of the protocol, so it is not modelled.
    pub(crate) fn is_time_hidden_by_step(&mut self, by: i8) -> bool {
        by < 0 && self.ages().any(|age| age.hidden() > 0)
    }

    /// Likewise for a suspension.
    pub(crate) fn is_time_hidden_by_suspension(&mut self) -> bool {
        self.ages().any(|age| age.stepped() < 0)
    }

    /// Adds a lease. The caller has requested it, so there is a place.
    pub(crate) fn add(&mut self, lease: Lease) {
        if let Some(place) = self.leases.iter_mut().find(|place| place.is_none()) {
            *place = Some(lease);
        }
        self.normalize();
    }

    /// Returns whether there is a place for a lease.
    pub(crate) fn has_place(&self) -> bool {
        self.leases.iter().any(Option::is_none)
    }

    /// Makes equal nodes have equal states: the order of leases does not matter, and neither do events for a node
    /// without leases.
    pub(crate) fn normalize(&mut self) {
        self.leases.sort_by_key(|lease| (lease.is_none(), *lease));
        if self.is_idle() {
            self.is_reset_missed = false;
        }
    }
}
