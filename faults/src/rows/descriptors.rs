//! A node that may open no more files.

use std::time::{Duration, Instant};

use tollgate_testkit::wait::eventually;

use crate::client::{Client, key};
use crate::node::Node;
use crate::policy::{Loss, per_client};
use crate::redis;
use crate::stage::Stage;
use crate::waiting::wait_for;

/// What it may have open.
const MOST: usize = 64;
const CLIENTS: usize = 200;

/// How much of one processor it may take while it can do nothing.
const BUSY: f64 = 0.1;

const LOGGED: &str = "cannot accept a connection; retrying";

pub(super) fn connections_without_descriptor_wait_and_are_served(stage: &Stage) -> String {
    let server = redis::start();
    let setup =
        stage.node().redis(&redis::url(&server)).policy(&per_client("1000000/h", Loss::Local));
    let node = setup.patient().start();
    let mut early = node.client();
    assert!(early.post("/check", key("early")).is_ok_and(|reply| reply.is_exact()));
    node.limit_files(MOST);
    let before = node.files();
    let began = Instant::now();
    let mut crowd: Vec<Client> = (0..CLIENTS).map(|_| node.client()).collect();
    for client in &mut crowd {
        client.send("/check", key("crowd")).expect("it is connected");
    }
    let answered = || crowd.iter().filter(|client| is_answered(client)).count();
    eventually("who has a place is answered, and no place is left", || {
        node.logged(&[LOGGED]) > 0 && before + answered() == node.files()
    });
    let served = answered();
    assert!(served > 0 && served < MOST, "{served} of {CLIENTS} have a place");
    let share = share_of_processor(&node, Duration::from_secs(stage.scale().pick(3, 10)));
    assert!(share < BUSY, "starved, it takes {:.1} % of a processor", share * 100.0);
    assert_eq!((answered(), node.files()), (served, before + served), "who has none waits");
    assert!(early.post("/check", key("early")).is_ok_and(|reply| reply.is_exact()));
    let (reply, starved) = (node.logged(&[LOGGED]), began.elapsed());
    assert!(reply > 0 && reply as u64 <= 20 * (starved.as_secs() + 1), "logged {reply} times");
    // Each leaves its place to one who waits.
    for mut client in crowd {
        let reply = client.receive().expect("no connection is refused");
        assert!(reply.is_exact() && reply.is_allowed(), "{}", reply.body);
    }
    eventually("all places are free", || node.files() == before);
    assert_eq!(node.count(&key("crowd")), Some(CLIENTS as u64), "each has counted once");
    format!(
        "{CLIENTS} connections, {MOST} descriptors: {served} answered, the others waited {:.1} s, while it \
         took {:.1} % of a processor and logged {reply} lines; then all answered",
        starved.as_secs_f64(),
        share * 100.0
    )
}

fn is_answered(client: &Client) -> bool {
    client.has_response().expect("no connection is refused")
}

fn share_of_processor(node: &Node, span: Duration) -> f64 {
    let (before, began) = (node.cpu(), Instant::now());
    wait_for(span);
    (node.cpu() - before).as_secs_f64() / began.elapsed().as_secs_f64()
}
