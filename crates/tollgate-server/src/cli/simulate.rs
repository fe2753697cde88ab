//! `tollgate simulate`: decides requests from JSON lines on a clock that the lines set.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use serde::Deserialize;
use tollgate::{Limiter, ManualClock, MemoryStore, Outcome, Permit, Query, Timestamp, Verb};

use super::Exit;
use super::args::SimulateArgs;
use super::block_on::block_on;
use super::policy::load;
use crate::error::ApiError;
use crate::files::bounded_line::{MAX_LINE, read_line};
use crate::wire::decision::{PermitText, decision_json_with};
use crate::wire::limit::{Algorithm, LimitEntry};
use crate::wire::parse::parse;
use crate::wire::permit::{ReleaseResponse, RenewResponse};
use crate::wire::query::QueryBody;
use crate::wire::scalar::{Integer, Pairs, Text, present};

/// One input line: a time, an operation, and a query or a permit.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    #[serde(default, deserialize_with = "present")]
    at_ms: Option<Integer>,
    #[serde(default, deserialize_with = "present")]
    at_us: Option<Integer>,
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
    cost: Option<Integer>,
    #[serde(default, borrow, deserialize_with = "present")]
    limits: Option<Vec<LimitEntry<'a>>>,
    #[serde(default, deserialize_with = "present")]
    limit: Option<Integer>,
    #[serde(default, deserialize_with = "present")]
    window_ms: Option<Integer>,
    #[serde(default, deserialize_with = "present")]
    algorithm: Option<Algorithm>,
    #[serde(default, deserialize_with = "present")]
    burst: Option<Integer>,
    #[serde(default, borrow, deserialize_with = "present")]
    name: Option<Text<'a>>,
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

/// A limiter on a manual clock, and the permits that it has issued.
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
        // The reader closed the pipe, as `head` does.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Success,
        Err(error) => {
            eprintln!("tollgate: {}: {error}", args.lines.display());
            Exit::Usage
        }
    }
}

fn open(lines: &Path) -> io::Result<Box<dyn BufRead>> {
    if lines == Path::new("-") {
        return Ok(Box::new(io::stdin().lock()));
    }
    Ok(Box::new(BufReader::new(File::open(lines)?)))
}

impl Simulation {
    /// Writes one response per line and returns the number of invalid lines.
    fn run(&mut self, lines: &mut dyn BufRead, out: &mut dyn Write) -> io::Result<usize> {
        let (mut invalid, mut number) = (0, 0);
        let mut line = Vec::new();
        while read_line(lines, &mut line)? {
            number += 1;
            let text = line.trim_ascii();
            if !text.is_empty() {
                let response = self.respond(text).unwrap_or_else(|error| {
                    invalid += 1;
                    error.to_json(Some(number))
                });
                out.write_all(&response)?;
                out.write_all(b"\n")?;
            }
            line.clear();
        }
        out.flush()?;
        Ok(invalid)
    }

    fn respond(&mut self, text: &[u8]) -> Result<Vec<u8>, ApiError> {
        if text.len() > MAX_LINE {
            return Err(ApiError::invalid(format!(
                "the line is longer than the maximum of {MAX_LINE} bytes"
            )));
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

    fn set_clock(&self, at: Option<Timestamp>) {
        if let Some(at) = at {
            self.clock.set(at);
        }
    }

    /// Returns the query of a line and sets the clock to its time. An invalid line does not move the clock.
    fn query<'l>(&self, line: Line<'l>) -> Result<Query<'l>, ApiError> {
        if line.permit.is_some() {
            return Err(ApiError::invalid("is allowed with release and renew only").at("permit"));
        }
        let at = line.time()?;
        let query = line.query_body().into_query()?;
        self.set_clock(at);
        Ok(query)
    }

    /// Returns the permit that a line names and sets the clock to its time.
    fn permit(&self, line: &Line<'_>) -> Result<Permit, ApiError> {
        let at = line.time()?;
        line.check_only_permit()?;
        let permit = self.find(line.permit.as_ref())?;
        self.set_clock(at);
        Ok(permit)
    }

    fn decide(&mut self, line: Line<'_>, verb: Verb) -> Result<Vec<u8>, ApiError> {
        let query = self.query(line)?;
        self.respond_to(&query, verb)
    }

    fn reset(&mut self, line: Line<'_>) -> Result<Vec<u8>, ApiError> {
        let query = self.query(line)?;
        block_on(self.limiter.reset(&query)).map_err(|error| ApiError::from(&error))?;
        self.respond_to(&query, Verb::Peek)
    }

    fn respond_to(&mut self, query: &Query<'_>, verb: Verb) -> Result<Vec<u8>, ApiError> {
        let name = format!("l{}", self.permits.len() + 1);
        let decision = self.limiter.decide(verb, query, |outcome: &Outcome<'_, '_>| {
            (decision_json_with(outcome, PermitText::Alias(&name)), outcome.permit.clone())
        });
        let (response, permit) = block_on(decision).map_err(|error| ApiError::from(&error))?;
        self.permits.extend(permit.map(|permit| (name, permit)));
        Ok(response)
    }

    fn release(&self, line: &Line<'_>) -> Result<Vec<u8>, ApiError> {
        let released = block_on(self.limiter.release(&self.permit(line)?));
        let released = released.map_err(|error| ApiError::from(&error))?;
        Ok(serde_json::to_vec(&ReleaseResponse { released }).unwrap_or_default())
    }

    fn renew(&self, line: &Line<'_>) -> Result<Vec<u8>, ApiError> {
        let expires_at = block_on(self.limiter.renew(&self.permit(line)?));
        let expires_at = expires_at.map_err(|error| ApiError::from(&error))?;
        Ok(serde_json::to_vec(&RenewResponse::new(expires_at)).unwrap_or_default())
    }

    fn find(&self, permit: Option<&Text<'_>>) -> Result<Permit, ApiError> {
        let invalid = |detail: String| ApiError::invalid(detail).at("permit");
        let name = permit.ok_or_else(|| invalid("is missing".to_owned()))?;
        let permit = self.permits.get(name.as_str()).cloned();
        permit.ok_or_else(|| {
            let prefix: String = name.as_str().chars().take(64).collect();
            invalid(format!("no earlier line returned the permit {prefix:?}"))
        })
    }
}

impl<'a> Line<'a> {
    fn time(&self) -> Result<Option<Timestamp>, ApiError> {
        match (self.at_ms, self.at_us) {
            (Some(_), Some(_)) => {
                Err(ApiError::invalid("at_ms and at_us exclude each other; give one").at("at_ms"))
            }
            (None, None) => Ok(None),
            (Some(ms), None) => match ms.0.checked_mul(1000) {
                Some(us) if us <= Timestamp::MAX.as_micros() => {
                    Ok(Some(Timestamp::from_micros(us)))
                }
                _ => Err(ApiError::invalid("exceeds the maximum time of 2^53 µs").at("at_ms")),
            },
            (None, Some(us)) => Ok(Some(Timestamp::from_micros(us.0))),
        }
    }

    fn query_body(self) -> QueryBody<'a> {
        let Self {
            key, facts, tenant, cost, limits, limit, window_ms, algorithm, burst, name, ..
        } = self;
        QueryBody { key, facts, tenant, cost, limits, limit, window_ms, algorithm, burst, name }
    }

    /// Returns an error if a line with a permit also has fields of a query.
    fn check_only_permit(&self) -> Result<(), ApiError> {
        let fields = [
            ("key", self.key.is_some()),
            ("facts", self.facts.is_some()),
            ("tenant", self.tenant.is_some()),
            ("cost", self.cost.is_some()),
            ("limits", self.limits.is_some()),
            ("limit", self.limit.is_some()),
            ("window_ms", self.window_ms.is_some()),
            ("algorithm", self.algorithm.is_some()),
            ("burst", self.burst.is_some()),
            ("name", self.name.is_some()),
        ];
        match fields.iter().find(|(_, is_present)| *is_present) {
            Some((field, _)) => {
                Err(ApiError::invalid("is not allowed with release and renew; give only a permit")
                    .at(*field))
            }
            None => Ok(()),
        }
    }
}
