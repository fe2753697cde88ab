//! Listings of active keys.

use std::collections::HashSet;

use tollgate::{Algorithm, Limit, ListedKey, Listing, Store};

use super::{Fixture, S, at, take, ten_a_minute};
use crate::spec::Kind;

async fn list(fixture: &impl Fixture, listing: Listing) -> Vec<ListedKey> {
    let (mut keys, mut listing) = (Vec::new(), listing);
    loop {
        let page = fixture.store().list(&listing).await.expect("store is available");
        keys.extend(page.keys);
        match page.next {
            Some(cursor) => listing = listing.after(cursor),
            None => return keys,
        }
    }
}

/// Pages of any size list every key once, also while new keys are added between pages.
pub async fn lists_every_active_key_once(fixture: &impl Fixture) {
    let limit = ten_a_minute(Kind::TokenBucket);
    at(fixture, 0);
    for n in 0..300 {
        let _ = take(fixture, &format!("user-{n}"), &limit, 1).await;
    }
    for page_size in [1, 7, 1000] {
        let keys = list(fixture, Listing::all().with_page_size(page_size)).await;
        let subjects: HashSet<&str> = keys.iter().map(|key| key.subject.as_str()).collect();
        assert_eq!((keys.len(), subjects.len()), (300, 300), "page size {page_size}");
        assert!(subjects.contains(":user-299"));
    }
    let first =
        fixture.store().list(&Listing::all().with_page_size(10)).await.expect("store is available");
    for n in 300..2000 {
        let _ = take(fixture, &format!("user-{n}"), &limit, 1).await;
    }
    let rest = Listing::all().after(first.next.expect("there are more pages"));
    let mut subjects: HashSet<String> = first.keys.into_iter().map(|key| key.subject).collect();
    subjects.extend(list(fixture, rest).await.into_iter().map(|key| key.subject));
    for n in 0..300 {
        assert!(
            subjects.contains(&format!(":user-{n}")),
            "user-{n} was active throughout the listing"
        );
    }
}

/// Filters by the start of the subject; each key has its rule, limit and algorithm.
pub async fn prefix_filters_the_listing(fixture: &impl Fixture) {
    let limit = |kind: Kind| -> Limit {
        let limit = ten_a_minute(kind).in_rule("search");
        limit.expect("a valid name")
    };
    at(fixture, 0);
    let _ = take(fixture, "user-1", &limit(Kind::SlidingWindow), 1).await;
    let _ = take(fixture, "job-1", &limit(Kind::FixedWindow), 1).await;
    let mut keys = list(fixture, Listing::all().with_prefix(":user")).await;
    // A store may omit the limit, but must not return a wrong one.
    let known: Vec<Limit> = keys.iter_mut().filter_map(|key| key.known.take()).collect();
    assert!(known.iter().all(|known| *known == limit(Kind::SlidingWindow)), "{known:?}");
    assert_eq!(
        keys,
        [ListedKey {
            subject: ":user-1".into(),
            rule: "search".into(),
            limit: "subject".into(),
            algorithm: Algorithm::SlidingWindow,
            known: None,
        }]
    );
}

/// A fresh key is not active.
pub async fn expired_keys_are_not_listed(fixture: &impl Fixture) {
    at(fixture, 0);
    for kind in Kind::ALL {
        let _ = take(fixture, "k", &ten_a_minute(kind), 1).await;
    }
    assert_eq!(list(fixture, Listing::all()).await.len(), Kind::ALL.len());
    at(fixture, 120 * S);
    assert_eq!(list(fixture, Listing::all()).await.len(), 0);
}
