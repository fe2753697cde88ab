//! Limits one client to 10 requests a minute and 100 an hour, on a manual clock.

use std::error::Error;
use std::io::{self, Write};
use std::time::Duration;

use tollgate::{Decision, Limit, LocalLimiter, ManualClock, Quota};

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout())
}

/// Takes until refused, waits for `retry_after`, and retries.
pub(crate) fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::new();
    let limiter = LocalLimiter::builder()
        .limit(Limit::token_bucket(Quota::per_minute(10))?)
        .limit(Limit::token_bucket(Quota::per_hour(100))?)
        .clock(clock.clone())
        .build()?;

    let mut taken = 0;
    let refused = loop {
        let decision = limiter.take("client-1");
        if !decision.is_allowed() {
            break decision;
        }
        taken += 1;
    };
    writeln!(out, "{taken} allowed, then: {}", explain(&refused))?;
    writeln!(
        out,
        "the refused request did not charge the hourly limit: {}",
        remaining(&limiter.stats("client-1"))
    )?;

    let wait = refused.retry_after().unwrap_or_default();
    clock.advance(wait - Duration::from_micros(1));
    writeln!(out, "one microsecond early: {}", explain(&limiter.take("client-1")))?;
    clock.advance(Duration::from_micros(1));
    writeln!(out, "after retry_after: {}", explain(&limiter.take("client-1")))?;
    Ok(())
}

fn explain(decision: &Decision<'_>) -> String {
    let by = decision.deciding().map_or("no limit", |status| status.limit().name());
    match decision.retry_after() {
        None => format!("allowed, {} left of {by}", decision.remaining().unwrap_or(0)),
        Some(wait) => format!("refused by {by}, retry in {wait:?}"),
    }
}

fn remaining(decision: &Decision<'_>) -> String {
    let left = |status: &tollgate::Status<'_>| {
        format!("{} left of {}", status.remaining(), status.limit().name())
    };
    decision.statuses().iter().map(left).collect::<Vec<_>>().join(", ")
}
