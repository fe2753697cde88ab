//! A Redis that loses the scripts and functions of Tollgate.

use std::time::{Duration, Instant};

use tollgate_testkit::server::Server;

use super::common::{assert_exact, assert_never_degraded};
use crate::client::inline;
use crate::front_end::{FrontEnd, Query};
use crate::load::Load;
use crate::policy::{Loss, per_client_everywhere};
use crate::redis;
use crate::side_load;
use crate::stage::Stage;
use crate::waiting::wait_until;

/// The time between two flushes.
const FLUSH_INTERVAL: Duration = Duration::from_millis(10);

pub(super) fn lost_scripts_have_no_visible_effect(stage: &Stage) -> String {
    let duration = Duration::from_secs(stage.scale().pick(4, 30));
    let seen = ["script", "function"].map(|scripting| {
        let server = redis::start();
        let setup = stage.node().all_front_ends().redis(&redis::url(&server));
        let setup = setup.policy(&per_client_everywhere("1000000/h", Loss::Local));
        let node = setup.with("scripting", scripting).patient().start();
        let body = |number| inline(&format!("c{}", number % 50), 1, "fixed_window", 1_000_000);
        // The node has loaded its scripts before the first flush.
        assert!(node.post("/check", body(0)).is_exact());
        for front_end in FrontEnd::OTHERS {
            assert!(node.check_over(front_end, &Query::of("side")).is_allowed());
        }
        let (before, mut flushes) = (loads(&server), 0);
        let load = Load::closed(vec![node.address()], 4).body(body);
        let (tally, others) = side_load::during(
            &node,
            |_| Query::of("side"),
            || load.during(|| flushes = flush(&server, duration)),
        );
        for (front_end, tally) in &others {
            assert_eq!(tally.admitted(), tally.count(), "{scripting}, {}", front_end.name());
        }
        tally.assert_answered(stage);
        assert_eq!(tally.degraded(), 0, "{scripting}: no decision is degraded");
        assert_eq!(tally.admitted(), tally.count(), "{scripting}");
        assert_never_degraded(&node);
        let loads = loads(&server) - before;
        assert!(loads > 0, "the node loaded no script after {flushes} flushes");
        assert_exact(stage, &[node.address()]);
        let others = side_load::counts(&others);
        format!(
            "{scripting}: {flushes} flushes, {loads} loads, {} answers (also {others})",
            tally.count()
        )
    });
    format!("{}; no error, none degraded", seen.join("; "))
}

/// The number of times that a node has loaded scripts or functions.
fn loads(server: &Server) -> u64 {
    ["script|load", "eval", "function|load"].map(|name| redis::calls(server, name)).iter().sum()
}

/// Flushes scripts and functions a hundred times a second. Returns the number of flushes.
fn flush(server: &Server, duration: Duration) -> u32 {
    let (mut raw, began, mut flushes) = (server.raw(), Instant::now(), 0);
    while began.elapsed() < duration {
        assert!(!raw.call(&["SCRIPT", "FLUSH"]).is_error());
        assert!(!raw.call(&["FUNCTION", "FLUSH"]).is_error());
        flushes += 1;
        wait_until(began + FLUSH_INTERVAL * flushes);
    }
    flushes
}
