//! Redis connections that are cut after any byte.
//!
//! Every caller has its own key and cost, and a limit that is its own number modulo the number of callers, so a
//! reply that reaches the wrong caller is detected.

use tollgate_testkit::proxy::{Direction, Fault, Proxy};

use crate::client::{Client, Reply, inline};
use crate::front_end::Query;
use crate::node::Node;
use crate::policy::{Loss, per_client_everywhere};
use crate::redis;
use crate::side_load;
use crate::stage::Stage;

const CALLERS: u64 = 8;

struct Caller {
    number: u64,
    cost: u64,
    limit: u64,
    client: Client,
    /// The cost that the store has admitted.
    admitted: u64,
    /// The usage in the last reply.
    used: u64,
    /// The number of replies that the store decided.
    answers: u64,
}

impl Caller {
    fn new(number: u64, node: &Node) -> Self {
        let cost = CALLERS * (number + 1);
        let limit = cost * 100_000_000 + number;
        Self { number, cost, limit, client: node.client(), admitted: 0, used: 0, answers: 0 }
    }

    fn body(&self) -> String {
        inline(&self.key(), self.cost, "fixed_window", self.limit)
    }

    fn key(&self) -> String {
        format!("caller-{}", self.number)
    }

    /// Asserts that a reply is for this caller and consistent with the earlier ones.
    fn check_reply(&mut self, reply: &Reply) {
        assert_eq!(reply.status, 200, "{}", reply.body);
        let json = reply.json();
        assert_eq!(json["limit"], self.limit, "a reply for another caller: {json}");
        assert_eq!(json["key"], self.key().as_str(), "a reply for another caller");
        if !reply.is_exact() {
            return;
        }
        let remaining = json["remaining"].as_u64().expect("a number");
        let used = self.limit - remaining;
        assert_eq!(remaining % CALLERS, self.number, "a reply for another caller: {json}");
        assert!(used.is_multiple_of(self.cost), "caller {}: usage {used}", self.number);
        let admitted = if reply.is_allowed() { self.cost } else { 0 };
        assert!(
            used >= self.used + admitted,
            "caller {}: usage {} then {used}",
            self.number,
            self.used
        );
        self.admitted += admitted;
        self.used = used;
        self.answers += 1;
        assert!(self.admitted <= used);
    }
}

pub(super) fn no_reply_reaches_another_caller(stage: &Stage) -> String {
    let server = redis::start();
    let proxy = Proxy::seeded(server.port(), 5);
    // The breaker stays closed: a failed call is decided without the store, and the next call uses Redis again.
    let setup = stage.node().all_front_ends().redis(&redis::through(&proxy));
    let setup = setup.policy(&per_client_everywhere("1000000000/h", Loss::Local));
    let setup = setup.with("breaker-failures", "1000000");
    let node = setup.patient().start();
    let mut callers: Vec<Caller> = (0..CALLERS).map(|number| Caller::new(number, &node)).collect();
    let target = stage.scale().pick(1_000, 100_000);
    let ((), others) = side_load::during(
        &node,
        |_| Query::of("side"),
        || {
            while proxy.cuts() < target {
                send_until_answered(&mut callers);
                let before = proxy.cuts();
                // About the bytes that are sent and received at a time. A client that is cut reconnects immediately.
                proxy.set(match before % 2 {
                    0 => Fault::CutOpen { towards: Direction::Client, bytes: 0..300 },
                    _ => Fault::CutOpen { towards: Direction::Server, bytes: 0..1200 },
                });
                while proxy.cuts() == before {
                    send_all(&mut callers);
                }
            }
        },
    );
    for (front_end, tally) in &others {
        tally.assert_answered(stage);
        assert!(tally.count() > 0, "no request over {}", front_end.name());
    }
    proxy.set(Fault::Pass);
    node.wait_exact();
    let lost = assert_settled(&node, &mut callers);
    let answers: u64 = callers.iter().map(|caller| caller.answers).sum();
    assert!(lost > 0, "no reply was cut off, so nothing is proven");
    format!(
        "{} cuts, {answers} answers by Redis over HTTP (also {}), each for its own caller; takes whose reply was lost count as used",
        proxy.cuts(),
        side_load::counts(&others)
    )
}

/// Sends one request of every caller at the same time, then checks every reply.
fn send_all(callers: &mut [Caller]) {
    for caller in callers.iter_mut() {
        let body = caller.body();
        caller.client.send("/check", &body).expect("the connection is open");
    }
    for caller in callers.iter_mut() {
        let reply = caller.client.receive().expect("the node responds");
        caller.check_reply(&reply);
    }
}

fn send_until_answered(callers: &mut [Caller]) {
    let answers = |callers: &[Caller]| callers.iter().map(|caller| caller.answers).sum::<u64>();
    let before = answers(callers);
    while answers(callers) == before {
        send_all(callers);
    }
}

/// Asserts that decisions are exact again, from the first on. Returns the cost that was taken without a reply.
fn assert_settled(node: &Node, callers: &mut [Caller]) -> u64 {
    let mut lost = 0;
    for caller in callers {
        let spent = node.count(&caller.body()).expect("the store decides");
        assert!(caller.admitted <= spent && spent <= caller.limit);
        let reply = node.post("/check", caller.body());
        assert!(reply.is_exact() && reply.is_allowed(), "{}", reply.body);
        assert_eq!(reply.json()["count"], spent + caller.cost);
        lost += spent - caller.admitted;
    }
    lost
}
