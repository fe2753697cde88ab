//! Stores and subjects for tests on a cluster.

use std::time::Duration;

use tollgate::{Key, Limit, Store, Subject};
use tollgate_redis::{RedisStore, RedisStoreBuilder};
use tollgate_testkit::server::{Cluster, slot_of};

use crate::fixture::block_on;

pub(crate) fn cluster_builder(cluster: &Cluster) -> RedisStoreBuilder {
    let builder = RedisStore::builder(cluster.url().parse().unwrap());
    builder.timeout(Duration::from_secs(30)).max_refusals(0)
}

pub(crate) fn slot(subject: &Subject) -> u16 {
    slot_of(format!("{{{subject}}}"))
}

/// Returns subjects in distinct slots.
pub(crate) fn subjects(count: usize) -> Vec<Subject> {
    let mut found: Vec<Subject> = Vec::new();
    for nth in 0.. {
        let next = Subject::of([format!("s{nth}")]);
        if found.iter().all(|known| slot(known) != slot(&next)) {
            found.push(next);
        }
        if found.len() == count {
            break;
        }
    }
    found
}

pub(crate) fn used(store: &RedisStore, subject: &Subject, limit: &Limit) -> u64 {
    block_on(store.stats(&Key::new(subject, limit))).unwrap().count()
}
