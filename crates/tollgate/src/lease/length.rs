//! For how long a node may spend a lease.

use std::time::Duration;

use crate::algorithm::LeaseRule;
use crate::limit::Limit;

/// Returns for how long a node may spend a lease, counted from before it sent the request: the hold, or less if the
/// window of a take ends before. `takes` are the limits of the plan, and the time until each is full again, as of the
/// reply of the store. The clock of the node may be 0.1 % slower than that of the store.
///
/// ```
/// use std::time::Duration;
/// use tollgate::lease::spendable_for;
/// use tollgate::{Limit, Quota};
///
/// let (second, left) = (Duration::from_secs(1), Duration::from_millis(400));
/// let window = Limit::fixed_window(Quota::per_minute(1000))?;
/// assert_eq!(spendable_for(second, [(&window, left)]), Duration::from_micros(399_600));
/// let bucket = Limit::token_bucket(Quota::per_minute(1000))?;
/// assert_eq!(spendable_for(second, [(&bucket, left)]), Duration::from_millis(999));
/// # Ok::<(), tollgate::QuotaError>(())
/// ```
#[must_use]
pub fn spendable_for<'a>(
    hold: Duration,
    takes: impl IntoIterator<Item = (&'a Limit, Duration)>,
) -> Duration {
    let ends = takes.into_iter().filter_map(|(limit, reset)| window_left(limit, reset));
    let length = ends.min().map_or(hold, |left| left.min(hold));
    length - length / 1000
}

/// Returns the time until the window of a take ends, in which it must be spent; `None` if it can be spent later. `reset`
/// is the reply after the take, so the window is in use.
fn window_left(limit: &Limit, reset: Duration) -> Option<Duration> {
    match limit.letter().lease_rule() {
        LeaseRule::Window => Some(reset),
        LeaseRule::FadingWindow => Some(reset.saturating_sub(limit.window())),
        LeaseRule::Never | LeaseRule::Refill | LeaseRule::Log => None,
    }
}
