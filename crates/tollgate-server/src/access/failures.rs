//! How often someone may be wrong about a token. We limit that ourselves.

use std::net::IpAddr;
use std::time::Duration;

use tollgate::{Clock, Decision, Limit, LocalLimiter, Quota, SystemClock, net};

use super::guard::Role;

/// Failures in any minute, from one address and for one kind of token.
const MOST: Quota = Quota::per_minute(10);
/// The most addresses remembered. One that finds no place is told that it is wrong all the same.
const MAX_ADDRESSES: usize = 10_000;

/// Failures of late.
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
        let limit = Limit::sliding_window(MOST).unwrap_or_else(|_| Limit::block());
        let built = LocalLimiter::builder().limit(limit).max_keys(MAX_ADDRESSES).clock(clock);
        // One limit is always enough and never too many.
        #[expect(clippy::expect_used, reason = "a builder with one limit builds")]
        let limiter = built.build().expect("one limit is right");
        Self { limiter }
    }

    /// How long this address must wait before it may try again; none if it may now.
    pub(super) fn wait(&self, role: Role, address: IpAddr) -> Option<Duration> {
        waits(&self.limiter.peek(&key(role, address)))
    }

    /// Notes a failure. The same wait, if there have been enough before it.
    pub(super) fn note(&self, role: Role, address: IpAddr) -> Option<Duration> {
        waits(&self.limiter.take(&key(role, address)))
    }
}

fn waits(decision: &Decision<'_>) -> Option<Duration> {
    decision.retry_after().filter(|_| !decision.is_allowed())
}

/// Whoever has one IPv6 address has all of its network.
fn key(role: Role, address: IpAddr) -> String {
    format!("{} {}", role.as_str(), net::rate_limit_address(address))
}

#[cfg(test)]
mod tests {
    use tollgate::ManualClock;

    use super::*;

    #[test]
    fn ten_a_minute_from_one_network_and_for_one_kind() {
        let clock = ManualClock::default();
        let failures = Failures::on(clock.clone());
        let [one, same, other] = ["2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"]
            .map(|text| text.parse::<IpAddr>().unwrap());
        for nth in 0..10 {
            assert_eq!(failures.note(Role::Admin, one), None, "{nth}");
        }
        let minute = Some(Duration::from_secs(60));
        assert_eq!(failures.wait(Role::Admin, same), minute);
        assert_eq!(failures.note(Role::Admin, same), minute);
        assert_eq!(failures.wait(Role::Admin, other), None);
        assert_eq!(failures.wait(Role::Read, one), None);
        clock.advance(Duration::from_secs(60));
        assert_eq!(failures.wait(Role::Admin, one), None, "refused tries are not counted");
    }
}
