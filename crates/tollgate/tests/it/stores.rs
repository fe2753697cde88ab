//! Implementing `Store` in another crate.

use std::sync::Arc;
use std::time::Duration;

use tollgate::algorithm::Reply;
use tollgate::{
    Decision, Key, Limit, ListedKey, Listing, MemoryStore, Mode, Page, Permit, Plan, Quota, Status,
    Store, StoreError, Subject, Take, Timestamp, Verdict,
};
use tollgate_testkit::runtime::block_on;

/// Store that refuses every take and lists one key.
struct RefusingStore;

impl Store for RefusingStore {
    async fn take<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        let verdict = Verdict::Deny { retry_after: Duration::ZERO };
        let reply = Reply::new(verdict, u64::MAX, Duration::MAX);
        let status = |take: &Take<'a>| Status::new(take.key().limit(), take.mode(), reply);
        Ok(Decision::new(Timestamp::EPOCH, plan.takes().iter().map(status)))
    }
    async fn peek<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        self.take(plan).await
    }
    async fn refund<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        self.take(plan).await
    }
    async fn debit<'a>(&self, plan: &Plan<'a>, _: Duration) -> Result<Decision<'a>, StoreError> {
        self.take(plan).await
    }
    async fn pause(&self, _: &Key<'_>, _: Duration) -> Result<(), StoreError> {
        Ok(())
    }
    async fn reset(&self, _: &Key<'_>) -> Result<(), StoreError> {
        Ok(())
    }
    async fn release(&self, _: &Permit) -> Result<bool, StoreError> {
        Ok(false)
    }
    async fn renew(&self, _: &Permit) -> Result<Option<Timestamp>, StoreError> {
        Ok(None)
    }
    async fn stats<'a>(&self, key: &Key<'a>) -> Result<Status<'a>, StoreError> {
        let reply = Reply::new(Verdict::Allow, 0, Duration::ZERO);
        Ok(Status::new(key.limit(), Mode::Enforce, reply))
    }
    async fn list(&self, listing: &Listing) -> Result<Page, StoreError> {
        let limit = Limit::sliding_window(Quota::per_minute(1)).unwrap();
        let subject = format!("{}{:?}", listing.prefix(), listing.cursor());
        let key = ListedKey::with_identity(&subject, &limit.identity());
        Ok(Page { keys: key.into_iter().take(listing.page_size()).collect(), next: None })
    }
}

#[test]
fn decision_clamps_invalid_replies() {
    let (limit, subject) =
        (Limit::token_bucket(Quota::per_minute(10)).unwrap(), Subject::of(["k"]));
    let plan = Plan::new([Take::new(Key::new(&subject, &limit), 1)]).unwrap();
    let decision = block_on(RefusingStore.take(&plan)).unwrap();
    let status = decision.deciding().unwrap();
    // A refusal without a wait stays a refusal, and `remaining` is clamped to the capacity.
    assert_eq!(decision.retry_after(), Some(Duration::from_micros(1)));
    assert_eq!((status.remaining(), status.count()), (10, 0));
    assert!(status.reset_after() > Duration::from_secs(1 << 40));
}

#[test]
fn listed_key_is_parsed_from_its_identity() {
    let page = block_on(RefusingStore.list(&Listing::all().with_prefix("p"))).unwrap();
    assert_eq!((page.keys[0].rule.as_str(), page.keys[0].limit.as_str()), ("default", "60s"));
    assert_eq!(ListedKey::with_identity("k", "xdefault/60s"), None);
    assert_eq!(ListedKey::with_identity("k", ""), None);
    assert_eq!(ListedKey::with_identity("k", "tnoslash"), None);
}

#[test]
fn dropped_future_takes_nothing() {
    let store = Arc::new(MemoryStore::new());
    let (limit, subject) =
        (Limit::token_bucket(Quota::per_minute(10)).unwrap(), Subject::of(["k"]));
    let key = Key::new(&subject, &limit);
    let plan = Plan::new([Take::new(key, 1)]).unwrap();
    drop(Store::take(&store, &plan));
    drop(Store::take(&&*store, &plan));
    assert_eq!(block_on(Store::stats(&store, &key)).unwrap().remaining(), 10);
    assert_eq!(block_on(Store::take(&store, &plan)).unwrap().remaining(), Some(9));
}
