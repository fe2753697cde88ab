//! `CL.THROTTLE` and `THROTTLE`: token buckets whose numbers are in the command.

use tollgate::{Decision, Inline, MAX_FACT_LENGTH, Query, Status, Verb, Verdict, rounding};

use super::decode::Arguments;
use super::encode::Replies;
use super::error_reply::ErrorReply;
use super::limit_cache::{LimitCache, LimitNumbers};
use super::numbers::{MAX_NUMBER, parse_integer, signed};

/// Longest period: 100 years in seconds.
const MAX_PERIOD: u64 = 36_525 * 86_400;

/// The two commands, which differ in the meaning of `max_burst` and in their replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Convention {
    /// `CL.THROTTLE` of redis-cell: the bucket holds `max_burst` + 1.
    Cell,
    /// `THROTTLE` of throttlecrab: the bucket holds `max_burst`.
    Crab,
}

/// A valid command.
#[derive(Debug, Clone)]
pub(super) struct ThrottleCall {
    pub(super) query: Query<'static>,
    /// A quantity of 0 peeks.
    pub(super) verb: Verb,
    pub(super) format: ThrottleFormat,
}

/// How the decision is encoded.
#[derive(Debug, Clone)]
pub(super) struct ThrottleFormat {
    convention: Convention,
    burst: u64,
    /// The start of a reply that allows, which contains the numbers that do not change.
    allowed_start: Box<[u8]>,
}

impl ThrottleCall {
    /// Replaces the key, which must be valid.
    pub(super) fn set_key(&mut self, key: &[u8]) {
        if let Query::Inline(inline) = &mut self.query {
            inline.set_key("", key);
        }
    }
}

impl Convention {
    const fn command(self) -> &'static str {
        match self {
            Self::Cell => "CL.THROTTLE",
            Self::Crab => "THROTTLE",
        }
    }

    /// The name of the limit. It is fixed, so that changed numbers convert the state of a key.
    const fn limit_name(self) -> &'static str {
        match self {
            Self::Cell => "cl",
            Self::Crab => "throttle",
        }
    }

    /// Returns the first number of a reply.
    fn flag(self, verdict: Verdict) -> u8 {
        match self {
            Self::Cell => u8::from(!verdict.is_allowed()),
            Self::Crab => u8::from(verdict.is_allowed()),
        }
    }

    /// Returns the wait in seconds.
    fn retry(self, verdict: Verdict) -> i64 {
        match (verdict, self) {
            (Verdict::Deny { retry_after }, _) => signed(rounding::seconds(retry_after)),
            (Verdict::Never, _) | (Verdict::Allow, Self::Cell) => -1,
            (Verdict::Allow, Self::Crab) => 0,
        }
    }

    /// Returns the capacity of the bucket.
    fn burst(self, max_burst: &[u8]) -> Result<u64, ErrorReply> {
        match self {
            Self::Cell => {
                Ok(number("max_burst", max_burst, 0..=MAX_NUMBER.saturating_sub(1))?
                    .saturating_add(1))
            }
            Self::Crab => number("max_burst", max_burst, 1..=MAX_NUMBER),
        }
    }
}

/// Reads `key max_burst count period [quantity]`.
pub(super) fn read(
    convention: Convention,
    arguments: &Arguments<'_>,
    limits: &mut LimitCache,
) -> Result<ThrottleCall, ErrorReply> {
    let (Some(key), Some(max_burst), Some(count), Some(period)) =
        (arguments.get(1), arguments.get(2), arguments.get(3), arguments.get(4))
    else {
        return Err(usage(convention));
    };
    if arguments.len() > 6 {
        return Err(usage(convention));
    }
    let burst = convention.burst(max_burst)?;
    let count = number("count", count, 1..=MAX_NUMBER)?;
    let period_seconds = number("period", period, 1..=MAX_PERIOD)?;
    let quantity = match arguments.get(5) {
        Some(quantity) => number("quantity", quantity, 0..=MAX_NUMBER)?,
        None => 1,
    };
    let numbers = LimitNumbers { name: convention.limit_name(), burst, count, period_seconds };
    let limits = limits.limits(numbers).map_err(|error| ErrorReply::cell(&error))?;
    check_key(key)?;
    Ok(ThrottleCall {
        query: Query::Inline(Inline::with_limits("", key, limits, quantity)),
        verb: if quantity == 0 { Verb::Peek } else { Verb::Take },
        format: ThrottleFormat::new(convention, burst),
    })
}

fn usage(convention: Convention) -> ErrorReply {
    let command = convention.command();
    ErrorReply::cell(&format!("Usage: {command} <key> <max_burst> <count> <period> [<quantity>]"))
}

/// Keys have the length of facts, as in every front end.
fn check_key(key: &[u8]) -> Result<(), ErrorReply> {
    match key.len() {
        0 => Err(ErrorReply::fixed("Cell error: the key is empty")),
        1..=MAX_FACT_LENGTH => Ok(()),
        _ => Err(ErrorReply::cell(&format!(
            "the key is longer than the maximum of {MAX_FACT_LENGTH} bytes"
        ))),
    }
}

/// Parses a number of a command.
fn number(
    name: &str,
    text: &[u8],
    range: std::ops::RangeInclusive<u64>,
) -> Result<u64, ErrorReply> {
    let parsed = parse_integer(text)
        .ok_or_else(|| ErrorReply::cell(&format!("{name} is not an integer or out of range")))?;
    match u64::try_from(parsed) {
        Ok(number) if range.contains(&number) => Ok(number),
        Ok(number) if number > *range.end() => {
            Err(ErrorReply::cell(&format!("{name} must be at most {}", range.end())))
        }
        _ if *range.start() == 0 => Err(ErrorReply::cell(&format!("{name} must be zero or more"))),
        _ => Err(ErrorReply::cell(&format!("{name} must be greater than zero"))),
    }
}

impl ThrottleFormat {
    fn new(convention: Convention, burst: u64) -> Self {
        let flag = convention.flag(Verdict::Allow);
        let allowed_start = format!("*5\r\n:{flag}\r\n:{burst}\r\n").into_bytes().into();
        Self { convention, burst, allowed_start }
    }

    /// Encodes a decision on the only limit of the command.
    pub(super) fn encode(&self, decision: &Decision<'_>, replies: &mut Replies) {
        let status = decision.deciding();
        let remaining = status.map_or(0, Status::remaining);
        let reset = status.map_or(0, |status| rounding::seconds(status.reset_after()));
        let verdict = decision.verdict();
        if verdict.is_allowed() {
            replies.append(&self.allowed_start);
        } else {
            replies.array(5);
            replies.integer(self.convention.flag(verdict));
            replies.integer(self.burst);
        }
        replies.integer(remaining);
        let retry = self.convention.retry(verdict);
        match self.convention {
            Convention::Cell => {
                replies.integer(retry);
                replies.integer(reset);
            }
            Convention::Crab => {
                replies.integer(reset);
                replies.integer(retry);
            }
        }
    }
}
