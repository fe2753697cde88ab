//! Rates that do not fit 2^53 are rounded down or rejected.

use std::time::Duration;

use proptest::prelude::*;
use tollgate::algorithm::Parameters;
use tollgate::{Limit, Quota};

proptest! {
    #[test]
    fn enforced_rate_is_never_above_and_at_most_1e9th_below(
        count in 1u64..(1 << 53), micros in 1u64..3_155_760_000_000_000, burst in 1u64..(1 << 53),
    ) {
        let quota = Quota::new(count, Duration::from_micros(micros)).burst(burst);
        let Ok(limit) = Limit::token_bucket(quota) else { return Ok(()) };
        let Parameters::TokenBucket(bucket) = limit.parameters() else { panic!("not a token bucket") };
        let (give, grains) = bucket.rate();
        prop_assert!(u128::from(burst) * u128::from(grains) <= 1 << 53);
        let wanted = u128::from(count) * u128::from(grains);
        let given = u128::from(give) * u128::from(micros);
        prop_assert!(given <= wanted);
        prop_assert!((wanted - given) * 1_000_000_000 <= wanted);
    }
}

#[test]
fn common_rates_are_exact() {
    for (count, seconds) in
        [(7, 60), (10, 60), (100, 3600), (1_000_000, 86_400), (1_000_000_000, 2_592_000)]
    {
        let limit = Limit::token_bucket(Quota::new(count, Duration::from_secs(seconds))).unwrap();
        let Parameters::TokenBucket(bucket) = limit.parameters() else {
            panic!("not a token bucket")
        };
        let (give, grains) = bucket.rate();
        assert_eq!(
            u128::from(give) * u128::from(seconds) * 1_000_000,
            u128::from(count) * u128::from(grains)
        );
    }
}
