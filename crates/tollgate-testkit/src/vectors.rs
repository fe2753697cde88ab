//! Golden vectors: histories with the answers of the oracle, as JSON in `testdata/`.
//!
//! Each case is one key, initially unused. A step has a time, an operation, one of the case's limits, and
//! the expected answer. Numbers are integers of at most 2^53; times are in microseconds. Regenerate the files
//! with `cargo run -p tollgate-testkit --bin vectors`.

use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::answer::{Answer, Operation};
use crate::history::{History, HistoryLevel};
use crate::oracle::Oracle;
use crate::spec::{Kind, LimitSpec};

/// File of vectors for one algorithm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VectorFile {
    /// Instructions for the reader.
    pub about: String,
    /// Test cases.
    pub cases: Vec<Case>,
}

/// History of one key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Name of the case and of its key.
    pub name: String,
    /// Limits of the steps; they have the same name, so that the state is kept.
    pub limits: Vec<LimitSpec>,
    /// Steps in order.
    pub steps: Vec<Step>,
}

/// One operation and its expected answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Time in microseconds.
    pub at_us: u64,
    /// Index into `Case::limits`.
    pub limit: usize,
    /// Operation to apply.
    #[serde(flatten)]
    pub operation: Operation,
    /// Expected answer.
    pub expect: Answer,
}

const ABOUT: &str = "Each case is one key, initially unused. Apply the steps in order: set the clock \
to at_us, apply op with limits[limit], compare the result with expect. Times are in microseconds. The \
default burst is the count. After pause and reset, expect is the result of a peek with cost 0.";

const ABOUT_SLOTS: &str = "Each case is one key, initially unused. Apply the steps in order: set the \
clock to at_us, apply op with limits[limit], compare the result with expect. Times are in microseconds; \
window_us is the time after which a slot expires. A hold is a take whose slots carry a permit. After \
release, renew, pause and reset, expect is the result of a peek with cost 0.";

const SEEDS: u64 = 12;
const STEPS: usize = 40;

/// Generates the content of the committed file of a kind.
#[must_use]
pub fn generate(kind: Kind) -> VectorFile {
    let mut cases = Vec::new();
    for level in [HistoryLevel::Basic, HistoryLevel::Operations, HistoryLevel::Changes] {
        for seed in 0..SEEDS {
            cases.push(generate_case(1_000_000 + seed, kind, level));
        }
    }
    for seed in 0..SEEDS {
        cases.push(generate_case(1_000_000 + seed, kind, HistoryLevel::Reservations));
    }
    if kind != Kind::Concurrency {
        for seed in 0..SEEDS {
            cases.push(generate_case(1_000_000 + seed, kind, HistoryLevel::Leases));
        }
    }
    let about = if kind == Kind::Concurrency { ABOUT_SLOTS } else { ABOUT };
    VectorFile { about: about.to_owned(), cases }
}

fn generate_case(seed: u64, kind: Kind, level: HistoryLevel) -> Case {
    let mut history = History::new(seed, kind, level);
    let limits = history.limits().to_vec();
    let (mut oracle, mut steps): (_, Vec<Step>) = (Oracle::new(), Vec::new());
    for _ in 0..STEPS {
        let step = history.next(steps.last().map(|step| &step.expect));
        let expect = oracle.apply(&limits[step.limit], step.at_us, step.operation);
        steps.push(Step {
            at_us: step.at_us,
            limit: step.limit,
            operation: step.operation,
            expect,
        });
    }
    Case { name: format!("{level:?}-{seed}").to_lowercase(), limits, steps }
}

/// Path of the file of a kind.
#[must_use]
pub fn path(kind: Kind) -> PathBuf {
    let name = serde_json::to_value(kind).expect("a kind serializes");
    let name = name.as_str().expect("a kind serializes to a string").to_owned();
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/vectors").join(name + ".json")
}

/// Reads the committed files.
#[must_use]
pub fn committed() -> Vec<VectorFile> {
    let read = |kind: Kind| {
        let path = path(kind);
        let text = fs::read_to_string(&path).unwrap_or_else(|error| {
            panic!("{}: {error}; see tollgate_testkit::vectors to generate it", path.display())
        });
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    Kind::ALL.into_iter().map(read).collect()
}

/// Formats a file with one step per line, for readable diffs.
#[must_use]
pub fn render(file: &VectorFile) -> String {
    let json = |value: &dyn erased::Json| value.json();
    let mut text = format!("{{\"about\":{},\n\"cases\":[\n", json(&file.about));
    for (index, case) in file.cases.iter().enumerate() {
        let steps: Vec<String> = case.steps.iter().map(|step| json(step)).collect();
        let comma = if index + 1 < file.cases.len() { "," } else { "" };
        text += &format!(
            "{{\"name\":{},\"limits\":{},\"steps\":[\n{}\n]}}{comma}\n",
            json(&case.name),
            json(&case.limits),
            steps.join(",\n"),
        );
    }
    text + "]}\n"
}

mod erased {
    /// Object-safe JSON serialization.
    pub(super) trait Json {
        fn json(&self) -> String;
    }

    impl<T: serde::Serialize> Json for T {
        fn json(&self) -> String {
            serde_json::to_string(self).expect("serializes to JSON")
        }
    }
}
