//! Deadlines of callers: the header `grpc-timeout`.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::header::{HeaderMap, HeaderName};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::error::ApiError;

const HEADER: HeaderName = HeaderName::from_static("grpc-timeout");
/// Maximum number of digits, by the gRPC specification.
const MAX_DIGITS: usize = 8;

/// Returns the time that the caller waits; `None` if it sets no limit. More than one header is an error.
pub(super) fn timeout(headers: &HeaderMap) -> Result<Option<Duration>, ApiError> {
    let mut values = headers.get_all(HEADER).iter();
    let (Some(value), other) = (values.next(), values.next()) else { return Ok(None) };
    let invalid = |detail| ApiError::invalid(detail).at(HEADER.as_str());
    if other.is_some() {
        return Err(invalid("is sent more than once; send one value"));
    }
    let timeout = parse(value.as_bytes()).map(Some);
    timeout.ok_or_else(|| invalid("use 1 to 8 digits and a unit (H, M, S, m, u or n), such as 20m"))
}

fn parse(value: &[u8]) -> Option<Duration> {
    let (unit, digits) = value.split_last()?;
    if !(1..=MAX_DIGITS).contains(&digits.len()) || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let count: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some(match unit {
        b'H' => Duration::from_secs(count * 3600),
        b'M' => Duration::from_secs(count * 60),
        b'S' => Duration::from_secs(count),
        b'm' => Duration::from_millis(count),
        b'u' => Duration::from_micros(count),
        b'n' => Duration::from_nanos(count),
        _ => return None,
    })
}

/// A call with a deadline. The output is `None` if it passes first; the call is then dropped, which withdraws a decision
/// that is not sent to the store yet. A call whose deadline has passed is never begun.
#[derive(Debug)]
pub(super) struct BeforeDeadline<F> {
    call: F,
    deadline: Instant,
    /// Set when the call has to wait. Most calls complete at once.
    timer: Option<Pin<Box<Sleep>>>,
}

impl<F> BeforeDeadline<F> {
    pub(super) const fn new(call: F, deadline: Instant) -> Self {
        Self { call, deadline, timer: None }
    }
}

impl<F: Future + Unpin> Future for BeforeDeadline<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { call, deadline, timer } = &mut *self;
        if Instant::now() >= *deadline {
            return Poll::Ready(None);
        }
        if let Poll::Ready(output) = Pin::new(call).poll(context) {
            return Poll::Ready(Some(output));
        }
        let timer = timer.get_or_insert_with(|| Box::pin(sleep_until(*deadline)));
        timer.as_mut().poll(context).map(|()| None)
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[test]
    fn a_second_timeout_is_refused() {
        let mut headers = HeaderMap::new();
        assert_eq!(timeout(&headers).unwrap(), None);
        headers.append(HEADER, "20m".parse().unwrap());
        assert_eq!(timeout(&headers).unwrap(), Some(Duration::from_millis(20)));
        headers.append(HEADER, "20m".parse().unwrap());
        let error = timeout(&headers).unwrap_err().to_string();
        assert_eq!(error, "grpc-timeout: is sent more than once; send one value");
    }

    #[test]
    fn parses_all_units_and_nothing_else() {
        for (text, timeout) in [
            ("1H", Duration::from_secs(3600)),
            ("2M", Duration::from_secs(120)),
            ("3S", Duration::from_secs(3)),
            ("20m", Duration::from_millis(20)),
            ("0m", Duration::ZERO),
            ("99999999u", Duration::from_micros(99_999_999)),
            ("5n", Duration::from_nanos(5)),
            ("99999999H", Duration::from_secs(99_999_999 * 3600)),
        ] {
            assert_eq!(parse(text.as_bytes()), Some(timeout), "{text}");
        }
        for text in
            ["", "m", "5", "5x", "-1m", "+1m", "1.5S", "999999999m", "1 m", " 1m", "\u{660}m"]
        {
            assert_eq!(parse(text.as_bytes()), None, "{text:?}");
        }
    }

    #[tokio::test]
    async fn passed_deadline_begins_no_call() {
        let call = Box::pin(async { panic!("begun") });
        assert_eq!(BeforeDeadline::new(call, Instant::now()).await, None::<()>);
        let soon = Instant::now() + Duration::from_millis(1);
        assert_eq!(BeforeDeadline::new(pending::<()>(), soon).await, None);
        let later = Instant::now() + Duration::from_secs(600);
        assert_eq!(BeforeDeadline::new(ready(7), later).await, Some(7));
    }
}
