//! The main comparison: tollgate, throttlecrab-server and a constant response.

use super::policy::Policy;
use super::runner::Runner;
use crate::Outcome;
use crate::load::comparison::{Comparison, Contender};
use crate::markdown::Target;

const CONTENDERS: [Contender; 3] = [
    Contender { name: "tollgate", short: "tollgate", target: None },
    Contender {
        name: "throttlecrab-server",
        short: "throttlecrab-server",
        target: Some(Target::Above(1.0)),
    },
    Contender {
        name: "axum, constant response",
        short: "axum constant",
        target: Some(Target::AtLeast(0.9)),
    },
];

/// Measures all three servers. Also returns the body length of tollgate's response and of the constant one, in bytes.
///
/// # Errors
/// A server does not start, or does not allow every request.
pub fn measure(runner: Runner<'_>) -> Outcome<(Comparison, f64)> {
    let keys = runner.scale.keys;
    let tollgate = runner.programs.tollgate(Policy::Default, keys)?;
    let body_bytes = runner.fill(&tollgate)?.payload_bytes;
    let throttlecrab = runner.programs.throttlecrab(keys)?;
    runner.fill(&throttlecrab)?;
    let constant = runner.programs.constant(body_bytes, keys)?;
    let figures = runner.rounds([&tollgate, &throttlecrab, &constant])?;
    Ok((Comparison::new(String::new(), CONTENDERS, figures), body_bytes))
}
