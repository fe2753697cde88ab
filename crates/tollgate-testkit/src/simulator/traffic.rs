//! Who asks for what, and when: drawn from the seed, mostly in bursts and often just after a fault.

use tollgate::Distributed;

use super::request::{Act, Request, Want};
use super::schedule::{Fault, HOUR};
use super::setting::{Attendance, Refunds, SECOND, Setting};
use crate::random::Random;
use crate::spec::Kind;

/// One caller.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    /// Which of the live nodes it asks, whatever their number.
    pub(super) node: u64,
    pub(super) request: Request,
    /// After how long it goes away, if it does not wait for the answer.
    pub(super) gives_up: Option<u64>,
    /// What it does with the slots that it got.
    pub(super) keeps: Keeping,
}

/// For how long slots are held.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Keeping {
    pub(super) renewed_after: Option<u64>,
    /// None for a holder that crashed.
    pub(super) released_after: Option<u64>,
}

/// The callers of an hour, with their times since its beginning, in no order.
pub(super) fn draw(
    setting: &Setting,
    faults: &[(u64, Fault)],
    random: &mut Random,
) -> Vec<(u64, Caller)> {
    let (mut callers, mut permits) = (Vec::new(), 0);
    for _ in 0..random.within(10, 40) {
        let mut at = match random.pick(faults) {
            Some((near, _)) if !random.one_in(3) => near + random.magnitude(3 * SECOND),
            _ => random.within(0, HOUR - 1),
        };
        let gap = *random.pick(&[1, 1000, 100_000, 2 * SECOND]).unwrap_or(&1);
        for _ in 0..random.magnitude(16) {
            permits += 1;
            callers.push((at.min(HOUR - 1), draw_caller(setting, random, permits)));
            at += random.within(0, gap);
        }
    }
    callers
}

fn draw_caller(setting: &Setting, random: &mut Random, number: u64) -> Caller {
    let keys = setting.keys.len() as u64 - 1;
    let key = usize::try_from(random.within(0, keys)).unwrap_or(0);
    let act = draw_act(setting, random, key);
    let mut wants = vec![draw_want(setting, random, key)];
    let beside = usize::try_from(random.within(0, keys)).unwrap_or(0);
    if act == Act::Take && beside != key && may_meet(setting, key, beside) {
        wants.push(draw_want(setting, random, beside));
    }
    let has_slots = wants.iter().any(|want| setting.specs[want.key].algorithm == Kind::Concurrency);
    let is_held = act == Act::Take && has_slots && !random.one_in(5);
    let ttl = setting.specs.iter().map(|spec| spec.window_us).max().unwrap_or(1).max(1);
    let after = |random: &mut Random| (!random.one_in(3)).then(|| random.magnitude(ttl * 3 / 2));
    let keeps = Keeping { renewed_after: after(random), released_after: after(random) };
    Caller {
        node: random.draw(),
        request: Request { act, wants, permit: is_held.then_some(number) },
        gives_up: random.one_in(30).then(|| random.within(0, 150_000)),
        keeps,
    }
}

fn draw_act(setting: &Setting, random: &mut Random, key: usize) -> Act {
    match random.within(0, 19) {
        0 | 1 => Act::Peek,
        2 | 3 if setting.keys[key].refunds == Refunds::Sometimes => Act::Refund,
        4 if setting.attendance == Attendance::EachSecond => {
            Act::Debit { age_us: random.magnitude(setting.specs[key].window_us.max(SECOND)) - 1 }
        }
        _ => Act::Take,
    }
}

fn draw_want(setting: &Setting, random: &mut Random, key: usize) -> Want {
    let capacity = setting.specs[key].capacity();
    let cost = match random.within(0, 9) {
        0 => capacity,
        1 => random.magnitude(capacity),
        2 => random.within(0, 2),
        3 if random.one_in(5) => capacity + 1,
        _ => 1,
    };
    Want { key, cost }
}

/// What is only tried on the store is answered after the rest of its plan is decided: here it comes alone, so
/// that the order of decisions is that of answers.
fn may_meet(setting: &Setting, one: usize, other: usize) -> bool {
    [one, other].iter().all(|key| setting.reach(*key) != Distributed::Shadow)
}
