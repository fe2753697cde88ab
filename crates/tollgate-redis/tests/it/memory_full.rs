//! A server without memory: nobody is let pass, and nothing is half written.

use std::time::Duration;

use tollgate::{Key, Limit, PermitId, Plan, Store, StoreError, StoreErrorKind, Subject, Take};
use tollgate_redis::RedisStore;
use tollgate_testkit::server::{Flavor, Raw, Server};

use crate::fixture::{block_on, in_order, of_each_kind, patient, plan};

/// All keys and what they hold.
fn contents(raw: &mut Raw) -> Vec<(String, Vec<u8>)> {
    let keys = raw.call(&["KEYS", "*"]);
    let mut names: Vec<&str> =
        keys.array().iter().map(tollgate_testkit::server::Value::text).collect();
    names.sort_unstable();
    let dump = |name: &str, raw: &mut Raw| raw.call(&["DUMP", name]).bytes().to_vec();
    names.into_iter().map(|name| (name.to_owned(), dump(name, raw))).collect()
}

fn assert_full<T: std::fmt::Debug>(result: Result<T, StoreError>, what: &str) {
    let error = result.expect_err(what);
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{what}: {error}");
    assert!(error.to_string().contains("memory"), "{what}: {error}");
}

/// Everything that would have to be written down.
async fn ask_everything(store: &RedisStore, subject: &Subject, limits: &[Limit]) {
    for limit in limits {
        let (plan, name) = (plan(subject, limit, 1), limit.algorithm().to_string());
        assert_full(store.take(&plan).await, &name);
        assert_full(store.take(&plan.clone().with_permit(PermitId::random())).await, &name);
        assert_full(store.debit(&plan, Duration::ZERO).await, &name);
        let key = Key::new(subject, limit);
        assert_full(store.pause(&key, Duration::from_secs(60)).await, &name);
    }
    let all = limits.iter().map(|limit| Take::new(Key::new(subject, limit), 1));
    let all = Plan::new(all).unwrap();
    assert_full(store.take(&all).await, "all together");
    let plans: Vec<Plan<'_>> = limits.iter().map(|limit| plan(subject, limit, 1)).collect();
    for answer in in_order(plans.iter().map(|plan| store.take(plan))).await {
        assert_full(answer, "all in one call");
    }
}

/// Takes one at a time; how many passed.
async fn drain(store: &RedisStore, subject: &Subject, limit: &Limit) -> u64 {
    let (plan, mut passed) = (plan(subject, limit, 1), 0);
    while store.take(&plan).await.unwrap().is_allowed() {
        passed += 1;
    }
    passed
}

#[test]
fn nobody_passes_while_memory_is_full_and_all_is_exact_after() {
    for flavor in Flavor::ALL {
        let server = Server::builder(flavor).arg("--maxmemory-policy").arg("noeviction").start();
        let (store, mut raw) = (patient(&server).max_refusals(0).build(), server.raw());
        let limits = of_each_kind(10);
        let (known, unknown) = (Subject::of(["known"]), Subject::of(["unknown"]));
        for limit in &limits {
            assert!(block_on(store.take(&plan(&known, limit, 4))).unwrap().is_allowed());
        }
        let before = contents(&mut raw);
        raw.call(&["CONFIG", "SET", "maxmemory", "1"]);
        for subject in [&known, &unknown] {
            block_on(ask_everything(&store, subject, &limits));
        }
        assert_eq!(contents(&mut raw), before, "something was written");
        raw.call(&["CONFIG", "SET", "maxmemory", "0"]);
        for limit in &limits {
            let passed = [&known, &unknown].map(|who| block_on(drain(&store, who, limit)));
            assert_eq!(passed, [6, 10], "{}", limit.algorithm());
        }
    }
}
