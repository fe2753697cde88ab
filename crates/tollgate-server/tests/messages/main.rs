//! A snapshot of every text of the product: error messages, log templates and help texts, in
//! `testdata/messages.txt`. The test scans the sources, so a new message that is not in the file fails it.
//!
//! `UPDATE_SNAPSHOTS=1 cargo test -p tollgate-server --test messages` writes the file. Read the difference: every
//! line must be clear at first reading.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking, and their helpers too"
)]

mod help;
mod sources;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

use sources::{Kind, Message};

/// The crates that are shipped.
const CRATES: [&str; 4] = ["tollgate", "tollgate-redis", "tollgate-tower", "tollgate-server"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Every message of the shipped crates, by file, with each text once per file.
fn messages() -> Vec<(String, Vec<Message>)> {
    let root = root();
    let mut files: Vec<PathBuf> = Vec::new();
    for name in CRATES {
        sources::rust_files(&root.join("crates").join(name).join("src"), &mut files);
    }
    files.sort();
    let messages = files.iter().map(|path| {
        let shown = path.strip_prefix(&root).unwrap().display().to_string();
        let text = fs::read_to_string(path).unwrap();
        (shown, sources::messages(&text))
    });
    messages.filter(|(_, messages)| !messages.is_empty()).collect()
}

fn snapshot() -> String {
    let mut text = String::from(
        "Every error message, log template and help text, collected by crates/tollgate-server/tests/messages.\n",
    );
    for (file, messages) in messages() {
        write!(text, "\n== {file}\n").unwrap();
        for Message { kind, text: message } in messages {
            writeln!(text, "{kind}: {}", message.escape_debug()).unwrap();
        }
    }
    for (command, help) in help::texts() {
        write!(text, "\n== {command}\n{help}").unwrap();
    }
    text
}

#[test]
fn snapshot_holds_every_message() {
    let path = root().join("testdata/messages.txt");
    let current = snapshot();
    if env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::write(&path, &current).unwrap();
    }
    let recorded = fs::read_to_string(&path).unwrap_or_default();
    let difference = current.lines().zip(recorded.lines()).find(|(now, then)| now != then);
    assert!(
        current == recorded,
        "testdata/messages.txt is out of date, first difference (now, recorded): {difference:?}\n\
         run UPDATE_SNAPSHOTS=1 cargo test -p tollgate-server --test messages and read the change"
    );
}

#[test]
fn scan_finds_logs_errors_and_other_texts_outside_tests() {
    let source = r#"
        //! A module comment is no message.
        #[derive(Error)]
        enum E { #[error("the store is lost: {0}")] Lost(String) }
        fn f() {
            warn!(node = %id, "Redis is unreachable; deciding locally");
            debug!("short");
            return Err(ApiError::invalid("use `limit` and `cursor`").at("prefix"));
        }
        const NAME: &str = "not_a_message";
        #[cfg(test)]
        mod tests { const HIDDEN: &str = "texts of tests are skipped"; }
        #[test]
        fn t() { panic!("texts of tests are skipped"); }
    "#;
    let found: Vec<(Kind, String)> =
        sources::messages(source).into_iter().map(|message| (message.kind, message.text)).collect();
    assert_eq!(
        found,
        [
            (Kind::Error, "the store is lost: {0}".to_owned()),
            (Kind::Log, "Redis is unreachable; deciding locally".to_owned()),
            (Kind::Log, "short".to_owned()),
            (Kind::Text, "use `limit` and `cursor`".to_owned()),
        ]
    );
}
