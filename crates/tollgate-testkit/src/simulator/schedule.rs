//! The faults of the hour, drawn from the seed.

use super::scenario::{SECOND, Scenario};
use crate::random::Random;

/// What happens to the store's data when the store is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Data {
    Kept,
    Lost,
}

/// How calls to the store fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Silence {
    /// The connection is refused.
    Refuses,
    /// The request is lost.
    DropsRequests,
    /// The request runs, and its reply is lost.
    DropsReplies,
    /// The request runs when the silence ends, and its reply is lost.
    RunsLate,
    /// Only probes get a reply, so replays are lost.
    RepliesToProbes,
    /// Only probes get a reply, and all other calls are refused.
    RefusesAllButProbes,
    /// Calls for the first key are refused, as if its server were lost. All others get a reply.
    RefusesFirstKey,
}

/// A fault, or its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    Kill(Data),
    Start,
    /// The store is silent to all nodes.
    Hang(Silence),
    Resume,
    /// The store is silent to one node.
    Cut(usize, Silence),
    Heal(usize),
    /// Adds this latency to replies, in microseconds.
    Slow(u64),
    NormalSpeed,
    /// Moves the store's clock, in microseconds.
    StepClock(i64),
    /// Stops a node. When it resumes it handles everything that came due in between.
    Pause(usize),
    Wake(usize),
    Join,
    Leave(usize),
    /// A node receives the number of live nodes.
    UpdateNodeCount(usize),
}

/// Length of the hour, in microseconds.
pub(super) const HOUR: u64 = 3600 * SECOND;

/// Draws the faults of an hour, with their times since its start, unordered.
pub(super) fn draw(scenario: &Scenario, random: &mut Random) -> Vec<(u64, Fault)> {
    let mut faults = Vec::new();
    if random.one_in(8) {
        return faults;
    }
    for _ in 0..random.magnitude(12) {
        let begin = random.within(0, HOUR - 1);
        let length = random.magnitude(600 * SECOND);
        draw_one(scenario, random, &mut faults, begin, begin + length);
    }
    faults
}

fn draw_one(
    scenario: &Scenario,
    random: &mut Random,
    faults: &mut Vec<(u64, Fault)>,
    begin: u64,
    end: u64,
) {
    let node = usize::try_from(random.within(0, u64::from(scenario.nodes))).unwrap_or(0);
    match random.within(0, 11) {
        0..=2 => {
            let data = if random.one_in(2) { Data::Lost } else { Data::Kept };
            faults.extend([(begin, Fault::Kill(data)), (end, Fault::Start)]);
            // A restarted store may be slow at first.
            if random.one_in(3) {
                faults
                    .extend([(begin, Fault::Slow(50_000)), (end + 9 * SECOND, Fault::NormalSpeed)]);
            }
        }
        3 | 4 => faults.extend([(begin, Fault::Hang(silence(random))), (end, Fault::Resume)]),
        5 | 6 => {
            faults.extend([(begin, Fault::Cut(node, silence(random))), (end, Fault::Heal(node))]);
        }
        7 => flap(random, faults, begin),
        8 => {
            let by = random.pick(&[-3600, 3600, 7200]).copied().unwrap_or(3600) * 1_000_000;
            faults.push((begin, Fault::StepClock(by)));
        }
        9 => {
            let length = random.magnitude(60 * SECOND);
            faults.extend([(begin, Fault::Pause(node)), (begin + length, Fault::Wake(node))]);
        }
        10 => {
            let slow = *random.pick(&[50_000, 50_000, 99_000, 200_000]).unwrap_or(&50_000);
            faults.extend([(begin, Fault::Slow(slow)), (end, Fault::NormalSpeed)]);
        }
        _ => {
            let change = if random.one_in(2) { Fault::Join } else { Fault::Leave(node) };
            faults.push((begin, change));
        }
    }
}

/// Kills and starts the store in turns.
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
        Silence::DropsRequests,
        Silence::DropsReplies,
        Silence::RunsLate,
        Silence::RepliesToProbes,
        Silence::RefusesAllButProbes,
        Silence::RefusesFirstKey,
    ];
    *random.pick(&all).unwrap_or(&Silence::Refuses)
}
