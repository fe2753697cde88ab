//! Binary encoding of states in snapshots.
//!
//! Input is untrusted: loading rejects every state that no step could have produced, because the
//! algorithms rely on the invariants of their own states.

use crate::fields::Fields;

/// Encoding of one algorithm's state.
pub(super) trait Saved: Sized {
    fn save(&self, out: &mut Vec<u8>);

    /// Decodes a state. Returns `None` if no step could have produced it.
    fn load(fields: &mut Fields<'_>) -> Option<Self>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::State;
    use crate::fields::{put_length, put_longs};
    use crate::time::{MAX_EXACT, MAX_PERIOD};

    /// A time stamp above `Timestamp::MAX`.
    const TOO_LATE: u64 = MAX_EXACT;

    fn load(letter: u8, bytes: &[u8]) -> Option<State> {
        let mut fields = Fields::new(bytes);
        State::load(letter, &mut fields).filter(|_| fields.is_empty())
    }

    fn encode(letter: u8, values: &[u64]) -> Vec<u8> {
        let mut bytes = vec![letter];
        put_longs(&mut bytes, values.iter().copied());
        bytes
    }

    /// Encodes a log of takes, each `[time, cost]`.
    fn log(length: u64, takes: &[[u64; 2]]) -> Vec<u8> {
        let mut bytes = encode(b'w', &[length]);
        put_length(&mut bytes, takes.len());
        takes.iter().for_each(|take| put_longs(&mut bytes, *take));
        bytes
    }

    /// Encodes slots without permits, each `[since, length, cost]`.
    fn slots(slots: &[[u64; 3]]) -> Vec<u8> {
        let mut bytes = vec![b'n'];
        put_length(&mut bytes, slots.len());
        for slot in slots {
            put_longs(&mut bytes, [0, 0]);
            put_longs(&mut bytes, *slot);
        }
        bytes
    }

    fn paused(pause: [u64; 2], inner: &[u8]) -> Vec<u8> {
        [&encode(b'p', &pause), inner].concat()
    }

    #[test]
    fn valid_states_round_trip() {
        for (letter, bytes) in [
            (b't', encode(b't', &[5, 3, 1, 3])),
            (b't', encode(b't', &[5, 0, 0, 0])),
            (b'w', log(60, &[[1, 2], [1, 1], [7, 1]])),
            (b'c', encode(b'c', &[5, 60, 7, 1])),
            (b'f', encode(b'f', &[5, 5, 1, 60])),
            (b'a', encode(b'a', &[5, 1, 60])),
            (b'n', slots(&[[5, 60, 1], [1, 64, 2]])),
            (b'n', paused([5, 0], &slots(&[]))),
            (b'b', paused([5, 9], b"-")),
        ] {
            let state = load(letter, &bytes).unwrap();
            let mut saved = Vec::new();
            state.save(&mut saved);
            assert_eq!(saved, bytes, "{state:?}");
        }
    }

    #[test]
    fn rejects_states_that_no_step_produces() {
        for (letter, bytes) in [
            (b't', encode(b't', &[TOO_LATE, 0, 1, 3])),
            (b't', encode(b't', &[5, 7, 1, 3])),
            (b't', encode(b't', &[5, 3, 0, 3])),
            (b't', encode(b't', &[5, 3, 1, MAX_EXACT + 1])),
            (b'w', log(60, &[[2, 1], [1, 1]])),
            (b'w', log(60, &[[1, 0]])),
            (b'w', log(60, &[[1, 1], [2, 200_000]])),
            (b'w', log(0, &[[1, 1]])),
            // The longest window, and the longest lease.
            (b'w', log(MAX_PERIOD + 1_000_001, &[])),
            (b'c', encode(b'c', &[5, 0, 7, 1])),
            (b'c', encode(b'c', &[5, 60, MAX_EXACT + 1, 1])),
            (b'f', encode(b'f', &[6, 5, 1, 60])),
            (b'f', encode(b'f', &[5, TOO_LATE, 1, 60])),
            (b'a', encode(b'a', &[5, MAX_EXACT + 1, 60])),
            (b'n', slots(&[[5, 0, 1]])),
            (b'n', slots(&[[5, 60, 0]])),
            (b'n', slots(&[[5, 60, 1], [5, 59, 1]])),
            (b'n', slots(&[[5, 60, 1], [5, 60, 100_000]])),
            (b'n', slots(&[[TOO_LATE, 60, 1]])),
            (b'n', paused([5, MAX_PERIOD + 1], &slots(&[]))),
            (b'n', paused([5, 9], &paused([5, 9], &slots(&[])))),
            (b'n', encode(b't', &[5, 3, 1, 3])),
            (b'x', b"x".to_vec()),
            (b't', vec![]),
        ] {
            assert_eq!(load(letter, &bytes), None, "{bytes:?}");
        }
    }
}
