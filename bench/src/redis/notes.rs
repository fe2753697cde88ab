//! What the document says of each question.

use super::cluster_report::PRIMARIES;
use super::plain::CONNECTIONS;
use super::scale::Scale;
use super::way::Way;
use crate::scale::spoken;

pub(super) fn many(scale: &Scale) -> String {
    let [few, many] = scale.callers;
    format!(
        "{few} and {many} callers, tasks of one process that ask again as soon as they are answered; \
         {} keys, drawn at random, all of which have asked before. Token bucket, every request allowed; \
         any other answer would have ended the run. Before that, everyone was asked under a limit that \
         was soon used up, and had to admit exactly that many. redis-server has one core, without \
         persistence; the callers have the other, on which they also choose keys and keep time.\n\n\
         - *{}*: `RedisStore` with its defaults, but no refusals remembered and more patience.\n\
         - *{}*: the client library, one shared connection without Nagle's delay, one call a decision \
         of [a script](../bench/src/redis/bucket.lua) that keeps one number with `GET` and `SET … PX` \
         by the server's clock.\n\
         - *{}*: the same with {CONNECTIONS} connections, each with one call on its way.\n\
         - *{}*: `CL.THROTTLE` of the native module over one shared connection, in the version that \
         the registry has.",
        spoken(scale.keys),
        Way::Tollgate.label(),
        Way::Multiplexed.label(),
        Way::Pool.label(),
        Way::Cell.label(),
    )
}

pub(super) fn hot() -> String {
    "As above, but everyone asks about the same key, which is another in every run. What is left to it at \
     the end had to be what was admitted less."
        .to_owned()
}

pub(super) fn floors(scale: &Scale) -> String {
    let [requests, more] = scale.requests;
    format!(
        "`redis-benchmark`, {} requests, and {} through pipelines; {} keys at random. It does not look \
         at answers, and runs on the core that callers have above.",
        spoken(requests),
        spoken(requests * more),
        spoken(scale.keys),
    )
}

pub(super) fn idle() -> String {
    "One caller alone, many keys. Nobody to wait for: a decision is one round trip and the script."
        .to_owned()
}

pub(super) fn refused(scale: &Scale) -> String {
    let [callers, _] = scale.callers;
    format!(
        "{callers} callers ask about one key that may ask once in ten minutes: exactly one request passed \
         in each run. Commands are those of the whole run, scripts' own included. Where Redis is not asked \
         the callers' own bookkeeping is most of the time.",
    )
}

pub(super) fn algorithms(scale: &Scale) -> String {
    let [callers, _] = scale.callers;
    format!(
        "{callers} callers, {} keys at random, every request allowed. Two limits are two token buckets of \
         the same key, decided together.",
        spoken(scale.keys),
    )
}

pub(super) fn spread(scale: &Scale) -> String {
    let [few, many] = scale.callers;
    format!(
        "{few} and {many} callers of `RedisStore`, {} keys drawn at random, all of which have asked before and \
         every request allowed, as for one server above. *One server* is no cluster; *1 primary* is a cluster \
         that has all slots on one; *{PRIMARIES} primaries* share them equally. Before that, each had to admit \
         exactly what a limit that was soon used up does. Commands are those of scripts too.\n\n\
         All servers have the same core, and the callers the other: {PRIMARIES} primaries have no more processor \
         time here than one, so these figures say nothing of what they gain where each has a core. What they do \
         say is what a cluster costs: a call carries the plans of one slot only, and with keys all over the \
         slots hardly any two plans share one, which the commands a decision show. Whatever else runs on the \
         servers' core favours {PRIMARIES} processes over one: only a run on a quiet machine compares them.",
        spoken(scale.keys),
    )
}

pub(super) fn across(scale: &Scale) -> String {
    format!(
        "On the {PRIMARIES} primaries, plans of two token buckets each, every request allowed; {} keys at random. \
         *One slot*: both are of one subject, decided in one call. *Two slots*: they are of two subjects; one is \
         taken from, then the other, by one call each, one after the other.",
        spoken(scale.keys),
    )
}

pub(super) fn memory(scale: &Scale) -> String {
    format!(
        "Keys of the same length, each with an expiry, in an empty Redis; weighed once, since nothing of it \
         is by chance. `used_memory` grows also by Redis's own tables of keys and of expiries. Logs are \
         {} keys, by `MEMORY USAGE` of all entries; a sorted set has the time as its score and as its \
         member.",
        spoken(scale.logs),
    )
}
