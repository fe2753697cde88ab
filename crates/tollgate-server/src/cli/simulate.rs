//! `tollgate simulate`: the decision code of the service, on a clock that the input sets.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use serde::Deserialize;
use tollgate::{Limiter, ManualClock, MemoryStore, Outcome, Permit, Query, Timestamp, Verb};

use super::args::SimulateArgs;
use super::policy::load;
use super::{Exit, ready};
use crate::error::ApiError;
use crate::wire::decision::{PermitText, decision_json_with};
use crate::wire::limit::LimitBody;
use crate::wire::parse::parse;
use crate::wire::permit::{Released, Renewed};
use crate::wire::query::QueryBody;
use crate::wire::scalar::{Object, Pairs, Text, Whole, present};

/// A longer line is a mistake.
const MAX_LINE: usize = 64 * 1024;

/// One line: a question, when it is asked, and what is to be done.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    #[serde(default, deserialize_with = "present")]
    at_ms: Option<Whole>,
    #[serde(default, deserialize_with = "present")]
    at_us: Option<Whole>,
    #[serde(default)]
    op: Op,
    #[serde(default, borrow, deserialize_with = "present")]
    permit: Option<Text<'a>>,
    #[serde(default, borrow, deserialize_with = "present")]
    key: Option<Text<'a>>,
    #[serde(default, borrow, deserialize_with = "present")]
    facts: Option<Pairs<'a>>,
    #[serde(default, borrow, deserialize_with = "present")]
    tenant: Option<Text<'a>>,
    #[serde(default, deserialize_with = "present")]
    cost: Option<Whole>,
    #[serde(default, borrow, deserialize_with = "present")]
    limits: Option<Vec<Object<LimitBody<'a>>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Op {
    #[default]
    Check,
    Peek,
    Refund,
    Reset,
    Release,
    Renew,
}

/// A policy, its counters, and the time.
#[derive(Debug)]
struct Simulation {
    clock: ManualClock,
    limiter: Limiter<MemoryStore<ManualClock>>,
    permits: HashMap<String, Permit>,
}

pub(super) fn run(args: &SimulateArgs) -> Exit {
    let policy = match load(args.policy.as_deref()) {
        Ok(policy) => policy,
        Err(error) => {
            eprintln!("tollgate: {error}");
            return Exit::Usage;
        }
    };
    let clock = ManualClock::new();
    let store = MemoryStore::builder().clock(clock.clone()).build();
    let limiter = Limiter::new(store, policy);
    let mut simulation = Simulation { clock, limiter, permits: HashMap::new() };
    match open(&args.lines)
        .and_then(|mut lines| simulation.run(&mut *lines, &mut io::stdout().lock()))
    {
        Ok(0) => Exit::Success,
        Ok(_) => Exit::Usage,
        // Whoever reads our output has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Success,
        Err(error) => {
            eprintln!("tollgate: {}: {error}", args.lines.display());
            Exit::Usage
        }
    }
}

/// Reads a line, of a longer one than any may be only so much as shows that it is; false at the end.
fn read_line(lines: &mut dyn BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    let most = u64::try_from(MAX_LINE).unwrap_or(u64::MAX);
    let mut read = lines.take(most + 2).read_until(b'\n', line)?;
    let was_any = read > 0;
    while read > MAX_LINE && !line.ends_with(b"\n") {
        let rest = lines.fill_buf()?;
        let end = rest.iter().position(|byte| *byte == b'\n');
        let length = end.map_or(rest.len(), |end| end + 1);
        if end.is_some() || rest.is_empty() {
            read = 0;
        }
        lines.consume(length);
    }
    Ok(was_any)
}

fn open(lines: &Path) -> io::Result<Box<dyn BufRead>> {
    if lines == Path::new("-") {
        return Ok(Box::new(io::stdin().lock()));
    }
    Ok(Box::new(BufReader::new(File::open(lines)?)))
}

impl Simulation {
    /// Answers each line; how many were wrong.
    fn run(&mut self, lines: &mut dyn BufRead, out: &mut dyn Write) -> io::Result<usize> {
        let (mut wrong, mut number) = (0, 0);
        let mut line = Vec::new();
        while read_line(lines, &mut line)? {
            number += 1;
            let text = line.trim_ascii();
            if !text.is_empty() {
                let answer = self.answer(text).unwrap_or_else(|error| {
                    wrong += 1;
                    error.to_json(Some(number))
                });
                out.write_all(&answer)?;
                out.write_all(b"\n")?;
            }
            line.clear();
        }
        out.flush()?;
        Ok(wrong)
    }

    fn answer(&mut self, text: &[u8]) -> Result<Vec<u8>, ApiError> {
        if text.len() > MAX_LINE {
            return Err(ApiError::invalid(format!("the line is longer than {MAX_LINE} bytes")));
        }
        let line: Line<'_> = parse(text)?;
        match line.op {
            Op::Check => self.decide(line, Verb::Take),
            Op::Peek => self.decide(line, Verb::Peek),
            Op::Refund => self.decide(line, Verb::Refund),
            Op::Reset => self.reset(line),
            Op::Release => self.release(&line),
            Op::Renew => self.renew(&line),
        }
    }

    fn move_to(&self, at: Option<Timestamp>) {
        if let Some(at) = at {
            self.clock.set(at);
        }
    }

    /// What a line asks, once the clock stands where the line says. Nothing moves for a wrong one.
    fn asked<'l>(&self, line: Line<'l>) -> Result<Query<'l>, ApiError> {
        if line.permit.is_some() {
            return Err(ApiError::invalid("is for release and renew only").at("permit"));
        }
        let at = line.time()?;
        let asked = line.question().into_query()?;
        self.move_to(at);
        Ok(asked)
    }

    /// The permit a line is about, likewise.
    fn held(&self, line: &Line<'_>) -> Result<Permit, ApiError> {
        let at = line.time()?;
        line.asks_nothing()?;
        let permit = self.find(line.permit.as_ref())?;
        self.move_to(at);
        Ok(permit)
    }

    fn decide(&mut self, line: Line<'_>, verb: Verb) -> Result<Vec<u8>, ApiError> {
        let asked = self.asked(line)?;
        self.tell(&asked, verb)
    }

    fn reset(&mut self, line: Line<'_>) -> Result<Vec<u8>, ApiError> {
        let asked = self.asked(line)?;
        ready::now(self.limiter.reset(&asked)).map_err(|error| ApiError::from(&error))?;
        self.tell(&asked, Verb::Peek)
    }

    fn tell(&mut self, asked: &Query<'_>, verb: Verb) -> Result<Vec<u8>, ApiError> {
        let called = format!("l{}", self.permits.len() + 1);
        let told = self.limiter.decide(verb, asked, |outcome: &Outcome<'_, '_>| {
            (decision_json_with(outcome, PermitText::Alias(&called)), outcome.permit.clone())
        });
        let (answer, permit) = ready::now(told).map_err(|error| ApiError::from(&error))?;
        self.permits.extend(permit.map(|permit| (called, permit)));
        Ok(answer)
    }

    fn release(&self, line: &Line<'_>) -> Result<Vec<u8>, ApiError> {
        let released = ready::now(self.limiter.release(&self.held(line)?));
        let released = released.map_err(|error| ApiError::from(&error))?;
        Ok(serde_json::to_vec(&Released { released }).unwrap_or_default())
    }

    fn renew(&self, line: &Line<'_>) -> Result<Vec<u8>, ApiError> {
        let until = ready::now(self.limiter.renew(&self.held(line)?));
        let until = until.map_err(|error| ApiError::from(&error))?;
        Ok(serde_json::to_vec(&Renewed::until(until)).unwrap_or_default())
    }

    fn find(&self, permit: Option<&Text<'_>>) -> Result<Permit, ApiError> {
        let wrong = |detail: String| ApiError::invalid(detail).at("permit");
        let name = permit.ok_or_else(|| wrong("is missing".to_owned()))?;
        let known = self.permits.get(name.as_str()).cloned();
        known.ok_or_else(|| {
            let shown: String = name.as_str().chars().take(64).collect();
            wrong(format!("no earlier answer gave the permit {shown:?}"))
        })
    }
}

impl<'a> Line<'a> {
    fn time(&self) -> Result<Option<Timestamp>, ApiError> {
        match (self.at_ms, self.at_us) {
            (Some(_), Some(_)) => {
                Err(ApiError::invalid("at_ms and at_us are both given; give one").at("at_ms"))
            }
            (None, None) => Ok(None),
            (Some(ms), None) => match ms.0.checked_mul(1000) {
                Some(us) if us <= Timestamp::MAX.as_micros() => {
                    Ok(Some(Timestamp::from_micros(us)))
                }
                _ => Err(ApiError::invalid("is later than time is counted (2^53 µs)").at("at_ms")),
            },
            (None, Some(us)) => Ok(Some(Timestamp::from_micros(us.0))),
        }
    }

    fn question(self) -> QueryBody<'a> {
        let Self { key, facts, tenant, cost, limits, .. } = self;
        QueryBody { key, facts, tenant, cost, limits }
    }

    /// A line about a permit has no question beside it.
    fn asks_nothing(&self) -> Result<(), ApiError> {
        let given = [
            ("key", self.key.is_some()),
            ("facts", self.facts.is_some()),
            ("tenant", self.tenant.is_some()),
            ("cost", self.cost.is_some()),
            ("limits", self.limits.is_some()),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            Some((field, _)) => {
                Err(ApiError::invalid("is not for release and renew, which have a permit")
                    .at(*field))
            }
            None => Ok(()),
        }
    }
}
