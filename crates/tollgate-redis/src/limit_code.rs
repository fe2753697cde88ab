//! The encoding of limits in script calls, and the Lua files that decode it.

use std::iter;

use smallvec::SmallVec;
pub(crate) use tollgate::algorithm::Letter;
use tollgate::algorithm::Parameters;
use tollgate::{Limit, Timestamp};

/// The maximum of every number in a call, because Lua numbers are doubles.
pub(crate) const MAX_EXACT: u64 = 1 << 53;

/// Bytes of a number in a call.
const WIDTH: usize = 7;

/// An encoded limit: a letter, its parameters, and the length and bytes of an inline limit's spec.
pub(crate) type LimitCode = SmallVec<[u8; 36]>;

/// Returns the letter of a limit identity.
pub(crate) fn letter_of_identity(identity: &str) -> Option<Letter> {
    Letter::from_byte(*identity.as_bytes().first()?)
}

macro_rules! lua {
    ($($name:literal),*) => {
        &[$(include_str!(concat!("../lua/", $name, ".lua"))),*]
    };
}

/// Returns the Lua files of an algorithm.
pub(crate) const fn lua_parts(letter: Letter) -> &'static [&'static str] {
    match letter {
        Letter::Block => lua!["block"],
        Letter::TokenBucket => lua!["bucket_format", "token_bucket"],
        Letter::SlidingWindow => lua!["sliding_window"],
        Letter::SlidingCounter => lua!["sliding_counter"],
        Letter::FixedWindow => lua!["window_count", "fixed_window"],
        Letter::CalendarWindow => lua!["window_count", "calendar_window"],
        Letter::Concurrency => lua!["concurrency"],
    }
}

/// Writes a number, clamped to [`MAX_EXACT`], which exceeds every limit.
pub(crate) fn write_number(out: &mut impl Extend<u8>, number: u64) {
    let bytes = number.min(MAX_EXACT).to_be_bytes();
    out.extend(bytes.into_iter().skip(8 - WIDTH));
}

/// Reads a number. Returns it and the remaining bytes.
pub(crate) fn read_number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<WIDTH>()?;
    let mut wide = [0; 8];
    wide.iter_mut().skip(8 - WIDTH).zip(number).for_each(|(to, from)| *to = *from);
    Some((u64::from_be_bytes(wide), rest))
}

/// Encodes a limit. `now` is the estimated server time: a calendar limit contains the three windows around it.
pub(crate) fn encode(limit: &Limit, now: Timestamp) -> (Letter, LimitCode) {
    let mut code = LimitCode::new();
    let window = micros(limit.window());
    let letter = limit.letter();
    let parameters: SmallVec<[u64; 5]> = match limit.parameters() {
        Parameters::Block => SmallVec::new(),
        Parameters::TokenBucket(parameters) => {
            let (give, grains) = parameters.rate();
            SmallVec::from_slice(&[parameters.burst(), give, grains])
        }
        Parameters::SlidingWindow(parameters) => {
            SmallVec::from_slice(&[parameters.count(), parameters.length()])
        }
        Parameters::SlidingCounter(parameters) => {
            SmallVec::from_slice(&[parameters.count(), window, parameters.tick()])
        }
        Parameters::FixedWindow(parameters) => SmallVec::from_slice(&[parameters.count(), window]),
        Parameters::AlignedWindow(parameters) => {
            let current = parameters.calendar().window(now);
            let previous = parameters.calendar().window(before(current.start));
            let next = parameters.calendar().window(current.end);
            let bounds = [previous.start, current.start, current.end, next.end];
            let bounds = bounds.map(Timestamp::as_micros);
            iter::once(parameters.count()).chain(bounds).collect()
        }
        Parameters::Concurrency(parameters) => {
            SmallVec::from_slice(&[parameters.count(), micros(parameters.ttl())])
        }
    };
    code.push(letter.byte());
    parameters.into_iter().for_each(|number| write_number(&mut code, number));
    let spec = if limit.is_inline() { limit.spec_bytes() } else { Vec::new() };
    // Our specs are shorter than 256 bytes.
    let length = u8::try_from(spec.len()).unwrap_or(0);
    code.push(length);
    code.extend(spec.into_iter().take(usize::from(length)));
    (letter, code)
}

/// Returns whether a limit is a token bucket without a spec, which the leanest program decodes.
pub(crate) fn is_plain_bucket(letter: Letter, code: &LimitCode) -> bool {
    letter == Letter::TokenBucket && code.last() == Some(&0) && code.len() == 2 + 3 * WIDTH
}

/// Encodes a placeholder limit for the keys of a permit, whose parameters the holder does not know.
pub(crate) fn encode_permit_limit() -> LimitCode {
    let mut code = LimitCode::new();
    code.push(Letter::Concurrency.byte());
    [0, 0].into_iter().for_each(|number| write_number(&mut code, number));
    code.push(0);
    code
}

/// Letter of an entry in script calls: a key that is no counter.
const ENTRY: u8 = b'r';

/// Encodes a placeholder limit for the keys of reservations that are no counters.
pub(crate) fn encode_entry() -> LimitCode {
    LimitCode::from_slice(&[ENTRY, 0])
}

fn before(time: Timestamp) -> Timestamp {
    Timestamp::from_micros(time.as_micros().saturating_sub(1))
}

/// Returns whole milliseconds, at most `MAX_EXACT / 1000`.
pub(crate) fn millis(duration: std::time::Duration) -> u64 {
    micros(duration) / 1000
}

/// Returns whole microseconds, at most [`MAX_EXACT`].
pub(crate) fn micros(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(MAX_EXACT).min(MAX_EXACT)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tollgate::algorithm::CalendarUnit;
    use tollgate::{LimitField, LimitSpec};

    use super::*;

    #[test]
    fn every_algorithm_has_a_code_and_a_lua_file() {
        for letter in Letter::ALL {
            let spec = LimitSpec {
                algorithm: Some(letter.algorithm()),
                count: letter.has(LimitField::Count).then_some(9),
                window: letter.has(LimitField::Window).then_some(Duration::from_secs(60)),
                align: letter.has(LimitField::Align).then_some(CalendarUnit::Day),
                ..LimitSpec::default()
            };
            let limit = spec.build().unwrap();
            let (encoded, code) = encode(&limit, Timestamp::EPOCH);
            assert_eq!((encoded, code.first()), (letter, Some(&letter.byte())));
            assert_eq!(letter_of_identity(&limit.identity()), Some(letter));
            let registered = format!("algorithms.{} = ", char::from(letter.byte()));
            let lua = lua_parts(letter).concat();
            assert_eq!(lua.matches(&registered).count(), 1, "{letter:?}");
            assert_eq!(lua.matches(".expired(").count(), 1, "{letter:?}");
        }
    }
}
