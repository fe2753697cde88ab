//! Sentinels replace a primary that dies, or when they are asked to.

use tollgate_testkit::server::{Raw, Sentinels, Server};

use crate::with_each;

#[test]
fn a_primary_that_dies_is_replaced() {
    with_each(|flavor| {
        let all = Sentinels::start(flavor);
        let mut raw = all.primary().raw();
        assert_eq!(raw.call(&["SET", "key", "1"]).text(), "OK");
        assert_eq!(raw.call(&["WAIT", "2", "0"]).int(), 2);
        let dead = all.kill_primary();
        let new = all.wait_for_new_primary(dead);
        assert_eq!(all.primary().port(), new.port(), "{flavor}");
        assert_eq!(new.raw().call(&["GET", "key"]).text(), "1");
        assert_eq!(new.raw().call(&["SET", "key", "2"]).text(), "OK");
        all.wait_ok();
        assert_eq!(all.replicas().len(), 1);
        dead.restart();
        all.wait_ok();
        assert_eq!(all.replicas().len(), 2);
        assert_eq!(dead.raw().call(&["GET", "key"]).text(), "2");
        assert!(dead.raw().call(&["SET", "key", "3"]).error().starts_with("READONLY"), "{flavor}");
    });
}

#[test]
fn a_replica_takes_over_on_demand() {
    with_each(|flavor| {
        let all = Sentinels::start(flavor);
        let ports = all.sentinels().iter().map(|own| own.port().to_string()).collect::<Vec<_>>();
        let at = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect::<Vec<_>>();
        assert_eq!(all.url(), format!("redis+sentinel://{}/mymaster", at.join(",")));
        let old = all.primary();
        assert_eq!(old.port(), all.nodes()[0].port());
        let new = all.failover();
        assert_ne!(new.port(), old.port(), "{flavor}");
        all.wait_ok();
        // A replica that restarts knows whom it copies.
        old.restart();
        all.wait_ok();
        // One sentinel may be away, and a primary that hangs is as good as dead.
        all.sentinels()[0].hang();
        new.hang();
        let third = all.wait_for_new_primary(new);
        assert_eq!(third.raw().call(&["SET", "key", "1"]).text(), "OK");
        let ports = all.nodes().iter().chain(all.sentinels()).map(Server::port);
        let ports = ports.collect::<Vec<_>>();
        drop(all);
        assert!(ports.into_iter().all(|port| Raw::try_connect(port).is_err()), "{flavor} lives on");
    });
}
