//! A data directory on a full disk.

use std::fs;

use tollgate_testkit::wait::eventually;

use crate::client::{Reply, key};
use crate::disk::Disk;
use crate::load::Load;
use crate::node::Node;
use crate::override_api::{FILE, StoredOverrides, limit, limits_of};
use crate::policy::{Loss, per_client};
use crate::stage::Stage;

/// The size of the disk, in bytes.
const DISK_SIZE: usize = 1 << 20;

/// The number of other overrides: their file is larger than the space that the next save of the counters may free
/// for a moment.
const OTHERS: u64 = 30;

const PER_SECOND: u32 = 100;

const ERRORS: &str = "tollgate_state_save_errors_total";

pub(super) fn full_disk_fails_only_changes_with_a_clear_error(stage: &Stage) -> String {
    let disk = Disk::mount(&stage.scratch().path().join("disk"), DISK_SIZE);
    let setup = stage.node().policy(&per_client("1000000000/h", Loss::Local));
    let setup = setup.with("data-dir", disk.path());
    let node = setup.start();
    (0..OTHERS).for_each(|number| node.set_limit(&format!("other-{number}"), number));
    node.set_limit("c", 20);
    assert_eq!(node.check("c").json()["limit"], 20);
    assert_eq!(node.metric(ERRORS), 0.0, "{}", node.log());
    let before = StoredOverrides::read(disk.path());
    let (mut refused, tries) = (0, stage.scale().pick(5, 100));
    let tally = Load::open(vec![node.address()], PER_SECOND).during(|| {
        eventually("counters cannot be saved", || {
            disk.fill();
            node.metric(ERRORS) > 0.0
        });
        for _ in 0..tries {
            for (method, path, body) in [
                ("PUT", limits_of("c"), limit(7)),
                ("PUT", limits_of("new"), limit(7)),
                ("DELETE", limits_of("c"), String::new()),
                ("POST", "/admin/external/clients/c/reset".to_owned(), String::new()),
            ] {
                disk.fill();
                assert_refused(&node.request(method, &path, body));
                refused += 1;
                assert_unchanged(&node, &disk, &before);
            }
        }
    });
    tally.assert_answered(stage);
    assert_eq!(tally.admitted(), tally.count(), "checks continue");
    assert!(node.logged(&["counters not saved to --data-dir"]) > 0, "{}", node.log());
    let errors = node.metric(ERRORS);
    disk.free();
    node.set_limit("c", 30);
    eventually("counters are saved again", || node.logged(&["counters are saved again"]) > 0);
    let (code, log) = node.stop();
    assert_eq!(code, Some(0), "{log}");
    assert!(!log.contains("panicked"), "{log}");
    let after = StoredOverrides::read(disk.path());
    assert_eq!(
        after.last_id(),
        before.last_id() + 1,
        "refused changes were not made, and are not in the audit"
    );
    let node = setup.start();
    let reply = node.check("c").json();
    assert_eq!((&reply["limit"], &reply["count"]), (&30.into(), &2.into()), "{reply}");
    assert_eq!(node.override_limit("other-29"), Some(29));
    assert_eq!(node.override_limit("new"), None);
    assert_eq!(node.count(&key("k")), Some(tally.count() as u64), "every check counts");
    format!(
        "{} checks, none failed, while {refused} changes were refused and {errors} saves failed; the file unchanged, \
         byte for byte; with free space the next change persists, also over a restart",
        tally.count()
    )
}

/// Asserts that the response is 503 and states that the change was not made, and why.
fn assert_refused(reply: &Reply) {
    assert_eq!(reply.status, 503, "{}", reply.body);
    assert_eq!(reply.header("content-type"), Some("application/problem+json"), "{}", reply.head);
    let reply = reply.json();
    let detail = reply["detail"].as_str().expect("a text");
    for text in ["could not be stored", "the change was not made", "No space left"] {
        assert!(detail.contains(text), "{text:?} is not in {detail:?}");
    }
}

fn assert_unchanged(node: &Node, disk: &Disk, before: &StoredOverrides) {
    let stored = fs::read_to_string(disk.path().join(FILE)).expect("the file exists");
    assert!(stored == before.bytes, "the file has changed: {stored}");
    let incomplete = disk.path().join(format!("{FILE}.new"));
    assert!(!incomplete.exists(), "the incomplete file is removed");
    assert_eq!((node.override_limit("c"), node.override_limit("new")), (Some(20), None));
    let reply = node.post("/peek", key("c")).json();
    assert_eq!(
        (&reply["limit"], &reply["count"]),
        (&20.into(), &1.into()),
        "active limit: {reply}"
    );
    let newest = node.audit(1).pop().expect("there were changes");
    assert_eq!((&newest["client"], &newest["old"]), (&"c".into(), &serde_json::Value::Null));
}
