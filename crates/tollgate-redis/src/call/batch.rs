//! Plans that leave together.

use std::collections::HashMap;

use tollgate::Timestamp;

use super::answer::Answers;
use super::{Ask, Call, Verb};
use crate::failure::Failure;
use crate::limit_code::{Letter, LimitCode, micros, put_number};
use crate::resp::Reply;
use crate::script::Entry;

/// The most takes of one call: at a few microseconds each, Redis serves others soon enough.
pub(crate) const MAX_TAKES: usize = 512;

/// Some plans and the call that asks for them all.
#[derive(Debug)]
pub(crate) struct Batch {
    asks: Vec<Ask>,
    keys: Vec<Vec<u8>>,
    packed: Vec<u8>,
    /// The letter of all limits, if every plan only takes and peeks under one algorithm.
    letter: Option<Letter>,
}

impl Batch {
    pub(crate) fn of(asks: Vec<Ask>) -> Self {
        let mut tables = Tables::default();
        let mut plans = Vec::with_capacity(asks.len() * 16);
        for ask in &asks {
            put_ask(&mut plans, ask, &mut tables);
        }
        let packed = tables.packed(&plans);
        let letter = common_letter(&asks);
        Self { letter, packed, keys: tables.keys, asks }
    }

    /// The call that decides it. `now` is for programs that must be told the time.
    pub(crate) fn call(&mut self, channel: &str, now: Option<Timestamp>) -> Call {
        let entry = self.letter.map_or(Entry::Operate, Entry::Decide);
        let mut arguments = vec![std::mem::take(&mut self.packed)];
        // Only what makes room is told to others.
        if self.letter.is_none() || now.is_some() {
            arguments.push(channel.as_bytes().to_vec());
        }
        arguments.extend(now.map(|now| now.as_micros().to_string().into_bytes()));
        Call { entry, keys: std::mem::take(&mut self.keys), arguments }
    }

    /// Tells everyone who asked what was answered, and what the server's time is.
    pub(crate) fn answer(self, reply: Reply) -> Option<Timestamp> {
        let Reply::Array(replies) = reply else {
            self.fail(&Failure::unexpected());
            return None;
        };
        let Some(mut answers) = Answers::new(replies.into_iter()) else {
            self.fail(&Failure::unexpected());
            return None;
        };
        let mut asks = self.asks.into_iter();
        for ask in asks.by_ref() {
            match answers.next(ask.verb, ask.takes.len()) {
                Some(Ok(answer)) => ask.answer(answer),
                Some(Err(failure)) => ask.fail(failure),
                None => {
                    ask.fail(Failure::unexpected());
                    break;
                }
            }
        }
        // What comes after that could be anybody's.
        asks.for_each(|ask| ask.fail(Failure::unexpected()));
        Some(answers.at())
    }

    /// Tells everyone who asked why there is no answer.
    pub(crate) fn fail(self, failure: &Failure) {
        for ask in self.asks {
            ask.fail(failure.clone());
        }
    }
}

fn common_letter(asks: &[Ask]) -> Option<Letter> {
    let mut letters = asks.iter().flat_map(|ask| &ask.takes).map(|take| take.letter);
    let first = letters.next()?;
    let is_plain = asks.iter().all(|ask| ask.verb.is_plain());
    (is_plain && letters.all(|letter| letter == first)).then_some(first)
}

/// The distinct keys and limits of a call, by number.
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
        // A call has far fewer keys than that.
        let number = u16::try_from(self.keys.len()).unwrap_or(u16::MAX);
        self.key_numbers.insert(key.to_vec(), number);
        number
    }

    /// Limits are few: most calls have one or two.
    fn limit(&mut self, code: &LimitCode) -> u16 {
        let known = self.limits.iter().rposition(|other| other == code);
        let place = known.unwrap_or_else(|| {
            self.limits.push(code.clone());
            self.limits.len() - 1
        });
        u16::try_from(place + 1).unwrap_or(u16::MAX)
    }

    fn packed(&self, plans: &[u8]) -> Vec<u8> {
        let count = u16::try_from(self.limits.len()).unwrap_or(u16::MAX);
        let mut packed = count.to_be_bytes().to_vec();
        self.limits.iter().for_each(|limit| packed.extend_from_slice(limit));
        packed.extend_from_slice(plans);
        packed
    }
}

fn put_ask(out: &mut Vec<u8>, ask: &Ask, tables: &mut Tables) {
    let (number, extra) = match ask.verb {
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
    };
    out.push(number);
    out.push(u8::try_from(ask.takes.len()).unwrap_or(u8::MAX));
    match extra {
        None => {}
        Some(Extra::Number(number)) => put_number(out, number),
        Some(Extra::Permit(permit)) => out.extend_from_slice(&permit.to_be_bytes()),
    }
    for take in &ask.takes {
        out.push(take.group);
        out.extend_from_slice(&tables.key(&take.key).to_be_bytes());
        out.extend_from_slice(&tables.limit(&take.limit).to_be_bytes());
        put_number(out, take.cost);
    }
}

/// What a verb needs to know beside its takes.
enum Extra {
    Number(u64),
    Permit(u128),
}
