//! `--data-dir`: counters that survive, and files that are refused.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;

use crate::service::{Scratch, Service, eventually, run};

fn start(scratch: &Scratch, more: &[&str]) -> Service {
    let directory = scratch.path().to_str().expect("a path of ours is text");
    Service::start(&[&["--data-dir", directory], more].concat())
}

/// How `serve` ends when it cannot start.
fn refused(scratch: &Scratch) -> String {
    let directory = scratch.path().to_str().expect("a path of ours is text");
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
fn what_was_saved_survives_a_kill() {
    let scratch = Scratch::new();
    let service = start(&scratch, &[]);
    let empty = fs::read(scratch.path().join("counters")).expect("saved at the start");
    service.check("user:1");
    eventually("a save by itself", || {
        fs::read(scratch.path().join("counters")).is_ok_and(|saved| saved.len() > empty.len())
    });
    service.kill();
    let service = start(&scratch, &[]);
    assert_eq!(service.check("user:1")["remaining"], 98);
}

#[test]
fn a_torn_or_foreign_file_is_refused_until_told_otherwise() {
    let scratch = Scratch::new();
    let service = start(&scratch, &[]);
    service.check("user:1");
    service.stop();
    let path = scratch.path().join("counters");
    let good = fs::read(&path).expect("saved at the end");
    let mut flipped = good.clone();
    flipped[good.len() / 2] ^= 1;
    for bad in [&good[..good.len() - 1], &good[..8], &flipped, b"", b"#!/bin/sh\necho not ours\n"] {
        fs::write(&path, bad).expect("the directory can be written to");
        let told = refused(&scratch);
        assert!(told.contains("counters: ") && told.contains("--discard-bad-state"), "{told}");
        assert_eq!(fs::read(&path).expect("still there"), bad, "nothing is lost");
    }
    fs::write(&path, &flipped).expect("the directory can be written to");
    let service = start(&scratch, &["--discard-bad-state"]);
    assert_eq!(service.check("user:1")["remaining"], 99);
    assert_eq!(fs::read(scratch.path().join("counters.bad")).expect("put aside"), flipped);
    service.wait_for_log("put aside");
    service.stop();
    fs::write(&path, &good).expect("the directory can be written to");
    assert_eq!(start(&scratch, &["--discard-bad-state"]).check("user:1")["remaining"], 98);
}

#[test]
fn two_services_do_not_share_a_directory() {
    let scratch = Scratch::new();
    let first = start(&scratch, &[]);
    assert!(refused(&scratch).contains("another process uses it"));
    first.stop();
    start(&scratch, &[]).stop();
}

#[test]
fn a_directory_that_cannot_be_one_is_told() {
    let scratch = Scratch::new();
    let file = scratch.write("file", "");
    let ended = run(&["serve", "--http", "127.0.0.1:0", "--data-dir", &file]);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("--data-dir: "), "{}", ended.stderr);
}

#[test]
fn a_full_disk_stops_no_check_and_harms_no_file() {
    let scratch = Scratch::new();
    let service = start(&scratch, &[]);
    service.check("user:1");
    let path = scratch.path().join("counters");
    let empty = fs::read(&path).expect("saved at the start");
    eventually("a save", || fs::read(&path).is_ok_and(|saved| saved.len() > empty.len()));
    let saved = fs::read(&path).expect("saved");
    // From now on everything that is written to the new file meets a full device.
    eventually("the full device", || {
        symlink("/dev/full", scratch.path().join("counters.new")).is_ok()
    });
    service.check("user:1");
    service.wait_for_log("counters cannot be saved");
    let metrics = service.get("/metrics").body;
    assert!(!metrics.contains("tollgate_state_save_errors_total 0"), "{metrics}");
    assert_eq!(service.check("user:1")["remaining"], 97);
    if fs::read(&path).expect("still there") != saved {
        // Then only because a later save went well: the device is no longer in its way.
        service.wait_for_log("counters are saved again");
    }
    // A save that failed leaves nothing behind, not even the way into the full device.
    service.wait_for_log("counters are saved again");
    assert!(service.stop().0.success());
}

#[test]
fn more_keys_than_fit_are_told_apart_from_a_bad_file() {
    let scratch = Scratch::new();
    let service = start(&scratch, &[]);
    for n in 0..20 {
        service.check(&format!("user:{n}"));
    }
    service.stop();
    let directory = scratch.path().to_str().expect("a path of ours is text");
    let ended =
        run(&["serve", "--http", "127.0.0.1:0", "--data-dir", directory, "--max-keys", "5"]);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("raise --max-keys"), "{}", ended.stderr);
}
