//! Rate limit on failed authentication attempts, by our own limiter.

use std::net::IpAddr;
use std::time::Duration;

use tollgate::{Clock, Decision, Limit, LocalLimiter, Quota, SystemClock, net};

use super::guard::Role;

/// Maximum failures per minute for one address and role.
const MAX_FAILURES: Quota = Quota::per_minute(10);
/// Maximum number of tracked addresses. An untracked address is not limited, but its attempts still fail.
const MAX_ADDRESSES: usize = 10_000;

/// Recent failed attempts by address and role.
#[derive(Debug)]
pub(super) struct Failures<C = SystemClock> {
    limiter: LocalLimiter<C>,
}

impl Failures {
    pub(super) fn new() -> Self {
        Self::on(SystemClock::new())
    }
}

impl<C: Clock> Failures<C> {
    fn on(clock: C) -> Self {
        let limit = Limit::sliding_window(MAX_FAILURES).unwrap_or_else(|_| Limit::block());
        let builder = LocalLimiter::builder().limit(limit).max_keys(MAX_ADDRESSES).clock(clock);
        #[expect(clippy::expect_used, reason = "a builder with one limit always builds")]
        let limiter = builder.build().expect("one limit is valid");
        Self { limiter }
    }

    /// Returns the time until this address may try again; `None` if it may try now.
    pub(super) fn retry_after(&self, role: Role, address: IpAddr) -> Option<Duration> {
        refused_for(&self.limiter.peek(&key(role, address)))
    }

    /// Records a failure. Returns the time until the next attempt if the maximum was already reached.
    pub(super) fn record(&self, role: Role, address: IpAddr) -> Option<Duration> {
        refused_for(&self.limiter.take(&key(role, address)))
    }
}

fn refused_for(decision: &Decision<'_>) -> Option<Duration> {
    decision.retry_after().filter(|_| !decision.is_allowed())
}

/// Returns the key of an address. IPv6 addresses of one network share a key.
fn key(role: Role, address: IpAddr) -> String {
    format!("{} {}", role.as_str(), net::rate_limit_address(address))
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
            assert_eq!(failures.record(Role::Admin, one), None, "{nth}");
        }
        let minute = Some(Duration::from_secs(60));
        assert_eq!(failures.retry_after(Role::Admin, same), minute);
        assert_eq!(failures.record(Role::Admin, same), minute);
        assert_eq!(failures.retry_after(Role::Admin, other), None);
        assert_eq!(failures.retry_after(Role::Read, one), None);
        clock.advance(Duration::from_secs(60));
        assert_eq!(
            failures.retry_after(Role::Admin, one),
            None,
            "refused attempts are not counted"
        );
    }
}
