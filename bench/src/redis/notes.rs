//! Descriptions of the measurements in the reports.

use super::cluster_report::PRIMARIES;
use super::method::Method;
use super::peer_callers::CONNECTIONS;
use super::scale::Scale;
use crate::scale::short_count;

pub(super) fn many(scale: &Scale) -> String {
    let [few, many] = scale.callers;
    format!(
        "{few} and {many} callers: tasks of one process, each of which sends its next request as soon \
         as it has the reply; {} random keys, all of which were used before. Token bucket, every \
         request is allowed; any other reply aborts the run. A preceding check verifies that every \
         method admits exactly the burst of a small limit. redis-server runs on one core, without \
         persistence; the callers run on the other one, which also chooses keys and records times.\n\n\
         - *{}*: `RedisStore` with its defaults, but without the refusal cache and with a longer timeout.\n\
         - *{}*: the Redis client library with one shared connection (`TCP_NODELAY`) and one call per \
         decision of [a script](../bench/src/redis/bucket.lua) that stores one number with `GET` and \
         `SET … PX` and uses the server's clock.\n\
         - *{}*: the same script with {CONNECTIONS} connections, each with one call in flight.\n\
         - *{}*: `CL.THROTTLE` of the native module over one shared connection; the newest version in \
         the registry.",
        short_count(scale.keys),
        Method::Tollgate.label(),
        Method::Multiplexed.label(),
        Method::Pool.label(),
        Method::Cell.label(),
    )
}

pub(super) fn hot() -> String {
    "As above, but all callers use the same key, a new one in every run. Each run verifies the \
     remaining quota at its end."
        .to_owned()
}

pub(super) fn redis_benchmark(scale: &Scale) -> String {
    let [requests, more] = scale.requests;
    format!(
        "`redis-benchmark`, {} requests, or {} when pipelined; {} random keys. It does not parse \
         replies. It runs on the core of the callers.",
        short_count(requests),
        short_count(requests * more),
        short_count(scale.keys),
    )
}

pub(super) fn single_caller() -> String {
    "A single caller, many keys. There is no queueing: a decision takes one round trip and the script."
        .to_owned()
}

pub(super) fn refusals(scale: &Scale) -> String {
    let [callers, _] = scale.callers;
    format!(
        "{callers} callers use one key with a limit of one request per ten minutes: exactly one \
         request was allowed in each run. Commands are those of the whole run, including those of \
         scripts. With the refusal cache, most of the time is spent in the load generator itself.",
    )
}

pub(super) fn leases(scale: &Scale) -> String {
    let [callers, _] = scale.callers;
    format!(
        "{callers} callers; every request is allowed. *Hot key*: all callers use one key, a new one in every run; \
         with leases its token bucket refills faster than the callers take, without them nothing refills. *Cold keys*: {} \
         random keys, which are used too rarely to be leased. Calls are those of the whole run. With leases, much of the time \
         is spent in the load generator itself. Cold keys cause the same calls with and without leases, so their ratios are \
         around 1: the target is missed if a ratio is above 1 in every round.",
        short_count(scale.keys),
    )
}

pub(super) fn algorithms(scale: &Scale) -> String {
    let [callers, _] = scale.callers;
    format!(
        "{callers} callers, {} random keys, every request is allowed. *Two limits* and *five \
         limits* are token buckets of the same key, decided together.",
        short_count(scale.keys),
    )
}

pub(super) fn cluster_overhead(scale: &Scale) -> String {
    let [few, many] = scale.callers;
    format!(
        "{few} and {many} callers of `RedisStore`, {} random keys, all of which were used before; \
         every request is allowed. *One server* is not a cluster; *1 primary* is a cluster with all \
         slots on one node; *{PRIMARIES} primaries* share the slots equally. A preceding check \
         verifies that each deployment admits exactly the burst of a small limit. Commands include \
         those of scripts: one server reads all keys of a call with one MGET, and a node of a cluster \
         reads each with a GET, because MGET accepts one slot only.\n\n\
         All servers share one core and the callers use the other: {PRIMARIES} primaries have no more \
         CPU time here than one server, so these figures do not show the gain of a cluster whose nodes \
         have separate cores. They show the cost of a cluster: a call contains the plans of one node, \
         so {PRIMARIES} primaries need more and smaller calls. Other processes on the servers' core favour {PRIMARIES} processes over one: compare \
         figures only from an otherwise idle machine.",
        short_count(scale.keys),
    )
}

pub(super) fn cross_slot(scale: &Scale) -> String {
    format!(
        "On the {PRIMARIES} primaries; each plan has two token buckets, every request is allowed; {} \
         random keys. *One slot*: both buckets have the same subject and are decided in one call. *Two \
         slots*: the buckets have two subjects. If one node has both slots, one call decides them; else they \
         are taken one after the other, with one call each.",
        short_count(scale.keys),
    )
}

pub(super) fn memory(scale: &Scale) -> String {
    format!(
        "Keys of equal length, each with an expiry, in an empty Redis; measured once, since the result \
         is deterministic. `used_memory` includes Redis's hash tables of keys and of expiries. Logs: \
         {} keys, bytes per key by `MEMORY USAGE` of all entries; the sorted set uses the time as \
         score and as member.",
        short_count(scale.logs),
    )
}
