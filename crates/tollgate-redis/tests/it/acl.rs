//! The user of `redis.acl` can do everything that the store needs, and nothing else.

use std::sync::mpsc::channel;
use std::time::Duration;

use tollgate::{Key, Listing, Permit, PermitId, Store, Subject, Timestamp};
use tollgate_redis::{
    Change, Event, NodeRecord, OutgoingEvent, OutgoingFigures, OutgoingInterval, OutgoingReport,
    RedisStore, ReportId, Scripting,
};
use tollgate_testkit::server::{Flavor, Server};
use tollgate_testkit::wait::MAX_WAIT;

use crate::fixture::{block_on, limits_of_each_algorithm, override_of, plan};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/redis.acl");
const HOUR: Duration = Duration::from_secs(3600);

fn acl_server(flavor: Flavor) -> Server {
    let allowed = ["--enable-debug-command", "yes"];
    let server = Server::builder(flavor).args(["--include", FILE]).args(allowed).start();
    let set = server.raw().call(&["ACL", "SETUSER", "tollgate", ">secret"]);
    assert!(!set.is_error(), "{}", set.error());
    server
}

fn use_counters(store: &RedisStore) {
    let subject = Subject::of(["k"]);
    for limit in &limits_of_each_algorithm(10) {
        let (key, request) = (Key::new(&subject, limit), plan(&subject, limit, 2));
        assert!(block_on(store.take(&request)).unwrap().is_allowed());
        assert!(block_on(store.peek(&request)).unwrap().is_allowed());
        let _ = block_on(store.refund(&request)).unwrap();
        let _ = block_on(store.debit(&request, Duration::ZERO)).unwrap();
        block_on(store.pause(&key, HOUR)).unwrap();
        assert!(!block_on(store.take(&request)).unwrap().is_allowed());
        let _ = block_on(store.stats(&key)).unwrap();
        block_on(store.reset(&key)).unwrap();
        let taken = (0..6).filter(|_| block_on(store.take(&request)).unwrap().is_allowed());
        assert_eq!(taken.count(), 5, "{}", limit.algorithm());
        let listed = block_on(store.list(&Listing::all())).unwrap().keys;
        assert!(listed.iter().any(|key| key.algorithm == limit.algorithm()), "{listed:?}");
        block_on(store.reset(&key)).unwrap();
        let held = request.with_permit(PermitId::random());
        let decision = block_on(store.take(&held)).unwrap();
        if let Some(permit) = Permit::of(&held, &decision) {
            assert!(block_on(store.renew(&permit)).unwrap().is_some());
            assert!(block_on(store.release(&permit)).unwrap());
        }
        block_on(store.reset(&key)).unwrap();
    }
}

fn use_directory(store: &RedisStore) {
    let (sender, events) = channel();
    let directory = store.directory();
    block_on(async { directory.watch(move |event| sender.send(event).unwrap_or_default()) });
    assert_eq!(events.recv_timeout(MAX_WAIT), Ok(Event::Subscribed));
    let (id, address) = ("a".to_owned(), "host:1".to_owned());
    let node = NodeRecord { id, address, registered_at: Timestamp::EPOCH };
    let event = OutgoingEvent { number: 1, age: HOUR, kind: "kind", detail: "detail" };
    let history = [OutgoingInterval {
        length: HOUR,
        start: Timestamp::EPOCH,
        keep: HOUR,
        counts: vec![("rule".to_owned(), vec![1, 2])],
    }];
    let [then, _] = [1, 2].map(|number| {
        let figures = OutgoingFigures {
            number,
            figures: "1",
            history: &history,
            state: "ok",
            state_lifetime: HOUR,
        };
        let report = OutgoingReport {
            node: &node,
            lifetime: HOUR,
            events: &[event],
            figures: Some(figures),
        };
        block_on(directory.report(&report)).unwrap().at
    });
    assert_eq!(block_on(directory.nodes()).unwrap().len(), 1);
    block_on(directory.leave(&node)).unwrap();
    let logged = block_on(directory.event_log(Timestamp::EPOCH, None, 9)).unwrap();
    assert!(logged.iter().any(|event| event.kind == "node_left"), "{logged:?}");
    assert_eq!(block_on(directory.history(HOUR, &[Timestamp::EPOCH])).unwrap()[0].counts.len(), 1);
    assert_eq!(block_on(directory.node_reports(&ReportId::before(then))).unwrap().reports.len(), 2);
    assert_eq!(block_on(directory.node_states(&["a", "b"])).unwrap().len(), 2);
    let client = Subject::of(["c"]);
    block_on(directory.put_override(&client, &override_of(1), "entry")).unwrap();
    assert_eq!(block_on(directory.get_overrides(&client)).unwrap().len(), 1);
    assert_eq!(block_on(directory.overrides()).unwrap().overrides.len(), 1);
    block_on(directory.remove_overrides(&client, None, "entry")).unwrap();
    block_on(directory.record("entry")).unwrap();
    assert_eq!(block_on(directory.audit(None, 3)).unwrap().len(), 3);
    block_on(directory.announce(&Change::QuotaFreed { subject: ":k".to_owned() })).unwrap();
    for change in [":c", ":c"].map(|client| Change::Override { client: client.to_owned() }) {
        assert_eq!(events.recv_timeout(MAX_WAIT), Ok(Event::Changed(change)));
    }
    let room = Change::QuotaFreed { subject: ":k".to_owned() };
    assert_eq!(events.recv_timeout(MAX_WAIT), Ok(Event::Changed(room)));
}

#[test]
fn acl_user_can_do_everything_the_store_needs() {
    for flavor in Flavor::ALL {
        let server = acl_server(flavor);
        for scripting in [Scripting::Function, Scripting::Script] {
            let url = server.url_with("tollgate:secret@", 1).parse().unwrap();
            let builder = RedisStore::builder(url).timeout(Duration::from_secs(60));
            let store = builder.scripting(scripting).build();
            assert!(block_on(store.connect()).unwrap().is_some(), "the server reports its version");
            // Subscribes before the counters publish events.
            use_directory(&store);
            use_counters(&store);
        }
        // Redis denied no command, not even an optional one.
        let log = server.raw().call(&["ACL", "LOG"]);
        assert!(log.array().is_empty(), "{log:?}");
    }
}

#[test]
fn acl_user_can_do_nothing_else() {
    for flavor in Flavor::ALL {
        let server = acl_server(flavor);
        let mut raw = server.raw();
        assert_eq!(raw.call(&["AUTH", "tollgate", "secret"]).text(), "OK");
        for words in [
            "FLUSHALL",
            "FLUSHDB",
            "CONFIG GET *",
            "CONFIG SET maxmemory 1",
            "KEYS *",
            "DEBUG SLEEP 0",
            "SHUTDOWN NOSAVE",
            "ACL LIST",
            "CLIENT LIST",
            "CLUSTER RESET",
            "FUNCTION FLUSH",
            "FUNCTION DELETE x",
            "SCRIPT FLUSH",
            "REPLICAOF NO ONE",
            "MONITOR",
            "GET other",
            "SET other 1",
            "PUBLISH other x",
            "SUBSCRIBE other",
        ] {
            let result = raw.call(&words.split(' ').collect::<Vec<_>>());
            assert!(result.is_error() && result.error().starts_with("NOPERM"), "{words}");
        }
        // Scripts are denied too.
        let result = raw.call(&["EVAL", "return redis.call('FLUSHALL')", "0"]);
        assert!(result.is_error(), "{result:?}");
        assert_eq!(raw.call(&["PING"]).text(), "PONG");
    }
}

#[test]
fn login_without_a_password_fails() {
    let server = Server::builder(Flavor::Redis).args(["--include", FILE]).start();
    for password in ["", "password", "secret"] {
        assert!(server.raw().call(&["AUTH", "tollgate", password]).is_error());
    }
}
