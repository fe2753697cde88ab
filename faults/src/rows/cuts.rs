//! Connections that are cut after any byte.
//!
//! Every caller has a key and a cost of its own, and a limit whose remainder by the number of callers is its
//! own number: an answer that reached the wrong caller would show.

use tollgate_testkit::proxy::{Direction, Fault, Proxy};

use crate::client::{Client, Reply, inline};
use crate::node::Node;
use crate::redis;
use crate::stage::Stage;

const CALLERS: u64 = 8;

struct Caller {
    number: u64,
    cost: u64,
    limit: u64,
    client: Client,
    /// What the store has admitted.
    admitted: u64,
    /// What was last reply to be used.
    used: u64,
    /// How often the store has answered.
    answers: u64,
}

impl Caller {
    fn new(number: u64, node: &Node) -> Self {
        let cost = CALLERS * (number + 1);
        let limit = cost * 100_000_000 + number;
        Self { number, cost, limit, client: node.client(), admitted: 0, used: 0, answers: 0 }
    }

    fn question(&self) -> String {
        inline(&self.caller(), self.cost, "fixed_window", self.limit)
    }

    fn caller(&self) -> String {
        format!("caller-{}", self.number)
    }

    /// An answer must be this caller's own, and agree with all before.
    fn hear(&mut self, reply: &Reply) {
        assert_eq!(reply.status, 200, "{}", reply.body);
        let json = reply.json();
        assert_eq!(json["limit"], self.limit, "a reply for another caller: {json}");
        assert_eq!(json["key"], self.caller().as_str(), "a reply for another caller");
        if !reply.is_exact() {
            return;
        }
        let remaining = json["remaining"].as_u64().expect("a number");
        let used = self.limit - remaining;
        assert_eq!(remaining % CALLERS, self.number, "a reply for another caller: {json}");
        assert!(used.is_multiple_of(self.cost), "caller {}: {used} are used", self.number);
        let admitted = if reply.is_allowed() { self.cost } else { 0 };
        assert!(used >= self.used + admitted, "caller {}: {} then {used}", self.number, self.used);
        self.admitted += admitted;
        self.used = used;
        self.answers += 1;
        assert!(self.admitted <= used);
    }
}

pub(super) fn no_reply_reaches_another_caller(stage: &Stage) -> String {
    let server = redis::start();
    let proxy = Proxy::seeded(server.port(), 5);
    // So many failures in a row do not come: each call is policy's, and the next one asks again.
    let setup = stage.node().redis(&redis::through(&proxy)).with("breaker-failures", "1000000");
    let node = setup.patient().start();
    let mut callers: Vec<Caller> = (0..CALLERS).map(|number| Caller::new(number, &node)).collect();
    let wanted = stage.scale().pick(1_000, 100_000);
    while proxy.cuts() < wanted {
        ask_until_answered(&mut callers);
        let before = proxy.cuts();
        // About as long as what is sent and answered at once. Who is cut is back at once.
        proxy.set(match before % 2 {
            0 => Fault::CutOpen { towards: Direction::Client, bytes: 0..300 },
            _ => Fault::CutOpen { towards: Direction::Server, bytes: 0..1200 },
        });
        while proxy.cuts() == before {
            ask_all(&mut callers);
        }
    }
    proxy.set(Fault::Pass);
    node.wait_exact();
    let lost = assert_settled(&node, &mut callers);
    let answers: u64 = callers.iter().map(|caller| caller.answers).sum();
    assert!(lost > 0, "no answer was cut off, so nothing is proven");
    format!(
        "{} cuts, {answers} answers by Redis, each its caller's own; what was lost counts as spent",
        proxy.cuts()
    )
}

/// All ask at once: what is under way together is reply apart.
fn ask_all(callers: &mut [Caller]) {
    for caller in callers.iter_mut() {
        let question = caller.question();
        caller.client.send("/check", &question).expect("a node listens");
    }
    for caller in callers.iter_mut() {
        let reply = caller.client.receive().expect("the node responds");
        caller.hear(&reply);
    }
}

fn ask_until_answered(callers: &mut [Caller]) {
    let answers = |callers: &[Caller]| callers.iter().map(|caller| caller.answers).sum::<u64>();
    let before = answers(callers);
    while answers(callers) == before {
        ask_all(callers);
    }
}

/// Each answer is exact again, from the first on. What was spent without an answer.
fn assert_settled(node: &Node, callers: &mut [Caller]) -> u64 {
    let mut lost = 0;
    for caller in callers {
        let spent = node.count(&caller.question()).expect("the store decides");
        assert!(caller.admitted <= spent && spent <= caller.limit);
        let reply = node.post("/check", caller.question());
        assert!(reply.is_exact() && reply.is_allowed(), "{}", reply.body);
        assert_eq!(reply.json()["count"], spent + caller.cost);
        lost += spent - caller.admitted;
    }
    lost
}
