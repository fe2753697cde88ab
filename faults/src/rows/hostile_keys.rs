//! Names that look like parts of a key: braces, separators, escapes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use tollgate_testkit::random::Random;
use tollgate_testkit::server::{Server, slot_of};

use crate::client::Client;
use crate::endpoints::BATCH;
use crate::front_end::DOMAIN;
use crate::grpc::{GrpcReply, request};
use crate::node::Node;
use crate::redis;
use crate::stage::Stage;

/// Characters with a meaning in keys, and escapes of them.
const PIECES: [&str; 16] =
    ["{", "}", ":", "/", "%", "%7B", "%3A", "%25", "#", "*", "a", "b", "{a}", "\\", "\0", "ä"];

const POLICY: &str = "version: 1
defaults: { limit: 1000/h, algorithm: fixed_window, per: [client, user] }
rules:
  - { name: grpc, match: { facts: { domain: faults } }, per: [descriptor], limits: [1000/h], algorithm: fixed_window }
";

/// The number of queries per batch.
const BATCH_SIZE: usize = 1000;

/// The number of slot ranges that are compared, like the ranges of primaries.
const GROUPS: u16 = 16;

/// Tenant, client and user. Tenant and user are absent if empty.
type Subject = [String; 3];

pub(super) fn hostile_names_never_share_a_counter(stage: &Stage) -> String {
    let subjects = subjects(stage.scale().pick(4_000, 100_000));
    let memory = stage.node().all_front_ends().policy(POLICY).start();
    assert_separate(&memory, &subjects);
    assert_separate_over_resp(&memory, &subjects);
    assert_separate_over_grpc(&memory, &subjects);
    let server = redis::start();
    let setup = stage.node().all_front_ends().policy(POLICY).redis(&redis::url(&server));
    let node = setup.patient().start();
    assert_separate(&node, &subjects);
    assert_separate_over_resp(&node, &subjects);
    let keys = keys(&server);
    assert_eq!(keys.len(), subjects.len(), "each subject has one key");
    assert_separate_over_grpc(&node, &subjects);
    for key in &keys {
        assert!(key.bytes().all(|byte| byte.is_ascii_graphic()), "{key:?} is not printable ASCII");
    }
    let (slots, max_deviation) = assert_spread(&keys);
    format!(
        "{} subjects, in memory and on Redis: each has its own counter, the same over RESP, and one over gRPC; their keys are in {slots} slots, and the key \
         count of a sixteenth of all slots deviates from the mean by at most {:.1} %",
        subjects.len(),
        max_deviation * 100.0
    )
}

/// Subjects that naive joining would confuse, and random ones.
fn subjects(count: usize) -> Vec<Subject> {
    let mut all: BTreeSet<Subject> = BTreeSet::new();
    for [tenant, client, user] in [
        ["", "a:b", "c"],
        ["", "a", "b:c"],
        ["", "a:b:c", ""],
        ["a", "b", "c"],
        ["a:b", "c", ""],
        ["a", "b:c", ""],
        ["", "{a}", "b"],
        ["", "{a}b", ""],
        ["", "a}{b", ""],
        ["", "a%3Ab", "c"],
        ["", "a%253Ab", "c"],
        ["", "a", ":"],
        ["", "a:", ""],
        ["", ":a", ""],
        ["", "a", "/default/3600s"],
    ] {
        all.insert([tenant.to_owned(), client.to_owned(), user.to_owned()]);
    }
    let mut random = Random::new(34);
    while all.len() < count {
        let [tenant, client, user] = [(0, 3), (1, 5), (0, 3)].map(|(min, max)| {
            let pieces = random.within(min, max);
            let draw = |_| *random.pick(&PIECES).expect("the list is not empty");
            (0..pieces).map(draw).collect::<String>()
        });
        all.insert([tenant, client, user]);
    }
    all.into_iter().collect()
}

fn query([tenant, client, user]: &Subject) -> Value {
    let mut query = json!({ "facts": { "client": client } });
    if !user.is_empty() {
        query["facts"]["user"] = user.as_str().into();
    }
    if !tenant.is_empty() {
        query["tenant"] = tenant.as_str().into();
    }
    query
}

/// Asserts that the first check of each subject counts 1 and the second counts 2.
fn assert_separate(node: &Node, subjects: &[Subject]) {
    let mut client = node.client();
    for time in 1..=2 {
        for batch in subjects.chunks(BATCH_SIZE) {
            for (subject, reply) in batch.iter().zip(check_batch(&mut client, batch)) {
                assert_eq!(reply["count"], time, "{subject:?} shares its counter: {reply}");
                assert_eq!(reply["degraded"], false, "{reply}");
            }
        }
    }
}

/// The maximum number of subjects that are also sent over RESP and gRPC, one at a time.
const SENT_OVER_OTHERS: usize = 1_000;

/// A part of the subjects, from all of them.
fn sample(subjects: &[Subject]) -> impl Iterator<Item = &Subject> {
    subjects.iter().step_by(subjects.len().div_ceil(SENT_OVER_OTHERS))
}

/// Asserts that RESP uses the counters of HTTP: the third check of each subject counts 3.
fn assert_separate_over_resp(node: &Node, subjects: &[Subject]) {
    let mut resp = node.resp();
    for [tenant, client, user] in sample(subjects) {
        let facts = [("client", client), ("tenant", tenant), ("user", user)];
        let facts =
            facts.into_iter().filter(|(name, value)| *name == "client" || !value.is_empty());
        let words: Vec<String> = std::iter::once("TOLLGATE.CHECK".to_owned())
            .chain(facts.map(|(name, value)| format!("{name}={value}")))
            .collect();
        let reply = resp.call(&words);
        assert_eq!(reply.array()[2].int(), 997, "{words:?} shares its counter: {reply:?}");
    }
}

/// Asserts that the first call with the entries of each subject counts 1.
fn assert_separate_over_grpc(node: &Node, subjects: &[Subject]) {
    let mut grpc = node.grpc();
    for subject in sample(subjects) {
        let [tenant, client, user] = subject.each_ref().map(String::as_bytes);
        let entries = [(&b"tenant"[..], tenant), (b"client", client), (b"user", user)];
        let reply = grpc.call(&request(DOMAIN, &entries, None)).expect("the node responds");
        let expected = GrpcReply::Decided { is_over: false, remaining: 999 };
        assert_eq!(reply, expected, "{subject:?} shares its counter");
    }
}

fn check_batch(client: &mut Client, subjects: &[Subject]) -> Vec<Value> {
    let queries: Vec<Value> = subjects.iter().map(query).collect();
    let batch = json!({ "requests": queries }).to_string();
    let mut reply = client.post(BATCH, batch).expect("the node responds").json();
    let results = reply["results"].as_array_mut().map(std::mem::take).expect("a list");
    assert_eq!(results.len(), subjects.len());
    results
}

/// The keys of all counters on the server.
fn keys(server: &Server) -> Vec<String> {
    let reply = server.raw().call(&["KEYS", "rl:{*}:*"]);
    reply.array().iter().map(|key| key.text().to_owned()).collect()
}

/// Asserts that slots have about equally many keys. Returns the number of used slots and the largest relative
/// deviation of a group.
fn assert_spread(keys: &[String]) -> (usize, f64) {
    let mut slots: BTreeMap<u16, u32> = BTreeMap::new();
    for key in keys {
        *slots.entry(slot_of(key)).or_default() += 1;
    }
    let mut groups = vec![0_u32; usize::from(GROUPS)];
    for (slot, count) in &slots {
        groups[usize::from(slot / (16_384 / GROUPS))] += count;
    }
    let all = f64::from(u32::try_from(keys.len()).expect("the count fits u32"));
    let group_mean = all / f64::from(GROUPS);
    let deviations = groups.iter().map(|count| (f64::from(*count) / group_mean - 1.0).abs());
    let max_deviation = deviations.fold(0.0, f64::max);
    // By chance, one of sixteen groups sometimes deviates by three standard deviations, and hardly ever by five.
    assert!(max_deviation < 5.0 / group_mean.sqrt(), "deviation {max_deviation:.2}: {groups:?}");
    let (mean, max) = (all / 16_384.0, slots.values().max().copied().unwrap_or_default());
    assert!(
        f64::from(max) < mean + 10.0 * mean.sqrt() + 3.0,
        "{max} keys in one slot, {mean:.1} on average"
    );
    (slots.len(), max_deviation)
}
