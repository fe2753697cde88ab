//! What goes wrong, and when: drawn from the seed.

use super::setting::{SECOND, Setting};
use crate::random::Random;

/// What becomes of a store's data when it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Data {
    Kept,
    Lost,
}

/// How a store or a network does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Silence {
    /// At once, and clearly.
    Refuses,
    /// Nothing happens, and nobody hears.
    Swallows,
    /// It happens, and nobody hears.
    RunsUnheard,
    /// It happens when the silence ends. Nobody hears.
    RunsLate,
    /// Probes are answered and nothing else: what a node has to tell is lost.
    AnswersProbes,
}

/// Something that happens to the fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    Kill(Data),
    Start,
    /// The store is silent to all.
    Hang(Silence),
    Resume,
    /// It is silent to one node.
    Cut(usize, Silence),
    Heal(usize),
    /// Answers take so long.
    Slow(u64),
    Brisk,
    /// The store's clock says something else.
    Step(i64),
    /// A node stands still, and later does all at once what it was asked.
    Pause(usize),
    Wake(usize),
    Join,
    Leave(usize),
    /// A node hears how many there are.
    Learn(usize),
}

pub(super) const HOUR: u64 = 3600 * SECOND;

/// The faults of an hour, with their times since its beginning, in no order.
pub(super) fn draw(setting: &Setting, random: &mut Random) -> Vec<(u64, Fault)> {
    let mut faults = Vec::new();
    if random.one_in(8) {
        return faults;
    }
    for _ in 0..random.magnitude(12) {
        let begin = random.within(0, HOUR - 1);
        let length = random.magnitude(600 * SECOND);
        draw_one(setting, random, &mut faults, begin, begin + length);
    }
    faults
}

fn draw_one(
    setting: &Setting,
    random: &mut Random,
    faults: &mut Vec<(u64, Fault)>,
    begin: u64,
    end: u64,
) {
    let node = usize::try_from(random.within(0, u64::from(setting.nodes))).unwrap_or(0);
    match random.within(0, 11) {
        0..=2 => {
            let data = if random.one_in(2) { Data::Lost } else { Data::Kept };
            faults.extend([(begin, Fault::Kill(data)), (end, Fault::Start)]);
            // Whoever comes back may be slow at first.
            if random.one_in(3) {
                faults.extend([(begin, Fault::Slow(50_000)), (end + 9 * SECOND, Fault::Brisk)]);
            }
        }
        3 | 4 => faults.extend([(begin, Fault::Hang(silence(random))), (end, Fault::Resume)]),
        5 | 6 => {
            faults.extend([(begin, Fault::Cut(node, silence(random))), (end, Fault::Heal(node))]);
        }
        7 => flap(random, faults, begin),
        8 => {
            let by = random.pick(&[-3600, 3600, 7200]).copied().unwrap_or(3600) * 1_000_000;
            faults.push((begin, Fault::Step(by)));
        }
        9 => {
            let length = random.magnitude(60 * SECOND);
            faults.extend([(begin, Fault::Pause(node)), (begin + length, Fault::Wake(node))]);
        }
        10 => {
            let slow = *random.pick(&[50_000, 50_000, 99_000, 200_000]).unwrap_or(&50_000);
            faults.extend([(begin, Fault::Slow(slow)), (end, Fault::Brisk)]);
        }
        _ => {
            let change = if random.one_in(2) { Fault::Join } else { Fault::Leave(node) };
            faults.push((begin, change));
        }
    }
}

/// A second down, a second up, and so on.
fn flap(random: &mut Random, faults: &mut Vec<(u64, Fault)>, begin: u64) {
    let period = *random.pick(&[SECOND, SECOND, 300_000, 3 * SECOND]).unwrap_or(&SECOND);
    for turn in 0..random.within(2, 30) {
        let down = begin + 2 * turn * period;
        faults.extend([(down, Fault::Kill(Data::Kept)), (down + period, Fault::Start)]);
    }
}

fn silence(random: &mut Random) -> Silence {
    let all = [
        Silence::Refuses,
        Silence::Swallows,
        Silence::RunsUnheard,
        Silence::RunsLate,
        Silence::AnswersProbes,
    ];
    *random.pick(&all).unwrap_or(&Silence::Refuses)
}
