//! The time to wait that an upstream response requests.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::header::{DATE, RETRY_AFTER};
use http::{HeaderMap, StatusCode};

use super::limit_field;
use crate::header_value::{parse_digits, single_value};

/// Above this many seconds (30 years) a value is a Unix time, not a duration.
const UNIX_SECONDS_MIN: u64 = 1_000_000_000;
/// Above this a Unix time is in milliseconds: in seconds it would be in the year 5138 or later.
const UNIX_MILLIS_MIN: u64 = 100_000_000_000;
/// Above this a value is neither.
const UNIX_MILLIS_MAX: u64 = 1000 * UNIX_MILLIS_MIN;

/// Returns the time to wait that a 429 or 503 response requests; none if it requests none or is invalid.
pub(super) fn requested_pause(
    status: StatusCode,
    headers: &HeaderMap,
    now: SystemTime,
) -> Option<Duration> {
    if !matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        return None;
    }
    // Dates are relative to the upstream clock, which it sends in `Date`.
    let now = text(headers, DATE.as_str()).and_then(date).unwrap_or(now);
    retry_after(headers, now)
        .or_else(|| rate_limit(headers))
        .or_else(|| reset(headers, "ratelimit-remaining", "ratelimit-reset", None))
        .or_else(|| reset(headers, "x-ratelimit-remaining", "x-ratelimit-reset", Some(now)))
}

fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = text(headers, RETRY_AFTER.as_str())?;
    let until = |then: SystemTime| then.duration_since(now).unwrap_or_default();
    seconds(text).map(Duration::from_secs).or_else(|| date(text).map(until))
}

/// Reads `RateLimit` of the IETF draft, on one line or several.
fn rate_limit(headers: &HeaderMap) -> Option<Duration> {
    let lines = headers.get_all("ratelimit").iter().map(|line| line.to_str().ok());
    let field = lines.collect::<Option<Vec<_>>>()?.join(", ");
    limit_field::exhausted_for(&field).map(Duration::from_secs)
}

/// Reads the reset time of an exhausted limit, in seconds or, if `now` is given, possibly as a Unix time.
fn reset(
    headers: &HeaderMap,
    remaining: &str,
    reset: &str,
    now: Option<SystemTime>,
) -> Option<Duration> {
    if seconds(text(headers, remaining)?)? != 0 {
        return None;
    }
    let reset = seconds(text(headers, reset)?)?;
    match now {
        Some(now) if reset > UNIX_SECONDS_MIN => {
            if reset > UNIX_MILLIS_MAX {
                return None;
            }
            let is_millis = reset > UNIX_MILLIS_MIN;
            let unit = if is_millis { Duration::from_millis } else { Duration::from_secs };
            let then = UNIX_EPOCH.checked_add(unit(reset))?;
            Some(then.duration_since(now).unwrap_or_default())
        }
        _ => Some(Duration::from_secs(reset)),
    }
}

/// Returns the text of a header that occurs once.
fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    std::str::from_utf8(single_value(headers, name)?).ok().map(str::trim)
}

/// Parses seconds. Values above `u64::MAX` saturate; the maximum pause caps them.
fn seconds(text: &str) -> Option<u64> {
    parse_digits(text.as_bytes())
}

fn date(text: &str) -> Option<SystemTime> {
    httpdate::parse_http_date(text).ok()
}

#[cfg(test)]
mod tests {
    use super::{Duration, HeaderMap, StatusCode, UNIX_EPOCH, requested_pause};
    use http::{HeaderName, HeaderValue};

    /// Sunday, 6 November 1994, 08:49:37.
    const NOW: u64 = 784_111_777;

    fn pause(status: u16, lines: &[(&str, &str)]) -> Option<u64> {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            let name: HeaderName = name.parse().unwrap();
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        let now = UNIX_EPOCH + Duration::from_secs(NOW);
        let pause = requested_pause(StatusCode::from_u16(status).unwrap(), &headers, now);
        pause.map(|pause| pause.as_secs())
    }

    #[test]
    fn only_429_and_503_pause() {
        for status in [200, 301, 400, 403, 500, 502, 504] {
            assert_eq!(pause(status, &[("retry-after", "30")]), None, "{status}");
        }
        assert_eq!(pause(429, &[("retry-after", "30")]), Some(30));
        assert_eq!(pause(503, &[("retry-after", "30")]), Some(30));
        assert_eq!(pause(429, &[]), None);
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let later = "Sun, 06 Nov 1994 08:50:07 GMT";
        assert_eq!(pause(429, &[("retry-after", later)]), Some(30));
        // The upstream clock is ten seconds ahead.
        let date = ("date", "Sun, 06 Nov 1994 08:49:47 GMT");
        assert_eq!(pause(429, &[("retry-after", later), date]), Some(20));
        assert_eq!(pause(429, &[("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT")]), Some(0));
        assert_eq!(pause(429, &[("retry-after", "0")]), Some(0));
        assert_eq!(pause(429, &[("retry-after", "99999999999999999999999")]), Some(u64::MAX));
    }

    #[test]
    fn first_valid_header_counts() {
        let draft = ("ratelimit", "\"burst\";r=0;t=7, \"day\";r=3;t=99");
        assert_eq!(pause(429, &[draft]), Some(7));
        assert_eq!(pause(429, &[draft, ("retry-after", "5")]), Some(5));
        assert_eq!(pause(429, &[draft, ("retry-after", "soon")]), Some(7));
        assert_eq!(pause(429, &[("ratelimit-remaining", "0"), ("ratelimit-reset", "9")]), Some(9));
        let x = |reset| [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", reset)];
        assert_eq!(pause(429, &x("9")), Some(9));
        assert_eq!(pause(429, &x("1000000000")), Some(1_000_000_000));
        assert_eq!(pause(429, &x("1000000001")), Some(1_000_000_001 - NOW));
        let date = ("date", "Sun, 09 Sep 2001 01:46:35 GMT");
        assert_eq!(pause(429, &[x("1000000001")[0], x("1000000001")[1], date]), Some(6));
        // Milliseconds are recognised where seconds would be implausibly far in the future.
        assert_eq!(pause(429, &x("784111807000")), Some(30));
        assert_eq!(pause(429, &x("784111707000")), Some(0));
        assert_eq!(pause(429, &x("100000000000")), Some(100_000_000_000 - NOW));
        assert_eq!(pause(429, &x("100000000001")), Some(0));
        assert_eq!(pause(429, &x("100000000000000")), Some(100_000_000_000 - NOW));
        assert_eq!(pause(429, &x("100000000000001")), None);
        // Two header lines form one list.
        assert_eq!(
            pause(503, &[("ratelimit", "\"a\";r=0;t=7"), ("ratelimit", "\"b\";r=0;t=8")]),
            Some(8)
        );
    }

    #[test]
    fn invalid_headers_do_not_pause() {
        for text in ["", " ", "-5", "+5", "1.5", "5s", "NaN", "0x10", "٣", "5, 6", "tomorrow"] {
            assert_eq!(pause(429, &[("retry-after", text)]), None, "{text}");
            let reset = [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", text)];
            assert_eq!(pause(429, &reset), None, "{text}");
            let remaining = [("ratelimit-remaining", text), ("ratelimit-reset", "5")];
            assert_eq!(pause(429, &remaining), None, "{text}");
        }
        assert_eq!(pause(429, &[("retry-after", "5"), ("retry-after", "6")]), None);
        assert_eq!(pause(429, &[("ratelimit-remaining", "1"), ("ratelimit-reset", "5")]), None);
        assert_eq!(pause(429, &[("ratelimit-reset", "5")]), None);
        let far = [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "18446744073709551615")];
        assert_eq!(pause(429, &far), None);
    }
}
