//! Decisions that arrive together share one call to Redis: descriptors of a gRPC request, a RESP pipeline, an HTTP batch.

use std::time::Instant;

use serde_json::json;
use tollgate_testkit::server::{Flavor, Server};

use crate::grpc_client::{GRPC, GrpcClient, descriptor, grpc_address, request};
use crate::redis::LONG_TIMEOUT;
use crate::resp_client::{RespClient, encode, readable, resp_address};
use crate::service::{Scratch, Service};

/// Windows outlast any test.
const POLICY: &str = "
version: 1
rules:
  - { name: by-descriptor, match: { facts: { domain: edge } }, per: [descriptor], limits: [10000/d] }
  - { name: by-client, per: [client], limits: [10000/d] }
";

/// Number of requests whose calls are counted.
const REQUESTS: u64 = 20;

/// Returns the number of script calls that the server has received.
fn script_calls(server: &Server) -> u64 {
    let stats = server.raw().call(&["INFO", "commandstats"]).text().to_owned();
    let is_script = |line: &&str| {
        let names = ["evalsha", "eval", "fcall"];
        names.iter().any(|name| line.starts_with(&format!("cmdstat_{name}:")))
    };
    let calls = |line: &str| line.split_once("calls=")?.1.split(',').next()?.parse::<u64>().ok();
    stats.lines().filter(is_script).filter_map(calls).sum()
}

/// Sends requests one after the other and asserts that each is one call.
fn assert_one_call_each(server: &Server, what: &str, mut send: impl FnMut()) {
    // The first one loads the scripts.
    send();
    let (before, start) = (script_calls(server), Instant::now());
    (0..REQUESTS).for_each(|_| send());
    // Node reports are script calls too, one each second.
    let reports = 2 * (start.elapsed().as_secs() + 1);
    let calls = script_calls(server) - before;
    println!("{calls} calls for {REQUESTS} requests of {what}");
    assert!((REQUESTS..=REQUESTS + reports).contains(&calls), "{calls} calls: {what}");
}

#[test]
fn decisions_of_one_request_share_a_call() {
    let (scratch, server) = (Scratch::new(), Server::start(Flavor::Redis));
    let (policy, url) = (scratch.write("policy.yaml", POLICY), server.url());
    let args = ["--redis", &url, "--policy", &policy, "--resp", "127.0.0.1:0"];
    let service = Service::start(&[&args[..], &GRPC, &LONG_TIMEOUT].concat());
    let keys: Vec<String> = (0..100).map(|number| format!("k{number}")).collect();

    let grpc = GrpcClient::connect(grpc_address(&service));
    for count in [2, 50, 100] {
        assert_one_call_each(&server, &format!("{count} descriptors"), || {
            let descriptors = keys.iter().take(count).map(|key| descriptor(&[("user", key)]));
            let response = grpc.call(request("edge", descriptors)).expect("a response");
            assert_eq!(response.statuses.len(), count);
        });
    }
    // Short enough for one read.
    let mut resp = RespClient::connect(resp_address(&service, "resp"));
    for count in [2, 40] {
        let command = |key: &String| encode(&["TOLLGATE.CHECK", key]);
        let pipeline: Vec<u8> = keys.iter().take(count).flat_map(command).collect();
        assert_one_call_each(&server, &format!("{count} commands"), || {
            resp.send(&pipeline).unwrap();
            for _ in 0..count {
                assert!(readable(&resp.reply().unwrap()).starts_with("[1 "));
            }
        });
    }
    // Longer batches are sent in chunks.
    let mut http = service.client();
    for count in [2, 64] {
        let requests: Vec<_> = keys.iter().take(count).map(|key| json!({ "key": key })).collect();
        let body = json!({ "requests": requests }).to_string();
        assert_one_call_each(&server, &format!("{count} batch items"), || {
            let reply = http.post("/check/batch", &body);
            assert_eq!(reply.json()["results"].as_array().map(Vec::len), Some(count));
        });
    }
}
