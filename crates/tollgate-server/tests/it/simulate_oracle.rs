//! Random histories through the real binary; every field is compared with the oracle.

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

/// Number of histories per kind and level.
const HISTORIES: usize = 60;
/// Number of moments per history.
const MOMENTS: usize = 40;

/// Largest integer that a body may contain.
const MAX_WHOLE: u64 = (1 << 53) - 1;

/// One input line and the expected response.
struct Step {
    line: Value,
    expected: Expected,
    /// Name of the history and the line, for failure messages.
    description: String,
}

enum Expected {
    Figures { spec: LimitSpec, answer: Answer, permit: Option<String> },
    Released(bool),
    Renewed { expires_us: Option<u64> },
}

/// All histories as one script, because a process numbers its permits across all lines.
#[derive(Default)]
struct Script {
    steps: Vec<Step>,
    permits: u64,
}

/// One history of one key.
struct KeyHistory {
    name: String,
    spec: LimitSpec,
    oracle: Oracle,
    /// Expiry of the slots of each permit, in microseconds.
    held: BTreeMap<u64, u64>,
    /// Number of our permit for each permit in the history.
    permits: BTreeMap<u64, u64>,
}

impl KeyHistory {
    fn query_line(&self, at_us: u64, op: &str, cost: u64) -> Value {
        let limits = json!([limit_body(&self.spec)]);
        json!({"at_us": at_us, "op": op, "key": self.name, "cost": cost, "limits": limits})
    }

    fn is_concurrency(&self) -> bool {
        self.spec.algorithm == Kind::Concurrency
    }
}

/// Returns a limit as JSON body.
fn limit_body(spec: &LimitSpec) -> Value {
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

/// Returns whether a body can express the limit: windows are whole milliseconds.
fn is_expressible(spec: &LimitSpec) -> bool {
    spec.window_us.is_multiple_of(1000) && spec.capacity() < MAX_WHOLE
}

impl Script {
    fn push(&mut self, history: &KeyHistory, line: Value, expected: Expected) {
        let description = format!("{} {}", history.name, line);
        self.steps.push(Step { line, expected, description });
    }

    /// Adds the operation of one moment and returns the answer of the oracle.
    fn add(&mut self, history: &mut KeyHistory, moment: &HistoryStep) -> Option<Answer> {
        let at = moment.at_us;
        match moment.operation {
            Operation::Take { cost } => Some(self.take(history, at, cost, None)),
            Operation::Hold { cost, permit } => Some(self.take(history, at, cost, Some(permit))),
            Operation::Peek { cost } => {
                Some(self.figures(history, at, "peek", moment.operation, cost))
            }
            Operation::Refund { cost } => {
                Some(self.figures(history, at, "refund", moment.operation, cost))
            }
            Operation::Reset => {
                history.held.clear();
                Some(self.figures(history, at, "reset", Operation::Reset, 0))
            }
            Operation::Release { permit } => self.permit_operation(history, at, "release", permit),
            Operation::Renew { permit } => self.permit_operation(history, at, "renew", permit),
            Operation::Debit { .. }
            | Operation::Pause { .. }
            | Operation::Lease { .. }
            | Operation::Reserve { .. }
            | Operation::Settle { .. }
            | Operation::Extend { .. } => None,
        }
    }

    fn take(
        &mut self,
        history: &mut KeyHistory,
        at: u64,
        cost: u64,
        history_permit: Option<u64>,
    ) -> Answer {
        let number = self.permits + 1;
        let operation = if history.is_concurrency() {
            Operation::Hold { cost, permit: number }
        } else {
            Operation::Take { cost }
        };
        let answer = history.oracle.apply(&history.spec, at, operation);
        let has_permit = history.is_concurrency() && cost > 0 && answer.is_allowed();
        if has_permit {
            self.permits = number;
            history.held.insert(number, at + history.spec.window_us);
            history.permits.extend(history_permit.map(|permit| (permit, number)));
        }
        let permit = has_permit.then(|| format!("l{number}"));
        let expected = Expected::Figures { spec: history.spec.clone(), answer, permit };
        self.push(history, history.query_line(at, "check", cost), expected);
        answer
    }

    fn figures(
        &mut self,
        history: &mut KeyHistory,
        at: u64,
        op: &str,
        operation: Operation,
        cost: u64,
    ) -> Answer {
        let answer = history.oracle.apply(&history.spec, at, operation);
        let expected = Expected::Figures { spec: history.spec.clone(), answer, permit: None };
        self.push(history, history.query_line(at, op, cost), expected);
        answer
    }

    fn permit_operation(
        &mut self,
        history: &mut KeyHistory,
        at: u64,
        op: &str,
        history_permit: u64,
    ) -> Option<Answer> {
        let number = *history.permits.get(&history_permit)?;
        let is_held = history.held.get(&number).is_some_and(|until| *until > at);
        let (operation, expected) = if op == "release" {
            history.held.remove(&number);
            (Operation::Release { permit: number }, Expected::Released(is_held))
        } else {
            let until = at + history.spec.window_us;
            if is_held {
                history.held.insert(number, until);
            }
            (
                Operation::Renew { permit: number },
                Expected::Renewed { expires_us: is_held.then_some(until) },
            )
        };
        history.oracle.apply(&history.spec, at, operation);
        let line = json!({"at_us": at, "op": op, "permit": format!("l{number}")});
        self.push(history, line, expected);
        Some(self.figures(history, at, "peek", Operation::Peek { cost: 0 }, 0))
    }

    /// Runs the script through one process and compares every response.
    fn compare(&self) {
        let mut input = String::new();
        for step in &self.steps {
            writeln!(input, "{}", step.line).expect("writing to a string cannot fail");
        }
        let ended = run_with_input(&["simulate"], &input);
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
        assert_eq!(ended.stdout.lines().count(), self.steps.len());
        for (number, (step, line)) in self.steps.iter().zip(ended.stdout.lines()).enumerate() {
            let seen: Value = serde_json::from_str(line).expect("a response is JSON");
            let context = || {
                let name = step.description.split(' ').next().unwrap_or_default();
                let previous = self.steps.iter().take(number + 1);
                let same_key = previous.filter(|step| step.description.starts_with(name));
                let lines: Vec<&str> = same_key.map(|step| step.description.as_str()).collect();
                format!("{}\nreturned {seen}", lines.join("\n"))
            };
            step.expected.check(&seen, &context);
        }
    }
}

impl Expected {
    fn check(&self, seen: &Value, context: &dyn Fn() -> String) {
        match self {
            Self::Released(released) => {
                assert_eq!(*seen, json!({"released": released}), "{}", context());
            }
            Self::Renewed { expires_us } => {
                let expires = seen["expires_at"].as_str().map(micros);
                assert_eq!(
                    (seen["renewed"] == true, expires),
                    (expires_us.is_some(), *expires_us),
                    "{}",
                    context()
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
                for (field, expected) in figures.as_object().expect("an object") {
                    assert_eq!(&seen[field], expected, "{field} of {}", context());
                    if field != "verdict" {
                        assert_eq!(&limit[field], expected, "limits[0].{field} of {}", context());
                    }
                }
                assert_eq!(seen["permit"].as_str(), permit.as_deref(), "permit of {}", context());
                let is_bucket = spec.algorithm == Kind::TokenBucket;
                let burst = is_bucket.then(|| spec.capacity());
                assert_eq!(seen["burst"].as_u64(), burst, "burst of {}", context());
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
    let seeds = (0..).filter(|seed| is_expressible(&History::new(*seed, kind, level).limits()[0]));
    for seed in seeds.take(HISTORIES) {
        let mut generator = History::new(seed, kind, level);
        let mut history = KeyHistory {
            name: format!("{kind:?}/{level:?}/{seed}"),
            spec: generator.limits()[0].clone(),
            oracle: Oracle::new(),
            held: BTreeMap::new(),
            permits: BTreeMap::new(),
        };
        let mut last = None;
        for _ in 0..MOMENTS {
            let moment = generator.next(last.as_ref());
            last = script.add(&mut history, &moment).or(last);
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

/// Windows of any number of milliseconds, which histories rarely contain.
#[test]
fn windows_of_any_length_match_the_oracle() {
    let mut script = Script::default();
    let mut random = Random::new(11);
    let kinds = [
        Kind::TokenBucket,
        Kind::SlidingWindow,
        Kind::SlidingCounter,
        Kind::FixedWindow,
        Kind::Concurrency,
    ];
    for number in 0..120 {
        let kind = *random.pick(&kinds).expect("the list is not empty");
        let spec = LimitSpec::new(kind, random.magnitude(50), random.magnitude(100_000_000) * 1000);
        if spec.build().is_err() {
            continue;
        }
        let (name, mut now) = (format!("any/{kind:?}/{number}"), random.magnitude(1 << 50));
        let mut history = KeyHistory {
            name,
            spec,
            oracle: Oracle::new(),
            held: BTreeMap::new(),
            permits: BTreeMap::new(),
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
                _ => random.magnitude(history.spec.window_us),
            };
            let cost = random.within(0, history.spec.count + 1);
            let operation = match random.within(0, 9) {
                0 => Operation::Peek { cost },
                1 => Operation::Refund { cost },
                _ => Operation::Take { cost },
            };
            last =
                script.add(&mut history, &HistoryStep { at_us: now, limit: 0, operation }).or(last);
        }
    }
    script.compare();
}
