//! Sentinels: automatic and requested failover.

use tollgate_testkit::server::{Raw, Sentinels, Server};

use crate::with_each;

#[test]
fn killed_primary_is_replaced() {
    with_each(|flavor| {
        let all = Sentinels::start(flavor);
        let mut raw = all.primary().raw();
        assert_eq!(raw.call(&["SET", "key", "1"]).text(), "OK");
        assert_eq!(raw.call(&["WAIT", "2", "0"]).int(), 2);
        let killed = all.kill_primary();
        let new = all.wait_for_new_primary(killed);
        assert_eq!(all.primary().port(), new.port(), "{flavor}");
        assert_eq!(new.raw().call(&["GET", "key"]).text(), "1");
        assert_eq!(new.raw().call(&["SET", "key", "2"]).text(), "OK");
        all.wait_ok();
        assert_eq!(all.replicas().len(), 1);
        killed.restart();
        all.wait_ok();
        assert_eq!(all.replicas().len(), 2);
        assert_eq!(killed.raw().call(&["GET", "key"]).text(), "2");
        assert!(
            killed.raw().call(&["SET", "key", "3"]).error().starts_with("READONLY"),
            "{flavor}"
        );
    });
}

#[test]
fn requested_failover_promotes_a_replica() {
    with_each(|flavor| {
        let all = Sentinels::start(flavor);
        let ports =
            all.sentinels().iter().map(|sentinel| sentinel.port().to_string()).collect::<Vec<_>>();
        let at = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect::<Vec<_>>();
        assert_eq!(all.url(), format!("redis+sentinel://{}/mymaster", at.join(",")));
        let old = all.primary();
        assert_eq!(old.port(), all.nodes()[0].port());
        let new = all.failover();
        assert_ne!(new.port(), old.port(), "{flavor}");
        all.wait_ok();
        // A restarted replica keeps its primary.
        old.restart();
        all.wait_ok();
        // Two sentinels are enough, and a hung primary is replaced like a killed one.
        all.sentinels()[0].hang();
        new.hang();
        let third = all.wait_for_new_primary(new);
        assert_eq!(third.raw().call(&["SET", "key", "1"]).text(), "OK");
        let ports = all.nodes().iter().chain(all.sentinels()).map(Server::port);
        let ports = ports.collect::<Vec<_>>();
        drop(all);
        assert!(
            ports.into_iter().all(|port| Raw::try_connect(port).is_err()),
            "{flavor} still runs"
        );
    });
}
