//! A limit's numbers as a call carries them.

use smallvec::SmallVec;
use tollgate::algorithm::Parameters;
use tollgate::{Limit, Timestamp};

/// Every number that crosses is at most this, so that Lua's doubles hold it.
pub(crate) const MAX_EXACT: u64 = 1 << 53;

/// Bytes of a number in a call.
const WIDTH: usize = 7;

/// The bytes of a limit: a letter, its numbers, and after its length what an inline limit was made of.
pub(crate) type LimitCode = SmallVec<[u8; 36]>;

/// Which algorithm, by the letter that scopes begin with.
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

    /// The letter that this scope begins with.
    pub(crate) fn of_scope(scope: &str) -> Option<Self> {
        let first = *scope.as_bytes().first()?;
        Self::ALL.into_iter().find(|letter| letter.byte() == first)
    }
}

/// Writes a number, clamped to what is exact: more than any limit can hold is as good as anything.
pub(crate) fn put_number(out: &mut impl Extend<u8>, number: u64) {
    let bytes = number.min(MAX_EXACT).to_be_bytes();
    out.extend(bytes.into_iter().skip(8 - WIDTH));
}

/// Reads a number, and gives the rest.
pub(crate) fn get_number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<WIDTH>()?;
    let mut wide = [0; 8];
    wide.iter_mut().skip(8 - WIDTH).zip(number).for_each(|(to, from)| *to = *from);
    Some((u64::from_be_bytes(wide), rest))
}

/// The limit as a call carries it, and its letter. `now` is about what the server's clock says: windows of
/// the calendar are sent as the three around it.
pub(crate) fn encode(limit: &Limit, now: Timestamp) -> (Letter, LimitCode) {
    let mut code = LimitCode::new();
    let window = micros(limit.window());
    let (letter, numbers) = match limit.parameters() {
        Parameters::TokenBucket(numbers) => {
            let (give, grains) = numbers.rate();
            (Letter::TokenBucket, SmallVec::from_slice(&[numbers.burst(), give, grains]))
        }
        Parameters::SlidingWindow(numbers) => {
            (Letter::SlidingWindow, SmallVec::from_slice(&[numbers.count(), window]))
        }
        Parameters::SlidingCounter(numbers) => {
            let numbers = [numbers.count(), window, numbers.tick()];
            (Letter::SlidingCounter, SmallVec::from_slice(&numbers))
        }
        Parameters::FixedWindow(numbers) => {
            (Letter::FixedWindow, SmallVec::from_slice(&[numbers.count(), window]))
        }
        Parameters::AlignedWindow(numbers) => {
            let present = numbers.calendar().window(now);
            let past = numbers.calendar().window(before(present.start));
            let next = numbers.calendar().window(present.end);
            let bounds = [past.start, present.start, present.end, next.end];
            let mut numbers: SmallVec<[u64; 5]> = SmallVec::from_slice(&[numbers.count()]);
            numbers.extend(bounds.map(Timestamp::as_micros));
            (Letter::CalendarWindow, numbers)
        }
        Parameters::Concurrency(numbers) => {
            let numbers = [numbers.count(), micros(numbers.ttl())];
            (Letter::Concurrency, SmallVec::from_slice(&numbers))
        }
        // A kind of limit that this store does not know is one that it lets nobody pass.
        _ => (Letter::Block, SmallVec::<[u64; 5]>::new()),
    };
    code.push(letter.byte());
    numbers.into_iter().for_each(|number| put_number(&mut code, number));
    let sketch = if limit.is_inline() { limit.spec_bytes() } else { Vec::new() };
    // Longer than that is no sketch of ours.
    let length = u8::try_from(sketch.len()).unwrap_or(0);
    code.push(length);
    code.extend(sketch.into_iter().take(usize::from(length)));
    (letter, code)
}

/// What stands for the limit of a permit's key, whose numbers its holder does not know.
pub(crate) fn encode_slots_of_any_limit() -> LimitCode {
    let mut code = LimitCode::new();
    code.push(Letter::Concurrency.byte());
    [0, 0].into_iter().for_each(|number| put_number(&mut code, number));
    code.push(0);
    code
}

fn before(moment: Timestamp) -> Timestamp {
    Timestamp::from_micros(moment.as_micros().saturating_sub(1))
}

/// Whole milliseconds, as many as are exact.
pub(crate) fn millis(duration: std::time::Duration) -> u64 {
    micros(duration) / 1000
}

/// Whole microseconds, as many as are exact.
pub(crate) fn micros(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(MAX_EXACT).min(MAX_EXACT)
}
