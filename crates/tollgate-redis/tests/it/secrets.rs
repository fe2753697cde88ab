//! No message and no log contains a password.

use std::error::Error;
use std::fmt::{Debug, Write};
use std::time::Duration;

use tollgate::{Limit, Quota, Store, StoreError, Subject};
use tollgate_redis::{Address, RedisStore};
use tollgate_testkit::server::{Flavor, Server};
use tollgate_testkit::wait::eventually;

use crate::fixture::{block_on, plan};

const SECRET: &str = "hunter2";

fn guarded(password: &str) -> Server {
    Server::builder(Flavor::Redis).arg("--requirepass").arg(password).start()
}

fn store(server: &Server, user: &str) -> RedisStore {
    let address: Address = server.url_with(user, 0).parse().unwrap();
    let builder = RedisStore::builder(address.clone()).timeout(Duration::from_secs(10));
    for shown in [address.to_string(), format!("{address:?}"), format!("{builder:#?}")] {
        assert_no_secret(&shown);
    }
    builder.build()
}

fn assert_no_secret(text: &str) {
    assert!(!text.contains(SECRET), "a secret is shown: {text}");
}

/// Checks an error, its causes and the `Debug` output of the store.
fn assert_error_has_no_secret(store: &RedisStore, error: &StoreError) {
    let mut text = format!("{error} {error:?} {store:?} {:?}", store.directory());
    let mut source = error.source();
    while let Some(cause) = source {
        write!(text, "{cause} {cause:?}").unwrap();
        source = cause.source();
    }
    assert_no_secret(&text);
}

fn failure<T: Debug>(store: &RedisStore, result: Result<T, StoreError>) -> String {
    let error = result.unwrap_err();
    assert_error_has_no_secret(store, &error);
    error.to_string()
}

#[test]
fn correct_password_is_never_shown() {
    let server = guarded(SECRET);
    let (limit, subject) = (Limit::token_bucket(Quota::per_day(5)).unwrap(), Subject::of(["k"]));
    for user in [format!(":{SECRET}@"), format!("default:{SECRET}@")] {
        let store = store(&server, &user);
        block_on(store.connect()).unwrap();
        assert!(block_on(store.take(&plan(&subject, &limit, 1))).unwrap().is_allowed());
        assert_no_secret(&format!("{store:#?}"));
        server.kill();
        eventually("the connection is lost", || block_on(store.connect()).is_err());
        let _ = failure(&store, block_on(store.take(&plan(&subject, &limit, 1))));
        let _ = failure(&store, block_on(store.connect()));
        server.restart();
    }
    assert_no_secret(&server.log());
}

#[test]
fn wrong_password_is_refused_and_never_shown() {
    let server = guarded("another");
    for user in [format!(":{SECRET}@"), format!("default:{SECRET}@"), format!("{SECRET}:x@")] {
        let store = store(&server, &user);
        let error = failure(&store, block_on(store.connect()));
        assert!(error.contains("password"), "{error}");
    }
    let store = store(&server, "");
    let error = failure(&store, block_on(store.connect()));
    assert!(error.contains("password"), "{error}");
}

/// A new password applies to new connections.
#[test]
fn password_set_later_is_required() {
    let server = Server::start(Flavor::Redis);
    let store = store(&server, "");
    block_on(store.connect()).unwrap();
    server.raw().call(&["CONFIG", "SET", "requirepass", SECRET]);
    server.raw().call(&["AUTH", SECRET]);
    let mut raw = server.raw();
    raw.call(&["AUTH", SECRET]);
    raw.call(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    eventually("the store is refused", || match block_on(store.connect()) {
        Ok(_) => false,
        Err(error) => {
            assert_error_has_no_secret(&store, &error);
            error.to_string().contains("password")
        }
    });
}
