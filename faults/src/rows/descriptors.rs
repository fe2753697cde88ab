//! A node without free file descriptors.

use std::time::{Duration, Instant};

use tollgate_testkit::wait::eventually;

use crate::client::{Client, key};
use crate::node::Node;
use crate::policy::{Loss, per_client};
use crate::redis;
use crate::stage::Stage;
use crate::waiting::wait_for;

/// The maximum number of open files.
const MAX_FILES: usize = 64;
const CLIENTS: usize = 200;

/// The maximum CPU use while no descriptor is free, in cores.
const MAX_CPU: f64 = 0.1;

const LOGGED: &str = "cannot accept a connection; retrying";

pub(super) fn connections_without_descriptor_wait_and_are_served(stage: &Stage) -> String {
    let server = redis::start();
    let setup =
        stage.node().redis(&redis::url(&server)).policy(&per_client("1000000/h", Loss::Local));
    let node = setup.patient().start();
    let mut early = node.client();
    assert!(early.post("/check", key("early")).is_ok_and(|reply| reply.is_exact()));
    node.limit_files(MAX_FILES);
    let before = node.files();
    let began = Instant::now();
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| node.client()).collect();
    for client in &mut clients {
        client.send("/check", key("crowd")).expect("the connection is open");
    }
    let answered = || clients.iter().filter(|client| is_answered(client)).count();
    eventually("every accepted connection has a response, and no descriptor is free", || {
        node.logged(&[LOGGED]) > 0 && before + answered() == node.files()
    });
    let served = answered();
    assert!(served > 0 && served < MAX_FILES, "{served} of {CLIENTS} are served");
    let cpu = cpu_use(&node, Duration::from_secs(stage.scale().pick(3, 10)));
    assert!(cpu < MAX_CPU, "{:.1} % CPU without free descriptors", cpu * 100.0);
    assert_eq!((answered(), node.files()), (served, before + served), "the other connections wait");
    assert!(early.post("/check", key("early")).is_ok_and(|reply| reply.is_exact()));
    let (lines, waited) = (node.logged(&[LOGGED]), began.elapsed());
    assert!(lines > 0 && lines as u64 <= 20 * (waited.as_secs() + 1), "logged {lines} times");
    // Each closed connection frees a descriptor for one that waits.
    for mut client in clients {
        let reply = client.receive().expect("no connection is refused");
        assert!(reply.is_exact() && reply.is_allowed(), "{}", reply.body);
    }
    eventually("all descriptors are free again", || node.files() == before);
    assert_eq!(node.count(&key("crowd")), Some(CLIENTS as u64), "each request counts once");
    format!(
        "{CLIENTS} connections, {MAX_FILES} descriptors: {served} answered, the others waited {:.1} s at {:.1} % CPU \
         and {lines} log lines; then all answered",
        waited.as_secs_f64(),
        cpu * 100.0
    )
}

fn is_answered(client: &Client) -> bool {
    client.has_response().expect("no connection is refused")
}

/// The CPU use of a node, in cores.
fn cpu_use(node: &Node, span: Duration) -> f64 {
    let (before, began) = (node.cpu(), Instant::now());
    wait_for(span);
    (node.cpu() - before).as_secs_f64() / began.elapsed().as_secs_f64()
}
