//! A node that crashes while it holds leases.

use std::time::{Duration, Instant};

use tollgate_testkit::wait::eventually;

use super::common::assert_exact;
use crate::client::key;
use crate::load::Load;
use crate::redis;
use crate::stage::Stage;

const LIMIT: usize = 2000;
const WINDOW: Duration = Duration::from_secs(15);
const POLICY: &str =
    "version: 1\ndefaults: { limit: 2000/15s, algorithm: fixed_window, lease: auto }\n";

/// The number of limits that the windows of this much time admit. A window begins with its first request.
fn max_admitted(elapsed: Duration) -> usize {
    let windows = elapsed.as_secs() / WINDOW.as_secs() + 1;
    LIMIT * usize::try_from(windows).expect("a number")
}

pub(super) fn crashed_node_loses_its_lease_for_one_window(stage: &Stage) -> String {
    let server = redis::start();
    let setup = || stage.node().redis(&redis::url(&server)).policy(POLICY).patient();
    let (crashing, other) = (setup().start(), setup().start());
    let send = |address, count| Load::closed(vec![address], 2).body(|_| key("k")).send(count);
    let began = Instant::now();
    let mut before = 0;
    eventually("the node holds a lease", || {
        before += send(crashing.address(), 50).admitted();
        crashing.metric("tollgate_lease_held") > 0.5
    });
    let total = |name: &str| crashing.metric(&format!("tollgate_lease_{name}_total"));
    let lost = total("granted") - total("spent") - total("dropped");
    crashing.kill();
    assert!(lost > 0.0, "the node held nothing when it was killed");
    let after = send(other.address(), 2 * LIMIT as u64).admitted();
    let admitted = before + after;
    let max = max_admitted(began.elapsed());
    assert!(admitted <= max, "{admitted} of {max} were admitted");
    eventually("the window has ended", || other.check("k").is_allowed());
    let next = Instant::now();
    let admitted_next = 1 + send(other.address(), 2 * LIMIT as u64).admitted();
    let max = max_admitted(next.elapsed());
    assert!(admitted_next <= max, "{admitted_next} of {max} were admitted in the next window");
    assert_exact(stage, &[other.address()]);
    format!(
        "killed with {lost} leased and not spent: {admitted} of {LIMIT} admitted in the window of the crash, {admitted_next} in the \
         next one"
    )
}
