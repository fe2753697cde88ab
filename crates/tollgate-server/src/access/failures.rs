//! Rate limit on failed authentication attempts, by our own limiter.

use std::net::IpAddr;
use std::time::Duration;

use tollgate::{Clock, Decision, Limit, LocalLimiter, Quota, SystemClock, net};

use super::guard::Role;

/// Maximum failures per minute for one address and role.
const MAX_FAILURES: Quota = Quota::per_minute(10);
/// Maximum log lines per minute for one role, whatever the number of addresses.
const MAX_LOG_LINES: Quota = Quota::per_minute(10);
/// Maximum number of tracked addresses. An untracked address is not limited, but its attempts still fail.
const MAX_ADDRESSES: usize = 10_000;

/// A failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// The request has no token. This is not a guess, and any page can make a browser send such a request, so it must not
    /// lock out the valid token of the same address.
    Missing,
    /// A wrong token.
    Wrong,
}

impl Failure {
    /// Returns the reason in the log.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Wrong => "wrong",
        }
    }
}

/// Recent failed attempts by address and role.
#[derive(Debug)]
pub(super) struct Failures<C = SystemClock> {
    limiter: LocalLimiter<C>,
    log_lines: LocalLimiter<C>,
}

impl Failures {
    pub(super) fn new() -> Self {
        Self::on(SystemClock::new())
    }
}

impl<C: Clock + Clone> Failures<C> {
    fn on(clock: C) -> Self {
        Self {
            limiter: limiter(MAX_FAILURES, clock.clone()),
            log_lines: limiter(MAX_LOG_LINES, clock),
        }
    }

    /// Returns the time until this address may try again with a token; `None` if it may try now.
    pub(super) fn retry_after(&self, role: Role, address: IpAddr) -> Option<Duration> {
        refused_for(&self.limiter.peek(&key(Failure::Wrong, role, address)))
    }

    /// Records a failure. Returns the time until the next attempt if the maximum was already reached.
    pub(super) fn record(&self, failure: Failure, role: Role, address: IpAddr) -> Option<Duration> {
        refused_for(&self.limiter.take(&key(failure, role, address)))
    }

    /// Returns whether a failure may be logged now, and counts the line.
    pub(super) fn take_log_line(&self, role: Role) -> bool {
        self.log_lines.take(role.as_str()).is_allowed()
    }
}

#[expect(clippy::expect_used, reason = "a builder with one limit always builds")]
fn limiter<C: Clock>(quota: Quota, clock: C) -> LocalLimiter<C> {
    let limit = Limit::sliding_window(quota).unwrap_or_else(|_| Limit::block());
    let builder = LocalLimiter::builder().limit(limit).max_keys(MAX_ADDRESSES).clock(clock);
    builder.build().expect("one limit is valid")
}

fn refused_for(decision: &Decision<'_>) -> Option<Duration> {
    decision.retry_after().filter(|_| !decision.is_allowed())
}

/// Returns the key of an address. IPv6 addresses of one network share a key.
fn key(failure: Failure, role: Role, address: IpAddr) -> String {
    format!("{failure:?} {} {}", role.as_str(), net::rate_limit_address(address))
}

#[cfg(test)]
mod tests {
    use tollgate::ManualClock;

    use super::*;

    #[test]
    fn allows_ten_failures_a_minute_per_network_and_role() {
        let clock = ManualClock::default();
        let failures = Failures::on(clock.clone());
        let [one, same, other] = ["2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"]
            .map(|text| text.parse::<IpAddr>().unwrap());
        for nth in 0..10 {
            assert_eq!(failures.record(Failure::Wrong, Role::Admin, one), None, "{nth}");
        }
        let minute = Some(Duration::from_secs(60));
        assert_eq!(failures.retry_after(Role::Admin, same), minute);
        assert_eq!(failures.record(Failure::Wrong, Role::Admin, same), minute);
        assert_eq!(failures.retry_after(Role::Admin, other), None);
        assert_eq!(failures.retry_after(Role::Read, one), None);
        clock.advance(Duration::from_secs(60));
        assert_eq!(
            failures.retry_after(Role::Admin, one),
            None,
            "refused attempts are not counted"
        );
    }

    #[test]
    fn missing_tokens_do_not_lock_out_the_valid_token() {
        let failures = Failures::on(ManualClock::default());
        let address = "192.0.2.1".parse().unwrap();
        let record = || failures.record(Failure::Missing, Role::Admin, address);
        assert_eq!([(); 10].map(|()| record()), [None; 10]);
        assert!(record().is_some());
        assert_eq!(failures.retry_after(Role::Admin, address), None);
    }
}
