//! `--data-dir`: counters survive a restart, and bad snapshots are rejected.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;

use crate::service::{Scratch, Service, eventually, run};

fn start(scratch: &Scratch, more: &[&str]) -> Service {
    let directory = scratch.path().to_str().expect("a UTF-8 path");
    Service::start(&[&["--data-dir", directory], more].concat())
}

/// Returns the error of a failed start.
fn refused(scratch: &Scratch) -> String {
    let directory = scratch.path().to_str().expect("a UTF-8 path");
    let ended = run(&["serve", "--http", "127.0.0.1:0", "--data-dir", directory]);
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    ended.stderr
}

#[test]
fn counters_and_permits_survive_a_restart() {
    let scratch = Scratch::new();
    let service = start(&scratch, &[]);
    let slot = json!({"key": "job", "limits": [
        {"algorithm": "concurrency", "limit": 1, "ttl_ms": 3_600_000},
    ]})
    .to_string();
    for _ in 0..3 {
        service.check("user:1");
    }
    let permit = service.post("/check", &slot).json()["permit"].clone();
    let (status, log) = service.stop();
    assert!(status.success() && log.contains("counters saved"), "{log}");

    let service = start(&scratch, &[]);
    assert_eq!(service.check("user:1")["remaining"], 96);
    assert_eq!(service.post("/check", &slot).json()["allowed"], false, "the slot is still held");
    let released = service.post("/release", json!({ "permit": permit }).to_string()).json();
    assert_eq!(released["released"], true);
    let listed = service.get("/api/counters").json();
    assert_eq!(listed["counters"][0]["key"], "user:1");
}

#[test]
fn saved_counters_survive_a_kill() {
    let scratch = Scratch::new();
    let service = start(&scratch, &[]);
    let empty = fs::read(scratch.path().join("counters")).expect("saved at the start");
    service.check("user:1");
    eventually("a periodic save", || {
        fs::read(scratch.path().join("counters")).is_ok_and(|saved| saved.len() > empty.len())
    });
    service.kill();
    let service = start(&scratch, &[]);
    assert_eq!(service.check("user:1")["remaining"], 98);
}

#[test]
fn bad_snapshot_is_rejected_unless_discarded() {
    let scratch = Scratch::new();
    let service = start(&scratch, &[]);
    service.check("user:1");
    service.stop();
    let path = scratch.path().join("counters");
    let good = fs::read(&path).expect("saved at shutdown");
    let mut flipped = good.clone();
    flipped[good.len() / 2] ^= 1;
    for bad in [&good[..good.len() - 1], &good[..8], &flipped, b"", b"#!/bin/sh\necho not ours\n"] {
        fs::write(&path, bad).expect("a writable directory");
        let error = refused(&scratch);
        assert!(error.contains("counters: ") && error.contains("--discard-bad-state"), "{error}");
        assert_eq!(fs::read(&path).expect("the file"), bad, "a failed start changes nothing");
    }
    fs::write(&path, &flipped).expect("a writable directory");
    let service = start(&scratch, &["--discard-bad-state"]);
    assert_eq!(service.check("user:1")["remaining"], 99);
    assert_eq!(fs::read(scratch.path().join("counters.bad")).expect("the renamed file"), flipped);
    service.wait_for_log("renamed to counters.bad");
    service.stop();
    fs::write(&path, &good).expect("a writable directory");
    assert_eq!(start(&scratch, &["--discard-bad-state"]).check("user:1")["remaining"], 98);
}

#[test]
fn data_directory_is_locked() {
    let scratch = Scratch::new();
    let first = start(&scratch, &[]);
    assert!(refused(&scratch).contains("already in use by another process"));
    first.stop();
    start(&scratch, &[]).stop();
}

#[test]
fn file_as_data_directory_fails_the_start() {
    let scratch = Scratch::new();
    let file = scratch.write("file", "");
    let ended = run(&["serve", "--http", "127.0.0.1:0", "--data-dir", &file]);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("--data-dir: "), "{}", ended.stderr);
}

#[test]
fn full_disk_stops_no_check_and_keeps_the_snapshot() {
    let scratch = Scratch::new();
    let service = start(&scratch, &[]);
    service.check("user:1");
    let path = scratch.path().join("counters");
    let empty = fs::read(&path).expect("saved at the start");
    eventually("a save", || fs::read(&path).is_ok_and(|saved| saved.len() > empty.len()));
    let saved = fs::read(&path).expect("saved");
    // From now on the temporary file is a full device.
    eventually("the link to the full device", || {
        symlink("/dev/full", scratch.path().join("counters.new")).is_ok()
    });
    service.check("user:1");
    service.wait_for_log("counters not saved to --data-dir");
    let metrics = service.get("/metrics").body;
    assert!(!metrics.contains("tollgate_state_save_errors_total 0"), "{metrics}");
    assert_eq!(service.check("user:1")["remaining"], 97);
    if fs::read(&path).expect("the snapshot") != saved {
        // Only possible if a later save succeeded.
        service.wait_for_log("counters are saved again");
    }
    // A failed save removes its temporary file, here the link to the full device.
    service.wait_for_log("counters are saved again");
    assert!(service.stop().0.success());
}

#[test]
fn snapshot_with_too_many_keys_suggests_max_keys() {
    let scratch = Scratch::new();
    let service = start(&scratch, &[]);
    for n in 0..20 {
        service.check(&format!("user:{n}"));
    }
    service.stop();
    let directory = scratch.path().to_str().expect("a UTF-8 path");
    let ended =
        run(&["serve", "--http", "127.0.0.1:0", "--data-dir", directory, "--max-keys", "5"]);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("raise --max-keys"), "{}", ended.stderr);
}
