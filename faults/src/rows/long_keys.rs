//! Long keys, facts and tenants.

use serde_json::json;
use tollgate_testkit::server::Value;

use super::common::on_both_stores;
use crate::client::Client;
use crate::endpoints::{assert_refused, send};
use crate::front_end::{CLIENT_HEADER, DOMAIN};
use crate::grpc::{GrpcReply, request};
use crate::node::Node;
use crate::stage::Stage;

/// The maximum length in bytes of UTF-8, before JSON or key escaping.
const MAX_LENGTH: usize = 1024;

/// The fields, as errors name them.
const FIELDS: [&str; 4] = ["key", "facts.client", "facts.user", "tenant"];

const POLICY: &str = "version: 1
defaults: { limit: 1000/h, per: [client, user] }
facts: { client: [{ header: x-client }, ip] }
rules:
  - { name: grpc, match: { facts: { domain: faults } }, per: [\"entry:client\"], limits: [1000/h] }
";

fn body(field: &str, text: &str) -> String {
    let query = match field {
        "key" => json!({ "key": text }),
        "facts.client" => json!({ "facts": { "client": text, "user": "u" } }),
        "facts.user" => json!({ "facts": { "client": "c", "user": text } }),
        _ => json!({ "key": "k", "tenant": text }),
    };
    query.to_string()
}

pub(super) fn key_of_1024_bytes_is_accepted_and_1025_refused(stage: &Stage) -> String {
    on_both_stores(stage, POLICY, |node| {
        let mut client = node.client();
        for field in FIELDS {
            for texts in [["x", "y"], ["é", "ü"], ["\0", "\n"], ["{", "%"]] {
                assert_longest(&mut client, field, texts);
            }
            for length in [MAX_LENGTH + 1, 2 * MAX_LENGTH, 60_000] {
                assert_refused(&mut client, body(field, &"x".repeat(length)), 400, field);
            }
            // Longer than the maximum body.
            assert_refused(&mut client, body(field, &"x".repeat(1_000_000)), 413, "-");
        }
        assert_resp(node);
        assert_grpc(node);
        assert_auth(node);
        assert!(!node.log().contains("panicked"), "{}", node.log());
    });
    format!(
        "key, facts and tenant, on five endpoints, in memory and on Redis: {MAX_LENGTH} bytes pass, {} to 60000 are \
         400 naming the field, 1 MB is 413 for the whole body; RESP: an error, 1 MB closes the connection; gRPC: counted by \
         digest, refused above 64 KiB; /auth: a longer header counts as missing, a longer path is 414",
        MAX_LENGTH + 1
    )
}

/// Asserts that the longest text of a character passes, and has another counter than one with a different end.
fn assert_longest(client: &mut Client, field: &str, [character, other]: [&str; 2]) {
    let longest = character.repeat(MAX_LENGTH / character.len());
    let prefix = character.repeat(MAX_LENGTH / character.len() - 1);
    for text in [prefix.clone() + other, longest.clone()] {
        // The counts after a take, a peek, a refund and the take of a batch.
        let counts: Vec<_> = send(client, body(field, &text).as_bytes())
            .into_iter()
            .inspect(|reply| assert_eq!(reply.status, 200, "{field}: {}", reply.body))
            .filter(|reply| reply.path != "/explain")
            .map(|reply| reply.body["count"].clone())
            .collect();
        assert_eq!(counts, [1, 1, 0, 1], "{field}: {}", text.len());
    }
    assert_refused(client, body(field, &(longest + character)), 400, field);
}

/// Two values of this length that differ in the last byte only.
fn similar(length: usize) -> [Vec<u8>; 2] {
    [b'y', b'z'].map(|last| [vec![b'x'; length - 1], vec![last]].concat())
}

/// Asserts that the longest keys over RESP have separate counters, and longer ones are errors.
fn assert_resp(node: &Node) {
    let mut resp = node.resp();
    for remaining in [999, 998] {
        for key in similar(MAX_LENGTH) {
            let client = [b"client=r", &key[1..]].concat();
            let reply = resp.call(&[b"TOLLGATE.CHECK", &client[..]]);
            assert_eq!(reply.array()[2].int(), remaining, "{reply:?}");
        }
    }
    for length in [MAX_LENGTH + 1, 2 * MAX_LENGTH, 60_000] {
        let [key, _] = similar(length);
        let client = [b"client=", &key[..]].concat();
        let reply = resp.call(&[b"TOLLGATE.CHECK", &client[..]]);
        assert!(reply.error().starts_with("ERR "), "{reply:?}");
        let reply = resp.call(&[b"CL.THROTTLE", &key[..], b"1", b"1", b"1"]);
        assert!(reply.error().starts_with("Cell error: "), "{reply:?}");
    }
    // Longer than the longest command: an error, or a closed connection.
    let reply = resp.try_call(&[b"TOLLGATE.CHECK", &vec![b'x'; 1_000_000][..]]);
    assert!(reply.is_err() || reply.as_ref().is_ok_and(Value::is_error), "{reply:?}");
    assert!(resp.try_call(&["PING"]).is_err(), "the connection is closed");
}

/// Asserts that long values over gRPC have separate counters, and a message above 64 KiB is refused.
fn assert_grpc(node: &Node) {
    let mut grpc = node.grpc();
    for length in [MAX_LENGTH, MAX_LENGTH + 1, 2 * MAX_LENGTH, 60_000] {
        for remaining in [999, 998] {
            for value in similar(length) {
                let reply = grpc.call(&request(DOMAIN, &[(b"client", &value)], None));
                let expected = GrpcReply::Decided { is_over: false, remaining };
                assert_eq!(reply.expect("the node responds"), expected, "{length} bytes");
            }
        }
    }
    let reply = grpc.call(&request(DOMAIN, &[(b"client", &[b'x'; 66_000])], None));
    // RESOURCE_EXHAUSTED.
    let is_refused = matches!(reply, Ok(GrpcReply::Status { code: 8, .. }));
    assert!(is_refused, "{reply:?}");
}

/// Asserts that a long header in an auth request is never truncated: it counts as missing, and the client is the address.
fn assert_auth(node: &Node) {
    let remaining = |headers: &[(&str, &[u8])]| {
        let reply = node.auth(&[&[("x-forwarded-uri", &b"/"[..])], headers].concat());
        assert_eq!(reply.status, 200, "{}", reply.body);
        reply.header("x-ratelimit-remaining").and_then(|text| text.parse::<u64>().ok())
    };
    for left in [Some(999), Some(998)] {
        for value in similar(MAX_LENGTH) {
            let value = [b"a", &value[1..]].concat();
            assert_eq!(remaining(&[(CLIENT_HEADER, &value)]), left);
        }
    }
    let [longer, _] = similar(MAX_LENGTH + 1);
    assert_eq!(remaining(&[]), Some(999), "the address has its own counter");
    assert_eq!(remaining(&[(CLIENT_HEADER, &longer)]), Some(998), "a longer header is missing");
    let on = |length: usize| {
        let path = format!("/{}", "p".repeat(length - 1));
        node.auth(&[("x-forwarded-uri", path.as_bytes()), (CLIENT_HEADER, b"paths")]).status
    };
    assert_eq!([on(MAX_LENGTH), on(MAX_LENGTH + 1)], [200, 414], "a path is never truncated");
}
