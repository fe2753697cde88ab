//! Policy files that are bad, in twelve ways.

use std::fs;
use std::path::Path;

use tollgate_testkit::wait::eventually;

use crate::client::on_path;
use crate::node::Node;
use crate::redis;
use crate::stage::Stage;

const NAME: &str = "rules.yaml";
const GOOD: &str = "version: 1
rules:
  - { name: api, per: [client], limits: [{ rate: 1000/h, name: hourly }] }
";
const FAILED: &str = r#"tollgate_policy_reloads_total{result="error"}"#;
const DONE: &str = r#"tollgate_policy_reloads_total{result="ok"}"#;

/// How a file is bad, what is in it, and what its error names beside the file.
type Bad = (&'static str, Option<Vec<u8>>, &'static [&'static str]);

fn bad_files() -> Vec<Bad> {
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
        ("a rule twice", text(TWICE), &[":4:", "rules[1].name"]),
        ("a bad rate", rule("{ name: a, limits: [ten/min] }"), &[":3:", "rules[0].limits[0]"]),
        ("a window of no length", rule("{ name: a, limits: [1/0s] }"), &["rules[0].limits[0]"]),
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

const TWICE: &str = "version: 1
rules:
  - { name: a, limits: [1/s] }
  - { name: a, limits: [1/s] }
";

pub(super) fn invalid_policy_file_changes_nothing(stage: &Stage) -> String {
    let server = redis::start();
    let path = stage.scratch().write(NAME, GOOD);
    let setup = stage.node().redis(&redis::url(&server)).policy_file(&path);
    let node = setup.patient().start();
    let version = node.status()["policy"]["version"].clone();
    let all = bad_files();
    for (number, bad) in (1_u32..).zip(&all) {
        make_bad(stage, &path, bad);
        eventually(bad.0, || node.metric(FAILED) >= f64::from(number));
        assert_told(&node, bad);
        assert_eq!(node.status()["policy"]["version"], version, "{}", bad.0);
        let reply = node.post("/check", on_path("c", "/any"));
        let json = reply.json();
        assert!(reply.is_exact() && reply.is_allowed(), "{}: {json}", bad.0);
        assert_eq!((&json["rule"], &json["count"]), (&"api".into(), &number.into()), "{}", bad.0);
        stage.scratch().write(NAME, GOOD);
        eventually("the good file again", || node.status()["policy"]["error"].is_null());
    }
    let kinds = f64::from(u32::try_from(all.len()).expect("a number"));
    assert_eq!((node.metric(FAILED), node.metric(DONE)), (kinds, kinds), "each is counted once");
    assert!(!node.log().contains("panicked"), "{}", node.log());
    format!("{} kinds: the old policy serves on, counters kept, each counted and named", all.len())
}

fn make_bad(stage: &Stage, path: &Path, (_, bytes, _): &Bad) {
    match bytes {
        Some(bytes) => drop(stage.scratch().write(NAME, bytes)),
        None => fs::remove_file(path).expect("it is there"),
    }
}

/// Its error is shown and logged, with the file and what is wrong in it.
fn assert_told(node: &Node, (kind, _, named): &Bad) {
    let status = node.status();
    let error = status["policy"]["error"].as_str().unwrap_or_else(|| panic!("{kind}: {status}"));
    for words in [&[NAME], *named].concat() {
        assert!(error.contains(words), "{kind}: {words:?} is not in {error:?}");
    }
    eventually("it is logged", || node.log().contains(error));
}
