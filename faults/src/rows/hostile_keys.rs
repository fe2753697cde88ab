//! Names that look like parts of a key: braces, separators, escapes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use tollgate_testkit::random::Random;
use tollgate_testkit::server::{Server, slot_of};

use crate::client::Client;
use crate::endpoints::BATCH;
use crate::node::Node;
use crate::redis;
use crate::stage::Stage;

/// What means something in a key, or does once it is escaped.
const PIECES: [&str; 16] =
    ["{", "}", ":", "/", "%", "%7B", "%3A", "%25", "#", "*", "a", "b", "{a}", "\\", "\0", "ä"];

const POLICY: &str = "version: 1
defaults: { limit: 1000/h, algorithm: fixed_window, per: [client, user] }
";

/// How many subjects are asked about at once.
const AT_ONCE: usize = 1000;

/// Slots are looked at in so many groups of neighbours, as primaries have them.
const GROUPS: u16 = 16;

/// A tenant, a client and a user, any of the others than the client absent.
type Subject = [String; 3];

pub(super) fn hostile_names_never_share_a_counter(stage: &Stage) -> String {
    let subjects = subjects(stage.scale().pick(4_000, 100_000));
    let memory = stage.node().policy(POLICY).start();
    assert_apart(&memory, &subjects);
    let server = redis::start();
    let setup = stage.node().policy(POLICY).redis(&redis::url(&server));
    let node = setup.patient().start();
    assert_apart(&node, &subjects);
    let keys = keys(&server);
    assert_eq!(keys.len(), subjects.len(), "each has one key");
    for key in &keys {
        assert!(key.bytes().all(|byte| byte.is_ascii_graphic()), "{key:?} is not readable");
    }
    let (slots, farthest) = assert_spread(&keys);
    format!(
        "{} subjects, in memory and on Redis: each counts alone, twice over; their keys are in {slots} slots, \
         and no sixteenth of all slots has {:.1} % more or less than its share",
        subjects.len(),
        farthest * 100.0
    )
}

/// The neighbours that joining would confuse, and many that are drawn.
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
        let [tenant, client, user] = [(0, 3), (1, 5), (0, 3)].map(|(least, most)| {
            let pieces = random.within(least, most);
            let draw = |_| *random.pick(&PIECES).expect("there are some");
            (0..pieces).map(draw).collect::<String>()
        });
        all.insert([tenant, client, user]);
    }
    all.into_iter().collect()
}

fn question([tenant, client, user]: &Subject) -> Value {
    let mut asked = json!({ "facts": { "client": client } });
    if !user.is_empty() {
        asked["facts"]["user"] = user.as_str().into();
    }
    if !tenant.is_empty() {
        asked["tenant"] = tenant.as_str().into();
    }
    asked
}

/// Whoever comes a first time is the first, and whoever comes a second time the second.
fn assert_apart(node: &Node, subjects: &[Subject]) {
    let mut client = node.client();
    for time in 1..=2 {
        for some in subjects.chunks(AT_ONCE) {
            for (subject, reply) in some.iter().zip(ask(&mut client, some)) {
                assert_eq!(reply["count"], time, "{subject:?} shares its counter: {reply}");
                assert_eq!(reply["degraded"], false, "{reply}");
            }
        }
    }
}

fn ask(client: &mut Client, subjects: &[Subject]) -> Vec<Value> {
    let questions: Vec<Value> = subjects.iter().map(question).collect();
    let batch = json!({ "requests": questions }).to_string();
    let mut reply = client.post(BATCH, batch).expect("the node responds").json();
    let results = reply["results"].as_array_mut().map(std::mem::take).expect("a list");
    assert_eq!(results.len(), subjects.len());
    results
}

/// What counters are called on the server.
fn keys(server: &Server) -> Vec<String> {
    let reply = server.raw().call(&["KEYS", "rl:{*}:*"]);
    reply.array().iter().map(|key| key.text().to_owned()).collect()
}

/// Asserts that slots have about the same; how many have any, and how far off the worst group of them is.
fn assert_spread(keys: &[String]) -> (usize, f64) {
    let mut slots: BTreeMap<u16, u32> = BTreeMap::new();
    for key in keys {
        *slots.entry(slot_of(key)).or_default() += 1;
    }
    let mut groups = vec![0_u32; usize::from(GROUPS)];
    for (slot, count) in &slots {
        groups[usize::from(slot / (16_384 / GROUPS))] += count;
    }
    let all = f64::from(u32::try_from(keys.len()).expect("not that many"));
    let share = all / f64::from(GROUPS);
    let far = groups.iter().map(|count| (f64::from(*count) / share - 1.0).abs());
    let farthest = far.fold(0.0, f64::max);
    // Chance alone makes one of sixteen differ by three deviations now and then, and hardly ever by five.
    assert!(farthest < 5.0 / share.sqrt(), "{farthest:.2} off: {groups:?}");
    let (mean, most) = (all / 16_384.0, slots.values().max().copied().unwrap_or_default());
    assert!(
        f64::from(most) < mean + 10.0 * mean.sqrt() + 3.0,
        "{most} in one slot, {mean:.1} in all"
    );
    (slots.len(), farthest)
}
