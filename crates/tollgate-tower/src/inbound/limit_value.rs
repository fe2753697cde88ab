//! Header values of capacities: the same in every response of a limit, so they are formatted once and shared.

use std::sync::OnceLock;

use http::HeaderValue;

/// Number of places for values: a prime, so that round numbers do not share a place.
const PLACES: usize = 61;

/// The capacity that was first used in each place, and its value. Others are not kept, so that limits which change often
/// do not use more memory.
static KEPT: [OnceLock<(u64, HeaderValue)>; PLACES] = [const { OnceLock::new() }; PLACES];

/// Returns the value of a capacity; `None` if another one has its place.
#[inline]
pub(super) fn limit_value(capacity: u64) -> Option<HeaderValue> {
    #[expect(clippy::cast_possible_truncation, reason = "the remainder is small")]
    let place = KEPT.get((capacity % PLACES as u64) as usize)?;
    let (kept, value) = place.get_or_init(|| (capacity, HeaderValue::from(capacity)));
    (*kept == capacity).then(|| value.clone())
}

#[cfg(test)]
mod tests {
    use super::{PLACES, limit_value};

    #[test]
    fn value_is_that_of_the_capacity() {
        let places = u64::try_from(PLACES).unwrap();
        for capacity in (0..3 * places).chain([u64::MAX]) {
            let value = limit_value(capacity);
            assert!(value.is_none_or(|value| value == capacity.to_string()), "{capacity}");
        }
        let kept = (0..3 * places).filter(|capacity| limit_value(*capacity).is_some()).count();
        assert!(kept <= PLACES && kept > 0);
    }
}
