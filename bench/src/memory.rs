//! Bytes per key: how much a process grows when one store is filled in it and nothing else.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::Outcome;
use crate::entrant::Entrant;
use crate::keys::{Draw, Shape};
use crate::markdown::{Table, Target};
use crate::rounds::Rounds;
use crate::scale::{Scale, spoken};
use crate::timed_run::Run;

/// The argument that makes the program a child of [`measure`].
pub const CHILD: &str = "--memory";

/// Bytes beside the key's own.
const TARGET: Target = Target::AtMost(64.0);

/// Enough to have all code and its first allocations in memory before counting begins.
const WARM_UP: u32 = 1000;

/// The clock makes no difference to memory, so one tollgate is enough.
const ENTRANTS: [Entrant; 5] = [
    Entrant::Tollgate,
    Entrant::Governor,
    Entrant::Adaptive,
    Entrant::Periodic,
    Entrant::Probabilistic,
];

/// One store's bytes per key.
#[derive(Debug, Clone)]
pub struct Row {
    /// Whose.
    pub entrant: Entrant,
    /// The keys' form.
    pub shape: Shape,
    /// Everything, the key included.
    pub bytes: Rounds,
}

/// Runs `program` as a fresh child for every figure.
///
/// # Errors
/// A child that fails or prints something else.
pub fn measure(program: &Path, scale: &Scale) -> Outcome<Vec<Row>> {
    let mut rows = Vec::new();
    for shape in Shape::ALL {
        for entrant in ENTRANTS {
            let rounds = (0..scale.refills).map(|_| ask(program, entrant, shape, scale.filled));
            rows.push(Row { entrant, shape, bytes: rounds.collect::<Outcome<_>>()? });
        }
    }
    Ok(rows)
}

fn ask(program: &Path, entrant: Entrant, shape: Shape, keys: u32) -> Outcome<f64> {
    let arguments = [CHILD, entrant.name(), shape.name(), &keys.to_string()];
    let output = Command::new(program).args(arguments).output()?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{}: {}", entrant.name(), complaint.trim()).into());
    }
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}

/// What a child prints, given the arguments after [`CHILD`].
///
/// # Errors
/// Arguments that [`measure`] does not give, or a system without `/proc`.
pub fn child(arguments: &[String]) -> Outcome<String> {
    let [entrant, shape, keys] = arguments else {
        return Err("a child is given an entrant, a shape and a number of keys".into());
    };
    let entrant = ENTRANTS.into_iter().find(|known| known.name() == entrant);
    let shape = Shape::ALL.into_iter().find(|known| known.name() == shape);
    let (Some(entrant), Some(shape)) = (entrant, shape) else {
        return Err("no such entrant or shape".into());
    };
    Ok(grown(entrant, shape, keys.parse()?)?.to_string())
}

fn grown(entrant: Entrant, shape: Shape, keys: u32) -> Outcome<f64> {
    let draw = Draw::InTurn { from: 0, shape };
    entrant.build(WARM_UP)?.alone(&Run { draw, decisions: WARM_UP }).nanos()?;
    let before = resident_kib()?;
    let mut contestant = entrant.build(keys)?;
    contestant.alone(&Run { draw, decisions: keys }).nanos()?;
    let after = resident_kib()?;
    contestant.holds_all()?;
    Ok(f64::from(after.saturating_sub(before)) * 1024.0 / f64::from(keys))
}

fn resident_kib() -> Outcome<u32> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let figure = line.and_then(|line| line.split_whitespace().next());
    Ok(figure.ok_or("no VmRSS in /proc/self/status")?.parse()?)
}

/// The figures as a table.
#[must_use]
pub fn table(rows: &[Row], scale: &Scale) -> Table {
    let keys = format!("bytes per key, {} keys", spoken(scale.filled));
    let mut table = Table::new([&keys, "in total", "less the key", "target", ""]);
    for row in rows {
        let less = row.bytes.less(f64::from(row.shape.bytes()));
        let (target, verdict) = match row.entrant {
            Entrant::Tollgate => (TARGET.to_string(), TARGET.verdict(less.median()).to_owned()),
            _ => Default::default(),
        };
        let label = format!("{}, keys of {} bytes", row.entrant.name(), row.shape.bytes());
        table.push([label, row.bytes.to_string(), less.to_string(), target, verdict]);
    }
    table
}
