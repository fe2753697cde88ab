//! The encoding of limits in script calls.

use smallvec::SmallVec;
use tollgate::algorithm::Parameters;
use tollgate::{Limit, Timestamp};

/// The maximum of every number in a call, because Lua numbers are doubles.
pub(crate) const MAX_EXACT: u64 = 1 << 53;

/// Bytes of a number in a call.
const WIDTH: usize = 7;

/// An encoded limit: a letter, its parameters, and the length and bytes of an inline limit's spec.
pub(crate) type LimitCode = SmallVec<[u8; 36]>;

/// The algorithm, by the first letter of the limit identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Letter {
    Block,
    TokenBucket,
    SlidingWindow,
    SlidingCounter,
    FixedWindow,
    CalendarWindow,
    Concurrency,
}

impl Letter {
    pub(crate) const ALL: [Self; 7] = [
        Self::Block,
        Self::TokenBucket,
        Self::SlidingWindow,
        Self::SlidingCounter,
        Self::FixedWindow,
        Self::CalendarWindow,
        Self::Concurrency,
    ];

    pub(crate) const fn byte(self) -> u8 {
        match self {
            Self::Block => b'b',
            Self::TokenBucket => b't',
            Self::SlidingWindow => b'w',
            Self::SlidingCounter => b'c',
            Self::FixedWindow => b'f',
            Self::CalendarWindow => b'a',
            Self::Concurrency => b'n',
        }
    }

    /// Returns the letter of a limit identity.
    pub(crate) fn of_identity(identity: &str) -> Option<Self> {
        let first = *identity.as_bytes().first()?;
        Self::ALL.into_iter().find(|letter| letter.byte() == first)
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
    let (letter, parameters) = match limit.parameters() {
        Parameters::TokenBucket(parameters) => {
            let (give, grains) = parameters.rate();
            (Letter::TokenBucket, SmallVec::from_slice(&[parameters.burst(), give, grains]))
        }
        Parameters::SlidingWindow(parameters) => {
            (Letter::SlidingWindow, SmallVec::from_slice(&[parameters.count(), window]))
        }
        Parameters::SlidingCounter(parameters) => {
            let parameters = [parameters.count(), window, parameters.tick()];
            (Letter::SlidingCounter, SmallVec::from_slice(&parameters))
        }
        Parameters::FixedWindow(parameters) => {
            (Letter::FixedWindow, SmallVec::from_slice(&[parameters.count(), window]))
        }
        Parameters::AlignedWindow(parameters) => {
            let current = parameters.calendar().window(now);
            let previous = parameters.calendar().window(before(current.start));
            let next = parameters.calendar().window(current.end);
            let bounds = [previous.start, current.start, current.end, next.end];
            let mut parameters: SmallVec<[u64; 5]> = SmallVec::from_slice(&[parameters.count()]);
            parameters.extend(bounds.map(Timestamp::as_micros));
            (Letter::CalendarWindow, parameters)
        }
        Parameters::Concurrency(parameters) => {
            let parameters = [parameters.count(), micros(parameters.ttl())];
            (Letter::Concurrency, SmallVec::from_slice(&parameters))
        }
        // A limit of an unknown algorithm refuses everything.
        _ => (Letter::Block, SmallVec::<[u64; 5]>::new()),
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

/// Encodes a placeholder limit for the keys of a permit, whose parameters the holder does not know.
pub(crate) fn encode_permit_limit() -> LimitCode {
    let mut code = LimitCode::new();
    code.push(Letter::Concurrency.byte());
    [0, 0].into_iter().for_each(|number| write_number(&mut code, number));
    code.push(0);
    code
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
