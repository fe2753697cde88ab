//! The comparisons of the chart, and where their figures are.

use super::figures::Place;
use crate::Outcome;

/// One comparison.
#[derive(Debug)]
pub(super) struct Row {
    /// The surface, shown above the first of its rows.
    pub(super) surface: &'static str,
    /// The workload.
    pub(super) workload: &'static str,
    /// The peer.
    pub(super) peer: &'static str,
    figure: Figure,
}

/// The figure of a comparison.
#[derive(Debug)]
enum Figure {
    /// tollgate's time, as a multiple of the peer's.
    Time(Place),
    /// tollgate's rate, as a multiple of the peer's.
    Rate(Place),
    /// Times in a column for tollgate and in one for each variant of the peer, of which the fastest counts.
    Times(Place, &'static [&'static str]),
}

const HOT: &str = "1 key, hot, 1 thread";
const MANY: &str = "100 k keys, in cache, 1 thread";
const MOST: &str = "1 M keys, in cache, 1 thread";
const THROTTLECRAB: &[&str] =
    &["throttlecrab adaptive", "throttlecrab periodic", "throttlecrab probabilistic"];

/// All rows, in the order of the chart.
pub(super) const ROWS: [Row; 17] = [
    library("one hot key", HOT),
    library("100 k keys", MANY),
    library("1 M keys", MOST),
    library_throttlecrab("one hot key", HOT),
    library_throttlecrab("100 k keys", MANY),
    library_throttlecrab("1 M keys", MOST),
    tower("10 k clients, headers", "tollgate, one limit, headers"),
    tower("10 k clients, no headers", "tollgate, one limit, no headers"),
    http("POST /check", "throttlecrab-server", "× throttlecrab-server"),
    resp("single commands", "throttlecrab-server", "× throttlecrab-server, P=1"),
    resp("pipelines of 16", "Redis INCR", "× Redis `INCR`, P=16"),
    resp("pipelines of 64", "Redis INCR", "× Redis `INCR`, P=64"),
    grpc("1 stream", "throttlecrab-server", "× throttlecrab-server, 1 stream"),
    grpc("1 stream", "limitador", "× limitador, 1 stream"),
    redis(
        "64 callers",
        "EVALSHA",
        "64 callers, decisions/s × EVALSHA per decision, one connection",
    ),
    redis(
        "256 callers",
        "EVALSHA",
        "256 callers, decisions/s × EVALSHA per decision, one connection",
    ),
    redis("256 callers", "redis-cell", "256 callers, decisions/s × redis-cell, one connection"),
];

const fn library(workload: &'static str, row: &'static str) -> Row {
    let place = decisions("× governor", row);
    Row { surface: "Library", workload, peer: "governor", figure: Figure::Time(place) }
}

const fn library_throttlecrab(workload: &'static str, row: &'static str) -> Row {
    let figure = Figure::Times(decisions("ns per decision", row), THROTTLECRAB);
    Row { surface: "Library", workload, peer: "throttlecrab", figure }
}

const fn decisions(table: &'static str, row: &'static str) -> Place {
    Place { section: "core", heading: "Decisions", table, row, column: "tollgate" }
}

const fn tower(workload: &'static str, row: &'static str) -> Row {
    let (heading, column) = ("Many clients", "overhead × peer");
    let place = Place { section: "tower", heading, table: "layer", row, column };
    Row { surface: "Tower layer", workload, peer: "tower_governor", figure: Figure::Time(place) }
}

const fn http(workload: &'static str, peer: &'static str, row: &'static str) -> Row {
    let (heading, column) = ("Checks over HTTP", "requests/s");
    let place = Place { section: "http", heading, table: "tollgate", row, column };
    Row { surface: "HTTP", workload, peer, figure: Figure::Rate(place) }
}

const fn resp(workload: &'static str, peer: &'static str, row: &'static str) -> Row {
    let (heading, column) = ("Checks over RESP", "requests/s");
    let place = Place { section: "resp", heading, table: "tollgate", row, column };
    Row { surface: "RESP", workload, peer, figure: Figure::Rate(place) }
}

const fn grpc(workload: &'static str, peer: &'static str, row: &'static str) -> Row {
    let (heading, column) = ("Checks over gRPC", "requests/s");
    let place = Place { section: "grpc", heading, table: "tollgate", row, column };
    Row { surface: "gRPC", workload, peer, figure: Figure::Rate(place) }
}

const fn redis(workload: &'static str, peer: &'static str, row: &'static str) -> Row {
    let (heading, column) = ("Many callers, many keys", "ratio");
    let place = Place { section: "redis", heading, table: "tollgate", row, column };
    Row { surface: "Redis store", workload, peer, figure: Figure::Rate(place) }
}

impl Row {
    /// Returns the speed of the peer as a multiple of tollgate's: below 1 if the peer is slower.
    pub(super) fn peer_speed(&self, benchmarks: &str) -> Outcome<f64> {
        match &self.figure {
            Figure::Time(place) => place.figure(benchmarks),
            Figure::Rate(place) => Ok(1.0 / place.figure(benchmarks)?),
            Figure::Times(place, variants) => {
                let of = |column: &'static str| Place { column, ..*place }.figure(benchmarks);
                let times = variants.iter().map(|variant| of(variant));
                let times: Vec<f64> = times.collect::<Outcome<_>>()?;
                Ok(place.figure(benchmarks)? / times.into_iter().fold(f64::INFINITY, f64::min))
            }
        }
    }
}
