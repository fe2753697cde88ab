//! A server without free memory admits nothing and writes nothing in part.

use std::time::Duration;

use tollgate::{Key, Limit, PermitId, Plan, Store, StoreError, StoreErrorKind, Subject, Take};
use tollgate_redis::RedisStore;
use tollgate_testkit::server::{Flavor, Raw, Server};

use crate::fixture::{block_on, builder, in_order, limits_of_each_algorithm, plan};

/// Returns all keys and their values.
fn contents(raw: &mut Raw) -> Vec<(String, Vec<u8>)> {
    let keys = raw.call(&["KEYS", "*"]);
    let mut names: Vec<&str> =
        keys.array().iter().map(tollgate_testkit::server::Value::text).collect();
    names.sort_unstable();
    let dump = |name: &str, raw: &mut Raw| raw.call(&["DUMP", name]).bytes().to_vec();
    names.into_iter().map(|name| (name.to_owned(), dump(name, raw))).collect()
}

fn assert_out_of_memory<T: std::fmt::Debug>(result: Result<T, StoreError>, what: &str) {
    let error = result.expect_err(what);
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{what}: {error}");
    assert!(error.to_string().contains("memory"), "{what}: {error}");
}

/// Asserts that every verb that writes fails.
async fn assert_all_writes_fail(store: &RedisStore, subject: &Subject, limits: &[Limit]) {
    for limit in limits {
        let (plan, name) = (plan(subject, limit, 1), limit.algorithm().to_string());
        assert_out_of_memory(store.take(&plan).await, &name);
        assert_out_of_memory(
            store.take(&plan.clone().with_permit(PermitId::random())).await,
            &name,
        );
        assert_out_of_memory(store.debit(&plan, Duration::ZERO).await, &name);
        let key = Key::new(subject, limit);
        assert_out_of_memory(store.pause(&key, Duration::from_secs(60)).await, &name);
    }
    let all = limits.iter().map(|limit| Take::new(Key::new(subject, limit), 1));
    let all = Plan::new(all).unwrap();
    assert_out_of_memory(store.take(&all).await, "all together");
    let plans: Vec<Plan<'_>> = limits.iter().map(|limit| plan(subject, limit, 1)).collect();
    for result in in_order(plans.iter().map(|plan| store.take(plan))).await {
        assert_out_of_memory(result, "all in one call");
    }
}

/// Takes one at a time until refused. Returns the number of admissions.
async fn drain(store: &RedisStore, subject: &Subject, limit: &Limit) -> u64 {
    let (plan, mut passed) = (plan(subject, limit, 1), 0);
    while store.take(&plan).await.unwrap().is_allowed() {
        passed += 1;
    }
    passed
}

#[test]
fn full_memory_admits_nothing_and_recovers_exactly() {
    for flavor in Flavor::ALL {
        let server = Server::builder(flavor).arg("--maxmemory-policy").arg("noeviction").start();
        let (store, mut raw) = (builder(&server).max_refusals(0).build(), server.raw());
        let limits = limits_of_each_algorithm(10);
        let (known, unknown) = (Subject::of(["known"]), Subject::of(["unknown"]));
        for limit in &limits {
            assert!(block_on(store.take(&plan(&known, limit, 4))).unwrap().is_allowed());
        }
        let before = contents(&mut raw);
        raw.call(&["CONFIG", "SET", "maxmemory", "1"]);
        for subject in [&known, &unknown] {
            block_on(assert_all_writes_fail(&store, subject, &limits));
        }
        assert_eq!(contents(&mut raw), before, "something was written");
        raw.call(&["CONFIG", "SET", "maxmemory", "0"]);
        for limit in &limits {
            let passed = [&known, &unknown].map(|subject| block_on(drain(&store, subject, limit)));
            assert_eq!(passed, [6, 10], "{}", limit.algorithm());
        }
    }
}
