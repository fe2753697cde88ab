//! `tollgate simulate`: decides requests from JSON lines on a clock that the lines set.

mod line;
mod reservations;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use tollgate::{Limiter, ManualClock, MemoryStore, Outcome, Query, Timestamp, Verb};

use super::Exit;
use super::args::SimulateArgs;
use super::block_on::block_on;
use super::policy::load;
use crate::api::Held;
use crate::error::ApiError;
use crate::files::bounded_line::{MAX_LINE, read_line};
use crate::wire::decision::{HandleText, decision_json_with};
use crate::wire::parse::parse;
use crate::wire::permit::{ReleaseResponse, RenewResponse};
use crate::wire::scalar::Text;
use line::{Line, Op};

/// A limiter on a manual clock, and the permits and reservations that it has issued, by name.
#[derive(Debug)]
struct Simulation {
    clock: ManualClock,
    limiter: Limiter<MemoryStore<ManualClock>>,
    held: HashMap<String, Held>,
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
    let mut simulation = Simulation { clock, limiter, held: HashMap::new() };
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
            Op::Reserve => self.reserve(line),
            Op::Settle => self.settle(&line),
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
        let at = line.time()?;
        let query = line.into_query()?;
        self.set_clock(at);
        Ok(query)
    }

    /// Returns what a line releases or renews, and sets the clock to its time.
    fn handle(&self, line: &Line<'_>) -> Result<Held, ApiError> {
        let at = line.time()?;
        line.check_only_handle()?;
        let held = match (&line.permit, &line.reservation) {
            (Some(_), Some(_)) => {
                let detail = "`permit` and `reservation` exclude each other; give one of them";
                return Err(ApiError::invalid(detail).at("permit"));
            }
            (None, Some(name)) => Held::Reservation(self.find_reservation(Some(name))?),
            (permit, None) => self.find(permit.as_ref(), "permit")?,
        };
        self.set_clock(at);
        Ok(held)
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
        let name = format!("l{}", self.held.len() + 1);
        let decision = self.limiter.decide(verb, query, |outcome: &Outcome<'_, '_>| {
            (decision_json_with(outcome, HandleText::PermitAlias(&name)), outcome.permit.clone())
        });
        let (response, permit) = block_on(decision).map_err(|error| ApiError::from(&error))?;
        self.held.extend(permit.map(|permit| (name, Held::Permit(permit))));
        Ok(response)
    }

    fn release(&self, line: &Line<'_>) -> Result<Vec<u8>, ApiError> {
        let released = match self.handle(line)? {
            Held::Permit(permit) => block_on(self.limiter.release(&permit)),
            Held::Reservation(token) => self.cancel(&token),
        };
        let released = released.map_err(|error| ApiError::from(&error))?;
        Ok(serde_json::to_vec(&ReleaseResponse { released }).unwrap_or_default())
    }

    fn renew(&self, line: &Line<'_>) -> Result<Vec<u8>, ApiError> {
        let expires_at = match self.handle(line)? {
            Held::Permit(permit) => block_on(self.limiter.renew(&permit)),
            Held::Reservation(token) => block_on(self.limiter.renew_reservation(&token, None)),
        };
        let expires_at = expires_at.map_err(|error| ApiError::from(&error))?;
        Ok(serde_json::to_vec(&RenewResponse::new(expires_at)).unwrap_or_default())
    }

    /// Finds what an earlier line returned under a name. `kind` is the field that has the name.
    fn find(&self, name: Option<&Text<'_>>, kind: &'static str) -> Result<Held, ApiError> {
        let invalid = |detail: String| ApiError::invalid(detail).at(kind);
        let name = name.ok_or_else(|| invalid("is missing".to_owned()))?;
        let held = self.held.get(name.as_str()).filter(|held| kind == kind_of(held)).cloned();
        held.ok_or_else(|| {
            let prefix: String = name.as_str().chars().take(64).collect();
            invalid(format!("no earlier line returned the {kind} {prefix:?}"))
        })
    }
}

/// Returns the field of a response in which a handle is.
const fn kind_of(held: &Held) -> &'static str {
    match held {
        Held::Permit(_) => "permit",
        Held::Reservation(_) => "reservation",
    }
}
