//! Invalid policy files of twelve kinds.

use std::fs;
use std::path::Path;

use tollgate_testkit::wait::eventually;

use crate::client::on_path;
use crate::front_end::{FrontEnd, Query};
use crate::node::Node;
use crate::redis;
use crate::stage::Stage;

const NAME: &str = "rules.yaml";
const VALID: &str = "version: 1
facts: { client: [{ header: x-client }] }
rules:
  - { name: grpc, match: { facts: { domain: faults } }, per: [\"entry:client\"], limits: [1000/h] }
  - { name: api, per: [client], limits: [{ rate: 1000/h, name: hourly }] }
";
const RELOAD_ERRORS: &str = r#"tollgate_policy_reloads_total{result="error"}"#;
const RELOADS: &str = r#"tollgate_policy_reloads_total{result="ok"}"#;

/// An invalid file: its kind, its content (`None`: no file), and the texts in the error in addition to the file name.
type InvalidFile = (&'static str, Option<Vec<u8>>, &'static [&'static str]);

fn invalid_files() -> Vec<InvalidFile> {
    let text = |text: &str| Some(text.as_bytes().to_vec());
    let rule = |rule: &str| Some(format!("version: 1\nrules:\n  - {rule}\n").into_bytes());
    vec![
        ("not YAML", text("version: 1\nrules: [\n"), &[]),
        ("tabs", text("version: 1\nrules:\n\t- name: x\n"), &[":3:"]),
        ("prose", text("Dear operator,\nplease let them pass.\n"), &[":1:1"]),
        (
            "an unknown field",
            text("version: 1\nrules:\n  - name: api\n    limitss: [10/min]\n"),
            &[":4:5", "rules[0].limitss", "\"limits\""],
        ),
        ("a wrong version", text("version: 2\n"), &[":1:10", "version"]),
        ("a rule twice", text(DUPLICATE_RULE), &[":4:", "rules[1].name"]),
        ("a bad rate", rule("{ name: a, limits: [ten/min] }"), &[":3:", "rules[0].limits[0]"]),
        ("a window of 0", rule("{ name: a, limits: [1/0s] }"), &["rules[0].limits[0]"]),
        (
            "an unknown algorithm",
            rule("{ name: a, limits: [1/s], algorithm: leaky_bucket }"),
            &[":3:", "rules[0].algorithm"],
        ),
        ("an empty file", text(""), &[":1:1"]),
        ("binary", Some(b"\x7fELF\x02\x01\x00\xff\xfe".to_vec()), &[]),
        ("no file", None, &[]),
    ]
}

const DUPLICATE_RULE: &str = "version: 1
rules:
  - { name: a, limits: [1/s] }
  - { name: a, limits: [1/s] }
";

pub(super) fn invalid_policy_file_changes_nothing(stage: &Stage) -> String {
    let server = redis::start();
    let path = stage.scratch().write(NAME, VALID);
    let setup = stage.node().all_front_ends().redis(&redis::url(&server)).policy_file(&path);
    let node = setup.patient().start();
    let version = node.status()["policy"]["version"].clone();
    let all = invalid_files();
    for (number, file) in (1_u32..).zip(&all) {
        write_invalid(stage, &path, file);
        eventually(file.0, || node.metric(RELOAD_ERRORS) >= f64::from(number));
        assert_error_reported(&node, file);
        assert_eq!(node.status()["policy"]["version"], version, "{}", file.0);
        let reply = node.post("/check", on_path("c", "/any"));
        let json = reply.json();
        assert!(reply.is_exact() && reply.is_allowed(), "{}: {json}", file.0);
        assert_eq!((&json["rule"], &json["count"]), (&"api".into(), &number.into()), "{}", file.0);
        assert_others_count(&node, u64::from(number), file.0);
        stage.scratch().write(NAME, VALID);
        eventually("the valid file is loaded again", || node.status()["policy"]["error"].is_null());
    }
    let kinds = f64::from(u32::try_from(all.len()).expect("a number"));
    assert_eq!(
        (node.metric(RELOAD_ERRORS), node.metric(RELOADS)),
        (kinds, kinds),
        "each reload counts once"
    );
    assert!(!node.log().contains("panicked"), "{}", node.log());
    format!(
        "{} kinds: the old policy stays active on all front ends, usage is kept, each error is counted and names its place",
        all.len()
    )
}

/// Asserts that the other front ends still decide by the old policy, with the old usage.
fn assert_others_count(node: &Node, count: u64, kind: &str) {
    for front_end in FrontEnd::OTHERS {
        let query = Query::of(format!("over {}", front_end.name()));
        let answer = node.check_over(front_end, &query);
        let seen = (answer.is_allowed(), answer.remaining);
        assert_eq!(seen, (true, Some(1000 - count)), "{kind}, {}", front_end.name());
    }
}

fn write_invalid(stage: &Stage, path: &Path, (_, bytes, _): &InvalidFile) {
    match bytes {
        Some(bytes) => drop(stage.scratch().write(NAME, bytes)),
        None => fs::remove_file(path).expect("the file exists"),
    }
}

/// Asserts that the status and the log show the error, with the file and the place in it.
fn assert_error_reported(node: &Node, (kind, _, texts): &InvalidFile) {
    let status = node.status();
    let error = status["policy"]["error"].as_str().unwrap_or_else(|| panic!("{kind}: {status}"));
    for text in [&[NAME], *texts].concat() {
        assert!(error.contains(text), "{kind}: {text:?} is not in {error:?}");
    }
    eventually("the error is logged", || node.log().contains(error));
}
