use tollgate::{Key, Quota, Subject};

use super::*;

#[test]
fn cache_size_is_bounded() {
    let cache = RefusalCache::new(32);
    cache.subscribed();
    let limit = Limit::sliding_window(Quota::per_hour(3)).unwrap();
    let denied = Verdict::Deny { retry_after: Duration::from_secs(3600) };
    let status = Status::new(&limit, Mode::Enforce, Reply::new(denied, 0, Duration::ZERO));
    let decision = Decision::new(Timestamp::EPOCH, [status]);
    for nth in 0..2000 {
        let subject = Subject::of([nth.to_string()]);
        let plan = Plan::new([Take::new(Key::new(&subject, &limit), 1)]).unwrap();
        let epoch = cache.find(&plan).unwrap_err().unwrap();
        cache.insert(&plan, &decision, &epoch);
        let cached: usize = cache.shards.iter().map(|shard| shard.lock().len()).sum();
        assert!((1..=32).contains(&cached), "{cached} after {nth}");
    }
}

/// Redis may have decided just before its reply arrived, so that the wait begins then at the latest.
#[test]
fn slow_reply_does_not_shorten_the_wait() {
    let cache = RefusalCache::new(32);
    cache.subscribed();
    let limit = Limit::sliding_window(Quota::per_hour(3)).unwrap();
    let (wait, reset) = (Duration::from_secs(20), Duration::from_secs(30));
    let reply = Reply::new(Verdict::Deny { retry_after: wait }, 0, reset);
    let at = Timestamp::from_micros(1_700_000_000_000_000);
    let decision = Decision::new(at, [Status::new(&limit, Mode::Enforce, reply)]);
    let subject = Subject::of(["k"]);
    let plan = Plan::new([Take::new(Key::new(&subject, &limit), 1)]).unwrap();
    let epoch = cache.find(&plan).unwrap_err().unwrap();
    let slow = Duration::from_millis(500);
    let received = Instant::now();
    cache.insert(&plan, &decision, &Epoch { at: epoch.at - slow, ..epoch });
    // Expired only if this test was interrupted for as long as the entry is valid.
    let Ok(cached) = cache.find(&plan) else {
        assert!(received.elapsed() >= MAX_AGE - slow);
        return;
    };
    let elapsed = received.elapsed();
    assert!(cached.retry_after().unwrap() >= wait - elapsed, "{cached:?} after {elapsed:?}");
    let status = cached.statuses().first().unwrap();
    assert!(status.reset_after() >= reset - elapsed, "{status:?} after {elapsed:?}");
    assert_eq!(cached.at() + status.reset_after(), at + reset, "the time of the reset stays");
}

impl Shard {
    fn len(&self) -> usize {
        self.by_subject.values().map(Vec::len).sum()
    }
}
