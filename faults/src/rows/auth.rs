//! A wrong Redis password: at the start, or from some time on.

use std::time::Duration;

use tollgate_testkit::wait::eventually;

use super::common::{assert_exact, check_recovery, disconnect_all};
use crate::canary::PASSWORD;
use crate::load::Load;
use crate::policy::{Loss, per_client};
use crate::redis;
use crate::stage::Stage;
use crate::waiting::wait_for;

pub(super) fn wrong_password_fails_the_start_and_a_changed_one_degrades(stage: &Stage) -> String {
    let server = redis::start();
    let setup =
        stage.node().redis(&redis::url(&server)).policy(&per_client("1000000/h", Loss::Local));
    let setup = setup.with("redis-timeout-ms", "1000");
    redis::set_password(&server, "another");
    let reply = setup.fails_to_start();
    assert_eq!(reply.lines().count(), 1, "{reply}");
    assert!(reply.contains("refused the password"), "{reply}");
    // Started before Redis, the node stays degraded until the password is right.
    server.hang();
    let late = setup.start();
    server.resume();
    eventually("the rejection is logged", || late.logged(&["Redis rejects this node"]) == 1);
    assert_eq!((late.check("k").is_degraded(), late.get("/readyz").status), (true, 200));
    redis::set_password(&server, PASSWORD);
    late.wait_exact();
    drop(late);
    let node = setup.start();
    assert!(
        node.log().contains("***@"),
        "the log shows the address without its login: {}",
        node.log()
    );
    let mut back = Duration::ZERO;
    let tally = Load::open(vec![node.address()], 100).during(|| {
        redis::set_password(&server, "another");
        disconnect_all(&server);
        node.wait_degraded();
        wait_for(Duration::from_secs(stage.scale().pick(2, 10)));
        redis::set_password(&server, PASSWORD);
        back = node.wait_exact();
    });
    tally.assert_answered(stage);
    assert!(tally.degraded() > 0);
    assert_exact(stage, &[node.address()]);
    assert!(!server.log().contains(PASSWORD));
    format!(
        "start: one line of error, exit code not 0; running: {} answers, {} degraded, no 5xx; {}",
        tally.count(),
        tally.degraded(),
        check_recovery(stage, back)
    )
}
