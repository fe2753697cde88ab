//! Simulates large fleets. `scripts/simulate-fleet` builds and runs it.

use std::error::Error;
use std::process::ExitCode;
use std::time::Instant;

use tollgate_testkit::fleet::{Figures, SCENARIOS, Scenario, StoreModel, simulate};

const USAGE: &str = "\
usage: fleet SCENARIO [NAME=VALUE …]    simulates one fleet and prints the figures as JSON
       fleet campaign DECISIONS [SEED]  simulates all scenarios, with leases off, auto and of fixed size, until there are
                                        that many decisions; prints a line for each, and fails if a limit was exceeded

options: seed nodes keys rate zipf spread limit burst lease (-1: off, 0: auto, else the size) latency far far-latency
         timeout warm-up length move-every servers call-ns plan-ns
Times are microseconds, rates are per second.

scenarios:
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.split_first() {
        Some((first, rest)) if first == "campaign" => campaign(rest),
        Some((name, options)) => one(name, options),
        None => Err(usage().into()),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn usage() -> String {
    let lines = SCENARIOS.map(|(name, text)| format!("  {name:10} {text}\n"));
    format!("{USAGE}{}", lines.concat())
}

fn one(name: &str, options: &[String]) -> Result<ExitCode, Box<dyn Error>> {
    let mut scenario = Scenario::named(name, 1).ok_or_else(usage)?;
    for option in options {
        let (name, value) = option.split_once('=').ok_or_else(usage)?;
        set(&mut scenario, name, value.parse()?)?;
    }
    let begun = Instant::now();
    let figures = simulate(scenario);
    let millis = u64::try_from(begun.elapsed().as_millis())?.max(1);
    eprintln!(
        "{} decisions in {millis} ms: {} per second",
        figures.all_decisions,
        figures.all_decisions * 1000 / millis
    );
    println!("{}", serde_json::to_string_pretty(&figures)?);
    Ok(exit_code(violations(&figures)))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked by users")]
fn set(scenario: &mut Scenario, name: &str, value: f64) -> Result<(), String> {
    let whole = value as u64;
    match name {
        "seed" => scenario.seed = whole,
        "nodes" => scenario.nodes = whole as usize,
        "keys" => scenario.keys = whole as u32,
        "rate" => scenario.rate = value,
        "zipf" => scenario.zipf = value,
        "spread" => scenario.spread = whole as usize,
        "limit" => scenario.limit_rate = whole,
        "burst" => scenario.limit_burst = whole,
        "lease" => scenario.lease = (value >= 0.0).then_some(whole as u32),
        "latency" => scenario.latency = whole,
        "far" => scenario.far.0 = whole as usize,
        "far-latency" => scenario.far.1 = whole,
        "timeout" => scenario.timeout = whole,
        "warm-up" => scenario.warm_up = whole,
        "length" => scenario.length = whole,
        "move-every" => scenario.move_every = whole,
        "servers" => scenario.store = StoreModel { servers: whole as usize, ..scenario.store },
        "call-ns" => scenario.store.call_ns = whole,
        "plan-ns" => scenario.store.plan_ns = whole,
        _ => return Err(format!("unknown option `{name}`\n{}", usage())),
    }
    Ok(())
}

fn violations(figures: &Figures) -> u64 {
    figures.violations + figures.share_violations
}

fn exit_code(violations: u64) -> ExitCode {
    if violations == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn campaign(arguments: &[String]) -> Result<ExitCode, Box<dyn Error>> {
    let decisions: u64 = arguments.first().ok_or_else(usage)?.parse()?;
    let mut seed: u64 = arguments.get(1).map_or(Ok(1), |text| text.parse())?;
    let (begun, mut total, mut checked, mut exceeded) = (Instant::now(), 0, 0, 0);
    'all: loop {
        for (name, _) in SCENARIOS {
            for lease in [Some(0), Some(200), None] {
                if total >= decisions {
                    break 'all;
                }
                let scenario = Scenario::named(name, seed).ok_or_else(usage)?;
                let figures = simulate(Scenario { lease, ..scenario });
                total += figures.all_decisions;
                checked += figures.checked;
                exceeded += violations(&figures);
                print_line(name, seed, lease, &figures);
            }
        }
        seed += 1;
    }
    println!(
        "{total} decisions, {checked} admissions checked, {exceeded} above a limit, {:.0} s",
        begun.elapsed().as_secs_f64()
    );
    Ok(exit_code(exceeded))
}

fn print_line(name: &str, seed: u64, lease: Option<u32>, figures: &Figures) {
    let lease = match lease {
        None => "off".to_owned(),
        Some(0) => "auto".to_owned(),
        Some(size) => size.to_string(),
    };
    println!(
        "{name} seed {seed} lease {lease}: {} decisions, {} violations, requests {:.4} per decision, hot tenth {:.4}, \
         used {:.4}, p99.9 {} us, store busy {:.3}",
        figures.all_decisions,
        violations(figures),
        figures.requests_per_decision,
        figures.hot_tenth.requests_per_decision,
        figures.used_part,
        figures.latency_us[2],
        figures.store.busy_part,
    );
}
