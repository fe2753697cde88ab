//! A batch: several plans in one script call.

use std::collections::HashMap;

use tollgate::Timestamp;

use super::plan_reply::{PlanResult, ReplyReader};
use super::queued_plan::{EncodedTake, KeyRole, ReservationVerb};
use super::{Call, QueuedPlan, Verb};
use crate::failure::Failure;
use crate::limit_code::{Letter, LimitCode, is_plain_bucket, micros, write_number};
use crate::resp::Reply;
use crate::script::Entry;

/// Maximum number of takes in one call. At a few microseconds each, Redis soon serves other clients; larger calls cost
/// as much for each take.
pub(crate) const MAX_TAKES: usize = 128;

/// How a call contains its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyForm {
    /// As KEYS: all have one slot, and a node without it redirects the call.
    Declared,
    /// As arguments: they have any slots of one cluster node, which runs the call in any case. Plans with a key that
    /// the node does not have are [`Outcome::misdirected`].
    Named,
}

/// Several plans in one call that is in flight.
#[derive(Debug)]
pub(crate) struct Batch {
    plans: Vec<QueuedPlan>,
}

/// The result of a call, besides the replies to its plans.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// The server's time.
    pub(crate) at: Option<Timestamp>,
    /// Plans with a named key that the node does not have: nothing was taken, and their callers still wait.
    pub(crate) misdirected: Vec<QueuedPlan>,
    /// Whether the server refuses keys of several slots in one call.
    pub(crate) refuses_several_slots: bool,
}

impl Batch {
    /// Returns the batch, and the call that decides it. `now` is the time for programs with a test clock.
    pub(crate) fn new(
        plans: Vec<QueuedPlan>,
        channel: &str,
        now: Option<Timestamp>,
        form: KeyForm,
    ) -> (Self, Call) {
        let mut tables = Tables::default();
        let mut encoded = Vec::with_capacity(plans.len() * 16);
        for plan in &plans {
            write_plan(&mut encoded, plan, &mut tables);
        }
        let mut arguments = vec![tables.packed(&encoded)];
        let letter = common_letter(&plans);
        // Takes and peeks publish nothing, so they need no channel.
        if letter.is_none() || now.is_some() || form == KeyForm::Named {
            arguments.push(channel.as_bytes().to_vec());
        }
        arguments.extend(now.map(|now| now.as_micros().to_string().into_bytes()));
        let entry = match letter {
            None => Entry::Operate,
            Some(_) if plans.iter().all(is_of_buckets) => Entry::DecideBuckets,
            Some(letter) => Entry::Decide(letter),
        };
        let keys = match form {
            KeyForm::Declared => tables.keys,
            KeyForm::Named => {
                // The names begin with the fourth argument.
                arguments.resize(3, Vec::new());
                arguments.extend(tables.keys);
                Vec::new()
            }
        };
        (Self { plans }, Call { entry, keys, arguments })
    }

    /// Sends each plan its part of the reply, except misdirected plans.
    pub(crate) fn complete(self, reply: Reply) -> Outcome {
        let reader = match reply {
            Reply::Array(replies) => ReplyReader::new(replies.into_iter()),
            _ => None,
        };
        let Some(mut reader) = reader else {
            self.fail(&Failure::unexpected());
            return Outcome::default();
        };
        let mut outcome = Outcome { at: Some(reader.at()), ..Outcome::default() };
        let mut plans = self.plans.into_iter();
        for plan in plans.by_ref() {
            let counters = plan.takes.iter().filter(|take| take.is_counter()).count();
            match reader.next(plan.verb, counters) {
                Some(PlanResult::Decided(result)) => plan.complete(result),
                Some(misdirected) => {
                    outcome.refuses_several_slots |= misdirected == PlanResult::CrossSlot;
                    outcome.misdirected.push(plan);
                }
                None => {
                    plan.fail(Failure::unexpected());
                    break;
                }
            }
        }
        // The rest of the reply cannot be assigned to plans.
        plans.for_each(|plan| plan.fail(Failure::unexpected()));
        outcome
    }

    /// Returns the plans: the call was not sent, or has not run.
    pub(crate) fn into_plans(self) -> Vec<QueuedPlan> {
        self.plans
    }

    /// Fails every plan.
    pub(crate) fn fail(self, failure: &Failure) {
        for plan in self.plans {
            plan.fail(failure.clone());
        }
    }
}

/// Returns the letter of all limits, if every plan only takes and peeks under one algorithm.
fn common_letter(plans: &[QueuedPlan]) -> Option<Letter> {
    let mut letters = plans.iter().flat_map(|plan| &plan.takes).map(|take| take.letter);
    let first = letters.next()?;
    let is_plain = plans.iter().all(|plan| plan.verb.is_plain());
    (is_plain && letters.all(|letter| letter == first)).then_some(first)
}

/// Returns whether all takes of a plan are from token buckets of a policy and in one group, so that they are taken all or
/// not at all.
fn is_of_buckets(plan: &QueuedPlan) -> bool {
    plan.takes.first().is_some_and(|first| {
        let is_alike = |take: &EncodedTake| {
            take.group == first.group && is_plain_bucket(take.letter, &take.limit)
        };
        plan.takes.iter().all(is_alike)
    })
}

/// The distinct keys and limits of a call, numbered from 1.
#[derive(Debug, Default)]
struct Tables {
    keys: Vec<Vec<u8>>,
    key_numbers: HashMap<Vec<u8>, u16>,
    limits: Vec<LimitCode>,
}

impl Tables {
    fn key(&mut self, key: &[u8]) -> u16 {
        if let Some(number) = self.key_numbers.get(key) {
            return *number;
        }
        self.keys.push(key.to_vec());
        // MAX_TAKES keeps this far below the maximum.
        let number = u16::try_from(self.keys.len()).unwrap_or(u16::MAX);
        self.key_numbers.insert(key.to_vec(), number);
        number
    }

    /// A linear search: most calls have one or two limits.
    fn limit(&mut self, code: &LimitCode) -> u16 {
        let known = self.limits.iter().rposition(|limit| limit == code);
        let index = known.unwrap_or_else(|| {
            self.limits.push(code.clone());
            self.limits.len() - 1
        });
        u16::try_from(index + 1).unwrap_or(u16::MAX)
    }

    fn packed(&self, plans: &[u8]) -> Vec<u8> {
        let count = u16::try_from(self.limits.len()).unwrap_or(u16::MAX);
        let mut packed = count.to_be_bytes().to_vec();
        self.limits.iter().for_each(|limit| packed.extend_from_slice(limit));
        packed.extend_from_slice(plans);
        packed
    }
}

fn write_plan(out: &mut Vec<u8>, plan: &QueuedPlan, tables: &mut Tables) {
    let (number, extra) = match plan.verb {
        Verb::Take => (1, None),
        Verb::Peek => (2, None),
        Verb::Refund => (3, None),
        Verb::Debit { age } => (4, Some(Extra::Number(micros(age)))),
        Verb::Hold(permit) => (5, Some(Extra::Permit(permit.as_u128()))),
        Verb::Pause { length } => (6, Some(Extra::Number(micros(length)))),
        Verb::Reset => (7, None),
        Verb::Release(permit) => (8, Some(Extra::Permit(permit.as_u128()))),
        Verb::Renew(permit) => (9, Some(Extra::Permit(permit.as_u128()))),
        Verb::Holds(permit) => (10, Some(Extra::Permit(permit.as_u128()))),
        Verb::Lease { hold } => (11, Some(Extra::Number(micros(hold)))),
        Verb::OnReservation(verb) => (reservation_code(verb), None),
    };
    out.push(number);
    out.push(u8::try_from(plan.takes.len()).unwrap_or(u8::MAX));
    match extra {
        None => {}
        Some(Extra::Number(number)) => write_number(out, number),
        Some(Extra::Permit(permit)) => out.extend_from_slice(&permit.to_be_bytes()),
    }
    for take in &plan.takes {
        out.push(take.group);
        out.extend_from_slice(&tables.key(&take.key).to_be_bytes());
        out.extend_from_slice(&tables.limit(&take.limit).to_be_bytes());
        write_number(out, take.cost);
    }
    if let Some(KeyRole::Record(arguments)) = plan.takes.first().map(|take| &take.role) {
        out.extend_from_slice(&u32::try_from(arguments.len()).unwrap_or(u32::MAX).to_be_bytes());
        out.extend_from_slice(arguments);
    }
    if matches!(plan.verb, Verb::Lease { .. }) {
        plan.takes.iter().for_each(|take| write_number(out, take.wanted));
    }
}

/// The number of a verb in `reservations.lua`.
const fn reservation_code(verb: ReservationVerb) -> u8 {
    match verb {
        ReservationVerb::Reserve => 12,
        ReservationVerb::Settle => 13,
        ReservationVerb::Extend => 14,
        ReservationVerb::Read => 15,
        ReservationVerb::Adopt => 16,
    }
}

/// The argument of a verb.
enum Extra {
    Number(u64),
    Permit(u128),
}
