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
