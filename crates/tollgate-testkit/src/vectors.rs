//! Golden vectors: histories with the answers the oracle gave, as JSON in `testdata/`.
//!
//! Each case is one key, from never seen. A step sets the time, asks something under one of the case's
//! limits, and tells what must be answered. Numbers are integers below 2^53, times are microseconds.
//! `cargo run -p tollgate-testkit --bin vectors` writes the files anew.

use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::answer::{Answer, Operation};
use crate::history::{History, HistoryLevel};
use crate::oracle::Oracle;
use crate::spec::{Kind, LimitSpec};

/// A file of vectors: one algorithm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VectorFile {
    /// How to read it, for whoever opens it first.
    pub about: String,
    /// The cases.
    pub cases: Vec<Case>,
}

/// One key's history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Names the key.
    pub name: String,
    /// The numbers in force by turns; one name, so that the state is kept.
    pub limits: Vec<LimitSpec>,
    /// What happens.
    pub steps: Vec<Step>,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The time.
    pub at_us: u64,
    /// Which of the limits is in force.
    pub limit: usize,
    /// What is asked.
    #[serde(flatten)]
    pub operation: Operation,
    /// What must be answered.
    pub expect: Answer,
}

const ABOUT: &str = "Each case is one key, never seen before. Apply the steps in order: set the clock \
to at_us, apply op under limits[limit], compare with expect. Times are microseconds. A limit without a \
burst has its count for one. Pause and reset are answered by a peek of cost 0.";

const ABOUT_SLOTS: &str = "Each case is one key, never seen before. Apply the steps in order: set the \
clock to at_us, apply op under limits[limit], compare with expect. Times are microseconds; window_us is \
the time after which a slot returns by itself. A hold is a take whose slots carry a permit. Release, renew, \
pause and reset are answered by a peek of cost 0.";

const SEEDS: u64 = 12;
const STEPS: usize = 40;

/// What the committed files must hold.
#[must_use]
pub fn generate(kind: Kind) -> VectorFile {
    let mut cases = Vec::new();
    for level in [HistoryLevel::Basic, HistoryLevel::Operations, HistoryLevel::Changes] {
        for seed in 0..SEEDS {
            cases.push(generate_case(1_000_000 + seed, kind, level));
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
        let moment = history.next(steps.last().map(|step| &step.expect));
        let expect = oracle.apply(&limits[moment.limit], moment.at_us, moment.operation);
        steps.push(Step {
            at_us: moment.at_us,
            limit: moment.limit,
            operation: moment.operation,
            expect,
        });
    }
    Case { name: format!("{level:?}-{seed}").to_lowercase(), limits, steps }
}

/// Where a kind's file lies in the repository.
#[must_use]
pub fn path(kind: Kind) -> PathBuf {
    let name = serde_json::to_value(kind).expect("a kind is a name");
    let name = name.as_str().expect("a kind is a name").to_owned();
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/vectors").join(name + ".json")
}

/// The files as committed.
#[must_use]
pub fn committed() -> Vec<VectorFile> {
    let read = |kind: Kind| {
        let path = path(kind);
        let text = fs::read_to_string(&path).unwrap_or_else(|error| {
            panic!("{}: {error}; see tollgate_testkit::vectors", path.display())
        });
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    Kind::ALL.into_iter().map(read).collect()
}

/// A file's text: a step a line, so that differences can be read.
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
    /// Anything that can be written as JSON.
    pub(super) trait Json {
        fn json(&self) -> String;
    }

    impl<T: serde::Serialize> Json for T {
        fn json(&self) -> String {
            serde_json::to_string(self).expect("plain numbers and names are JSON")
        }
    }
}
