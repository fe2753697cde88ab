//! States written down, to survive a restart.
//!
//! What is read is checked as if a stranger had written it: a state that no step could have left
//! behind is refused, because an algorithm relies on its own.

use super::State;
use super::concurrency::Slots;
use super::fixed_window::{Aligned, Window};
use super::pause::Paused;
use super::sliding_counter::Counter;
use super::sliding_window::Log;
use super::token_bucket::Bucket;
use crate::fields::Fields;

/// A state of one algorithm as fields.
pub(super) trait Saved: Sized {
    fn save(&self, out: &mut Vec<u8>);

    /// None if no step could have left it behind.
    fn load(fields: &mut Fields<'_>) -> Option<Self>;
}

/// What the states of a limit begin with: the letter of its scope, or one of these.
const FRESH: u8 = b'-';
const PAUSED: u8 = b'p';

impl State {
    pub(crate) fn save(&self, out: &mut Vec<u8>) {
        match self {
            Self::Fresh => out.push(FRESH),
            Self::Bucket(bucket) => save_as(b't', bucket, out),
            Self::Log(log) => save_as(b'w', &**log, out),
            Self::Counter(counter) => save_as(b'c', counter, out),
            Self::Window(window) => save_as(b'f', window, out),
            Self::Aligned(aligned) => save_as(b'a', aligned, out),
            Self::Slots(slots) => save_as(b'n', &**slots, out),
            Self::Paused(paused) => {
                save_as(PAUSED, &**paused, out);
                paused.inner().save(out);
            }
        }
    }

    /// A state of a limit whose scope begins with `letter`; none if it is not.
    pub(crate) fn load(letter: u8, fields: &mut Fields<'_>) -> Option<Self> {
        match fields.byte()? {
            PAUSED => {
                let paused = Paused::load(fields)?;
                let tag = fields.byte()?;
                let inner = Self::load_unpaused(letter, tag, fields)?;
                Some(Self::Paused(Box::new(paused.over(inner))))
            }
            tag => Self::load_unpaused(letter, tag, fields),
        }
    }

    fn load_unpaused(letter: u8, tag: u8, fields: &mut Fields<'_>) -> Option<Self> {
        Some(match tag {
            FRESH => Self::Fresh,
            tag if tag != letter => return None,
            b't' => Self::Bucket(Bucket::load(fields)?),
            b'w' => Self::Log(Box::new(Log::load(fields)?)),
            b'c' => Self::Counter(Counter::load(fields)?),
            b'f' => Self::Window(Window::load(fields)?),
            b'a' => Self::Aligned(Aligned::load(fields)?),
            b'n' => Self::Slots(Box::new(Slots::load(fields)?)),
            _ => return None,
        })
    }
}

fn save_as(tag: u8, state: &impl Saved, out: &mut Vec<u8>) {
    out.push(tag);
    state.save(out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::{put_length, put_longs};
    use crate::time::{MAX_EXACT, MAX_PERIOD};

    /// A moment later than any.
    const TOO_LATE: u64 = MAX_EXACT;

    fn load(letter: u8, bytes: &[u8]) -> Option<State> {
        let mut fields = Fields::new(bytes);
        State::load(letter, &mut fields).filter(|_| fields.is_empty())
    }

    fn numbers(letter: u8, numbers: &[u64]) -> Vec<u8> {
        let mut bytes = vec![letter];
        put_longs(&mut bytes, numbers.iter().copied());
        bytes
    }

    /// A log of these takes, each a time and a cost.
    fn log(length: u64, takes: &[[u64; 2]]) -> Vec<u8> {
        let mut bytes = numbers(b'w', &[length]);
        put_length(&mut bytes, takes.len());
        takes.iter().for_each(|take| put_longs(&mut bytes, *take));
        bytes
    }

    /// Slots of nobody, each a time, a length and a cost.
    fn slots(slots: &[[u64; 3]]) -> Vec<u8> {
        let mut bytes = vec![b'n'];
        put_length(&mut bytes, slots.len());
        for slot in slots {
            put_longs(&mut bytes, [0, 0]);
            put_longs(&mut bytes, *slot);
        }
        bytes
    }

    fn paused(pause: [u64; 2], beneath: &[u8]) -> Vec<u8> {
        [&numbers(b'p', &pause), beneath].concat()
    }

    #[test]
    fn what_a_step_leaves_behind_is_read() {
        for (letter, bytes) in [
            (b't', numbers(b't', &[5, 3, 1, 3])),
            (b't', numbers(b't', &[5, 0, 0, 0])),
            (b'w', log(60, &[[1, 2], [1, 1], [7, 1]])),
            (b'c', numbers(b'c', &[5, 60, 7, 1])),
            (b'f', numbers(b'f', &[5, 5, 1, 60])),
            (b'a', numbers(b'a', &[5, 1, 60])),
            (b'n', slots(&[[5, 60, 1], [1, 64, 2]])),
            (b'n', paused([5, 0], &slots(&[]))),
            (b'b', paused([5, 9], b"-")),
        ] {
            let state = load(letter, &bytes).unwrap();
            let mut again = Vec::new();
            state.save(&mut again);
            assert_eq!(again, bytes, "{state:?}");
        }
    }

    #[test]
    fn what_no_step_leaves_behind_is_refused() {
        for (letter, bytes) in [
            (b't', numbers(b't', &[TOO_LATE, 0, 1, 3])),
            (b't', numbers(b't', &[5, 4, 1, 3])),
            (b't', numbers(b't', &[5, 3, 0, 3])),
            (b't', numbers(b't', &[5, 3, 1, MAX_EXACT + 1])),
            (b'w', log(60, &[[2, 1], [1, 1]])),
            (b'w', log(60, &[[1, 0]])),
            (b'w', log(60, &[[1, 1], [2, 100_000]])),
            (b'w', log(0, &[[1, 1]])),
            (b'w', log(MAX_PERIOD + 1, &[])),
            (b'c', numbers(b'c', &[5, 0, 7, 1])),
            (b'c', numbers(b'c', &[5, 60, MAX_EXACT + 1, 1])),
            (b'f', numbers(b'f', &[6, 5, 1, 60])),
            (b'f', numbers(b'f', &[5, TOO_LATE, 1, 60])),
            (b'a', numbers(b'a', &[5, MAX_EXACT + 1, 60])),
            (b'n', slots(&[[5, 0, 1]])),
            (b'n', slots(&[[5, 60, 0]])),
            (b'n', slots(&[[5, 60, 1], [5, 59, 1]])),
            (b'n', slots(&[[5, 60, 1], [5, 60, 100_000]])),
            (b'n', slots(&[[TOO_LATE, 60, 1]])),
            (b'n', paused([5, MAX_PERIOD + 1], &slots(&[]))),
            (b'n', paused([5, 9], &paused([5, 9], &slots(&[])))),
            (b'n', numbers(b't', &[5, 3, 1, 3])),
            (b'x', b"x".to_vec()),
            (b't', vec![]),
        ] {
            assert_eq!(load(letter, &bytes), None, "{bytes:?}");
        }
    }
}
