//! Random histories through the real binary, on every field, against the oracle.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::{Value, json};
use tollgate_testkit::answer::{Answer, Operation, VerdictKind};
use tollgate_testkit::history::{History, HistoryLevel, HistoryStep};
use tollgate_testkit::oracle::Oracle;
use tollgate_testkit::random::Random;
use tollgate_testkit::spec::{Kind, LimitSpec};

use crate::service::run_with_input;

/// Of each kind and level; and moments in each.
const HISTORIES: usize = 60;
const MOMENTS: usize = 40;

/// The largest number in a body.
const MAX_WHOLE: u64 = (1 << 53) - 1;

/// One line, and what must be answered.
struct Step {
    line: Value,
    right: Right,
    told: String,
}

enum Right {
    Figures { spec: LimitSpec, answer: Answer, permit: Option<String> },
    Released(bool),
    Renewed { until_us: Option<u64> },
}

/// All histories as one script: a process numbers its permits from its first line to its last.
#[derive(Default)]
struct Script {
    steps: Vec<Step>,
    permits: u64,
}

/// One history of one key.
struct Tale {
    name: String,
    spec: LimitSpec,
    oracle: Oracle,
    /// Until when each permit holds its slots.
    held: BTreeMap<u64, u64>,
    /// Which of our permits plays the part of one in the history.
    parts: BTreeMap<u64, u64>,
}

impl Tale {
    fn question(&self, at_us: u64, op: &str, cost: u64) -> Value {
        let limits = json!([limit_of(&self.spec)]);
        json!({"at_us": at_us, "op": op, "key": self.name, "cost": cost, "limits": limits})
    }

    fn is_slots(&self) -> bool {
        self.spec.algorithm == Kind::Concurrency
    }
}

/// A limit as a body has it.
fn limit_of(spec: &LimitSpec) -> Value {
    let mut limit = match spec.algorithm {
        Kind::TokenBucket => json!({"algorithm": "token_bucket"}),
        Kind::SlidingWindow => json!({"algorithm": "sliding_window"}),
        Kind::SlidingCounter => json!({"algorithm": "sliding_counter"}),
        Kind::FixedWindow | Kind::CalendarWindow => json!({"algorithm": "fixed_window"}),
        Kind::Concurrency => json!({"algorithm": "concurrency"}),
    };
    limit["name"] = json!("subject");
    limit["limit"] = json!(spec.count);
    match (spec.algorithm, spec.align) {
        (_, Some(align)) => {
            limit["align"] = json!(align);
            limit["tz"] = json!(spec.zone);
        }
        (Kind::Concurrency, None) => limit["ttl_ms"] = json!(spec.window_us / 1000),
        (_, None) => limit["window_ms"] = json!(spec.window_us / 1000),
    }
    if let Some(burst) = spec.burst {
        limit["burst"] = json!(burst);
    }
    limit
}

/// Whether a body can say it: windows there are whole milliseconds.
fn can_be_said(spec: &LimitSpec) -> bool {
    spec.window_us.is_multiple_of(1000) && spec.capacity() < MAX_WHOLE
}

impl Script {
    fn push(&mut self, tale: &Tale, line: Value, right: Right) {
        let told = format!("{} {}", tale.name, line);
        self.steps.push(Step { line, right, told });
    }

    /// Adds what happens at one moment; what the oracle says of it.
    fn add(&mut self, tale: &mut Tale, moment: &HistoryStep) -> Option<Answer> {
        let at = moment.at_us;
        match moment.operation {
            Operation::Take { cost } => Some(self.take(tale, at, cost, None)),
            Operation::Hold { cost, permit } => Some(self.take(tale, at, cost, Some(permit))),
            Operation::Peek { cost } => {
                Some(self.figures(tale, at, "peek", moment.operation, cost))
            }
            Operation::Refund { cost } => {
                Some(self.figures(tale, at, "refund", moment.operation, cost))
            }
            Operation::Reset => {
                tale.held.clear();
                Some(self.figures(tale, at, "reset", Operation::Reset, 0))
            }
            Operation::Release { permit } => self.of_permit(tale, at, "release", permit),
            Operation::Renew { permit } => self.of_permit(tale, at, "renew", permit),
            Operation::Debit { .. } | Operation::Pause { .. } => None,
        }
    }

    fn take(&mut self, tale: &mut Tale, at: u64, cost: u64, part: Option<u64>) -> Answer {
        let number = self.permits + 1;
        let ask = if tale.is_slots() {
            Operation::Hold { cost, permit: number }
        } else {
            Operation::Take { cost }
        };
        let answer = tale.oracle.apply(&tale.spec, at, ask);
        let is_given = tale.is_slots() && cost > 0 && answer.is_allowed();
        if is_given {
            self.permits = number;
            tale.held.insert(number, at + tale.spec.window_us);
            tale.parts.extend(part.map(|part| (part, number)));
        }
        let permit = is_given.then(|| format!("l{number}"));
        let right = Right::Figures { spec: tale.spec.clone(), answer, permit };
        self.push(tale, tale.question(at, "check", cost), right);
        answer
    }

    fn figures(&mut self, tale: &mut Tale, at: u64, op: &str, ask: Operation, cost: u64) -> Answer {
        let answer = tale.oracle.apply(&tale.spec, at, ask);
        let right = Right::Figures { spec: tale.spec.clone(), answer, permit: None };
        self.push(tale, tale.question(at, op, cost), right);
        answer
    }

    fn of_permit(&mut self, tale: &mut Tale, at: u64, op: &str, part: u64) -> Option<Answer> {
        let number = *tale.parts.get(&part)?;
        let is_held = tale.held.get(&number).is_some_and(|until| *until > at);
        let (ask, right) = if op == "release" {
            tale.held.remove(&number);
            (Operation::Release { permit: number }, Right::Released(is_held))
        } else {
            let until = at + tale.spec.window_us;
            if is_held {
                tale.held.insert(number, until);
            }
            (
                Operation::Renew { permit: number },
                Right::Renewed { until_us: is_held.then_some(until) },
            )
        };
        tale.oracle.apply(&tale.spec, at, ask);
        let line = json!({"at_us": at, "op": op, "permit": format!("l{number}")});
        self.push(tale, line, right);
        Some(self.figures(tale, at, "peek", Operation::Peek { cost: 0 }, 0))
    }

    /// Runs the script through one process, and compares every answer.
    fn compare(&self) {
        let mut input = String::new();
        for step in &self.steps {
            writeln!(input, "{}", step.line).expect("a string takes all");
        }
        let ended = run_with_input(&["simulate"], &input);
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
        assert_eq!(ended.stdout.lines().count(), self.steps.len());
        for (number, (step, line)) in self.steps.iter().zip(ended.stdout.lines()).enumerate() {
            let seen: Value = serde_json::from_str(line).expect("an answer is JSON");
            let told = || {
                let name = step.told.split(' ').next().unwrap_or_default();
                let so_far = self.steps.iter().take(number + 1);
                let of_tale = so_far.filter(|step| step.told.starts_with(name));
                let lines: Vec<&str> = of_tale.map(|step| step.told.as_str()).collect();
                format!("{}\nanswered {seen}", lines.join("\n"))
            };
            step.right.check(&seen, &told);
        }
    }
}

impl Right {
    fn check(&self, seen: &Value, told: &dyn Fn() -> String) {
        match self {
            Self::Released(released) => {
                assert_eq!(*seen, json!({"released": released}), "{}", told());
            }
            Self::Renewed { until_us } => {
                let expires = seen["expires_at"].as_str().map(micros);
                assert_eq!(
                    (seen["renewed"] == true, expires),
                    (until_us.is_some(), *until_us),
                    "{}",
                    told()
                );
            }
            Self::Figures { spec, answer, permit } => {
                let limit = &seen["limits"][0];
                let figures = json!({
                    "verdict": name_of(answer.verdict),
                    "allowed": answer.is_allowed(),
                    "limit": spec.count,
                    "count": answer.count,
                    "remaining": answer.remaining,
                    "retry_after_ms": answer.retry_after_us.map(millis),
                    "reset_after_ms": millis(answer.reset_after_us),
                });
                for (field, right) in figures.as_object().expect("an object") {
                    assert_eq!(&seen[field], right, "{field} of {}", told());
                    if field != "verdict" {
                        assert_eq!(&limit[field], right, "limits[0].{field} of {}", told());
                    }
                }
                assert_eq!(seen["permit"].as_str(), permit.as_deref(), "permit of {}", told());
                let is_bucket = spec.algorithm == Kind::TokenBucket;
                let burst = is_bucket.then(|| spec.capacity());
                assert_eq!(seen["burst"].as_u64(), burst, "burst of {}", told());
            }
        }
    }
}

fn name_of(verdict: VerdictKind) -> &'static str {
    match verdict {
        VerdictKind::Allow => "allow",
        VerdictKind::Deny => "deny",
        VerdictKind::Never => "never",
    }
}

fn millis(micros: u64) -> u64 {
    micros.div_ceil(1000)
}

fn micros(moment: &str) -> u64 {
    let moment: Timestamp = moment.parse().expect("RFC 3339");
    u64::try_from(moment.as_microsecond()).expect("after the epoch")
}

fn histories(kind: Kind, level: HistoryLevel) -> Script {
    let mut script = Script::default();
    let sayable = (0..).filter(|seed| can_be_said(&History::new(*seed, kind, level).limits()[0]));
    for seed in sayable.take(HISTORIES) {
        let mut history = History::new(seed, kind, level);
        let mut tale = Tale {
            name: format!("{kind:?}/{level:?}/{seed}"),
            spec: history.limits()[0].clone(),
            oracle: Oracle::new(),
            held: BTreeMap::new(),
            parts: BTreeMap::new(),
        };
        let mut last = None;
        for _ in 0..MOMENTS {
            let moment = history.next(last.as_ref());
            last = script.add(&mut tale, &moment).or(last);
        }
    }
    script
}

fn compare_all(kind: Kind) {
    for level in [HistoryLevel::Basic, HistoryLevel::Operations] {
        histories(kind, level).compare();
    }
}

#[test]
fn token_buckets_match_the_oracle() {
    compare_all(Kind::TokenBucket);
}

#[test]
fn sliding_windows_match_the_oracle() {
    compare_all(Kind::SlidingWindow);
}

#[test]
fn sliding_counters_match_the_oracle() {
    compare_all(Kind::SlidingCounter);
}

#[test]
fn fixed_windows_match_the_oracle() {
    compare_all(Kind::FixedWindow);
}

#[test]
fn calendar_windows_match_the_oracle() {
    compare_all(Kind::CalendarWindow);
}

#[test]
fn slots_match_the_oracle() {
    compare_all(Kind::Concurrency);
}

/// Windows that a history seldom has: any number of milliseconds.
#[test]
fn windows_of_any_length_match_the_oracle() {
    let mut script = Script::default();
    let mut random = Random::new(11);
    let plain = [
        Kind::TokenBucket,
        Kind::SlidingWindow,
        Kind::SlidingCounter,
        Kind::FixedWindow,
        Kind::Concurrency,
    ];
    for number in 0..120 {
        let kind = *random.pick(&plain).expect("there are some");
        let spec = LimitSpec::new(kind, random.magnitude(50), random.magnitude(100_000_000) * 1000);
        if spec.build().is_err() {
            continue;
        }
        let (name, mut now) = (format!("any/{kind:?}/{number}"), random.magnitude(1 << 50));
        let mut tale = Tale {
            name,
            spec,
            oracle: Oracle::new(),
            held: BTreeMap::new(),
            parts: BTreeMap::new(),
        };
        let mut last: Option<Answer> = None;
        for _ in 0..MOMENTS {
            let retry = last.and_then(|answer| answer.retry_after_us).unwrap_or(1);
            let reset = last.map_or(1, |answer| answer.reset_after_us);
            now += match random.within(0, 6) {
                0 | 1 => 0,
                2 => retry,
                3 => retry.saturating_sub(1),
                4 => reset.saturating_sub(1),
                5 => reset,
                _ => random.magnitude(tale.spec.window_us),
            };
            let cost = random.within(0, tale.spec.count + 1);
            let ask = match random.within(0, 9) {
                0 => Operation::Peek { cost },
                1 => Operation::Refund { cost },
                _ => Operation::Take { cost },
            };
            last = script
                .add(&mut tale, &HistoryStep { at_us: now, limit: 0, operation: ask })
                .or(last);
        }
    }
    script.compare();
}
